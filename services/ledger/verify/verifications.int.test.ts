import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { formatId } from '#libs/contracts/ids.ts';
import type { Check } from '#libs/contracts/operations.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { createVerifier, readLastVerification, type Verifier } from '#libs/service/verifications.ts';
import { freshBits, useLedger } from '../test/harness.ts';
import { createDailyCheck } from './daily-check.ts';
import { ofBooks } from './verify-books.ts';

const ledger = useLedger();
let pool: Pool;
let verifier: Verifier;
beforeAll(async () => {
  pool = createPool({ url: ledger.serviceUrl, application_name: 'ledger verifies', schema: 'ledger', max: 2 }, silent);
  verifier = createVerifier(ofBooks, { pool, reads: ledger.reads, now: Date.now, logger: silent });
});
afterAll(async () => {
  await pool?.end();
});

const verify = (id = formatId('verification', freshBits()), by = verifier): Promise<ReplyBody> =>
  by.verify({
    data: { verification_id: id },
    context: ledger.testContext(freshBits(), { message_id: id, actor: 'jwt:issuer|auditor' }),
  });
const checkData = (reply: ReplyBody) => (reply.ok ? (reply.data as Check) : undefined);

it('starts and responds immediately, then stores its findings; a repeat returns it; the requester is audited', async () => {
  expect(await readLastVerification(ledger.reads)).toBeNull();
  await ledger.open('Savings', '100');
  const id = formatId('verification', freshBits());
  expect(checkData(await verify(id))).toMatchObject({ verification_id: id, requested_by: 'jwt:issuer|auditor' });
  await verifier.idle();
  expect(await readLastVerification(ledger.reads)).toMatchObject({
    verification_id: id,
    state: 'passed',
    findings: [],
    ended_at: expect.stringMatching(/Z$/),
  });
  expect(await verify(id)).toMatchObject({ ok: true, replayed: true, data: { verification_id: id, state: 'passed' } });
  const records = (await ledger.owner.query<{ record: string }>('select record from audit_outbox')).rows.map(
    ({ record }) => JSON.parse(record),
  );
  expect(records).toMatchObject([
    { action: 'verify_books', resource_id: id, actor: 'jwt:issuer|auditor', outcome: 'success' },
  ]);
});

it('runs one at a time over all ledgers; an interrupted one has no result', async () => {
  // A lock on the accounts delays a verification of them.
  const blocker = await ledger.owner.connect();
  await blocker.query('begin');
  await blocker.query('lock table accounts in access exclusive mode');
  const first = checkData(await verify());
  const rivals = createPool(
    { url: ledger.serviceUrl, application_name: 'another ledger verifies', schema: 'ledger', max: 2 },
    silent,
  );
  const rival = createVerifier(ofBooks, { pool: rivals, reads: ledger.reads, now: Date.now, logger: silent });
  for (const other of [rival, verifier])
    expect(checkData(await verify(undefined, other))).toMatchObject({
      verification_id: first?.verification_id,
      state: 'running',
    });
  await verifier.stop();
  expect(await readLastVerification(ledger.reads)).toMatchObject({
    verification_id: first?.verification_id,
    state: 'interrupted',
    findings: [],
  });
  await blocker.query('rollback');
  blocker.release();
  const next = checkData(await verify(undefined, rival));
  await rival.idle();
  expect(await readLastVerification(ledger.reads)).toMatchObject({
    verification_id: next?.verification_id,
    state: 'passed',
  });
  await rivals.end();
});

it('refuses no request that comes while another one is starting or ending', async () => {
  const rivals = createPool(
    { url: ledger.serviceUrl, application_name: 'a third ledger verifies', schema: 'ledger', max: 2 },
    silent,
  );
  const rival = createVerifier(ofBooks, { pool: rivals, reads: ledger.reads, now: Date.now, logger: silent });
  const repeated = (by: Verifier) =>
    Array.from({ length: 30 }).reduce<Promise<ReplyBody[]>>(
      async (replies) => [...(await replies), await verify(undefined, by)],
      Promise.resolve([]),
    );
  const replies = (await Promise.all([repeated(verifier), repeated(rival)])).flat();
  expect(replies.filter(({ ok }) => !ok)).toEqual([]);
  await Promise.all([verifier.idle(), rival.idle()]);
  await rivals.end();
});

it('begins by itself once after each time of the day, on one ledger, and an hour after an interruption', async () => {
  const hourMs = 3_600_000;
  const at = '03:00';
  const started = async () => (await ledger.owner.query('select from verifications')).rowCount;
  const three = new Date().setUTCHours(3, 0, 0, 0) - 24 * hourMs;
  let now = three - 1;
  let isOnDuty = false;
  const look = async () => {
    const check = createDailyCheck({
      verifier,
      reads: ledger.reads,
      at,
      timeZone: 'UTC',
      isOnDuty: () => isOnDuty,
      now: async () => now,
      logger: silent,
    });
    check.start();
    await check.stop();
    await verifier.idle();
  };
  const before = (await started()) ?? 0;
  await ledger.owner.query(`update verifications set started_at = to_timestamp(${three / 1000} - 7200)`);
  isOnDuty = true;
  await look();
  now = three;
  isOnDuty = false;
  await look();
  expect(await started()).toBe(before);
  isOnDuty = true;
  await look();
  expect(await started()).toBe(before + 1);
  expect(await readLastVerification(ledger.reads)).toMatchObject({ requested_by: 'system', state: 'passed' });
  const set = `where requested_by = 'system'`;
  await ledger.owner.query(`update verifications set started_at = to_timestamp(${three / 1000}) ${set}`);
  now = three + 23 * hourMs;
  await look();
  expect(await started()).toBe(before + 1);
  await ledger.owner.query(`update verifications set ended_at = null, findings = null ${set}`);
  now = three + hourMs - 1;
  await look();
  expect(await started()).toBe(before + 1);
  now = three + 6 * hourMs;
  await look();
  expect(await started()).toBe(before + 1);
  now = three + hourMs + 1;
  await look();
  expect(await started()).toBe(before + 2);
  await ledger.owner.query(`delete from verifications where requested_by = 'system'`);
});

it('names the violated rules, with sample rows', async () => {
  const account_id = await ledger.open('Savings', '5');
  await ledger.owner.query('update accounts set balance_minor = balance_minor + 1 where account_id = $1', [
    account_id.slice(4),
  ]);
  await verify();
  await verifier.idle();
  const last = await readLastVerification(ledger.reads);
  expect(last?.state).toBe('broken');
  expect(last?.findings.find(({ rule }) => rule.startsWith('each balance is the sum'))?.rows).toMatchObject([
    { balance_minor: '501', sum_of_entries: '500' },
  ]);
});
