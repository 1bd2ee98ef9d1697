import { expect, it } from 'vitest';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { formatId } from '#libs/contracts/ids.ts';
import type { MessageData, MessageResult } from '#libs/contracts/messages.ts';
import { freshBits, type LedgerHarness, useLedger } from '../test/harness.ts';
import { periodStatement } from './statement.ts';

const ledger = useLedger();

type Found = MessageResult<'get_statement'>;
const ask = (
  data: Partial<MessageData<'get_statement'>> & { account_id: string },
  bound?: string,
): Promise<ReplyBody> =>
  ledger.ask({ name: 'get_statement', data: { limit: 100, ...data } } as Parameters<LedgerHarness['ask']>[0], {
    bound_client_id: bound,
  });

async function statement(data: Parameters<typeof ask>[0]): Promise<Found> {
  const reply = await ask(data);
  if (!reply.ok) throw new Error(JSON.stringify(reply));
  return reply.data as Found;
}

/** Creates an account with that many entries of 0.01 each, so far apart. Every third is a debit. */
async function longAccount(entries: number, apart = '1 minute', since = '2020-01-01Z'): Promise<string> {
  const account_id = await ledger.open('Savings', '0');
  const uuid = account_id.slice(4);
  for (const trigger of ['entries_posted', 'entries_append_only'])
    await ledger.owner.query(`alter table entries disable trigger ${trigger}`);
  await ledger.owner.query(
    `insert into entries select $1::uuid, n, md5('o' || $1 || n)::uuid, md5('t' || $1 || n)::uuid, case when n % 3 = 0 then 'debit' else 'credit' end, case when n % 3 = 0 then 'DR' else 'CR' end,
       1, 'USD', n - 2 * (n / 3), $4::timestamptz + (n - 1) * $3::interval from generate_series(1, $2::int8) n`,
    [uuid, entries, apart, since],
  );
  await ledger.owner.query(
    'update accounts set last_sequence = $2, balance_minor = $2::int8 - 2 * ($2::int8 / 3) where account_id = $1',
    [uuid, entries],
  );
  for (const trigger of ['entries_posted', 'entries_append_only'])
    await ledger.owner.query(`alter table entries enable always trigger ${trigger}`);
  await ledger.owner.query('analyze entries');
  return account_id;
}

it('a bound caller sees a reversal, but not the reason of staff', async () => {
  const [account_id] = [await ledger.open('Savings', '100')];
  const deposit = ledger.cash('Deposit', account_id, '5');
  await ledger.book([deposit]);
  const { transaction_id: original } = deposit.data as { transaction_id: string };
  const reversal = ledger.reversal(original);
  await ledger.book([reversal]);
  const {
    rows: [owner],
  } = await ledger.owner.query<{ client_id: string }>('select client_id from accounts where account_id = $1', [
    account_id.slice(4),
  ]);
  const { transaction_id } = reversal.data as { transaction_id: string };
  const descriptions = async (bound_client_id?: string) => {
    const one = await ledger.ask(
      { name: 'get_transaction', data: { transaction_id } } as Parameters<LedgerHarness['ask']>[0],
      { bound_client_id },
    );
    const list = await ledger.ask(
      { name: 'list_transactions', data: { account_id, limit: 10, order: 'desc' } } as Parameters<
        LedgerHarness['ask']
      >[0],
      { bound_client_id },
    );
    if (!one.ok || !list.ok) throw new Error(JSON.stringify([one, list]));
    const shown = (list.data as MessageResult<'list_transactions'>).items.find(
      (item) => item.transaction_id === transaction_id,
    );
    return [one.data as MessageResult<'get_transaction'>, shown].map((seen) => [
      seen?.reverses_transaction_id,
      seen?.description,
    ]);
  };
  expect(await descriptions()).toEqual([
    [original, 'mistake'],
    [original, 'mistake'],
  ]);
  expect(await descriptions(formatId('client', (owner?.client_id ?? '').replaceAll('-', '')))).toEqual([
    [original, null],
    [original, null],
  ]);
});

it('shows the opening balance, entries, and closing balance of a period; without bounds, those of the whole account', async () => {
  // contract: accounts-26
  const [account_id, other] = [await ledger.open('Savings', '100'), await ledger.open('Checking', '0')];
  await ledger.book([
    ledger.cash('Deposit', account_id, '10.50'),
    ledger.transfer(account_id, other, '25'),
    ledger.cash('Withdrawal', account_id, '0.50'),
  ]);
  const { item, next } = await statement({ account_id });
  expect(item).toMatchObject({
    account_id,
    currency: 'USD',
    from: null,
    to: null,
    opening_balance: '0.00',
    closing_balance: '85.00',
    debit_total: '25.50',
    credit_total: '110.50',
    entry_count: 4,
  });
  expect(item.entries.map(({ sequence, balance_after }) => [sequence, balance_after])).toEqual([
    [1, '100.00'],
    [2, '110.50'],
    [3, '85.50'],
    [4, '85.00'],
  ]);
  expect(next).toBeUndefined();
  const from = item.entries[1]?.created_at ?? '';
  expect((await statement({ account_id, from })).item).toMatchObject({
    opening_balance: '100.00',
    closing_balance: '85.00',
    entry_count: 3,
    from,
  });
  expect((await statement({ account_id, to: from })).item).toMatchObject({
    opening_balance: '0.00',
    closing_balance: '100.00',
    entry_count: 1,
    debit_total: '0.00',
  });
  expect((await statement({ account_id, from: '2999-01-01T00:00:00.000Z' })).item).toMatchObject({
    opening_balance: '85.00',
    closing_balance: '85.00',
    entry_count: 0,
    entries: [],
  });
  expect((await statement({ account_id, to: '1999-01-01T00:00:00.000Z' })).item).toMatchObject({
    opening_balance: '0.00',
    closing_balance: '0.00',
    entry_count: 0,
  });
  expect((await statement({ account_id, from: '2999-01-01T00:00:00.000Z', to: from })).item).toMatchObject({
    opening_balance: '85.00',
    closing_balance: '85.00',
    entry_count: 0,
  });
});

it('pages contain each entry once, with the totals of the first page, also if more is posted meanwhile', async () => {
  const account_id = await ledger.open('Savings', '1');
  await ledger.book(Array.from({ length: 9 }, () => ledger.cash('Deposit', account_id, '1')));
  await ledger.book([ledger.cash('Withdrawal', account_id, '3')]);
  const first = await statement({ account_id, limit: 4 });
  await ledger.book([ledger.cash('Deposit', account_id, '500')]);
  const second = await statement({ account_id, limit: 4, after: first.next });
  const third = await statement({ account_id, limit: 4, after: second.next });
  expect([first, second, third].flatMap(({ item }) => item.entries.map(({ sequence }) => sequence))).toEqual([
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
  ]);
  for (const { item } of [second, third]) expect({ ...item, entries: [] }).toEqual({ ...first.item, entries: [] });
  expect(third.next).toBeUndefined();
  expect((await statement({ account_id })).item).toMatchObject({ entry_count: 12, closing_balance: '507.00' });
  expect(await ask({ account_id, after: { at: '', id: '3' } })).toMatchObject({
    ok: false,
    refusal: { code: 'invalid_cursor' },
  });
});

it('is not found for callers who cannot see the account, or for Teller and Vault', async () => {
  const account_id = await ledger.open('Savings', '1');
  const { rows } = await ledger.owner.query<{ client_id: string; vault: string }>(
    "select client_id, (select account_id from accounts where account_type = 'Vault' limit 1) as vault from v_accounts where account_id = $1",
    [account_id],
  );
  expect(await ask({ account_id }, rows[0]?.client_id)).toMatchObject({ ok: true });
  const missing = { ok: false, refusal: { code: 'account_not_found' } };
  expect(await ask({ account_id }, formatId('client', freshBits()))).toMatchObject(missing);
  expect(await ask({ account_id: formatId('account', (rows[0]?.vault ?? '').replaceAll('-', '')) })).toMatchObject(
    missing,
  );
  expect(await ask({ account_id: 'acc_x' })).toMatchObject(missing);
});

it('finds a period in a long account by index only, and refuses one with too many entries', async () => {
  const account_id = await longAccount(150_000);
  const at = (n: number) => new Date(Date.parse('2020-01-01T00:00:00Z') + (n - 1) * 60_000).toISOString();
  const { item } = await statement({ account_id, from: at(90_001), to: at(90_301), limit: 2 });
  expect(item).toMatchObject({
    entry_count: 300,
    debit_total: '1.00',
    credit_total: '2.00',
    opening_balance: '300.00',
    closing_balance: '301.00',
  });
  expect(item.entries.map(({ sequence }) => sequence)).toEqual([90_001, 90_002]);
  expect((await statement({ account_id, from: at(1), to: at(100_001), limit: 1 })).item).toMatchObject({
    entry_count: 100_000,
    debit_total: '333.33',
    credit_total: '666.67',
  });
  const tooMany = await ask({ account_id });
  expect(tooMany).toMatchObject({
    ok: false,
    refusal: {
      code: 'validation_failed',
      errors: [{ field: 'from', message: expect.stringContaining('150000 entries') }],
    },
  });
  for (const [from, to] of [
    [at(90_001), at(90_301)],
    ['-infinity', 'infinity'],
  ]) {
    const plan = await ledger.reads.query(`explain (analyze, buffers, format json) ${periodStatement}`, [
      account_id.slice(4),
      null,
      from,
      to,
    ]);
    const root = plan.rows[0]['QUERY PLAN'][0].Plan;
    expect(root['Shared Hit Blocks'] + root['Shared Read Blocks']).toBeLessThan(500);
    expect(JSON.stringify(root)).not.toMatch(
      /Seq Scan","Parallel Aware":(true|false),"Async Capable":(true|false),"Relation Name":"entries"/,
    );
  }
});

it('of the last days with too many entries is refused, too', async () => {
  // contract: days-31
  const account_id = await longAccount(100_001, '1 millisecond', new Date(Date.now() - 3_600_000).toISOString());
  const reply = await ledger.ask({ name: 'get_account_days', data: { account_id, days: 3 } } as Parameters<
    LedgerHarness['ask']
  >[0]);
  expect(reply).toMatchObject({
    ok: false,
    refusal: {
      errors: [{ field: 'days', message: 'the period has 100001 entries: choose one of at most 100000' }],
    },
  });
});

it('of days with too many entries is refused, whatever was dated to them or away from them', async () => {
  // contract: days-11, days-28
  const account_id = await longAccount(100_002, '0.5 seconds');
  const day = '2020-01-01';
  const refusal = async (data: object) => {
    const reply = await ask({ account_id, limit: 1, ...data });
    return reply.ok ? undefined : reply.refusal.errors;
  };
  const days = { effective_from: day, effective_to: day };
  expect(await refusal(days)).toMatchObject([
    { field: 'effective_from', message: 'the period has 100002 entries: choose one of at most 100000' },
  ]);
  expect(await refusal({ on: day })).toMatchObject([
    {
      field: 'on',
      message: expect.stringMatching(/^the day has 100002 entries, .* GET \/accounts\/:account_id\/entries$/),
    },
  ]);
  // Two of them are for another day.
  await ledger.owner.query(
    `insert into dated_entries (account_id, sequence, effective_date) select $1, n, date '2019-12-31' from generate_series(1, 2) n`,
    [account_id.slice(4)],
  );
  const { item } = await statement({ account_id, limit: 1, on: day });
  expect(item).toMatchObject({
    ...days,
    entry_count: 100_000,
    opening_balance: '0.02',
    debit_total: '333.34',
    credit_total: '666.66',
    closing_balance: '333.34',
  });
});
