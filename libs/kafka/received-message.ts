/** A message read from a topic. */
export interface ReceivedMessage {
  topic: string;
  partition: number;
  offset: bigint;
  key: string | null;
  value: Buffer | null;
  headers: Record<string, string>;
  /** When the message was created or appended, depending on the topic's configuration; ms since 1970. */
  timestamp_ms: number;
}

/** A message in a fetch response. */
export interface FetchedMessage {
  readonly offset: bigint;
  /** Decodes the whole message. Its value shares the memory of the response. */
  received(topic: string, partition: number): ReceivedMessage;
}
