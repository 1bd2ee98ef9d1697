/** A message on its way out. `partition` overrides the key; without both, it goes to partition 0. */
export interface OutgoingMessage {
  topic: string;
  key: string | null;
  value: string | Buffer | null;
  headers: Record<string, string>;
  partition?: number;
}

/**
 * Why a message was not published. `sent: false`: no producer was given it, and none will be. `sent: true`: a producer
 * was, and whether the broker has written it is not known.
 */
export class PublishError extends Error {
  override name = 'PublishError';
  readonly sent: boolean;

  constructor(message: string, sent: boolean, options?: { cause?: unknown }) {
    super(message, options);
    this.sent = sent;
  }
}

/** A record batch's header, which every batch of a partition has once. */
export const batchHeaderBytes = 61;
/**
 * Of a record, at most: its length (5), attributes (1), time (10), place in the batch (5), lengths
 * of key and value, number of headers (5 each).
 */
const recordOverheadBytes = 36;
/** Lengths of a header's name and value. */
const headerOverheadBytes = 10;

/**
 * The bytes that a message takes in a record batch; never less than on the wire, so that a batch
 * within its limit is taken.
 */
export function recordBytes({ key, value, headers }: OutgoingMessage): number {
  let bytes =
    recordOverheadBytes + (key === null ? 0 : Buffer.byteLength(key)) + (value === null ? 0 : Buffer.byteLength(value));
  for (const name in headers)
    bytes += headerOverheadBytes + Buffer.byteLength(name) + Buffer.byteLength(headers[name] ?? '');
  return bytes;
}
