import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { parse } from 'lossless-json';
import { NumberText } from '#libs/contracts/money.ts';
import { refuse } from './errors.ts';

const numbersAsText = { parseNumber: (text: string) => new NumberText(text) };
const quoteMark = 0x22;
const backslash = 0x5c;
const colon = 0x3a;

/**
 * A JSON body with its numbers as they were written (contract: Money). Undefined for an empty one. Throws a Refused
 * (malformed_json) for what is not JSON in UTF-8, duplicate keys, `__proto__`, `constructor.prototype`, lone surrogates,
 * NUL, and nesting too deep to be read.
 */
export function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw malformed('the body is not UTF-8');
  const text = bytes.toString('utf8');
  let value: unknown;
  try {
    value = parse(text, undefined, numbersAsText);
  } catch (error) {
    // A RangeError is a full stack: thousands of brackets.
    if (error instanceof SyntaxError) throw malformed(`the body is not JSON: ${error.message}`.slice(0, 200).toWellFormed());
    throw malformed('the body is nested too deeply');
  }
  // Only an escape can bring in what UTF-8 or JSON itself does not allow.
  const members = countMembers(value, text.includes('\\u'));
  // lossless-json refuses a key that comes twice only when the two values differ.
  if (members !== countColons(text)) throw malformed('the body has a key that comes twice');
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

/** Colons outside of strings: the members as they were written. The text is known to be JSON. */
function countColons(text: string): number {
  let count = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString && code === backslash) i++;
    else if (code === quoteMark) inString = !inString;
    else if (code === colon && !inString) count++;
  }
  return count;
}
