import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';

/** Kafka's compression id of zstd. */
const zstd = 4;
const compress = promisify(zstdCompress);
const codec = {
  compress: ({ buffer }: { buffer: Buffer }): Promise<Buffer> => compress(buffer),
  decompress: promisify(zstdDecompress),
};

/** Registers zstd, which Node has and kafkajs lacks. A codec that is already registered is kept. */
export function addZstd({ CompressionCodecs }: { CompressionCodecs: unknown }): void {
  const codecs = CompressionCodecs as Record<number, () => unknown>;
  try {
    codecs[zstd]?.();
  } catch {
    codecs[zstd] = () => codec;
  }
}
