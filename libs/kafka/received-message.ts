import type { IHeaders, KafkaMessage } from 'kafkajs';

/** A message as it was read. */
export interface ReceivedMessage {
  topic: string;
  partition: number;
  offset: bigint;
  key: string | null;
  value: Buffer | null;
  headers: Record<string, string>;
  /** When the message was made, or appended, as the topic is configured; milliseconds since 1970. */
  timestamp_ms: number;
}

/** kafkajs' message in our form. */
export function toReceived(topic: string, partition: number, message: KafkaMessage): ReceivedMessage {
  const { offset, key, value, headers, timestamp } = message;
  return { topic, partition, offset: BigInt(offset), key: key === null ? null : String(key), value, headers: toHeaders(headers), timestamp_ms: Number(timestamp) };
}

function toHeaders(headers: IHeaders | undefined): Record<string, string> {
  const result: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    // Kafka allows a header name several times; the last one counts.
    const last = Array.isArray(value) ? value[value.length - 1] : value;
    if (last !== undefined && last !== null) result[name] = String(last);
  }
  return result;
}
