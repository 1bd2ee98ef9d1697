import { beforeAll, describe, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { Operations, Verification } from '#libs/contracts/operations.ts';
import type { SearchHit } from '#libs/contracts/search.ts';
import type { Statement } from '#libs/contracts/statements.ts';
import type { PostingStatistics, PostingTotals } from '#libs/contracts/statistics.ts';
import type { Timeline } from '#libs/contracts/timeline.ts';
import {
  expectError,
  newKey,
  type RestAccount,
  type RestClient,
  type RestTransaction,
  unknownId,
} from '../support/client.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests reads of staff over the whole bank, and the statement of an account. */
const world = useBank({ webhooks: 1, env: staffEnv });
const { api } = world;

let client: RestClient;
let account: RestAccount;
let other: RestAccount;
let deposit: RestTransaction;
const key = newKey();

beforeAll(async () => {
  client = await api.client({ first_name: 'Grace', last_name: 'Høpper', contact_number: '+4799000001' });
  account = await api.account(client.client_id, { initial_deposit: 100 });
  other = await api.newAccount();
  const answer = await api.post(
    '/transactions',
    { account_id: account.account_id, transaction_type: 'Deposit', amount: 12.5, reference: 'INVOICE 77' },
    { 'idempotency-key': key, 'x-request-id': 'the very request' },
  );
  deposit = answer.body as RestTransaction;
  await api.transfer(account.account_id, other.account_id, 2.5);
});

describe('GET /accounts/:account_id/statement', () => {
  it('shows balances, totals, and entries of a period, page by page', async () => {
    const path = `/accounts/${account.account_id}/statement`;
    const whole = (await api.get(path)).data<Statement>();
    expect(whole).toMatchObject({
      account_number: account.account_number,
      opening_balance: 0,
      closing_balance: 110,
      debit_total: 2.5,
      credit_total: 112.5,
      entry_count: 3,
    });
    expect(whole.entries).toEqual((await api.entries(account.account_id)).toReversed());
    const first = await api.get(`${path}?limit=2`);
    const second = await api.get(first.next ?? '');
    expect([...first.data<Statement>().entries, ...second.data<Statement>().entries]).toEqual(whole.entries);
    expect(second.next).toBeUndefined();
    const from = whole.entries[1]?.created_at;
    expect((await api.get(`${path}?from=${from}`)).data()).toMatchObject({
      from,
      opening_balance: 100,
      entry_count: 2,
    });
  });

  it('of another client’s account is 404', async () => {
    const bound = api.withKey((await api.key({ scopes: ['transactions:read'], client_id: client.client_id })).api_key);
    expect((await bound.get(`/accounts/${account.account_id}/statement`)).status).toBe(200);
    expectError(await bound.get(`/accounts/${other.account_id}/statement`), 404, 'account_not_found');
    expectError(await api.get(`/accounts/${unknownId('acc')}/statement`), 404, 'account_not_found');
  });
});

describe('GET /admin/search', () => {
  const search = async (q: string, caller = api) =>
    (await caller.get(`/admin/search?q=${encodeURIComponent(q)}`)).list<SearchHit>();

  it('finds every kind of identifier', async () => {
    for (const q of ['grace hø', 'HØPPER', '+47 9900 0001', client.client_id])
      expect(await search(q), q).toMatchObject([{ kind: 'client', id: client.client_id, title: 'Grace Høpper' }]);
    for (const q of [account.account_number, account.account_id])
      expect(await search(q), q).toMatchObject([{ kind: 'account', id: account.account_id }]);
    for (const q of [deposit.transaction_id, 'INVOICE 77', key, 'the very request'])
      expect(await search(q), q).toMatchObject([
        { kind: 'transaction', id: deposit.transaction_id, title: 'Deposit 12.50 USD' },
      ]);
    expect(await search('nothing is called so')).toEqual([]);
  });

  it('shows each kind only with its scope, and is refused for bound credentials', async () => {
    const reader = api.withKey((await api.key({ scopes: ['accounts:read'] })).api_key);
    expect([await search('grace', reader), await search('INVOICE 77', reader)]).toEqual([[], []]);
    expect(await search(account.account_number, reader)).toHaveLength(1);
    const bound = api.withKey(
      (await api.key({ scopes: ['accounts:read', 'clients:read'], client_id: client.client_id })).api_key,
    );
    expectError(await bound.get('/admin/search?q=grace'), 403, 'insufficient_scope');
  });

  it('records the clients shown to a member of staff', async () => {
    const clerk = api.withToken(staffToken(world.bank, 'searcher'));
    const answer = await clerk.get('/admin/search?q=grace');
    await clerk.get(`/clients/${client.client_id}`);
    const records = await eventually(async () => {
      const found = await api.all<AuditRecord>(
        `/admin/audit?resource_id=${client.client_id}&actor=${encodeURIComponent(`jwt:${world.bank.issuer}|searcher`)}`,
      );
      return found.length === 2 && found;
    });
    expect(records.map(({ action, outcome }) => [action, outcome])).toEqual([
      ['get_client', 'success'],
      ['search', 'success'],
    ]);
    expect(records[1]).toMatchObject({
      request_id: answer.header('x-request-id'),
      details: { rows: 1, filters: { q: '(given)' } },
    });
  });
});

describe('GET /admin/transactions/:transaction_id/timeline', () => {
  it('leads from the request to the events, with both sides of Teller and Vault', async () => {
    const path = `/admin/transactions/${deposit.transaction_id}/timeline`;
    const told = await eventually(async () => {
      const timeline = (await api.get(path)).data<Timeline>();
      return timeline.events.every(({ published_at }) => published_at !== null) && timeline;
    });
    expect(told).toMatchObject({
      transaction: deposit,
      request: { request_id: 'the very request', idempotency_key: key, accepted_at: deposit.created_at },
      command: { name: 'create_transaction', id: deposit.transaction_id },
    });
    expect(told.entries.map(({ account_type, side, amount }) => [account_type, side, amount])).toEqual([
      ['Vault', 'DR', 12.5],
      ['Teller', 'DR', 12.5],
      ['Teller', 'CR', 12.5],
      ['Savings', 'CR', 12.5],
    ]);
    expect(told.events[0]).toMatchObject({
      topic: 'transactions',
      type: 'corebanking.transaction.completed.v1',
      state: 'published',
    });
    expectError(await api.get(`/admin/transactions/${unknownId('txn')}/timeline`), 404, 'transaction_not_found');
  });
});

describe('GET /admin/posting-statistics', () => {
  it('counts applied transactions', async () => {
    const { buckets, complete } = (
      await api.get('/admin/posting-statistics?currency=USD&unit=day')
    ).data<PostingStatistics>();
    expect(complete).toBe(true);
    // The opening, the deposit, and the transfer were counted, perhaps on both sides of midnight.
    expect([
      buckets.reduce((sum, { operations }) => sum + operations, 0),
      buckets.reduce((sum, { amount }) => sum + Number(amount), 0),
    ]).toEqual([3, 115]);
    expectError(await api.get('/admin/posting-statistics?currency=XYZ'), 400, 'unsupported_currency');
    expectError(
      await api.get('/admin/posting-statistics?currency=USD&unit=minute&from=2020-01-01'),
      400,
      'validation_failed',
    );
  });
});

describe('GET /admin/posting-totals', () => {
  it('returns totals by currency for the requested period', async () => {
    const { totals, complete } = (await api.get('/admin/posting-totals')).data<PostingTotals>();
    expect([complete, totals.map(({ currency, operations }) => `${currency} ${operations}`)]).toEqual([
      true,
      ['USD 3'],
    ]);
    const [usd] = totals;
    expect(Number(usd?.money_in) + Number(usd?.transferred) + Number(usd?.money_out)).toBe(115);
    expect((await api.get('/admin/posting-totals?from=2020-01-01&to=2020-01-02')).data()).toMatchObject({ totals: [] });
    expectError(await api.get('/admin/posting-totals?from=x'), 400, 'validation_failed');
  });
});

describe('GET /admin/operations and POST /admin/verifications', () => {
  const operations = async () => (await api.get('/admin/operations')).data<Operations>();

  it('reports on every service and on a requested verification', async () => {
    expect(await operations()).toMatchObject({
      services: [
        { service: 'ledger', answers: true },
        { service: 'accounts', answers: true },
        { service: 'webhooks', answers: true },
      ],
      breakers: [{ state: 'closed' }, { state: 'closed' }, { state: 'closed' }],
      dead_letters_open: 0,
      webhooks_failing: 0,
      tills_different: 0,
      last_verification: null,
    });
    // It is missing while the brokers do not answer in time.
    const consumer_lag = await eventually(async () => (await operations()).consumer_lag ?? undefined);
    expect(new Set(consumer_lag.map(({ group, topic }) => `${group} ${topic}`))).toContain('ledger ledger.commands');
    expect(consumer_lag.filter(({ topic }) => topic === 'accounts.commands')).toHaveLength(12);
    const key = newKey();
    const begun = (await api.once(key, '/admin/verifications')).data<Verification>();
    const { last_verification } = await eventually(async () => {
      const told = await operations();
      const { verification_id, state } = told.last_verification ?? {};
      return verification_id === begun.verification_id && state !== 'running' && told;
    });
    expect(last_verification).toMatchObject({
      verification_id: begun.verification_id,
      state: 'passed',
      findings: [],
      covers: ['books', 'audit'],
    });
    expect((await api.once(key, '/admin/verifications')).header('idempotent-replayed')).toBe('true');
    const records = await eventually(async () => {
      const found = await api.all<AuditRecord>(`/admin/audit?resource_id=${begun.verification_id}`);
      return found.length > 1 && found;
    });
    expect(records.map(({ action, outcome }) => [action, outcome]).toSorted()).toEqual([
      ['verify_audit', 'success'],
      ['verify_books', 'success'],
    ]);
  });

  it('finds an audit record that its owner changed by disabling the triggers', async () => {
    const [target] = await world.sql<{ audit_id: string; actor: string }>(
      "select audit_id, actor from accounts.audit where action = 'verify_audit' limit 1",
    );
    const become = (actor: string) =>
      world.sql(
        `alter table accounts.audit disable trigger all; update accounts.audit set actor = '${actor}' where audit_id = '${target?.audit_id}'; alter table accounts.audit enable trigger all`,
      );
    await become('key:somebody-else');
    try {
      const { verification_id } = (await api.once(newKey(), '/admin/verifications')).data<Verification>();
      const found = await eventually(async () => {
        const { last_verification } = await operations();
        return (
          last_verification?.verification_id === verification_id &&
          last_verification.state !== 'running' &&
          last_verification
        );
      });
      expect(found).toMatchObject({
        state: 'broken',
        covers: ['books', 'audit'],
        findings: [{ rows: [{ audit_id: target?.audit_id }] }],
      });
    } finally {
      await become(target?.actor ?? '');
    }
  });
});
