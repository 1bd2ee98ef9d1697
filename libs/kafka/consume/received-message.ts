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

/** A message in the answer to a fetch. */
export interface FetchedMessage {
  readonly offset: bigint;
  /** The value of the last header of this name, which is ASCII; null when there is none. */
  header(name: string): string | null;
  /** The whole message; its value shares the memory of the answer. */
  received(topic: string, partition: number): ReceivedMessage;
}
