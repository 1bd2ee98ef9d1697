import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import { decompressLz4 } from './lz4.ts';
import { decompressSnappy } from './snappy.ts';

/** A compression codec of kafkajs, which has gzip built in. */
interface Codec {
  compress(encoder: { buffer: Buffer }): Promise<Buffer>;
  decompress(bytes: Buffer): Promise<Buffer>;
}

const readOnly = (name: string, decompress: (bytes: Buffer) => Buffer): Codec => ({
  compress: async () => Promise.reject(new Error(`${name} can only be decompressed here: compress with gzip or zstd`)),
  decompress: async (bytes) => decompress(bytes),
});

/** By Kafka's compression ids. */
const codecs: Record<number, Codec> = {
  2: readOnly('snappy', decompressSnappy),
  3: readOnly('lz4', decompressLz4),
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
