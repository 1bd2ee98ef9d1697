import { beforeAll, describe, expect, it } from 'vitest';
import {
  type Answer,
  type Api,
  expectError,
  newKey,
  type RestAccount,
  type RestEntry,
  type RestTransaction,
  type RestTransfer,
} from '../support/client.ts';
import { readTopics } from '../support/kafka.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests the contract of days with a bank whose day began 14 hours before that of UTC. */
const timeZone = 'Pacific/Kiritimati';
const world = useBank({ ledgers: 2, env: { BANK_TIME_ZONE: timeZone } });
const { api } = world;

const dayAgo = (days: number) =>
  new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' }).format(Date.now() - days * 86_400_000);
const today = () => dayAgo(0);

let account: RestAccount;
let other: RestAccount;
beforeAll(async () => {
  account = await api.newAccount({ initial_deposit: 1000 });
  other = await api.newAccount();
});

interface Shown {
  effective_date: string;
  status: string;
}

/** Every request that may name a value date. Returns what was posted. */
const requests: [
  name: string,
  send: (by: Api, day: unknown, key?: string) => Promise<Answer>,
  posted: (answer: Answer) => Shown,
][] = [
  [
    'POST /transactions',
    (by, effective_date, key = newKey()) =>
      by.once(key, '/transactions', {
        account_id: account.account_id,
        transaction_type: 'Deposit',
        amount: 1,
        effective_date,
      }),
    (answer) => answer.body as Shown,
  ],
  [
    'POST /transfers',
    (by, effective_date, key = newKey()) =>
      by.once(key, '/transfers', {
        from_account_id: account.account_id,
        to_account_id: other.account_id,
        amount: 1,
        effective_date,
      }),
    (answer) => answer.data<Shown>(),
  ],
  [
    'a capture',
    async (by, effective_date, key = newKey()) => {
      const hold = await api.once(`${key} hold`, `/accounts/${account.account_id}/holds`, { amount: 1 });
      return by.once(key, `/holds/${hold.data<{ hold_id: string }>().hold_id}/capture`, { effective_date });
    },
    (answer) => answer.data<{ transaction: Shown }>().transaction,
  ],
  [
    'a reversal',
    async (by, effective_date, key = newKey()) => {
      const posting = {
        account_id: account.account_id,
        transaction_type: 'Deposit',
        amount: 1,
        effective_date: dayAgo(90),
      };
      const original = await api.once(`${key} original`, '/transactions', posting);
      const { transaction_id } = original.body as RestTransaction;
      return by.once(key, `/transactions/${transaction_id}/reversal`, { reason: 'test', effective_date });
    },
    (answer) => answer.data<Shown>(),
  ],
  [
    'an item of a batch',
    (by, effective_date, key = newKey()) =>
      by.once(key, '/batches', {
        mode: 'independent',
        items: [
          { transaction: { account_id: account.account_id, transaction_type: 'Deposit', amount: 1, effective_date } },
        ],
      }),
    (answer) => answer.data<{ results: [{ transaction: Shown }] }>().results[0].transaction,
  ],
];

describe.each(requests)('effective_date of %s', (name, send, posted) => {
  const isBatch = name === 'an item of a batch';
  /** An item is refused alone, so its batch is not. */
  const expectRefused = (answer: Answer, code: string) => {
    if (!isBatch) return expectError(answer, 400, code);
    expect(answer.data<object>()).toMatchObject({ counts: { failed: 1 }, results: [{ error: { code } }] });
    return undefined;
  };

  it('is the bank’s day by default, and any day of the last 90', async () => {
    // contract: days-1, days-3, days-8
    for (const [given, shown] of [
      [undefined, today()],
      [null, today()],
      [today(), today()],
      [dayAgo(1), dayAgo(1)],
      [dayAgo(90), dayAgo(90)],
    ] as const) {
      const answer = await send(api, given);
      expect(answer.status, answer.text).toBeLessThan(300);
      expect(posted(answer)).toMatchObject({ status: 'Completed', effective_date: shown });
    }
  });

  it.each([
    ['tomorrow', -1],
    ['91 days ago', 91],
  ])('is not %s', async (_, days) => {
    // contract: days-2, days-3, days-5
    const key = newKey();
    const refused = await send(api, dayAgo(days), key);
    expectRefused(refused, 'invalid_effective_date');
    const again = await send(api, dayAgo(days), key);
    expectRefused(again, 'invalid_effective_date');
    expect(again.header('idempotent-replayed')).toBe('true');
    if (isBatch) return;
    const { details } = refused.error;
    const kept = (await api.get(`/transactions/${details?.['transaction_id']}`)).data<RestTransaction>();
    expect(kept).toMatchObject({
      status: 'Failed',
      failure_code: 'invalid_effective_date',
      effective_date: dayAgo(days),
    });
  });

  it.each([
    '2026-02-30',
    '2026-1-1',
    '01.01.2026',
    '2026-01-01T00:00:00Z',
    '',
    'today',
    '0000-01-01',
    '10000-01-01',
    ' 2026-01-01',
    20260101,
    {},
    false,
  ])('is a day, not %j', async (given) => {
    // contract: days-1
    const { errors } = expectError(await send(api, given), 400, 'validation_failed');
    expect(errors?.map(({ field }) => field)).toEqual([expect.stringMatching(/(^|\.)effective_date$/)]);
  });

  it('other than the bank’s day requires transactions:backdate', async () => {
    // contract: days-6
    const scopes = [
      'transactions:read',
      'transactions:write',
      'transactions:reverse',
      'transfers:write',
      'holds:write',
    ];
    const by = api.withKey((await api.key({ scopes })).api_key);
    for (const day of [dayAgo(1), dayAgo(-1)])
      expectError(await send(by, day), 403, 'insufficient_scope', /transactions:backdate/);
    const permitted = await send(by, today());
    expect(permitted.status, permitted.text).toBeLessThan(300);
    expect(posted(permitted)).toMatchObject({ status: 'Completed', effective_date: today() });
  });

  it('is part of the request: omitted and today’s are two', async () => {
    // contract: days-7
    const key = newKey();
    const first = await send(api, undefined, key);
    expect(first.status, first.text).toBeLessThan(300);
    expectError(await send(api, today(), key), 422, 'idempotency_key_reused');
    expect((await send(api, undefined, key)).header('idempotent-replayed')).toBe('true');
  });
});

describe('value dates', () => {
  it('are not for bound credentials', async () => {
    // contract: days-6
    const refused = await api.post('/admin/api-keys', {
      name: 'bound',
      scopes: ['transfers:write', 'transactions:backdate'],
      client_id: account.client_id,
    });
    expectError(refused, 400, 'validation_failed', /transactions:backdate/);
    const bound = api.withToken(await world.bank.token(undefined, `bound:${account.client_id}`));
    const pay = (effective_date?: string) =>
      bound.post('/transfers', {
        from_account_id: account.account_id,
        to_account_id: other.account_id,
        amount: 1,
        effective_date,
      });
    expectError(await pay(dayAgo(1)), 403, 'insufficient_scope');
    expect((await pay(today())).status).toBe(201);
  });

  it('show in every list and event of the posting, and filter by whole days', async () => {
    // contract: days-8, days-9
    const [from, to] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount()];
    const path = `/accounts/${from.account_id}`;
    const moved = await api.transfer(from.account_id, to.account_id, 10, { effective_date: dayAgo(7) });
    await api.transact(from.account_id, 'Withdrawal', 5, { effective_date: dayAgo(5) });
    const days = async (list: string) =>
      (await api.all<{ effective_date: string }>(list)).map((one) => one.effective_date);
    const all = [dayAgo(5), dayAgo(7), today()];
    expect(await days(`/transactions?account_id=${from.account_id}`)).toEqual(all);
    expect(await days(`${path}/entries`)).toEqual(all);
    for (const [query, expected] of [
      [`effective_from=${dayAgo(7)}&effective_to=${dayAgo(7)}`, [dayAgo(7)]],
      [`effective_from=${dayAgo(6)}`, [dayAgo(5), today()]],
      [`effective_to=${dayAgo(5)}`, [dayAgo(5), dayAgo(7)]],
      [`effective_from=${today()}`, [today()]],
      [`effective_to=${dayAgo(8)}`, []],
      ['effective_from=0001-01-01&effective_to=9999-12-31', all],
    ] as [string, string[]][]) {
      expect(await days(`/transactions?account_id=${from.account_id}&${query}`), query).toEqual(expected);
      expect(await days(`${path}/entries?${query}`), query).toEqual(expected);
      const statement = (await api.get(`${path}/statement?${query}`)).data<{ entries: RestEntry[] }>();
      expect(
        statement.entries.map(({ effective_date }) => effective_date),
        query,
      ).toEqual(expected.toReversed());
      const transfers = await api.all<RestTransfer>(`/transfers?account_id=${from.account_id}&${query}`);
      expect(transfers.length, query).toBe(expected.filter((day) => day === dayAgo(7)).length);
    }
    await eventually(async () => {
      const events = await readTopics(world.bank, ['transactions', 'transfers']);
      const own = [...events.values()].flat().filter(({ value }) => value?.includes(moved.transfer_id));
      const shown = own.map(({ value }) => String(value).match(/"effective_date":"[^"]+"/g));
      // Two events with a transaction and two entries each, and that of the transfer.
      expect(shown.flat()).toEqual(Array(7).fill(`"effective_date":"${dayAgo(7)}"`));
    });
  });

  it('of a statement give its balances', async () => {
    // contract: days-11
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    await api.transact(account_id, 'Withdrawal', 30, { effective_date: dayAgo(3) });
    await api.transact(account_id, 'Deposit', 5, { effective_date: dayAgo(1) });
    const path = `/accounts/${account_id}/statement`;
    const { data } = (await api.get(`${path}?effective_from=${dayAgo(3)}&effective_to=${dayAgo(2)}`)).body as {
      data: object;
    };
    expect(data).toMatchObject({
      from: null,
      to: null,
      effective_from: dayAgo(3),
      effective_to: dayAgo(2),
      opening_balance: 0,
      closing_balance: -30,
      debit_total: 30,
      credit_total: 0,
      entry_count: 1,
      entries: [{ sequence: 2, balance_after: 70, effective_date: dayAgo(3) }],
    });
    for (const [query, field] of [
      [`effective_from=${dayAgo(1)}&effective_to=${dayAgo(2)}`, 'effective_to'],
      [`effective_from=${dayAgo(1)}&from=${dayAgo(2)}`, 'effective_from'],
      ['effective_from=2026-02-30', 'effective_from'],
    ])
      expect(expectError(await api.get(`${path}?${query}`), 400, 'validation_failed').errors).toMatchObject([
        { field },
      ]);
    const page = await api.get(`${path}?effective_from=${dayAgo(3)}`, { accept: 'text/html' });
    expect(page.text).toContain(`Value date ${dayAgo(3)}`);
  });

  it('change neither order, sequence, and balance_after, nor what decides', async () => {
    // contract: days-3, days-10
    const { account_id } = await api.newAccount();
    await api.transact(account_id, 'Deposit', 10);
    // Before the opening of the account, when it had nothing.
    await api.transact(account_id, 'Withdrawal', 10, { effective_date: dayAgo(90) });
    const refused = { account_id, transaction_type: 'Withdrawal', amount: 1, effective_date: today() };
    expectError(await api.post('/transactions', refused), 400, 'insufficient_funds');
    const entries = await api.entries(account_id);
    expect(entries).toMatchObject([
      { sequence: 2, balance_after: 0, effective_date: dayAgo(90) },
      { sequence: 1, balance_after: 10, effective_date: today() },
    ]);
    expect((entries[0]?.created_at ?? '') >= (entries[1]?.created_at ?? '')).toBe(true);
  });

  it('of a Loan Payment and a reversal have a first day', async () => {
    // contract: days-4
    const loan = await api.newAccount({ account_type: 'Loan', initial_deposit: 50 });
    const pay = { from_account_id: account.account_id, to_account_id: loan.account_id, amount: 1 };
    expectError(
      await api.post('/transfers', { ...pay, effective_date: dayAgo(1) }),
      400,
      'invalid_effective_date',
      /payout/,
    );
    expect((await api.post('/transfers', { ...pay, effective_date: today() })).status).toBe(201);
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 1, { effective_date: dayAgo(2) });
    const reverse = (effective_date: string) =>
      api.post(`/transactions/${transaction_id}/reversal`, { reason: 'test', effective_date });
    expectError(await reverse(dayAgo(3)), 400, 'invalid_effective_date', /reverses/);
    expect((await reverse(dayAgo(2))).data<Shown>().effective_date).toBe(dayAgo(2));
  });
});
