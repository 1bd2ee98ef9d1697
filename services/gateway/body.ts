import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { parse } from 'lossless-json';
import { NumberText } from '#libs/contracts/money.ts';
import { refuse } from './errors.ts';

const numbersAsText = { parseNumber: (text: string) => new NumberText(text) };
const quoteMark = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
/** Brackets are braces without this bit. */
const braceBit = 0x20;
const opening = 0x7b;
const closing = 0x7d;
/** Of brackets and braces: far more than any body has, far fewer than the stack takes. */
const maxDepth = 64;

/**
 * A JSON body with its numbers as they were written (contract: Money). Undefined for an empty one. Throws a Refused
 * (malformed_json) for what is not JSON in UTF-8, duplicate keys, `__proto__`, `constructor.prototype`, lone surrogates,
 * NUL, and more than 64 levels.
 */
export function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw malformed('the body is not UTF-8');
  const text = bytes.toString('utf8');
  // Before it is parsed: thousands of levels would fill the stack.
  const { colons, depth } = scan(text);
  if (depth > maxDepth) throw malformed('the body is nested too deeply');
  let value: unknown;
  try {
    value = parse(text, undefined, numbersAsText);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw malformed(`the body is not JSON: ${error.message}`.slice(0, 200).toWellFormed());
  }
  // Only an escape can bring in what UTF-8 or JSON itself does not allow.
  const members = countMembers(value, text.includes('\\u'));
  // lossless-json refuses a key that comes twice only when the two values differ.
  if (members !== colons) throw malformed('the body has a key that comes twice');
  return value;
}

/** Throws a Refused (unsupported_media_type) for a body that says it is compressed: it would be read as something else. */
export function checkCodings({ 'content-encoding': content = '', 'transfer-encoding': transfer = 'chunked' }: IncomingHttpHeaders): void {
  const isPlain = /^(identity)?$/i.test(content) && /^chunked$/i.test(transfer);
  if (!isPlain) throw refuse('unsupported_media_type', 'the body must not be compressed');
}

function malformed(message: string) {
  return refuse('malformed_json', message);
}

/** Members of all objects in the value; throws for keys and texts that are not allowed. */
function countMembers(value: unknown, checkTexts: boolean): number {
  if (typeof value === 'string') {
    if (checkTexts) checkText(value);
    return 0;
  }
  if (typeof value !== 'object' || value === null || value instanceof NumberText) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countMembers(item, checkTexts);
    return count;
  }
  for (const [key, item] of Object.entries(value)) {
    checkKey(key, item);
    if (checkTexts) checkText(key);
    count += 1 + countMembers(item, checkTexts);
  }
  return count;
}

function checkKey(key: string, value: unknown): void {
  const poisons = key === '__proto__' || (key === 'constructor' && typeof value === 'object' && value !== null && Object.hasOwn(value, 'prototype'));
  if (poisons) throw malformed(`the body has the key ${key}, which is not allowed`);
}

function checkText(text: string): void {
  if (!text.isWellFormed()) throw malformed('the body has a lone surrogate');
  if (text.includes('\u0000')) throw malformed('the body has a NUL character');
}

/** What stands outside of strings: colons, which are the members as they were written, and how deep brackets go. */
function scan(text: string): { colons: number; depth: number } {
  let [colons, level, depth] = [0, 0, 0];
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === quoteMark) inString = !inString;
    else if (inString) i += code === backslash ? 1 : 0;
    else if (code === colon) colons++;
    else if ((code | braceBit) === opening) depth = Math.max(depth, ++level);
    else if ((code | braceBit) === closing) level--;
  }
  return { colons, depth };
}
