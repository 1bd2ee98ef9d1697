import { ByteWriter } from '#libs/contracts/byte-writer.ts';
import { type Content, type ContentInput, writeContent } from '#libs/contracts/record.ts';
import { crc32c } from './crc32c.ts';

/** A message as kafkajs hands it to its encoders. */
export interface MessageInput extends ContentInput {
  /** Instead of key, value and headers, where they are encoded already. */
  content?: Content;
  timestamp?: string;
}

interface PartitionData {
  partition: number;
  messages: MessageInput[];
  firstSequence: number;
}

/** What kafkajs gives to make a produce request. */
export interface ProduceArguments {
  acks: number;
  timeout: number;
  transactionalId?: string | null;
  producerId: string | number;
  producerEpoch: number;
  compression: number;
  topicData: { topic: string; partitions: PartitionData[] }[];
}

/** A request as kafkajs sends it; those that are ours write themselves, without copies. */
export interface Request {
  apiKey: number;
  apiVersion: number;
  apiName: string;
  expectResponse?(): boolean;
  /** kafkajs' way, where `write` is missing. */
  encode?(): Promise<{ buffer: Buffer }>;
  write?(writer: ByteWriter): void;
}

const produceApiKey = 0;
const magic = 2;
const batchHeaderBytes = 12;
const crcOffset = 17;

/** One for the process: it is filled and emptied without a pause. */
const requestWriter = new ByteWriter();

/** A request's bytes, its size first: in place of kafkajs' own, which copies everything five times. */
export async function createRequest({ correlationId, clientId, request }: { correlationId: number; clientId: string; request: Request }): Promise<{ buffer: Buffer }> {
  const body = request.write ? undefined : (await request.encode?.())?.buffer;
  const writer = requestWriter;
  writer.clear();
  writer.int32(0);
  writer.int16(request.apiKey);
  writer.int16(request.apiVersion);
  writer.int32(correlationId);
  writer.string(clientId);
  if (body) writer.raw(body);
  else request.write?.(writer);
  writer.int32At(0, writer.position - 4);
  return { buffer: writer.take() };
}

/**
 * Produce request (version 3 to 7): byte for byte what kafkajs makes, in one pass. Compressed, transactional and
 * dated messages, which we do not send, are left to `theirs`.
 */
export function produceRequestWith(theirs: (options: ProduceArguments) => Request): (options: ProduceArguments) => Request {
  return (options) => {
    const { acks, timeout, transactionalId, compression, topicData } = options;
    const isDated = topicData.some(({ partitions }) => partitions.some(({ messages }) => messages.some(({ timestamp }) => timestamp !== undefined)));
    if (compression || transactionalId || isDated) return theirs(options);
    const write = (writer: ByteWriter): void => {
      writer.string(null);
      writer.int16(acks);
      writer.int32(timeout);
      writer.int32(topicData.length);
      for (const { topic, partitions } of topicData) {
        writer.string(topic);
        writer.int32(partitions.length);
        for (const data of partitions) writePartition(writer, data, options);
      }
    };
    return { apiKey: produceApiKey, apiVersion: 3, apiName: 'Produce', expectResponse: () => acks !== 0, write };
  };
}

function writePartition(writer: ByteWriter, { partition, messages, firstSequence }: PartitionData, { producerId, producerEpoch }: ProduceArguments): void {
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
export function writeRecord(writer: ByteWriter, message: MessageInput, offsetDelta: number, timestampDelta: number): void {
  const start = writer.beginSized();
  writer.int8(0);
  writer.varInt(timestampDelta);
  writer.varInt(offsetDelta);
  if (message.content) writer.copy(message.content.bytes, message.content.start, message.content.end);
  else writeContent(writer, message);
  writer.endSized(start);
}
