import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { NumberText } from '#libs/contracts/money.ts';
import { refuse } from './errors.ts';

const quoteMark = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const minus = 0x2d;
const zero = 0x30;
const nine = 0x39;
/** Brackets are braces without this bit. */
const braceBit = 0x20;
const opening = 0x7b;
const closing = 0x7d;
/** Of brackets and braces: far more than any body has, far fewer than the stack takes. */
const maxDepth = 64;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/**
 * A JSON body with its numbers as they were written (contract: Money). Undefined for an empty one.
 * Throws a Refused (malformed_json) for what is not JSON in UTF-8, duplicate keys, `__proto__`,
 * `constructor.prototype`, lone surrogates, NUL, and more than 64 levels.
 */
export function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw malformed('the body is not UTF-8');
  const text = bytes.toString('utf8');
  // Before it is parsed: thousands of levels would fill the stack.
  const { colons, depth, marked } = scan(text);
  if (depth > maxDepth) throw malformed('the body is nested too deeply');
  // Only an escape can bring in what UTF-8 or JSON itself does not allow. From here on NUL marks the numbers alone.
  if (text.includes('\\u')) checkTexts(parseJson(text));
  const members = { count: 0 };
  const value = unmark(parseJson(marked), members);
  if (members.count !== colons) throw malformed('the body has a key that comes twice');
  return value;
}

type Received = (error: Error | null, body?: Buffer) => void;

/**
 * Reads a body of at most `limit` bytes. `onBytes` is told of what comes, and says what is to be
 * answered in its place. Where it is refused before it has come as a whole, the rest is read and
 * dropped: a caller who is still sending would not see the answer.
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
    done(error, error ? undefined : Buffer.concat(chunks, size));
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

function tooLarge(limit: number) {
  return refuse('body_too_large', `the body must not exceed ${limit / 1024} KiB`);
}

/**
 * Throws a Refused (unsupported_media_type) for a body that says it is compressed: it would be read
 * as something else.
 */
export function checkCodings({
  'content-encoding': content = '',
  'transfer-encoding': transfer = 'chunked',
}: IncomingHttpHeaders): void {
  const isPlain = /^(identity)?$/i.test(content) && /^chunked$/i.test(transfer);
  if (!isPlain) throw refuse('unsupported_media_type', 'the body must not be compressed');
}

function malformed(message: string) {
  return refuse('malformed_json', message);
}

/** Without V8's own words, which quote the text: the body of a bank's caller stands in no answer and no log. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed('the body is not JSON');
  }
}

/**
 * The value with its marked numbers as they were written; counts the members of its objects. Throws
 * for keys that are not allowed.
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
 * What stands outside of strings: colons, which are the members as they were written, and how deep
 * brackets go; and the text with each number as a string that begins with NUL. It is JSON where the
 * text is, and otherwise only where a number is a key.
 */
function scan(text: string): { colons: number; depth: number; marked: string } {
  let [colons, level, depth, from] = [0, 0, 0, 0];
  let marked = '';
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === quoteMark) inString = !inString;
    else if (inString) i += code === backslash ? 1 : 0;
    else if (code === colon) colons++;
    else if ((code | braceBit) === opening) depth = Math.max(depth, ++level);
    else if ((code | braceBit) === closing) level--;
    else if (code === minus || (code >= zero && code <= nine)) {
      number.lastIndex = i;
      const source = number.exec(text)?.[0] ?? '';
      if (source === '') continue;
      marked += `${text.slice(from, i)}"\\u0000${source}"`;
      from = i + source.length;
      i = from - 1;
    }
  }
  return { colons, depth, marked: marked + text.slice(from) };
}
