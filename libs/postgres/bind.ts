/** What pg gives its connection to make a Bind message. */
export interface BindConfig {
  portal?: string;
  statement?: string;
  values?: unknown[];
  binary?: boolean;
  valueMapper(value: unknown, index: number): Buffer | string | null | undefined;
}

/** Parameters from here on are sent as they lie, without being copied; nobody may change them afterwards. */
const largeBytes = 4096;
const [text, binary] = [0, 1];
const bindCode = 0x42;

/**
 * A Bind message (PostgreSQL's documentation, Message Formats) in pieces. pg would write it into a buffer that grows by half, again
 * and again: three times the size of a batch was allocated for it, outside of V8's heap, which collected garbage for that alone.
 */
export function bindMessage(config: BindConfig): Buffer[] {
  const { portal = '', statement = '', values = [], valueMapper } = config;
  const parameters = values.map((value, i) => {
    const mapped = valueMapper(value, i) ?? null;
    return Buffer.isBuffer(mapped) ? { format: binary, bytes: mapped } : { format: text, bytes: mapped === null ? null : Buffer.from(mapped) };
  });
  const isCopied = (bytes: Buffer) => bytes.length < largeBytes;
  const copied = parameters.reduce((sum, { bytes }) => sum + 4 + (bytes && isCopied(bytes) ? bytes.length : 0), 0);
  const sent = parameters.reduce((sum, { bytes }) => sum + (bytes && !isCopied(bytes) ? bytes.length : 0), 0);
  const frame = Buffer.allocUnsafe(1 + 4 + Buffer.byteLength(portal) + 1 + Buffer.byteLength(statement) + 1 + 2 + 2 * parameters.length + 2 + copied + 4);
  const chunks: Buffer[] = [];
  let begun = 0;
  let at = frame.writeUInt8(bindCode);
  at = frame.writeInt32BE(frame.length - 1 + sent, at);
  for (const name of [portal, statement]) {
    at += frame.write(name, at);
    at = frame.writeUInt8(0, at);
  }
  at = frame.writeInt16BE(parameters.length, at);
  for (const { format } of parameters) at = frame.writeInt16BE(format, at);
  at = frame.writeInt16BE(parameters.length, at);
  for (const { bytes } of parameters) {
    at = frame.writeInt32BE(bytes === null ? -1 : bytes.length, at);
    if (bytes === null) continue;
    if (isCopied(bytes)) at += bytes.copy(frame, at);
    else {
      chunks.push(frame.subarray(begun, at), bytes);
      begun = at;
    }
  }
  at = frame.writeInt16BE(1, at);
  frame.writeInt16BE(config.binary ? binary : text, at);
  return [...chunks, frame.subarray(begun)];
}
