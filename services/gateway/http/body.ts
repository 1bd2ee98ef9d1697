import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { refusal } from '#libs/contracts/errors.ts';
import { NumberText } from '#libs/contracts/money.ts';
import { Refused, refuse } from './errors.ts';

/** RFC 7396. Only a PATCH may have it, where it means what JSON means. */
export const mergePatch = 'application/merge-patch+json';
/** The value of Accept-Patch (RFC 5789, 3.1). */
export const acceptPatch = `application/json, ${mergePatch}`;

const quoteMark = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const minus = 0x2d;
const zero = 0x30;
const nine = 0x39;
const letterF = 0x66;
const letterN = 0x6e;
const letterT = 0x74;
/** The bit that distinguishes braces from brackets. */
const braceBit = 0x20;
const opening = 0x7b;
const closing = 0x7d;
/** The maximum nesting: far more than any body needs, and far less than the stack allows. */
const maxDepth = 30;
/**
 * The maximum number of names and values, where a list or an object is one, too. They, rather than bytes, determine how
 * long reading takes. 1,000 items of a batch with ten fields each have 23,000.
 */
const maxTokens = 40_000;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/**
 * Parses a JSON body, which may begin with a byte order mark, and keeps the source text of its numbers (contract:
 * money). Returns undefined for an empty body. Throws a Refused: body_too_large for more than 40,000 names and values; malformed_json for input that is not
 * JSON in UTF-8, duplicate keys, `__proto__`, `constructor.prototype`, lone surrogates, NUL, and more than 30 levels.
 */
export function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw malformed('the body is not UTF-8');
  const text = bytes.toString('utf8').replace(/^\ufeff/, '');
  // These are checked before parsing, because a million values would take long, and thousands of levels would overflow
  // the stack.
  const { tokens, colons, depth, marked } = scan(text);
  if (tokens > maxTokens) throw refuse('body_too_large', 'the body must not have more than 40,000 names and values');
  if (depth > maxDepth) throw malformed('the body is nested too deeply');
  // Only an escape can produce characters that UTF-8 or JSON does not allow. From here on, NUL only marks numbers.
  if (text.includes('\\u')) checkTexts(parseJson(text));
  const members = { count: 0 };
  const value = unmark(parseJson(marked), members);
  if (members.count !== colons) throw malformed('the body contains a duplicate key');
  return value;
}

/** The body is empty after an error. */
export type Received = (error: Error | null, body: Buffer) => void;

/**
 * Reads a body of at most `limit` bytes. `onBytes` is called with the received bytes and may return a refusal.
 * After a refusal the rest of the body is read and dropped, because a client that is still sending would not
 * see the response.
 */
export function receiveBody(
  payload: IncomingMessage,
  limit: number,
  onBytes: (bytes: number) => Error | undefined,
  done: Received,
): void {
  const chunks: Buffer[] = [];
  let size = 0;
  const end = (error: Error | null): void => {
    payload.off('data', onData).off('end', onEnd).off('error', end);
    if (error) payload.resume();
    done(error, Buffer.concat(error ? [] : chunks));
  };
  const onEnd = (): void => end(null);
  const onData = (chunk: Buffer): void => {
    size += chunk.length;
    const refused = onBytes(chunk.length) ?? (size > limit ? tooLarge(limit) : undefined);
    if (refused) end(refused);
    else chunks.push(chunk);
  };
  if (Number(payload.headers['content-length'] ?? 0) > limit) return end(tooLarge(limit));
  payload.on('data', onData).on('end', onEnd).on('error', end);
}

/** Returns the length of a body in bytes; one that is sent in chunks may have any. */
export function bodyLength({ headers }: { headers: IncomingHttpHeaders }): number {
  return Number(headers['content-length'] ?? Infinity);
}

function tooLarge(limit: number) {
  return refuse('body_too_large', `the body must not exceed ${limit / 1024} KiB`);
}

/** Throws a Refused (unsupported_media_type) for a compressed body, which would be misread. */
export function checkCodings({
  'content-encoding': content = '',
  'transfer-encoding': transfer = 'chunked',
}: IncomingHttpHeaders): void {
  const isEncoded = !/^(identity)?$/i.test(content);
  if (!isEncoded && /^chunked$/i.test(transfer)) return;
  const refused = refusal('unsupported_media_type', 'the body must not be compressed');
  // Only if it is the reason: otherwise the client would look for the fault in the coding (RFC 9110, 12.5.3).
  throw new Refused(refused, isEncoded ? { 'accept-encoding': 'identity' } : undefined);
}

function malformed(message: string) {
  return refuse('malformed_json', message);
}

/** V8's message is not used, because it quotes the text, which must not appear in responses or logs. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed('the body is not JSON');
  }
}

/**
 * Converts marked numbers back to their source text and counts the members of objects. Throws for keys that are
 * not allowed.
 */
function unmark(value: unknown, members: { count: number }): unknown {
  if (typeof value === 'string') return isMarked(value) ? new NumberText(value.slice(1)) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => unmark(item, members));
  const object = value as Record<string, unknown>;
  for (const key of Object.keys(object)) {
    checkKey(key, object[key]);
    object[key] = unmark(object[key], members);
    members.count += 1;
  }
  return object;
}

function isMarked(text: string): boolean {
  return text.charCodeAt(0) === 0;
}

function checkKey(key: string, value: unknown): void {
  if (isMarked(key)) throw malformed('the body is not JSON');
  const poisons =
    key === '__proto__' ||
    (key === 'constructor' && typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype'));
  if (poisons) throw malformed(`the body has the key ${key}, which is not allowed`);
}

function checkTexts(value: unknown): void {
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw malformed('the body has a lone surrogate');
    if (value.includes('\u0000')) throw malformed('the body has a NUL character');
  }
  if (typeof value === 'object' && value !== null)
    for (const part of [...Object.keys(value), ...Object.values(value)]) checkTexts(part);
}

/**
 * Scans the text outside strings: counts names and values, colons (the members as written) and nesting, and returns the
 * text with each number as a string that starts with NUL. The result is valid JSON if the text is, and otherwise only if
 * a number is used as a key. Stops as soon as the text has too many tokens or levels.
 */
function scan(text: string): { tokens: number; colons: number; depth: number; marked: string } {
  let [tokens, colons, level, depth, from] = [0, 0, 0, 0, 0];
  let marked = '';
  let inString = false;
  for (let i = 0; i < text.length && tokens <= maxTokens && depth <= maxDepth; i++) {
    const code = text.charCodeAt(i);
    if (code === quoteMark) {
      inString = !inString;
      if (inString) tokens++;
    } else if (inString) i += code === backslash ? 1 : 0;
    else if (code === colon) colons++;
    else if ((code | braceBit) === opening) {
      tokens++;
      depth = Math.max(depth, ++level);
    } else if ((code | braceBit) === closing) level--;
    else if (code === minus || (code >= zero && code <= nine)) {
      tokens++;
      number.lastIndex = i;
      const source = number.exec(text)?.[0] ?? '';
      if (source === '') continue;
      marked += `${text.slice(from, i)}"\\u0000${source}"`;
      from = i + source.length;
      i = from - 1;
    } else if (isLiteral(code)) tokens++;
  }
  return { tokens, colons, depth, marked: marked + text.slice(from) };
}

/** Each of `true`, `false`, and `null` has exactly one of these letters. */
function isLiteral(code: number): boolean {
  return code === letterT || code === letterF || code === letterN;
}
