import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import { decompressLz4 } from './lz4.ts';
import { decompressSnappy } from './snappy.ts';

/** What kafkajs takes for a compression; it has gzip itself. */
interface Codec {
  compress(encoder: { buffer: Buffer }): Promise<Buffer>;
  decompress(bytes: Buffer): Promise<Buffer>;
}

const readOnly = (name: string, decompress: (bytes: Buffer) => Buffer): Codec => ({
  compress: async () => Promise.reject(new Error(`${name} is only read here: write gzip or zstd`)),
  decompress: async (bytes) => decompress(bytes),
});

/** By Kafka's numbers of compressions. */
const codecs: Record<number, Codec> = {
  2: readOnly('snappy', decompressSnappy),
  3: readOnly('lz4', decompressLz4),
  4: {
    compress: ({ buffer }) => promisify(zstdCompress)(buffer),
    decompress: (bytes) => promisify(zstdDecompress)(bytes),
  },
};

/** Teaches kafkajs the compressions that it lacks. One that somebody else has given it stays. */
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
