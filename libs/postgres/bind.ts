/** Parameters from here on are sent as they lie, without being copied; nobody may change them afterwards. */
const largeBytes = 4096;
const [text, binary] = [0, 1];
const bindCode = 0x42;

/**
 * A Bind message (PostgreSQL's documentation, Message Formats) in pieces. pg would write it into a buffer that grows by half, again
 * and again: three times the size of a batch was allocated for it, outside of V8's heap, which collected garbage for that alone.
 * For the portal without a name, with results as text. Throws what `valueMapper` throws.
 */
export function bindMessage(statement: string, values: readonly unknown[], valueMapper: (value: unknown) => Buffer | string | null | undefined): Buffer[] {
  const parameters = values.map((value) => {
    const mapped = valueMapper(value) ?? null;
    return Buffer.isBuffer(mapped) ? { format: binary, bytes: mapped } : { format: text, bytes: mapped === null ? null : Buffer.from(mapped) };
  });
  const isCopied = (bytes: Buffer) => bytes.length < largeBytes;
  const copied = parameters.reduce((sum, { bytes }) => sum + 4 + (bytes && isCopied(bytes) ? bytes.length : 0), 0);
  const sent = parameters.reduce((sum, { bytes }) => sum + (bytes && !isCopied(bytes) ? bytes.length : 0), 0);
  const frame = Buffer.allocUnsafe(1 + 4 + 1 + Buffer.byteLength(statement) + 1 + 2 + 2 * parameters.length + 2 + copied + 4);
  const chunks: Buffer[] = [];
  let begun = 0;
  let at = frame.writeUInt8(bindCode);
  at = frame.writeInt32BE(frame.length - 1 + sent, at);
  at = frame.writeUInt8(0, at);
  at += frame.write(statement, at);
  at = frame.writeUInt8(0, at);
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
  frame.writeInt16BE(text, at);
  return [...chunks, frame.subarray(begun)];
}
