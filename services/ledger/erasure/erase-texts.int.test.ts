import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { idBits, idOf } from '#libs/contracts/ids.ts';
import { batchCommand } from '../domain/batches.ts';
import { freshBits, type LedgerHarness, startLedger } from '../test/harness.ts';
import { verifyBooks } from '../verify/verify-books.ts';
import { createErase, type Erase } from './erase-texts.ts';

let ledger: LedgerHarness;
let erase: Erase;
beforeAll(async () => {
  ledger = await startLedger();
  erase = createErase(ledger.reads);
});
afterAll(async () => {
  expect(await verifyBooks(ledger.owner)).toEqual([]);
  await ledger.stop();
});

const unnamed = { external_id: null, metadata: null };
const later = '2100-01-01T00:00:00.000Z';

async function clientOf(account_id: string): Promise<string> {
  const { rows } = await ledger.owner.query<{ client_id: string }>(
    'select client_id from accounts where account_id = $1',
    [idBits(account_id)],
  );
  return idOf('client', (rows[0]?.client_id ?? '').replaceAll('-', ''));
}

async function deactivate(account_id: string): Promise<void> {
  const transition_id = idOf('transition', freshBits());
  const data = { transition_id, account_id, status: 'Inactive' as const };
  const [reply] = await ledger.book([
    {
      name: 'change_ledger_account_status',
      data,
      context: ledger.contextOf(transition_id, { message_id: transition_id }),
    },
  ]);
  if (!reply?.ok) throw new Error(JSON.stringify(reply));
}

/** A posting with texts that contain its id. */
async function post(
  command: ReturnType<LedgerHarness['cash']>,
  texts: { description: string; reference?: string; external_id?: string; metadata?: Record<string, string> },
  key = 'Ada 1',
): Promise<string> {
  Object.assign(command.data, texts);
  command.context.idempotency_key = key;
  const [reply] = await ledger.book([command]);
  if (!reply?.ok) throw new Error(JSON.stringify(reply));
  return command.context.message_id;
}

const textsOf = async (account_id: string) =>
  (
    await ledger.owner.query(
      'select description, reference, idempotency_key, external_id, metadata from transactions where account_id = $1 order by created_at, transaction_id',
      [idBits(account_id)],
    )
  ).rows;

const reasonsOf = (reply: ReplyBody) =>
  reply.ok ? reply : (reply.refusal.details?.['accounts'] as { reasons: string[] }[]).map(({ reasons }) => reasons);

describe('the texts of a client', () => {
  test("are replaced on all their accounts, and on the other leg of their transfers; other clients' texts and posted amounts are not", async () => {
    const [own, other] = [await ledger.open('Savings', '0'), await ledger.open('Savings', '0')];
    await post(ledger.cash('Deposit', own, '10'), {
      description: 'Ada brought it',
      reference: 'ADA-1',
      external_id: 'ada-1',
      metadata: { of: 'Ada' },
    });
    const deposit = await post(ledger.cash('Deposit', own, '5'), { description: 'again' });
    await post(ledger.reversal(deposit) as never, { description: '' });
    await post(ledger.transfer(own, other, '10') as never, { description: 'Rent of Ada' });
    await post(ledger.cash('Deposit', other, '3'), { description: "Bob's own", reference: 'BOB-1' }, 'Bob 1');
    await deactivate(own);
    const booked = async () => (await ledger.owner.query('select * from entries order by account_id, sequence')).rows;
    const before = await booked();
    const client_id = await clientOf(own);
    expect(await erase({ client_id, kept_since: later })).toEqual({ ok: true, data: { transactions: 5 } });
    expect(await textsOf(own)).toEqual([
      {
        description: '(erased)',
        reference: '(erased)',
        idempotency_key: null,
        external_id: '(erased)',
        metadata: { erased: '(erased)' },
      },
      { description: '(erased)', reference: null, idempotency_key: null, ...unnamed },
      { description: '(erased)', reference: null, idempotency_key: null, ...unnamed },
      { description: '(erased)', reference: null, idempotency_key: null, ...unnamed },
    ]);
    expect(await textsOf(other)).toEqual([
      { description: '(erased)', reference: null, idempotency_key: null, ...unnamed },
      { description: "Bob's own", reference: 'BOB-1', idempotency_key: 'Bob 1', ...unnamed },
    ]);
    expect(await booked()).toEqual(before);
    // The step may be delivered again.
    expect(await erase({ client_id, kept_since: later })).toEqual({ ok: true, data: { transactions: 0 } });
  });

  test('are replaced on holds', async () => {
    const account_id = await ledger.open('Savings', '10');
    const hold_id = idOf('hold', freshBits());
    const names = { external_id: 'ada-7', metadata: { of: 'Ada' } };
    const data = {
      hold_id,
      account_id,
      amount: '4',
      currency: null,
      description: 'Ada at the hotel',
      reference: null,
      expires_at: null,
      ...names,
    };
    const bits = freshBits();
    const capture = {
      transaction_id: idOf('transaction', bits),
      hold_id,
      amount: null,
      to_account_id: null,
      final: true,
      description: 'Ada left',
    };
    const released = idOf('hold', freshBits());
    await ledger.book([
      { name: 'place_hold', data, context: ledger.contextOf(freshBits(), { message_id: hold_id }) },
      { name: 'capture_hold', data: capture, context: ledger.contextOf(bits) },
      {
        name: 'place_hold',
        data: { ...data, hold_id: released },
        context: ledger.contextOf(freshBits(), { message_id: released }),
      },
      { name: 'release_hold', data: { hold_id: released }, context: ledger.contextOf(freshBits()) },
      ledger.cash('Withdrawal', account_id, '6'),
    ]);
    const repliesWith = async (text: string) =>
      (
        await ledger.owner.query<{ name: string }>(
          "select name from commands where outcome::text like '%' || $1 || '%'",
          [text],
        )
      ).rows
        .map(({ name }) => name)
        .toSorted();
    const replies = ['capture_hold', 'place_hold', 'place_hold', 'release_hold'];
    expect(await repliesWith('Ada')).toEqual(replies);
    await expect(ledger.reads.query('select erase_hold_texts($1)', [idBits(account_id)])).rejects.toThrow(/is in use/);
    await deactivate(account_id);
    expect(await erase({ client_id: await clientOf(account_id), kept_since: later })).toMatchObject({
      ok: true,
    });
    const { rows } = await ledger.owner.query(
      'select description, reference, external_id, metadata, amount_minor, status from holds where account_id = $1 order by status',
      [idBits(account_id)],
    );
    const erased = {
      description: '(erased)',
      reference: null,
      external_id: '(erased)',
      metadata: { erased: '(erased)' },
      amount_minor: 400n,
    };
    expect(rows).toEqual([
      { ...erased, status: 'Captured' },
      { ...erased, status: 'Released' },
    ]);
    expect(await repliesWith('Ada')).toEqual([]);
    expect(await repliesWith('ada-7')).toEqual([]);
    expect(await repliesWith(released)).toEqual(['place_hold', 'release_hold']);
    // A repeat gets the reply with the replaced texts.
    const [repeat] = await ledger.book([
      { name: 'place_hold', data, context: ledger.contextOf(freshBits(), { message_id: hold_id }) },
    ]);
    expect(repeat).toMatchObject({
      ok: true,
      replayed: true,
      data: { hold_id, amount: '4.00', description: '(erased)' },
    });
    await expect(ledger.reads.query("update holds set description = '(erased)'")).rejects.toThrow(/permission denied/);
  });

  test('are replaced in the batches that the client sent, and in no others', async () => {
    const [own, other] = [await ledger.open('Savings', '1'), await ledger.open('Savings', '0')];
    const client_id = await clientOf(own);
    const send = async (bound: object) => {
      const batch_id = idOf('batch', freshBits());
      const metadata = { file_name: 'Ada.csv' };
      const payment = ledger.transfer(own, other, '0.50').data;
      const data = { batch_id, mode: 'atomic' as const, items: [{ transfer: payment as never }], metadata };
      await ledger.book([batchCommand(data, ledger.contextOf(freshBits(), { message_id: batch_id, ...bound }))]);
    };
    await send({ bound_client_id: client_id });
    await send({});
    await deactivate(own);
    await erase({ client_id, kept_since: later });
    const { rows } = await ledger.owner.query('select metadata from batches order by bound_client_id');
    expect(rows).toEqual([{ metadata: { erased: '(erased)' } }, { metadata: { file_name: 'Ada.csv' } }]);
    await expect(ledger.reads.query('update batches set metadata = null')).rejects.toThrow(/permission denied/);
  });

  test('are replaced page by page; a concurrent request gets service_unavailable', async () => {
    const account_id = await ledger.open('Savings', '0');
    await ledger.owner.query(
      `insert into transactions (transaction_id, operation_id, account_id, transaction_type, direction, amount_minor, currency, description, status, failure_code, actor, request_id, created_at)
       select id, id, $1, 'Deposit', 'credit', 1, 'USD', 'Ada', 'Failed', 'inactive_account', 'a', 'r', '2026-01-02'
       from (select set_byte(decode(md5(n::text), 'hex'), 15, 0)::text, encode(set_byte(decode(md5(n::text), 'hex'), 15, 0), 'hex')::uuid as id from generate_series(1, 1700) as n) as ids`,
      [idBits(account_id)],
    );
    await deactivate(account_id);
    const data = { client_id: await clientOf(account_id), kept_since: later };
    const lock = await ledger.owner.connect();
    await lock.query('begin');
    await lock.query('select from transactions where account_id = $1 for update', [idBits(account_id)]);
    expect(await erase(data)).toMatchObject({ ok: false, refusal: { code: 'service_unavailable' } });
    expect(await erase(data)).toMatchObject({ ok: false, refusal: { code: 'service_unavailable' } });
    await lock.query('commit');
    lock.release();
    await expect.poll(() => erase(data), { timeout: 20_000 }).toEqual({ ok: true, data: { transactions: 1700 } });
    expect(new Set((await textsOf(account_id)).map(({ description }) => description))).toEqual(new Set(['(erased)']));
  });

  test('are kept while an account has money, is in use, or had postings within the retention period', async () => {
    const account_id = await ledger.open('Savings', '10');
    const client_id = await clientOf(account_id);
    expect(reasonsOf(await erase({ client_id, kept_since: '2020-01-01T00:00:00.000Z' }))).toEqual([
      ['not_inactive', 'has_money', 'within_retention'],
    ]);
    await post(ledger.cash('Withdrawal', account_id, '10'), { description: 'all of it' });
    await deactivate(account_id);
    expect(reasonsOf(await erase({ client_id, kept_since: '2020-01-01T00:00:00.000Z' }))).toEqual([
      ['within_retention'],
    ]);
    expect((await textsOf(account_id)).at(-1)).toMatchObject({ description: 'all of it' });
    expect(await erase({ client_id, kept_since: later })).toMatchObject({ ok: true });
  });

  test('need no change for a client without accounts', async () => {
    expect(await erase({ client_id: idOf('client', freshBits()), kept_since: later })).toEqual({
      ok: true,
      data: { transactions: 0 },
    });
  });
});

describe('the database', () => {
  test("lets the service's role replace texts only on accounts that are Inactive and empty", async () => {
    const account_id = await ledger.open('Savings', '10');
    const [row] = (
      await ledger.owner.query<{ transaction_id: string }>(
        'select transaction_id from transactions where account_id = $1',
        [idBits(account_id)],
      )
    ).rows;
    await expect(
      ledger.reads.query('select erase_texts($1, $2)', [idBits(account_id), [row?.transaction_id]]),
    ).rejects.toThrow(/is in use/);
    await expect(ledger.reads.query("update transactions set description = '(erased)'")).rejects.toThrow(
      /permission denied/,
    );
  });

  test.each([
    "description = 'x'",
    'amount_minor = 1',
    "description = '(erased)', currency = 'EUR'",
    'description = null',
    "actor = 'x'",
    "idempotency_key = 'x'",
    "external_id = 'x'",
    "metadata = '{}'",
  ])('refuses every other change of a transaction, even by the owner: %s', async (change) => {
    await expect(ledger.owner.query(`update transactions set ${change} where description is not null`)).rejects.toThrow(
      /append-only/,
    );
  });
});
