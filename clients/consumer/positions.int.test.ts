import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { accountPositions, type SequencedEvent } from './index.ts';

const db = new pg.Client({ connectionString: process.env['DATABASE_URL'] });
const table = `positions_${randomUUID().slice(0, 8)}`;
const positions = accountPositions(table);
const event = (sequence: number) => ({ data: { transaction: { account_id: 'acc_1' }, sequence } }) as SequencedEvent;

beforeAll(() => db.connect());
afterAll(async () => {
  await db.query(`drop table ${table}, ${table}_set_aside`);
  await db.end();
});

it('returns sequences that a 32-bit integer cannot hold', async () => {
  await positions.create(db);
  expect(await positions.last(db, 'acc_1')).toBe(0);
  expect(await positions.claim(db, event(2 ** 31))).toBe(true);
  expect(await positions.last(db, 'acc_1')).toBe(2 ** 31);
  expect(await positions.claim(db, event(2 ** 31))).toBe(false);
});

it('a redriven event is new if its sequence was set aside, and once; one that was processed cannot be set aside', async () => {
  const known = { account_id: 'acc_2', sequence: 1, id: 'one' };
  await positions.setAside(db, known);
  expect(await positions.last(db, 'acc_2')).toBe(1);
  const given = (sequence: number, redriven: boolean) => ({
    id: 'one',
    redriven,
    data: { transaction: { account_id: 'acc_2' }, sequence },
  });
  const claim = (sequence: number, redriven = false) =>
    positions.claim(db, given(sequence, redriven) as unknown as SequencedEvent);
  expect([await claim(1), await claim(1, true), await claim(1, true)]).toEqual([false, true, false]);
  expect(await claim(2)).toBe(true);
  await positions.setAside(db, { ...known, sequence: 2 });
  expect([await claim(2, true), await positions.last(db, 'acc_2')]).toEqual([false, 2]);
});

it('a redriven event is new if its sequence was set aside unproven, whatever came after it, unless a repeat of it was processed', async () => {
  const aside = (sequence: number) =>
    positions.setAside(db, { account_id: 'acc_3', sequence, id: 'odd', isUnproven: true });
  const claim = (sequence: number, redriven = false) =>
    positions.claim(db, {
      id: 'odd',
      redriven,
      data: { transaction: { account_id: 'acc_3' }, sequence },
    } as unknown as SequencedEvent);
  await aside(7);
  expect(await positions.last(db, 'acc_3')).toBe(0);
  expect([await claim(8), await claim(7), await claim(7, true), await claim(7, true)]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  await aside(8);
  expect(await claim(8, true)).toBe(false);
  await aside(11);
  expect([await claim(11), await claim(11, true), await positions.last(db, 'acc_3')]).toEqual([true, false, 11]);
});
