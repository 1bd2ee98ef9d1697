import { expect, test } from 'vitest';
import { freshAt, freshBits, freshRequestId, periodOfRequest } from './fresh-ids.ts';

test('ids are 32 hex digits; new ones are ordered by time, and contain it', () => {
  // contract: envelope-8
  const now = Date.now();
  const [first, second] = [freshBits(now), freshBits(now + 1)];
  expect([first, second].every((bits) => /^[0-9a-f]{32}$/.test(bits))).toBe(true);
  expect(first < second).toBe(true);
  expect([freshAt(`txn_${first}`), freshAt(second)]).toEqual([now, now + 1]);
  expect(freshAt(`txn_${'a'.repeat(32)}`)).toBe(-Infinity);
  // The last byte of a transaction's id becomes the bucket of its command.
  expect(freshAt(`txn_${first.slice(0, 30)}00`)).toBe(now);
  for (let at = 0; at < 32; at++) {
    const mistyped = first.slice(0, at) + (first.charAt(at) === '0' ? '1' : '0') + first.slice(at + 1);
    expect([at, freshAt(`acc_${mistyped}`)]).toEqual([at, -Infinity]);
  }
});

test('new ids of the same time do not repeat', () => {
  expect(new Set(Array.from({ length: 2_000 }, () => freshBits(1)))).toHaveProperty('size', 2_000);
});

test('only a request id of the form that the bank generates tells when it was', () => {
  const ms = Date.parse('2026-01-02T03:04:05.678Z');
  const id = freshRequestId(ms);
  expect(periodOfRequest(id)).toEqual({
    from: '2026-01-02T03:03:55.678Z',
    to: '2026-01-02T03:04:35.678Z',
  });
  expect(id).toMatch(/^[\x20-\x7e]{1,128}$/);
  for (const other of [id.slice(4), 'req_', 'req_1_x', `x ${id}`, 'abc', '0197f2b0-1c1e-7c3e-8a01-0123456789ab'])
    expect([other, periodOfRequest(other)]).toEqual([other, undefined]);
});
