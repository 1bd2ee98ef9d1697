import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';

/** A compression codec of kafkajs, which has gzip built in. */
interface Codec {
  compress(encoder: { buffer: Buffer }): Promise<Buffer>;
  decompress(bytes: Buffer): Promise<Buffer>;
}

/** By Kafka's compression ids. */
const codecs: Record<number, Codec> = {
  4: {
    compress: ({ buffer }) => promisify(zstdCompress)(buffer),
    decompress: (bytes) => promisify(zstdDecompress)(bytes),
  },
};

/** Registers the compression codecs that kafkajs lacks. A codec that is already registered is kept. */
export function addCodecs({ CompressionCodecs }: { CompressionCodecs: unknown }): void {
  const known = CompressionCodecs as Record<number, () => unknown>;
  for (const [number, codec] of Object.entries(codecs)) {
    try {
      known[Number(number)]?.();
    } catch {
      known[Number(number)] = () => codec;
    }
  }
}
