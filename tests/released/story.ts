import { setTimeout as sleep } from 'node:timers/promises';
import type { Approval } from '#libs/contracts/approvals.ts';
import { bucketForKey } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { commandPartition, type TopicName, topicName } from '#libs/contracts/topics.ts';
import { hang, startReceiver, status } from '../../services/webhooks/test/receiver.ts';
import { type Answer, type Api, newKey, type RestAccount, type RestKey, unknownId } from '../support/client.ts';
import { publish, readTopic } from '../support/kafka.ts';
import { staffToken } from '../support/staff.ts';
import { eventually, type World } from '../support/world.ts';

/** A request whose answer a later release must repeat. */
export interface Asked {
  path: string;
  /** Of a POST, with its Idempotency-Key: the answer is that of the first time. */
  key?: string;
  body?: unknown;
  answer?: unknown;
}

type Id = Record<string, string>;
const day = 86_400_000;
const dateAgo = (days: number): string => new Date(Date.now() - days * day).toISOString().slice(0, 10);

/**
 * Uses everything that the bank has, so that each table has rows, and each topic messages of each type. Returns what to ask
 * a later release: only answers that do not change as time passes, nor by what else happens in the bank.
 */
export async function useEverything(world: World, api: Api): Promise<Asked[]> {
  const { bank } = world;
  const person = (name: string) => api.withToken(staffToken(bank, name));
  const [alice, bob] = [person('alice'), person('bob')];
  const asks: Asked[] = [];
  const ask = (...paths: string[]) => void asks.push(...paths.map((path) => ({ path })));
  const expectStatus = (answer: Answer, ...expected: number[]): Answer => {
    if (!expected.includes(answer.status)) throw new Error(`${answer.status} instead of ${expected}: ${answer.text}`);
    return answer;
  };
  const made = async (by: Api, path: string, body: object = {}, expected = 201) =>
    expectStatus(await by.once(newKey(), path, body), expected).data<Id & { [field: string]: string }>();
  /** Sends a request whose repeat is recorded. */
  const once = async (path: string, body: object, expected = 201): Promise<Answer> => {
    const key = newKey();
    asks.push({ path, key, body });
    return expectStatus(await api.once(key, path, body), expected);
  };
  const idOf = (answer: Answer, field: string): string => {
    const body = answer.body as { data?: Id } & Id;
    return (body.data ?? body)[field] ?? '';
  };
  const names = (external_id: string) => ({ external_id, metadata: { b: '2', a: '1' } });

  // Clients and accounts.
  const phone = '+254722000001';
  const retail = await once('/clients', {
    client_type: 'Retail',
    first_name: 'Zoë',
    last_name: 'Müller-Ørsted',
    email: 'zoe@example.com',
    contact_number: '+254700000001',
    address: '1 Kenyatta Avenue\nNairobi',
    ussd_phone_number: phone,
    ussd_status: 'active',
    ...names('client-1'),
  });
  const client = idOf(retail, 'client_id');
  const corporate = await made(api, '/clients', {
    client_type: 'Corporate',
    company_name: 'Analytical Engines Ltd',
    registration_number: 'C-1843',
    email: 'office@example.com',
    contact_number: '+442071234567',
  });
  const company = corporate['client_id'] ?? '';
  expectStatus(await api.patch(`/clients/${client}`, { address: 'Mombasa', metadata: { c: '3' } }), 200);
  await made(alice, `/clients/${client}/notes`, { note: 'prefers letters' });
  const savings = idOf(
    await once('/accounts', {
      client_id: client,
      account_type: 'Savings',
      currency: 'USD',
      initial_deposit: 1000,
      ...names('account-1'),
    }),
    'account_id',
  );
  const open = async (client_id: string, account_type: string, currency: string, initial_deposit = 0) =>
    (await made(api, '/accounts', { client_id, account_type, currency, initial_deposit })) as unknown as RestAccount;
  const checking = await open(client, 'Checking', 'USD', 200);
  const current = await open(company, 'Current', 'KES', 5000);
  const loan = await open(company, 'Loan', 'USD', 500);
  const yen = await open(client, 'Savings', 'JPY', 900);
  await made(alice, `/accounts/${savings}/notes`, { note: 'statement by post' });
  const transitions = (account: string) => `/accounts/${account}/status-transitions`;
  for (const change of [
    { status: 'Frozen', reason: 'fraud', note: 'a call' },
    { status: 'Active' },
    { status: 'Inactive' },
  ])
    await made(api, transitions(yen.account_id), change, 200);
  const frozen = await open(company, 'Savings', 'USD');
  await made(api, transitions(frozen.account_id), { status: 'Frozen', reason: 'fraud' }, 200);
  expectStatus(
    await api.send('PUT', `/accounts/${checking.account_id}/limits`, {
      body: { minimum_balance: 10, per_transaction: 500, per_day_out: 5000 },
    }),
    200,
  );
  await eventually(
    async () => (await api.get(`/clients/ussd/search?ussd_phone=${encodeURIComponent(phone)}`)).status === 200,
  );

  // Postings.
  const post = (account_id: string, transaction_type: string, amount: unknown, more = {}) => ({
    account_id,
    transaction_type,
    amount,
    ...more,
  });
  const deposit = idOf(
    await once(
      '/transactions',
      post(savings, 'Deposit', 12.34, { description: 'cash', reference: 'R-1', ...names('t-1') }),
    ),
    'transaction_id',
  );
  const refused = await once('/transactions', post(savings, 'Withdrawal', 99_999), 400);
  await api.post('/transactions', post(savings, 'Deposit', 1.005));
  await api.post('/transactions', post(`acc_${'0'.repeat(32)}`, 'Deposit', 1));
  await api.post('/transactions', post(yen.account_id, 'Withdrawal', 1));
  const dated = idOf(
    await once('/transactions', post(savings, 'Deposit', 5, { effective_date: dateAgo(1) })),
    'transaction_id',
  );
  const transfer = idOf(
    await once('/transfers', {
      from_account_id: savings,
      to_account_id: checking.account_id,
      amount: 50,
      ...names('f-1'),
    }),
    'transfer_id',
  );
  await once('/transfers', { from_account_id: savings, to_account_id: current.account_id, amount: 1 }, 400);
  const payment = idOf(
    await once('/transfers', { from_account_id: savings, to_account_id: loan.account_id, amount: 100 }),
    'transfer_id',
  );
  const mistake = await api.transact(savings, 'Deposit', 7);
  await once(`/transactions/${mistake.transaction_id}/reversal`, { reason: 'a mistake' });
  const moved = await api.transfer(savings, checking.account_id, 3);
  const [leg] = (await api.get(`/transactions?account_id=${savings}&transfer_id=${moved.transfer_id}`)).list<Id>();
  await once(`/transactions/${leg?.['transaction_id']}/reversal`, { reason: 'the wrong account' });

  // Holds: Active, Captured, Released, Expired.
  const holdOn = async (amount: number, more = {}) =>
    (await made(api, `/accounts/${savings}/holds`, { amount, ...more }))['hold_id'] ?? '';
  const [captured, released, expired] = [
    await holdOn(40, { reference: 'hotel', ...names('h-1') }),
    await holdOn(5),
    await holdOn(6, { expires_at: new Date(Date.now() + 2_000).toISOString() }),
  ];
  await holdOn(8, { expires_at: new Date(Date.now() + 30 * day).toISOString() });
  await once(`/holds/${captured}/capture`, { amount: 10, final: false });
  await once(`/holds/${captured}/capture`, { to_account_id: checking.account_id, amount: 20 });
  await once(`/holds/${released}/release`, {}, 200);
  await eventually(async () => idOf(await api.get(`/holds/${expired}`), 'status') === 'Expired');

  // Batches, tills, a closed day.
  const items = [
    { transaction: post(savings, 'Deposit', 1) },
    { transfer: { from_account_id: savings, to_account_id: checking.account_id, amount: 2 } },
    { transaction: post(savings, 'Withdrawal', 99_999) },
  ];
  const independent = idOf(await once('/batches', { mode: 'independent', items, ...names('b-1') }, 200), 'batch_id');
  const atomic = idOf(await once('/batches', { mode: 'atomic', items: items.slice(0, 2) }, 200), 'batch_id');
  await api.once(newKey(), '/batches', { mode: 'atomic', items });
  const counted = (amount: number) => ({ counted: [{ currency: 'USD', amount }] });
  const till = (await made(alice, '/tills', counted(100)))['till_id'] ?? '';
  await made(bob, '/tills', counted(20));
  expectStatus(await alice.post('/transactions', post(savings, 'Deposit', 9)), 201);
  expectStatus(await alice.post('/transactions', post(savings, 'Withdrawal', 1)), 201);
  await made(alice, `/tills/${till}/closing`, { ...counted(108), reason: 'one is missing' }, 200);
  for (const days of [2, 1])
    await eventually(async () => (await api.post('/admin/day-closings', { date: dateAgo(days) })).status < 300);
  await eventually(async () => (await api.get(`/admin/day-closings/${dateAgo(1)}`)).status === 200);

  // Four eyes: Approved, Rejected, Waiting; a key; an erasure.
  const asked = async (path: string, body: object = {}, by = alice) =>
    expectStatus(await by.once(newKey(), path, body), 202).data<Approval>().approval_id;
  const large = () => asked('/transactions', post(savings, 'Deposit', 2_000, { description: 'large' }));
  const [approved, rejected, waiting] = [await large(), await large(), await large()];
  const approve = (id: string) => made(bob, `/admin/approvals/${id}/approval`, {}, 200);
  // Only the ledger knows what alice posted today: it refuses this opening, which needs an approval.
  await made(alice, '/transactions', post(savings, 'Deposit', 600));
  await asked('/accounts', { client_id: company, account_type: 'Savings', currency: 'USD', initial_deposit: 600 });
  await approve(approved);
  await made(bob, `/admin/approvals/${rejected}/rejection`, { reason: 'no receipt' }, 200);
  const keyBody = { name: 'by four eyes', scopes: ['transactions:write'] };
  const keyAsked = await asked('/admin/api-keys', keyBody);
  await approve(keyAsked);
  await eventually(async () => idOf(await alice.get(`/admin/approvals/${keyAsked}`), 'status') === 'Approved');
  const leaving = await api.client({ first_name: 'Former', email: 'former@example.com' });
  const left = await api.account(leaving.client_id, { initial_deposit: 1 });
  await api.transact(left.account_id, 'Withdrawal', 1);
  await api.setStatus(left.account_id, 'Inactive');
  await approve(await asked(`/admin/clients/${leaving.client_id}/erasure`));

  // API keys: active, rotated, revoked, bound to a client.
  const key = (fields: object) => made(api, '/admin/api-keys', { name: 'a key', scopes: ['clients:read'], ...fields });
  const [rotated, revoked, bound] = [
    await key({ name: 'rotated' }),
    await key({ name: 'revoked', scopes: ['webhooks:manage', 'transactions:read'] }),
    (await key({ name: 'bound', client_id: client })) as unknown as RestKey & { api_key: string },
  ];
  await made(api, `/admin/api-keys/${rotated['key_id']}/rotation`, { overlap_seconds: 60 });
  await api.withKey(bound.api_key).get('/clients');

  // Webhooks: a live one, a blocked one, a paused one, a deleted one, one whose caller's key is revoked.
  const good = await startReceiver();
  const bad = await startReceiver(status(422));
  const silent = await startReceiver(hang);
  const webhook = async (url: string, more: object = {}, by = api) => {
    const answer = await by.once(newKey(), '/webhooks', { url, event_types: ['transaction.*'], ...more });
    return `/webhooks/${idOf(expectStatus(answer, 201), 'webhook_id')}`;
  };
  const [live, blocked, paused, deleted] = [
    await webhook(good.url, { description: 'live' }),
    await webhook(bad.url),
    await webhook(silent.url, { ordering: 'none' }),
    await webhook(good.url),
  ];
  await webhook(good.url, {}, api.withKey(revoked['api_key'] ?? ''));
  await made(api, `/admin/api-keys/${revoked['key_id']}/revocation`, {}, 200);
  expectStatus(await api.patch(paused, { status: 'Paused' }), 200);
  expectStatus(await api.send('DELETE', deleted), 200);
  await made(api, `${live}/test`, {}, 200);
  await made(api, `${live}/secret-rotation`, { overlap_seconds: 60 }, 200);
  for (const amount of [1, 2, 3]) await api.transact(savings, 'Deposit', amount);
  const delivery = async (of: string, state: string) =>
    idOf(
      {
        body: {
          data: (
            await eventually(async () => {
              const found = (await api.get(`${of}/deliveries?status=${state}`)).list<Id>();
              return found.length > 0 && found;
            })
          )[0],
        },
      } as Answer,
      'delivery_id',
    );
  await made(api, `${live}/deliveries/${await delivery(live, 'Delivered')}/redelivery`, {}, 200);
  await eventually(
    async () => (await world.sql('select from webhooks.deliveries where attempts is not null')).length > 0,
  );
  await made(api, `${blocked}/deliveries/${await delivery(blocked, 'Pending')}/skip`, {}, 200);
  await made(api, `${live}/replay`, { from: new Date(Date.now() - day).toISOString() }, 200);
  for (const amount of [4, 5]) await api.transact(savings, 'Deposit', amount);
  await eventually(
    async () => (await world.sql('select from webhooks.held_keys where not is_ready')).length > 0,
    60_000,
  );

  // Dead letters: open, redriven, dropped.
  const [sample] = await readTopic(bank, 'ledger.commands');
  const unanswered = { ...sample?.headers, 'correlation-id': 'none' };
  const poison = (topic: TopicName, headers: Record<string, string>) => ({
    topic: topicName(bank.topic_prefix, topic),
    partition: commandPartition(bucketForKey(savings)),
    key: savings,
    value: '{"no": "JSON',
    headers: { ...unanswered, ...headers },
  });
  await publish(bank, [
    ...[1, 2, 3].map((n) => poison('ledger.commands', { 'request-id': `dead-${n}` })),
    poison('accounts.commands', { ce_type: messageType('create_client'), ce_id: unknownId('cli') }),
    poison('webhooks.commands', { ce_type: messageType('create_webhook'), ce_id: unknownId('whk') }),
  ]);
  const letters = await eventually(async () => {
    const found = (await api.get('/admin/dead-letters')).list<Id>();
    return found.length >= 5 && found.filter(({ topic }) => topic === 'ledger.commands.dlq');
  });
  await made(api, `/admin/dead-letters/${letters[0]?.['dead_letter_id']}/redrive`, {}, 200);
  await made(api, `/admin/dead-letters/${letters[1]?.['dead_letter_id']}/drop`, { reason: 'a test' }, 200);

  // What a gateway sends that lacks states of API keys, and what it sums up about strangers.
  await publish(bank, [
    {
      topic: topicName(bank.topic_prefix, 'accounts.commands'),
      partition: 0,
      key: null,
      value: '{}',
      headers: { ...unanswered, ce_type: messageType('republish_api_keys'), ce_id: unknownId('cmd') },
    },
  ]);
  expectStatus(await api.withKey('cbk_test_unknown').get('/clients'), 401);

  // Staff: sessions, what they read, the check of the books.
  const session_id = `ses_${'a'.repeat(32)}`;
  const carol = person('carol');
  expectStatus(await carol.post('/admin/sign-ins', { session_id }), 200, 201);
  expectStatus(
    await carol.post('/admin/activities', { action: 'export', outcome: 'success', file: 'a.csv' }),
    200,
    201,
  );
  expectStatus(await carol.post('/admin/sign-outs', { session_id }), 200, 201);
  expectStatus(await api.once(newKey(), '/admin/verifications'), 200, 201, 202);
  // No identity provider has signed in anybody by name.
  await world.sql(
    "insert into accounts.staff_names (actor, name, signed_in_at, folded) values ('jwt:issuer|alice', 'Alice', now(), 'alice')",
  );
  await sleep(2_000);
  await readEverything(api, alice, {
    client,
    savings,
    deposit,
    transfer,
    captured,
    independent,
    till,
    approved,
    webhook: live,
    key: bound.key_id,
    letter: letters[2]?.['dead_letter_id'] ?? '',
    phone,
    waiting,
  });

  ask(
    `/clients/${client}`,
    `/clients/${company}`,
    `/clients/${leaving.client_id}`,
    `/clients/${client}/notes`,
    `/clients/ussd/search?ussd_phone=${encodeURIComponent(phone)}`,
    '/clients?external_id=client-1',
    '/clients?q=muller',
    `/accounts?client_id=${company}`,
    `/accounts/${current.account_id}`,
    `/accounts/${loan.account_id}`,
    `/accounts/number/${current.account_number}/balance`,
    `/accounts/${savings}/notes`,
    transitions(yen.account_id),
    `/accounts/${savings}/entries?limit=200`,
    `/accounts/${savings}/balance?on=${dateAgo(2)}`,
    `/accounts/${savings}/holds?status=Captured`,
    `/transactions?account_id=${savings}&limit=200`,
    `/transactions/${deposit}`,
    `/transactions/${dated}`,
    `/transactions/${leg?.['transaction_id']}`,
    `/transfers/${transfer}`,
    `/transfers/${payment}`,
    `/transfers?account_id=${checking.account_id}`,
    `/holds/${captured}`,
    `/holds/${released}`,
    `/holds/${expired}`,
    `/batches/${independent}`,
    `/batches/${atomic}`,
    '/batches?external_id=b-1',
    `/tills/${till}`,
    `/admin/day-closings/${dateAgo(1)}`,
    `/admin/day-closings/${dateAgo(1)}/accounts`,
    `/admin/trial-balance?on=${dateAgo(1)}`,
    `/admin/balances?on=${dateAgo(1)}&currency=KES`,
    `/admin/approvals/${approved}`,
    `/admin/approvals/${rejected}`,
    `/admin/api-keys/${revoked['key_id']}`,
    `/admin/audit?resource_id=${client}`,
    `/admin/audit?resource_id=${leaving.client_id}`,
    paused,
    `/admin/dead-letters?state=dropped`,
  );
  if (idOf(refused, 'code') === '') throw new Error('the refusal has no code');
  await Promise.all([good, bad, silent].map((receiver) => receiver.stop()));
  return asks;
}

/** Sends each query once. */
async function readEverything(api: Api, staff: Api, ids: Id): Promise<void> {
  const { client, savings } = ids;
  const on = dateAgo(1);
  const from = new Date(Date.now() - day).toISOString();
  for (const path of [
    ...['/clients', `/clients/${client}`, `/clients/${client}/notes`, '/accounts', `/accounts/${savings}`],
    ...[
      'status-transitions',
      'limits',
      'notes',
      'entries',
      `balance?on=${on}`,
      'days',
      `statement?from=${from}`,
      'holds',
    ].map((part) => `/accounts/${savings}/${part}`),
    ...['/transactions', `/transactions/${ids['deposit']}`, '/transfers', `/transfers/${ids['transfer']}`],
    ...[`/holds/${ids['captured']}`, '/batches', `/batches/${ids['independent']}`, '/events'],
    ...['/webhooks', `${ids['webhook']}`, `${ids['webhook']}/deliveries`, '/tills', `/tills/${ids['till']}`],
    ...[
      ...[
        'api-keys',
        `api-keys/${ids['key']}`,
        `trial-balance?on=${on}`,
        'trial-balance',
        'system-accounts',
        'day-closings',
      ],
      ...[`day-closings/${on}`, `day-closings/${on}/accounts`, `balances?on=${on}`, 'search?q=muller', 'search?q=R-1'],
      ...[`transactions/${ids['deposit']}/timeline`, `posting-statistics?currency=USD&unit=hour&from=${from}`],
      ...[`posting-totals?from=${from}`, 'cash-days', 'operations', 'audit', 'audit/actors'],
      ...[
        'dead-letters',
        `dead-letters/${ids['letter']}`,
        'approvals',
        `approvals/${ids['approved']}`,
        'approval-rules',
      ],
    ].map((part) => `/admin/${part}`),
  ]) {
    const answer = await api.get(path);
    if (answer.status !== 200) throw new Error(`GET ${path} is ${answer.status}: ${answer.text}`);
  }
  for (const path of [
    '/admin/staff-day',
    '/admin/approval-rules',
    `/admin/approvals/${ids['waiting']}`,
    '/admin/approvals',
    '/admin/staff-names?actors=x',
  ])
    await staff.get(path);
}
