import { afterEach, expect, test } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { ids, ok, type Service, samples, testApp } from '../test/test-app.ts';
import { testToken, testTokens } from '../test/test-token.ts';

/** Tests which reads are recorded: reads by staff, before the response, and none by machines. */
const issuer = testTokens.issuer;
const scope = 'clients:read accounts:read transactions:read audit:read books:read ops:manage';
const token = (claims: Record<string, unknown> = {}) => ({
  authorization: `Bearer ${testToken({ sub: 'ada', scope, client_id: 'front-end', azp: 'front-end', ...claims })}`,
});

let close: () => Promise<void> = async () => undefined;
afterEach(() => close());

async function start(service: Service) {
  const made = await testApp(service, { tokens: testTokens });
  close = async () => void (await made.app.close());
  const get = (url: string, headers: Record<string, string> = token()) =>
    made.app.inject({ method: 'GET', url, headers });
  const records = () => made.recorded.map(({ value }) => JSON.parse(String(value)) as AuditRecord);
  return { ...made, get, records };
}

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
  entry_count: 1,
  entries: [entry],
};
const answers: Record<string, unknown> = {
  list_clients: { items: [samples.client, samples.client] },
  get_client: samples.client,
  search_client_by_ussd: samples.client,
  list_accounts: { items: [samples.master] },
  get_account: samples.master,
  get_ledger_accounts: [samples.ledger],
  get_balance_by_number: { account_id: ids.account, account_number: 'SAV-1', balance: '1.00', currency: 'USD' },
  list_transactions: { items: [] },
  get_transaction: samples.transaction,
  list_transfers: { items: [samples.transfer, samples.transfer] },
  list_entries: { items: [entry] },
  get_statement: { item: statement },
  search_records: [
    {
      kind: 'client',
      id: ids.client,
      title: 'x',
      subtitle: 'y',
      matched: 'name',
      created_at: samples.client.created_at,
    },
  ],
  search_postings: [],
  get_trial_balance: [],
};
const service: Service = ({ name }) => ok(answers[name]);

test.each<[string, string, string | null, object]>([
  [`/clients/${ids.client}`, 'get_client', ids.client, {}],
  [
    '/clients/ussd/search?ussd_phone=%2B254700000001',
    'search_client_by_ussd',
    ids.client,
    { filters: { ussd_phone: '(given)' } },
  ],
  ['/clients?client_type=Corporate&limit=7', 'list_clients', null, { rows: 2, filters: { client_type: 'Corporate' } }],
  [`/accounts/${ids.account}`, 'get_account', ids.account, {}],
  ['/accounts?status=Active', 'list_accounts', ids.account, { rows: 1, filters: { status: 'Active' } }],
  ['/accounts/number/SAV-1/balance', 'get_balance_by_number', ids.account, {}],
  [`/accounts/${ids.account}/entries`, 'list_entries', ids.account, { rows: 1 }],
  [
    `/accounts/${ids.account}/statement?from=2026-01-01`,
    'get_statement',
    ids.account,
    { filters: { from: '2026-01-01T00:00:00.000Z' } },
  ],
  [
    '/transactions?min_amount=5&reference=Ada%20Lovelace',
    'list_transactions',
    null,
    { rows: 0, filters: { min_amount: '5', reference: '(given)' } },
  ],
  [`/transactions/${ids.transaction}`, 'get_transaction', ids.transaction, {}],
  ['/transfers', 'list_transfers', null, { rows: 2 }],
  ['/admin/search?q=Lovelace', 'search', ids.client, { rows: 1, filters: { q: '(given)' } }],
])(
  '%s by a person is recorded once, with filters and the number of rows, without personal data',
  async (url, action, resource_id, details) => {
    // contract: audit-2
    const { get, records } = await start(service);
    expect((await get(url)).statusCode).toBe(200);
    expect(records()).toEqual([
      expect.objectContaining({
        actor: `jwt:${issuer}|ada`,
        action,
        resource_id,
        outcome: 'success',
        address: '127.0.0.1',
        details,
      }),
    ]);
  },
);

test.each([
  ['text/html', 'statement.html'],
  ['application/xml', 'statement.xml'],
])('a statement as %s is recorded as an export', async (accept, file) => {
  // contract: audit-2
  const { get, records } = await start(service);
  const path = `/accounts/${ids.account}/statement?on=2026-01-01`;
  expect((await get(path, { ...token(), accept })).statusCode).toBe(200);
  expect(records()).toEqual([
    expect.objectContaining({
      action: 'export',
      resource_id: ids.account,
      details: { file, rows: 1, filters: { on: '2026-01-01' } },
    }),
  ]);
});

test('reads by keys, machines with tokens, and customers are not recorded, nor are totals of the whole bank', async () => {
  // contract: audit-4
  const { get, records, keyHeader } = await start(service);
  const path = `/accounts/${ids.account}`;
  const statuses = [
    await get(path, keyHeader()),
    await get(path, token({ sub: 'front-end' })),
    await get(path, token({ bank_client_id: ids.client })),
    await get('/admin/trial-balance'),
  ].map(({ statusCode }) => statusCode);
  expect([statuses, records()]).toEqual([[200, 200, 200, 200], []]);
});

test('reading the content of a dead letter is recorded, also by a machine', async () => {
  const { dead_letter_id } = samples.deadLetter;
  const { get, records, keyHeader } = await start(() => ok(samples.deadLetter));
  const key = keyHeader();
  for (const headers of [key, token()])
    expect((await get(`/admin/dead-letters/${dead_letter_id}`, headers)).statusCode).toBe(200);
  expect(records().map(({ actor, action, resource_id }) => [actor.slice(0, 4), action, resource_id])).toEqual([
    ['key:', 'get_dead_letter', dead_letter_id],
    ['jwt:', 'get_dead_letter', dead_letter_id],
  ]);
});

test('a read that cannot be recorded returns nothing', async () => {
  const { get, auditRecords } = await start(service);
  auditRecords.record = () => Promise.reject(new Error('away'));
  const answer = await get(`/clients/${ids.client}`);
  expect([answer.statusCode, answer.body.includes(samples.client.email)]).toEqual([503, false]);
});

const tillOf = (actor: string) => ({
  till_id: `til_${'1'.repeat(30)}00`,
  actor,
  status: 'Closed',
  opened_at: samples.transaction.created_at,
  opening: [],
  closed_at: samples.transaction.created_at,
  balances: [],
  reason: null,
  closed_by: actor,
});
const dayOf = (actor: string) => ({
  actor,
  on: '2026-01-01',
  totals: [],
  refused: 0,
  batch_items: 0,
  customers: [{ client_id: ids.client, account_id: ids.account, served_at: samples.transaction.created_at }],
});

test('reads of what another person has posted are recorded, and one’s own are not', async () => {
  // contract: tills-11
  const [ada, eve] = ['ada', 'eve'].map((sub) => `jwt:${testTokens.issuer}|${sub}`) as [string, string];
  const { get, records } = await start(({ name, data }) => {
    const { actor = eve } = data as { actor?: string };
    if (name === 'list_tills') return ok({ items: [tillOf(actor)] });
    return ok(name === 'get_till' ? tillOf(eve) : dayOf(actor));
  });
  const of = (actor: string) => `actor=${encodeURIComponent(actor)}`;
  for (const url of ['/admin/staff-day', `/tills?${of(ada)}`]) expect((await get(url)).statusCode).toBe(200);
  expect(records()).toEqual([]);
  for (const url of [`/admin/staff-day?${of(eve)}`, `/tills?${of(eve)}`, `/tills/${tillOf(eve).till_id}`])
    expect((await get(url)).statusCode).toBe(200);
  expect(records().map(({ action }) => action)).toEqual(['get_staff_day', 'list_tills', 'get_till']);
});

test('reads of what another person has requested are recorded, and one’s own are not', async () => {
  // contract: audit-2
  const [ada, eve] = ['ada', 'eve'].map((sub) => `jwt:${testTokens.issuer}|${sub}`) as [string, string];
  const approval_id = `apr_${'1'.repeat(30)}00`;
  const at = samples.transaction.created_at;
  const request = { operation: 'reverse_transaction', method: 'POST', path: '/x', body: {} };
  const undecided = { status: 'Waiting', decided_by: null, decided_at: null, reason: null };
  const asked = {
    approval_id,
    action: 'reverse',
    summary: 'x',
    request,
    requested_at: at,
    expires_at: at,
    ...undecided,
  };
  let requesters = [ada];
  const { get, records, keyHeader } = await start(({ name }) => {
    const items = requesters.map((requested_by) => ({ ...asked, requested_by }));
    return ok(name === 'list_approvals' ? { items } : { approval: items[0], has_unread_key: false });
  });
  const urls = ['/admin/approvals', `/admin/approvals/${approval_id}`];
  const read = async (headers: Record<string, string> = token()) => {
    for (const url of urls) expect((await get(url, headers)).statusCode).toBe(200);
  };
  await read();
  requesters = [eve, ada];
  await read(keyHeader());
  expect(records()).toEqual([]);
  await read();
  expect(records()).toMatchObject([
    { actor: ada, action: 'list_approvals', details: { rows: 2 } },
    { actor: ada, action: 'get_approval', resource_id: approval_id },
  ]);
});

test('what an open till has taken is seen by others only', async () => {
  // contract: tills-10
  const [ada, eve] = ['ada', 'eve'].map((sub) => `jwt:${testTokens.issuer}|${sub}`) as [string, string];
  let whose = ada;
  const { get } = await start(({ name }) => {
    const till = { ...tillOf(whose), so_far: [] };
    return ok(name === 'list_tills' ? { items: [till] } : till);
  });
  for (const [actor, isSeen] of [
    [ada, false],
    [eve, true],
  ] as const) {
    whose = actor;
    for (const url of ['/tills', `/tills/${tillOf(actor).till_id}`])
      expect((await get(url)).body.includes('so_far')).toBe(isSeen);
  }
});

test('the last customers of a person are shown with transactions:read only', async () => {
  // contract: tills-4
  const { get } = await start(({ data }) => ok(dayOf((data as { actor: string }).actor)));
  const customers = async (scope: string) =>
    (await get('/admin/staff-day', token({ scope }))).json().data.customers.length;
  expect([await customers('transactions:read'), await customers('accounts:read')]).toEqual([1, 0]);
});
