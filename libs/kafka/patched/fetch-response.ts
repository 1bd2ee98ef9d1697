import { createRequire } from 'node:module';
import { ByteReader } from './byte-reader.ts';
import { crc32c } from './crc32c.ts';
import { FetchedRecord } from './fetched-record.ts';

export interface FetchedPartition {
  partition: number;
  errorCode: number;
  highWatermark: bigint;
  preferredReadReplica: number;
  /** The messages of all complete record batches. Those of the first batch may precede the requested offset. */
  messages: FetchedRecord[];
  /** The offset after the last of these batches, even if compaction removed its messages. */
  nextOffset: bigint;
  /** Describes a corrupt batch after these messages. Neither it nor anything after it is read. */
  corrupt?: string;
}

/** A fetch response in kafkajs' form. */
export interface FetchResponse {
  throttleTime: number;
  clientSideThrottleTime: number;
  errorCode: number;
  sessionId: number;
  responses: { topicName: string; partitions: FetchedPartition[] }[];
}

interface Codec {
  decompress(bytes: Buffer): Promise<Buffer>;
}

interface BatchHeader {
  baseOffset: bigint;
  isControl: boolean;
  attributes: number;
  firstTimestampMs: number;
  /** The time at which the batch was appended, if the topic stores that time. */
  appendedAtMs: number | undefined;
  count: number;
}

const batchHeaderBytes = 61;
const sizeBytes = 12;
const magicOffset = 16;
const crcOffset = 17;
/** The start of the bytes that the checksum covers. */
const checkedOffset = 21;
const knownMagic = 2;
const abortedTransactionBytes = 16;
const compressionMask = 0x07;
const logAppendTimeFlag = 0x08;
const controlFlag = 0x20;

const { lookupCodecByAttributes } = createRequire(import.meta.url)('kafkajs/src/protocol/message/compression') as {
  lookupCodecByAttributes(attributes: number): Codec | null;
};

/**
 * Decodes a fetch response (version 11). Unlike kafkajs, it verifies the checksum of every record batch, omits
 * control records and partitions without new data, and decodes messages only on access. Rejects if a batch has
 * an unsupported compression or a format older than Kafka 0.11.
 */
export async function decodeFetchResponse(bytes: Buffer): Promise<FetchResponse> {
  const reader = new ByteReader(bytes);
  const clientSideThrottleTime = reader.int32();
  const errorCode = reader.int16();
  const sessionId = reader.int32();
  const responses: FetchResponse['responses'] = [];
  for (let topics = reader.int32(); topics > 0; topics--) {
    const topicName = reader.string();
    const partitions: FetchedPartition[] = [];
    for (let count = reader.int32(); count > 0; count--) {
      const partition = readPartitionHeader(reader);
      const end = reader.at + 4 + Math.max(0, reader.int32());
      while (end - reader.at >= batchHeaderBytes && partition.corrupt === undefined) {
        const reading = readBatch(reader, end, partition);
        if (reading) await reading;
      }
      reader.at = end;
      if (partition.errorCode !== 0 || partition.nextOffset > 0n || partition.corrupt !== undefined)
        partitions.push(partition);
    }
    if (partitions.length > 0) responses.push({ topicName, partitions });
  }
  // As in kafkajs: since this version the client waits for the throttle time.
  return { throttleTime: 0, clientSideThrottleTime, errorCode, sessionId, responses };
}

function readPartitionHeader(reader: ByteReader): FetchedPartition {
  const partition = reader.int32();
  const errorCode = reader.int16();
  const highWatermark = reader.int64();
  reader.at += 16; // last stable offset, log start offset
  const aborted = Math.max(0, reader.int32());
  reader.at += aborted * abortedTransactionBytes;
  return { partition, errorCode, highWatermark, preferredReadReplica: reader.int32(), messages: [], nextOffset: 0n };
}

/**
 * Adds a record batch if its checksum is correct. The size limit of the fetch may have truncated the last
 * batch, but never the first. Returns a promise only if the batch is compressed.
 */
function readBatch(reader: ByteReader, end: number, into: FetchedPartition): Promise<void> | undefined {
  const { bytes, at } = reader;
  const length = bytes.readInt32BE(at + 8);
  const next = at + sizeBytes + length;
  reader.at = Math.min(next, end);
  if (next > end && into.nextOffset > 0n) return undefined;
  if (next > end || length < batchHeaderBytes - sizeBytes) {
    into.corrupt = `the record batch at offset ${bytes.readBigInt64BE(at)} has an impossible length`;
    return undefined;
  }
  const magic = bytes[at + magicOffset];
  if (magic === knownMagic && crc32c(bytes, at + checkedOffset, next) !== bytes.readUInt32BE(at + crcOffset)) {
    into.corrupt = `the record batch at offset ${bytes.readBigInt64BE(at)} does not match its checksum`;
    return undefined;
  }
  if (magic !== knownMagic) throw new Error(`a record batch of format ${magic} cannot be read`);
  const attributes = bytes.readInt16BE(at + 21);
  const header: BatchHeader = {
    baseOffset: bytes.readBigInt64BE(at),
    isControl: (attributes & controlFlag) !== 0,
    attributes,
    firstTimestampMs: Number(bytes.readBigInt64BE(at + 27)),
    appendedAtMs: attributes & logAppendTimeFlag ? Number(bytes.readBigInt64BE(at + 35)) : undefined,
    count: bytes.readInt32BE(at + 57),
  };
  into.nextOffset = header.baseOffset + BigInt(bytes.readInt32BE(at + 23)) + 1n;
  if (header.isControl) return undefined;
  if (attributes & compressionMask) return readCompressed(bytes.subarray(at + batchHeaderBytes, next), header, into);
  readRecords(new ByteReader(bytes, at + batchHeaderBytes), header, into);
  return undefined;
}

async function readCompressed(bytes: Buffer, header: BatchHeader, into: FetchedPartition): Promise<void> {
  const codec = lookupCodecByAttributes(header.attributes);
  if (!codec) throw new Error('a record batch is compressed with an unknown codec');
  readRecords(new ByteReader(await codec.decompress(bytes)), header, into);
}

function readRecords(
  reader: ByteReader,
  { baseOffset, firstTimestampMs, appendedAtMs, count }: BatchHeader,
  { messages }: FetchedPartition,
): void {
  for (let left = count; left > 0; left--) {
    const length = reader.varInt();
    const next = reader.at + length;
    reader.at += 1; // attributes, unused
    const timestampDelta = reader.varInt();
    const offset = baseOffset + BigInt(reader.varInt());
    messages.push(
      new FetchedRecord(offset, appendedAtMs ?? firstTimestampMs + timestampDelta, reader.bytes, reader.at),
    );
    reader.at = next;
  }
}
