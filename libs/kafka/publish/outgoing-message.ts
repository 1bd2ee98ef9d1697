/** A message to publish. `partition` takes precedence over the key; without both, it goes to partition 0. */
export interface OutgoingMessage {
  topic: string;
  key: string | null;
  value: string | Buffer | null;
  headers: Record<string, string>;
  partition?: number;
}

/**
 * Why a message was not published. `sent: false`: it was not passed to a producer and never will be. `sent:
 * true`: it was passed to a producer, and it is unknown whether the broker has written it.
 */
export class PublishError extends Error {
  override name = 'PublishError';
  readonly sent: boolean;

  constructor(message: string, sent: boolean, options?: { cause?: unknown }) {
    super(message, options);
    this.sent = sent;
  }
}

/** The size of a record batch's header, once per batch. */
export const batchHeaderBytes = 61;
/**
 * The maximum overhead of a record: length (5), attributes (1), time (10), offset in the batch (5), and lengths
 * of key and value and number of headers (5 each).
 */
const recordOverheadBytes = 36;
/** The lengths of a header's name and value. */
const headerOverheadBytes = 10;

/**
 * Returns an upper bound of a message's size in a record batch, so that a batch within its limit is always
 * accepted.
 */
export function recordBytes({ key, value, headers }: OutgoingMessage): number {
  let bytes =
    recordOverheadBytes + (key === null ? 0 : Buffer.byteLength(key)) + (value === null ? 0 : Buffer.byteLength(value));
  for (const name in headers)
    bytes += headerOverheadBytes + Buffer.byteLength(name) + Buffer.byteLength(headers[name] ?? '');
  return bytes;
}
