import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { readCamtSchema } from '../support/camt-schema.ts';
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
const world = useBank({ ledgers: 2, webhooks: 1, env: { BANK_TIME_ZONE: timeZone, SPREAD_COMMANDS: 'true' } });
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
    // Two events with a transaction and two entries each, and that of the transfer.
    const published = await eventually(async () => {
      const events = await readTopics(world.bank, ['transactions', 'transfers']);
      const own = [...events.values()].flat().filter(({ value }) => value?.includes(moved.transfer_id));
      return own.length >= 3 && own;
    });
    const shown = published.flatMap(({ value }) => String(value).match(/"effective_date":"[^"]+"/g) ?? []);
    expect(shown).toEqual(Array(7).fill(`"effective_date":"${dayAgo(7)}"`));
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

describe('a day', () => {
  it('has a balance by value date, for today the current one', async () => {
    // contract: days-12, days-15
    const { account_id, account_number } = await api.newAccount({ initial_deposit: 100 });
    await api.transact(account_id, 'Withdrawal', 30, { effective_date: dayAgo(3) });
    const path = `/accounts/${account_id}/balance`;
    for (const [on, balance] of [
      [dayAgo(4), 0],
      [dayAgo(3), -30],
      [dayAgo(1), -30],
      [today(), 70],
      ['0001-01-01', 0],
    ] as const)
      expect((await api.get(`${path}?on=${on}`)).data()).toEqual({
        account_id,
        account_number,
        currency: 'USD',
        balance,
        on,
      });
    for (const query of [`on=${dayAgo(-1)}`, `on=${today()}&at=2026-01-01`, 'on=2026-02-30'])
      expect(expectError(await api.get(`${path}?${query}`), 400, 'validation_failed').errors).toMatchObject([
        { field: 'on' },
      ]);
    for (const query of ['from', 'to'])
      expectError(await api.get(`${path}?on=${today()}&${query}=2026-01-01`), 400, 'unknown_parameter');
    expectError(await api.get(`/accounts/acc_${'0'.repeat(32)}/balance?on=${today()}`), 404, 'account_not_found');
    const bound = api.withToken(await world.bank.token(undefined, `bound:${other.client_id}`));
    expectError(await bound.get(`${path}?on=${today()}`), 404, 'account_not_found');
  });

  it('has a trial balance', async () => {
    // contract: days-13
    const currency = 'CHF';
    const { account_id } = await api.newAccount({ currency });
    await api.transact(account_id, 'Deposit', 5, { effective_date: dayAgo(2) });
    await api.transact(account_id, 'Deposit', 7);
    const figures = async (query: string) =>
      (await api.get(`/admin/trial-balance${query}`))
        .list<{ currency: string }>()
        .find((one) => one.currency === currency);
    const both = (amount: number, turnover: number) => ({
      currency,
      debit_total: turnover,
      credit_total: turnover,
      assets: amount,
      liabilities: amount,
      difference: 0,
    });
    expect(await figures(`?on=${dayAgo(3)}`)).toEqual(both(0, 0));
    expect(await figures(`?on=${dayAgo(1)}`)).toEqual(both(5, 10));
    expect(await figures(`?on=${today()}`)).toEqual(both(12, 24));
    expect(await figures('')).toEqual(both(12, 24));
    expectError(await api.get(`/admin/trial-balance?on=${dayAgo(-1)}`), 400, 'validation_failed');
  });

  it('has the balances of all accounts of clients, as JSON lines or CSV', async () => {
    // contract: days-14, days-15
    const currency = 'NOK';
    const [rich, empty] = [await api.newAccount({ currency, initial_deposit: 8 }), await api.newAccount({ currency })];
    await api.transact(rich.account_id, 'Deposit', 2, { effective_date: dayAgo(2) });
    const lines = (balance: string) =>
      [
        { account_id: rich.account_id, account_number: rich.account_number, currency, balance },
        { account_id: empty.account_id, account_number: empty.account_number, currency, balance: '0.00' },
      ].sort((a, b) => (a.account_id < b.account_id ? -1 : 1));
    const file = (query: string, accept?: string) =>
      api.get(`/admin/balances?${query}`, accept === undefined ? {} : { accept });
    for (const [query, balance] of [
      [`currency=${currency}`, '10.00'],
      [`currency=${currency}&on=${today()}`, '10.00'],
      [`currency=${currency}&on=${dayAgo(1)}`, '2.00'],
      [`currency=${currency}&on=${dayAgo(3)}`, '0.00'],
    ] as const) {
      const answer = await file(query);
      expect(answer.status, answer.text).toBe(200);
      expect(answer.header('content-type')).toBe('application/x-ndjson');
      expect(answer.text).toBe(
        lines(balance)
          .map((line) => `${JSON.stringify(line)}\n`)
          .join(''),
      );
    }
    const table = await file(`currency=${currency}`, 'text/csv');
    expect(table.header('content-type')).toMatch(/^text\/csv/);
    expect(table.text.split('\n')).toEqual([
      'account_id,account_number,currency,balance',
      ...lines('10.00').map((line) => Object.values(line).join(',')),
      '',
    ]);
    const all = (await file('')).text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { account_number: string });
    expect(all.length).toBeGreaterThan(3);
    expect(all.filter(({ account_number }) => /^(TLR|VLT)/.test(account_number))).toEqual([]);
    expectError(await file(`on=${dayAgo(-1)}`), 400, 'validation_failed');
    expectError(await file('currency=XXY'), 400, 'unsupported_currency');
    expectError(await file(`on=${today()}&from=2026-01-01`), 400, 'unknown_parameter');
    const without = api.withKey((await api.key({ scopes: ['accounts:read', 'transactions:read'] })).api_key);
    expectError(await without.get('/admin/balances'), 403, 'insufficient_scope');
  });
});

describe('the statement of a day', () => {
  const asXml = { accept: 'application/xml' };
  const day = () => dayAgo(3);
  const pathOf = ({ account_id }: RestAccount) => `/accounts/${account_id}/statement`;
  let find: Awaited<ReturnType<typeof readCamtSchema>>;
  let payer: RestAccount;
  let payee: RestAccount;
  beforeAll(async () => {
    find = await readCamtSchema();
    [payer, payee] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount()];
    await api.transact(payer.account_id, 'Withdrawal', 5, { effective_date: dayAgo(5) });
    const texts = { description: 'Rent <June> & "July"', reference: 'R-1', effective_date: day() };
    const { transaction_id } = await api.transact(payer.account_id, 'Deposit', 20.5, texts);
    await api.transfer(payer.account_id, payee.account_id, 30, { effective_date: day() });
    const reversal = { reason: 'posted twice', effective_date: day() };
    expect((await api.post(`/transactions/${transaction_id}/reversal`, reversal)).status).toBe(201);
  });
  const read = async (account: RestAccount, by: Api = api) => {
    const answer = await by.get(`${pathOf(account)}?on=${day()}`, asXml);
    expect([answer.status, answer.header('content-type')], answer.text).toEqual([
      200,
      'application/xml; charset=utf-8',
    ]);
    return (path: string) => find(answer.text, path);
  };

  it('is valid camt.053, with what was posted for that day, and when', async () => {
    // contract: days-23, days-24, days-25
    const own = await read(payer);
    expect(own('Acct/Id/Othr/Id')).toEqual([payer.account_number]);
    expect([own('Bal/Amt'), own('Bal/CdtDbtInd'), own('Bal/Dt/Dt')]).toEqual([
      ['5.00', '35.00'],
      ['DBIT', 'DBIT'],
      [day(), day()],
    ]);
    expect([own('TtlCdtNtries/Sum'), own('TtlDbtNtries/Sum'), own('NbOfNtries')]).toEqual([
      ['20.50'],
      ['50.50'],
      ['3'],
    ]);
    expect([own('Ntry/NtryRef'), own('Ntry/Amt'), own('Ntry/CdtDbtInd')]).toEqual([
      ['3', '4', '5'],
      ['20.50', '30.00', '20.50'],
      ['CRDT', 'DBIT', 'DBIT'],
    ]);
    expect(new Set(own('Ntry/ValDt/Dt'))).toEqual(new Set([day()]));
    const posted = new Set(own('Ntry/BookgDt/DtTm').map((time) => `${time.slice(0, 10)} ${time.slice(-6)}`));
    expect(posted).toEqual(new Set([`${today()} +14:00`]));
    expect([own('Ustrd'), own('EndToEndId')]).toEqual([
      ['Rent <June> & "July"', 'posted twice'],
      ['R-1', 'R-1'],
    ]);
    expect([own('CdtrAcct/Id/Othr/Id'), own('Ntry/RvslInd'), own('AddtlNtryInf')]).toEqual([
      [payee.account_number],
      ['true'],
      ['Deposit', 'Transfer', 'Deposit'],
    ]);
    const days = `effective_from=${day()}&effective_to=${day()}`;
    const entries = await api.all<RestEntry>(`/accounts/${payer.account_id}/entries?order=asc&${days}`);
    expect(own('Ntry/AcctSvcrRef')).toEqual(entries.map(({ transaction_id }) => transaction_id.slice(4)));
    const other = await read(payee);
    expect([other('DbtrAcct/Id/Othr/Id'), other('Bal/CdtDbtInd'), other('TxId')]).toEqual([
      [payer.account_number],
      ['CRDT', 'CRDT'],
      own('TxId'),
    ]);
  });

  it('has another MsgId after a posting dated back to the day, or before it', async () => {
    // contract: days-27
    const one = await api.newAccount();
    const messageId = async () => (await read(one))('MsgId')[0];
    const ids = [await messageId(), await messageId()];
    for (const effective_date of [day(), dayAgo(4), dayAgo(2)]) {
      await api.transact(one.account_id, 'Deposit', 1, { effective_date });
      ids.push(await messageId());
    }
    const [first, again, ofDay, ofEarlier, ofLater] = ids;
    expect([again, ofLater]).toEqual([first, ofEarlier]);
    expect(new Set([first, ofDay, ofEarlier]).size).toBe(3);
  });

  it('is the same as JSON and on paper', async () => {
    // contract: days-23
    const statement = (query: string) => api.get(`${pathOf(payer)}?${query}`);
    expect((await statement(`on=${day()}`)).data()).toEqual(
      (await statement(`effective_from=${day()}&effective_to=${day()}`)).data(),
    );
    const page = await api.get(`${pathOf(payer)}?on=${day()}`, { accept: 'text/html' });
    expect(page.text).toContain(`value dates from ${day()} to ${day()}`);
  });

  it('is for ended days, and callers who may read the account', async () => {
    // contract: days-23
    for (const accept of ['application/json', 'text/html', 'application/xml', 'text/xml']) {
      for (const on of [today(), dayAgo(-1)]) {
        const { errors } = expectError(
          await api.get(`${pathOf(payer)}?on=${on}`, { accept }),
          400,
          'validation_failed',
        );
        expect(errors).toEqual([
          { field: 'on', code: 'validation_failed', message: expect.stringContaining(`the bank's day is ${today()}`) },
        ]);
      }
      for (const filter of ['from', 'to', 'effective_from', 'effective_to'])
        expect(
          expectError(
            await api.get(`${pathOf(payer)}?on=${day()}&${filter}=${day()}`, { accept }),
            400,
            'validation_failed',
          ).errors,
        ).toMatchObject([{ field: 'on' }]);
    }
    expect(expectError(await api.get(pathOf(payer), asXml), 400, 'validation_failed').errors).toMatchObject([
      { field: 'on' },
    ]);
    const unknown = { ...payer, account_id: `acc_${'0'.repeat(32)}` };
    expectError(await api.get(`${pathOf(unknown)}?on=${day()}`, asXml), 404, 'account_not_found');
    const bound = api.withToken(await world.bank.token(undefined, `bound:${payer.client_id}`));
    expectError(await bound.get(`${pathOf(account)}?on=${day()}`, asXml), 404, 'account_not_found');
    // A customer does not see why staff reversed something.
    expect((await read(payer, bound))('Ustrd')).toEqual(['Rent <June> & "July"']);
    const without = api.withKey((await api.key({ scopes: ['accounts:read'] })).api_key);
    expectError(await without.get(`${pathOf(payer)}?on=${day()}`, asXml), 403, 'insufficient_scope');
  });
});

describe('closing a day', () => {
  const close = (date: unknown, by: Api = api, key = newKey()) => by.once(key, '/admin/day-closings', { date });
  const lineOf = (text: string) =>
    JSON.parse(text) as { account_id: string; opening: string; closing: string; sum: string };

  it('is for the scope books:close, which bound credentials cannot have', async () => {
    // contract: days-16, days-17
    const without = api.withKey((await api.key({ scopes: ['books:read', 'transactions:read'] })).api_key);
    expectError(await close(dayAgo(60), without), 403, 'insufficient_scope');
    const refused = await api.post('/admin/api-keys', {
      name: 'bound',
      scopes: ['books:close'],
      client_id: account.client_id,
    });
    expectError(refused, 400, 'validation_failed', /books:close/);
    const closer = api.withKey((await api.key({ scopes: ['books:close'] })).api_key);
    for (const path of [
      '/admin/day-closings',
      `/admin/day-closings/${today()}`,
      `/admin/day-closings/${today()}/accounts`,
    ])
      expectError(await closer.get(path), 403, 'insufficient_scope');
  });

  it('is for ended days, in order, once; it shows what the day was, for ever', async () => {
    // contract: days-16, days-17, days-18, days-19, days-20
    for (const date of [today(), dayAgo(-1)]) expectError(await close(date), 400, 'day_not_closable');
    for (const date of ['2026-02-30', undefined, null, 5]) expectError(await close(date), 400, 'validation_failed');
    expect((await api.get('/admin/day-closings')).list()).toEqual([]);
    const { account_id } = await api.newAccount();
    await api.transact(account_id, 'Deposit', 9, { effective_date: dayAgo(60) });
    const key = newKey();
    const answer = await close(dayAgo(60), api, key);
    expect(answer.status, answer.text).toBe(201);
    expect(answer.header('location')).toBe(`/admin/day-closings/${dayAgo(60)}`);
    const closing = answer.data<{ accounts_sha256: string; hash: string; previous_hash: string }>();
    expect(closing).toEqual({
      date: dayAgo(60),
      closed_at: expect.stringMatching(/Z$/),
      closed_by: expect.stringMatching(/^key:/),
      totals: expect.arrayContaining([
        {
          currency: 'USD',
          class: 'liability',
          opening: expect.any(Number),
          debits: 0,
          credits: 9,
          closing: expect.any(Number),
          entry_count: 1,
          operation_count: 1,
        },
      ]),
      accounts_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      previous_hash: '0'.repeat(64),
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const again = await close(dayAgo(60), api, key);
    expect([again.status, again.data(), again.header('idempotent-replayed')]).toEqual([201, closing, 'true']);
    expectError(await close(dayAgo(60)), 400, 'day_closed');
    expectError(await close(dayAgo(61)), 400, 'day_closed');
    expectError(await close(dayAgo(58)), 400, 'day_not_closable');

    const path = `/admin/day-closings/${dayAgo(60)}`;
    expect((await api.get(path)).data()).toEqual(closing);
    const file = await api.get(`${path}/accounts`);
    expect(file.header('content-type')).toBe('application/x-ndjson');
    const sha = (text: string) => createHash('sha256').update(text).digest('hex');
    expect(sha(file.text)).toBe(closing.accounts_sha256);
    expect(sha('0'.repeat(64) + closing.accounts_sha256)).toBe(closing.hash);
    const own = file.text
      .trim()
      .split('\n')
      .map(lineOf)
      .find((line) => line.account_id === account_id);
    expect(own).toMatchObject({
      opening: '0.00',
      closing: '9.00',
      sum: '9.00',
      count: 1,
      first_sequence: 1,
      last_sequence: 1,
    });
    const table = await api.get(`${path}/accounts`, { accept: 'text/csv' });
    expect(table.text.split('\n')[0]).toBe(
      'account_id,account_number,currency,class,opening,closing,sum,count,first_sequence,last_sequence',
    );
    expect(table.text.split('\n')).toHaveLength(file.text.split('\n').length + 1);
    for (const unknown of [dayAgo(59), '2026-02-30', 'x'])
      for (const part of ['', '/accounts']) {
        const refused = await api.get(`/admin/day-closings/${unknown}${part}`);
        expectError(refused, 404, 'day_not_found');
        expect(refused.error.details).toEqual({ closed_up_to: dayAgo(60) });
      }

    const posting = { account_id, transaction_type: 'Deposit', amount: 1 };
    for (const effective_date of [dayAgo(60), dayAgo(61)])
      expectError(await api.post('/transactions', { ...posting, effective_date }), 400, 'day_closed');
    await api.transact(account_id, 'Deposit', 1, { effective_date: dayAgo(59) });
    await api.transact(account_id, 'Deposit', 1);
    const next = (await close(dayAgo(59))).data<{
      previous_hash: string;
      totals: { class: string; opening: number }[];
    }>();
    expect(next.previous_hash).toBe(closing.hash);
    expect((await api.get('/admin/day-closings')).list()).toEqual([next, closing]);
    expect((await api.get(path)).data()).toEqual(closing);
    expect(await api.all(`/admin/day-closings?limit=1&order=asc`)).toEqual([closing, next]);
  });

  it('is published on the topic days, in GET /events for callers that are not bound, and audited', async () => {
    // contract: days-22
    const decimal = (amount: number) => amount.toFixed(2);
    const closing = (await api.get(`/admin/day-closings/${dayAgo(60)}`)).data<{ totals: Record<string, unknown>[] }>();
    const event = await eventually(async () =>
      (await readTopics(world.bank, ['days'])).get('days')?.find(({ key }) => key === dayAgo(60)),
    );
    expect(event.headers['ce_type']).toBe('corebanking.day.closed.v1');
    const {
      last_sequences,
      totals,
      system_accounts,
      batch_id: _,
      batch_position: __,
      event_id: ___,
      event_type: ____,
      ...data
    } = JSON.parse(String(event.value)) as {
      last_sequences: Record<string, number>;
      totals: Record<string, unknown>[];
      system_accounts: { account_number: string }[];
      [field: string]: unknown;
    };
    expect({ ...data, totals: [] }).toEqual({ ...closing, totals: [] });
    expect(totals[0]?.['credits']).toBe(decimal(closing.totals[0]?.['credits'] as number));
    const lines = (await api.get(`/admin/day-closings/${dayAgo(60)}/accounts`)).text.trim().split('\n').map(lineOf);
    const isSystem = (line: object) => /"account_number":"(TLR|VLT)-/.test(JSON.stringify(line));
    expect(system_accounts.length).toBeGreaterThan(1);
    expect(system_accounts).toEqual(lines.filter(isSystem));
    const offsets = Object.values(last_sequences);
    expect(offsets.length).toBeGreaterThan(0);
    expect(Math.max(...offsets)).toBeGreaterThan(0);
    const bound = api.withToken(await world.bank.token(undefined, `bound:${account.client_id}`));
    const published = await eventually(async () => {
      const events = (await api.get('/events?types=day.closed')).list<{ subject: string }>();
      return events.length >= 2 && events;
    });
    expect(published.map(({ subject }) => subject)).toEqual([dayAgo(60), dayAgo(59)]);
    expect((await bound.get('/events?types=day.closed')).list()).toEqual([]);
    const record = await eventually(async () => {
      const records = await api.all<{ resource_id: string; outcome: string }>('/admin/audit?action=close_day');
      return records.find(({ resource_id, outcome }) => resource_id === dayAgo(60) && outcome === 'success');
    });
    expect(record).toMatchObject({ details: { date: dayAgo(60) } });
  });

  it('keeps its zone: ledgers and verify-books with another one do not start, and a gateway is not ready', async () => {
    // contract: days-29
    const message = `BANK_TIME_ZONE is UTC, but days of these books were closed in ${timeZone}`;
    const ledger = world.bank.process('ledger-2');
    await ledger.startWith({ BANK_TIME_ZONE: 'UTC' });
    await eventually(async () => !ledger.running());
    expect(readFileSync(ledger.log, 'utf8')).toContain(`ledger cannot start: ${message}`);
    await ledger.restart();
    const other = { BANK_TIME_ZONE: 'UTC' };
    await world.bank.process('gateway').startWith(other);
    const refused = await eventually(() => world.api.post('/transactions', {}));
    expectError(refused, 503, 'service_unavailable', /time zone/);
    const { checks } = (await (await fetch(world.bank.process('gateway').health_url)).json()) as {
      checks: Record<string, { reason?: string }>;
    };
    expect(checks['time_zone']?.reason).toBe(`BANK_TIME_ZONE is UTC, but ${timeZone} in the ledger`);
    await world.bank.process('gateway').restart();
    const check = (BANK_TIME_ZONE: string) =>
      promisify(execFile)(process.execPath, ['services/verify-books.ts'], {
        env: { ...process.env, DATABASE_URL: world.bank.database_url, KAFKA_BROKERS: '', BANK_TIME_ZONE },
      });
    await expect(check('UTC')).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect((await check(timeZone)).stdout).toContain('the books balance');
  });
});
