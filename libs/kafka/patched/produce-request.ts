import { createRequire } from 'node:module';
import { ByteWriter } from './byte-writer.ts';
import { crc32c } from './crc32c.ts';
import { type ContentInput, writeContent } from './record.ts';

/** A message as kafkajs passes it to its encoders. */
export interface MessageInput extends ContentInput {
  timestamp?: string;
}

interface PartitionData {
  partition: number;
  messages: MessageInput[];
  firstSequence: number;
}

export interface ProduceArguments {
  acks: number;
  timeout: number;
  transactionalId?: string | null;
  producerId: string | number;
  producerEpoch: number;
  compression: number;
  topicData: { topic: string; partitions: PartitionData[] }[];
}

/** A request as kafkajs sends it. */
export interface Request {
  apiKey: number;
  apiVersion: number;
  apiName: string;
  expectResponse?(): boolean;
  encode(): Promise<Encoder>;
}

/** The used part of kafkajs' encoder. */
interface Encoder {
  buffer: Buffer;
  writeBuffer(bytes: Buffer): Encoder;
}

const Encoder = createRequire(import.meta.url)('kafkajs/src/protocol/encoder') as new (bytes: number) => Encoder;

const produceApiKey = 0;
const magic = 2;
const batchHeaderBytes = 12;
const crcOffset = 17;

/** One per process suffices, because each use is synchronous. */
const requestWriter = new ByteWriter();

/**
 * Encodes a produce request (versions 3 to 7) in one pass, byte for byte as kafkajs does. Compressed,
 * transactional, and timestamped messages, which we do not send, are encoded by `theirs`, kafkajs' own encoder.
 */
export function produceRequestWith(
  theirs: (options: ProduceArguments) => Request,
): (options: ProduceArguments) => Request {
  return (options) => {
    const { acks, timeout, transactionalId, compression, topicData } = options;
    const isDated = topicData.some(({ partitions }) =>
      partitions.some(({ messages }) => messages.some(({ timestamp }) => timestamp !== undefined)),
    );
    if (compression || transactionalId || isDated) return theirs(options);
    const encode = async (): Promise<Encoder> => {
      const writer = requestWriter;
      writer.clear();
      writer.string(null);
      writer.int16(acks);
      writer.int32(timeout);
      writer.int32(topicData.length);
      for (const { topic, partitions } of topicData) {
        writer.string(topic);
        writer.int32(partitions.length);
        for (const data of partitions) writePartition(writer, data, options);
      }
      const bytes = writer.take();
      return new Encoder(bytes.length).writeBuffer(bytes);
    };
    return { apiKey: produceApiKey, apiVersion: 3, apiName: 'Produce', expectResponse: () => acks !== 0, encode };
  };
}

function writePartition(
  writer: ByteWriter,
  { partition, messages, firstSequence }: PartitionData,
  { producerId, producerEpoch }: ProduceArguments,
): void {
  writer.int32(partition);
  writer.int32(0);
  const start = writer.position;
  writer.int64(0n);
  writer.int32(0);
  writer.int32(0);
  writer.int8(magic);
  writer.int32(0);
  const body = writer.position;
  const now = BigInt(Date.now());
  writer.int16(0);
  writer.int32(messages.length - 1);
  writer.int64(now);
  writer.int64(now);
  writer.int64(BigInt(producerId));
  writer.int16(producerEpoch);
  writer.int32(firstSequence);
  writer.int32(messages.length);
  for (let i = 0; i < messages.length; i++) writeRecord(writer, messages[i] as MessageInput, i, 0);
  writer.int32At(start - 4, writer.position - start);
  writer.int32At(start + batchHeaderBytes - 4, writer.position - start - batchHeaderBytes);
  writer.int32At(start + crcOffset, crc32c(writer.bytes, body, writer.position));
}

/** One record of a record batch (Kafka protocol, record format v2). */
export function writeRecord(
  writer: ByteWriter,
  message: MessageInput,
  offsetDelta: number,
  timestampDelta: number,
): void {
  const start = writer.beginSized();
  writer.int8(0);
  writer.varInt(timestampDelta);
  writer.varInt(offsetDelta);
  writeContent(writer, message);
  writer.endSized(start);
}
