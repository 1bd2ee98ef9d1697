import { expect, test } from 'vitest';
import { Refused } from '../http/errors.ts';
import { createCursors, listName } from './cursor.ts';

const signedBy = (...secrets: string[]) => createCursors(secrets);
const cursors = signedBy('a secret of sixteen');
const place = { at: '2026-01-02T03:04:05.678Z', id: 'acc_00000000000000000000000000000001' };
const list = listName('/accounts', { client_id: 'cli_1', order: 'desc', limit: 100 });
const cursor = cursors.make(list, place);

const isRefused = (name: string, text: string): boolean => {
  try {
    cursors.read(name, text);
    return false;
  } catch (error) {
    return (
      error instanceof Refused &&
      error.refusal.errors?.[0]?.field === 'cursor' &&
      error.refusal.code === 'invalid_cursor'
    );
  }
};

test('a cursor returns its position on every gateway with the same secret', () => {
  expect(cursors.read(list, cursor)).toEqual(place);
  expect(signedBy('a secret of sixteen').read(list, cursor)).toEqual(place);
});

test('the limit may change between pages; filters, order, and path may not', () => {
  expect(listName('/accounts', { limit: 7, order: 'desc', client_id: 'cli_1', cursor, status: undefined })).toBe(list);
  expect(isRefused(listName('/accounts', { client_id: 'cli_2', order: 'desc' }), cursor)).toBe(true);
  expect(isRefused(listName('/accounts', { client_id: 'cli_1', order: 'asc' }), cursor)).toBe(true);
  expect(isRefused(listName('/accounts', { order: 'desc' }), cursor)).toBe(true);
  expect(isRefused(listName('/clients', { client_id: 'cli_1', order: 'desc' }), cursor)).toBe(true);
});

test('any other text is invalid_cursor', () => {
  const bytes = Buffer.from(cursor, 'base64url');
  const forged = Buffer.concat([bytes.subarray(0, 16), Buffer.from('["2026-01-01","x"]')]).toString('base64url');
  for (const text of [
    '',
    'x',
    'null',
    `${cursor}=`,
    `${cursor}A`,
    cursor.slice(1),
    ` ${cursor}`,
    bytes.toString('base64'),
    forged,
    'x'.repeat(2000),
  ]) {
    if (text !== cursor) expect(isRefused(list, text), text).toBe(true);
  }
  for (let i = 0; i < bytes.length; i++) {
    const flipped = Buffer.from(bytes);
    flipped.writeUInt8(flipped.readUInt8(i) ^ 1, i);
    expect(isRefused(list, flipped.toString('base64url'))).toBe(true);
  }
  expect(() => signedBy('another secret text').read(list, cursor)).toThrow(Refused);
});

test('during a rotation of the secret, cursors with both are accepted', () => {
  const cursor = cursors.make(list, place);
  expect(signedBy('another secret text', 'a secret of sixteen').read(list, cursor)).toEqual(place);
});
