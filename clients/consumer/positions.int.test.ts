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
  await db.query(`drop table ${table}, ${table}_redriven`);
  await db.end();
});

it('returns sequences that a 32-bit integer cannot hold', async () => {
  await positions.create(db);
  expect(await positions.last(db, 'acc_1')).toBe(0);
  expect(await positions.claim(db, event(2 ** 31))).toBe(true);
  expect(await positions.last(db, 'acc_1')).toBe(2 ** 31);
  expect(await positions.claim(db, event(2 ** 31))).toBe(false);
});
