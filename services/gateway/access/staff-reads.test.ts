import { describe, expect, test } from 'vitest';
import { approvalActions } from '#libs/contracts/approvals.ts';
import { ids, ok, samples, useTestCaller } from '../test/test-app.ts';

const start = useTestCaller();

const entry = {
  entry_id: 'ent_1-1',
  operation_id: 'opr_1',
  transaction_id: ids.transaction,
  account_id: ids.account,
  sequence: 1,
  direction: 'credit',
  side: 'CR',
  amount: '1.00',
  currency: 'USD',
  balance_after: '1.00',
  created_at: samples.transaction.created_at,
  transaction_type: 'Deposit',
  description: null,
  reference: null,
};
const statement = {
  account_id: ids.account,
  account_number: 'SAV-1',
  currency: 'USD',
  from: null,
  to: null,
  opening_balance: '0.00',
  closing_balance: '5.50',
  debit_total: '0.00',
  credit_total: '5.50',
  entry_count: 2,
  entries: [entry],
};

describe('a statement', () => {
  test('is one resource with money as numbers, whose next page is linked', async () => {
    const { call, sent } = await start(({ data }) =>
      ok(data['after'] === undefined ? { item: statement, next: { at: '', id: '1.3' } } : { item: statement }),
    );
    const first = await call('GET', `/accounts/${ids.account}/statement?from=2026-01-01`);
    expect(first.body.data).toEqual({
      ...statement,
      opening_balance: 0,
      closing_balance: 5.5,
      debit_total: 0,
      credit_total: 5.5,
      entries: [{ ...entry, amount: 1, balance_after: 1 }],
    });
    const [, next = ''] = /<([^>]+)>/.exec(String(first.headers['link'])) ?? [];
    const second = await call('GET', next);
    expect([second.status, second.headers['link']]).toEqual([200, undefined]);
    expect(sent.map(({ value }) => JSON.parse(String(value)))).toEqual([
      { account_id: ids.account, from: '2026-01-01T00:00:00.000Z', limit: 100 },
      { account_id: ids.account, from: '2026-01-01T00:00:00.000Z', limit: 100, after: { at: '', id: '1.3' } },
    ]);
    expect((await call('GET', next.replace('from=2026-01-01', 'from=2026-01-02'))).body.code).toBe('invalid_cursor');
  });
});

describe('a search', () => {
  const hit = (kind: string, id: string) => ({
    kind,
    id,
    title: 'x',
    subtitle: 'y',
    matched: 'id',
    created_at: samples.transaction.created_at,
  });

  test('queries both services for the kinds that the scopes allow, and no others', async () => {
    const { call, sent, keyHeader } = await start(({ name }) =>
      ok([name === 'search_postings' ? hit('transaction', ids.transaction) : hit('account', ids.account)]),
    );
    expect((await call('GET', '/admin/search?q=%20x%20')).body.data.map(({ id }: { id: string }) => id)).toEqual([
      ids.account,
      ids.transaction,
    ]);
    const asked = () => sent.splice(0).map(({ value }) => JSON.parse(String(value)));
    // Each service trims it for the fields that are stored trimmed.
    expect(asked()).toMatchObject([{ q: ' x ', kinds: ['client', 'account', 'audit_record'] }, { q: ' x ' }]);
    await call('GET', '/admin/search?q=x', undefined, keyHeader({ scopes: ['clients:read'] }));
    expect(asked()).toMatchObject([{ q: 'x', kinds: ['client'] }]);
    await call('GET', '/admin/search?q=x', undefined, keyHeader({ scopes: ['transactions:read'] }));
    expect(asked()).toEqual([{ q: 'x' }]);
    expect((await call('GET', '/admin/search?q=x', undefined, keyHeader({ scopes: ['keys:manage'] }))).body).toEqual({
      status: 'success',
      data: [],
    });
    expect((await call('GET', '/admin/search?q=x', undefined, keyHeader({ client_id: ids.client }))).body.code).toBe(
      'insufficient_scope',
    );
    expect((await call('GET', '/admin/search')).status).toBe(400);
    expect((await call('GET', '/admin/search?q=%00')).status).toBe(400);
    expect(asked()).toEqual([]);
  });

  test('if one service does not reply, the result is 503 and not incomplete', async () => {
    const { call } = await start(({ name }) => (name === 'search_postings' ? 'no_reply' : ok([])));
    expect((await call('GET', '/admin/search?q=x')).status).toBe(503);
  });
});

describe('operations', () => {
  test('a part that does not reply is null, and the others are complete', async () => {
    const { call } = await start(({ name }) =>
      name === 'get_ledger_operations'
        ? 'no_reply'
        : ok({
            outbox: { rows: 3, oldest_age_ms: 12 },
            dead_letters_open: 2,
            last_audit_check: null,
            webhooks_failing: 1,
          }),
    );
    expect((await call('GET', '/admin/operations')).body.data).toEqual({
      services: [
        { service: 'ledger', answers: false, outbox: null },
        { service: 'accounts', answers: true, outbox: { rows: 3, oldest_age_ms: 12 } },
        { service: 'webhooks', answers: true, outbox: { rows: 3, oldest_age_ms: 12 } },
      ],
      breakers: [
        { service: 'ledger', state: 'closed' },
        { service: 'accounts', state: 'closed' },
        { service: 'webhooks', state: 'closed' },
      ],
      dead_letters_open: 2,
      webhooks_failing: 1,
      tills_different: null,
      consumer_lag: [],
      last_verification: null,
      four_eyes: { off: [...approvalActions], reason: null },
      requests: expect.objectContaining({ window_seconds: 60 }),
      history: [],
    });
  });
});
