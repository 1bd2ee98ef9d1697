import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { messageOfType } from '#libs/contracts/messages.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { ids, ok, refused, samples } from '../../gateway/test/test-app.ts';
import { testDashboard } from '../test/test-dashboard.ts';

/**
 * The pages of clients, accounts, and transactions, and the search, without a browser: the requests
 * to the API, and how a page shows the responses.
 */
let made: Awaited<ReturnType<typeof testDashboard>>;
let answers: Record<
  string,
  ReplyBody | 'no_reply' | ((data: Record<string, unknown>) => ReplyBody | Promise<ReplyBody>)
>;

const retail = {
  client_id: ids.client,
  client_type: 'Retail',
  first_name: '<i>Grace</i>',
  last_name: 'Høpper',
  email: 'g@b.cc',
  contact_number: '+254700000001',
  address: null,
  ussd_phone_number: null,
  ussd_status: 'inactive',
  created_at: samples.client.created_at,
  updated_at: samples.client.updated_at,
};
const movement = {
  entry_id: 'ent_1-1',
  operation_id: 'opr_1',
  transaction_id: ids.transaction,
  account_id: ids.account,
  sequence: 1,
  direction: 'credit',
  side: 'CR',
  amount: '25.00',
  currency: 'USD',
  balance_after: '25.00',
  created_at: '2026-01-02T03:04:05.690Z',
};
const hit = (kind: string, id: string) => ({
  kind,
  id,
  title: 'x',
  subtitle: 'y',
  matched: 'id',
  created_at: samples.client.created_at,
});

beforeAll(async () => {
  made = await testDashboard(({ name, data }) => {
    const answer = answers[name];
    return answer === undefined ? 'no_reply' : typeof answer === 'function' ? answer(data) : answer;
  });
});
beforeEach(() => {
  answers = {
    get_client: ok(retail),
    list_notes: ok({ items: [] }),
    list_status_transitions: ok({ items: [] }),
    get_account: ok(samples.master),
    get_ledger_accounts: ok([samples.ledger]),
    get_transaction: ok(samples.transaction),
  };
});
afterAll(() => made.app.close());

const everything =
  'clients:read clients:write accounts:read accounts:write accounts:status transactions:read transactions:write audit:read books:read ops:manage';
const lastSent = () => JSON.parse(String(made.sent.at(-1)?.value)) as Record<string, unknown>;
const keyIn = (page: string) => /name="idempotency_key" value="([^"]+)"/.exec(page)?.[1] ?? '';
const client = `/admin/ui/clients/${ids.client}`;
const account = `/admin/ui/accounts/${ids.account}`;

describe('the search box', () => {
  it('is shown to people with access to any results', async () => {
    expect((await made.signedIn('clients:read').get('/admin/ui')).body).toContain('aria-label="Find anything"');
    expect((await made.signedIn('keys:manage').get('/admin/ui')).body).not.toContain('aria-label="Find anything"');
  });

  it('redirects to a single result, lists several by kind, and says if there is none', async () => {
    const { get } = made.signedIn(everything);
    answers = { search_records: ok([hit('account', ids.account)]), search_postings: ok([]) };
    expect((await get('/admin/ui/find?q=x')).headers.location).toBe(account);
    answers['search_postings'] = ok([hit('transaction', ids.transaction), hit('transfer', ids.transfer)]);
    const { body } = await get('/admin/ui/find?q=%3Cb%3E');
    for (const [heading, path] of [
      ['Accounts', account],
      ['Transactions', `/admin/ui/transactions/${ids.transaction}`],
      ['Transfers', `/admin/ui/transfers/${ids.transfer}`],
    ]) {
      expect(body).toContain(`<h2>${heading}</h2>`);
      expect(body).toContain(`href="${path}"`);
    }
    expect((await get(`/admin/ui/find?q=${ids.transfer}`)).headers.location).toBe(
      `/admin/ui/transfers/${ids.transfer}`,
    );
    expect(body).toContain('Found for “&lt;b&gt;”');
    // Who serves customers looks for the receipt itself, others for what was posted.
    const found = { ...hit('transaction', ids.transaction), matched: 'receipt_number' };
    answers = { search_records: ok([]), search_postings: ok([found]) };
    const receipt = `/admin/ui/counter/receipts/${ids.transaction}`;
    expect((await get('/admin/ui/find?q=WNSN7-XP0N1')).headers.location).toBe(receipt);
    // A receipt shows the account.
    for (const scopes of ['transactions:read', 'transactions:read transactions:write'])
      expect((await made.signedIn(scopes).get('/admin/ui/find?q=WNSN7-XP0N1')).headers.location).toBe(
        `/admin/ui/transactions/${ids.transaction}`,
      );
    answers = { search_records: ok([]), search_postings: ok([]) };
    for (const [q, to] of [
      ['1 500,50 kes', '/admin/ui/transactions?currency=KES&min_amount=1500.50&max_amount=1500.50'],
      ['KES 1500', '/admin/ui/transactions?currency=KES&min_amount=1500.00&max_amount=1500.00'],
      ['vlt-kes', '/admin/ui/books#VLT-KES'],
      ['1500 XYW', undefined],
      ['1.500 KES', undefined],
    ] as const)
      expect((await get(`/admin/ui/find?${new URLSearchParams({ q })}`)).headers.location, q).toBe(to);
    // Digits alone may be a number of anything: the amount is offered, and Enter follows it.
    expect((await get('/admin/ui/find?q=1%20500,5')).body).toContain(
      '<a data-hit href="/admin/ui/transactions?min_amount=1500.50&amp;max_amount=1500.50" autofocus>',
    );
    expect((await made.signedIn('clients:read').get('/admin/ui/find?q=1500')).body).not.toContain('any currency');
    answers = {
      search_records: ok([{ ...hit('client', ids.client), matched: 'name' }, hit('account', ids.account)]),
      search_postings: ok([]),
    };
    expect((await get('/admin/ui/find?q=x')).body).toMatch(/<h2>Accounts<[\s\S]* autofocus>[\s\S]*<h2>Clients</);
    answers = { search_records: ok([hit('audit_record', `aud_${'a'.repeat(32)}`)]), search_postings: ok([]) };
    expect((await get('/admin/ui/find?q=req%201')).headers.location).toBe('/admin/ui/audit?request_id=req+1');
    answers = { search_records: ok([]), search_postings: ok([]) };
    // Who is not found by name may not be a client yet.
    const creates = 'href="/admin/ui/clients/new">Create a Retail client<';
    for (const [scopes, q, expected] of [
      ['clients:read clients:write', 'x', true],
      ['clients:read clients:write', 'SAV-99', false],
      ['clients:read', 'x', false],
    ] as const) {
      const { body } = await made.signedIn(scopes).get(`/admin/ui/find?q=${q}`);
      expect(body).toContain('Nothing was found');
      expect(body.includes(creates), `${scopes} ${q}`).toBe(expected);
    }
    expect((await get('/admin/ui/find?q=')).statusCode).toBe(200);
    expect((await get(`/admin/ui/find?q=${'x'.repeat(256)}`)).statusCode).toBe(400);
  });
});

describe('a list without an index', () => {
  it('says that its page is incomplete, and only then', async () => {
    const next = { at: samples.transaction.created_at, id: ids.transaction };
    const page = async () => (await made.signedIn(everything).get(`${account}/transactions?reference=x`)).body;
    answers['list_transactions'] = ok({ items: [samples.transaction], next, complete: false });
    expect(await page()).toContain('This page is not complete');
    answers['list_transactions'] = ok({ items: [samples.transaction], complete: true });
    expect(await page()).not.toContain('This page is not complete');
  });
});

describe('every page of an account', () => {
  it('has its owner as the heading', async () => {
    for (const name of ['list_transactions', 'list_entries', 'list_holds']) answers[name] = ok({ items: [] });
    for (const part of ['/transactions', '/entries', '/holds', '/history']) {
      const { body } = await made.signedIn(everything).get(`${account}${part}`);
      expect(body, part).toContain(`<h1><a href="${client}">&lt;i&gt;Grace&lt;/i&gt; Høpper</a></h1>`);
      const few = await made.signedIn('accounts:read transactions:read').get(`${account}${part}`);
      expect(few.body, part).toContain('<h1>SAV-1</h1>');
    }
  });

  it('that is frozen says since when, by whom, and why', async () => {
    answers['list_entries'] = ok({ items: [] });
    answers['list_holds'] = ok({ items: [] });
    const page = async () => (await made.signedIn('accounts:read').get(account)).body.replace(/<[^>]*>/g, '');
    expect(await page()).not.toContain('Frozen since');
    answers['get_account'] = ok({ ...samples.master, status: 'Frozen' });
    answers['list_status_transitions'] = ok({
      items: [
        {
          transition_id: `tra_${'a'.repeat(32)}`,
          account_id: ids.account,
          from_status: 'Active',
          to_status: 'Frozen',
          reason: 'fraud',
          note: 'card <stolen>',
          actor: 'jwt:x|carol',
          created_at: samples.client.created_at,
        },
      ],
    });
    expect(await page()).toContain('Frozen since 2026-01-02 03:04 by carol: fraud: card &lt;stolen&gt;');
  });
});

describe('the transactions of the bank', () => {
  const loan = { ...samples.master, account_id: ids.other, account_number: 'LOA-2', account_type: 'Loan' };
  const ofLoan = { ...samples.transaction, account_id: ids.other };
  /** A Loan Payment's transactions on both accounts. The first is the one that is listed. */
  const legs = (bits: string, direction: string) =>
    [
      [bits, ids.account, ids.other],
      [`${bits.charAt(0) === 'a' ? '2' : '3'}${bits.slice(1)}`, ids.other, ids.account],
    ].map(([id, account_id, counterparty_account_id]) => ({
      ...samples.transaction,
      transaction_id: `txn_${id}`,
      transfer_id: `trf_${bits}`,
      transaction_type: 'Loan Payment',
      account_id,
      counterparty_account_id,
      direction,
    }));
  const payment = legs('a'.repeat(32), 'debit');
  const paidBack = legs('b'.repeat(32), 'credit');
  const payout = { ...ofLoan, transaction_type: 'Withdrawal' };
  const reverses = { reverses_transaction_id: ids.transaction };
  const refused = { status: 'Failed', failure_code: 'invalid_account_type' };
  const readLoan = () => {
    answers['list_accounts'] = ok({ items: [samples.master, loan] });
    answers['get_ledger_accounts'] = ok(
      [samples.master, loan].map((row) => ({ ...samples.ledger, account_id: row.account_id })),
    );
  };
  /** Returns From and To of each row, and what is said about all. */
  const shown = async (items: readonly object[], scopes: string) => {
    answers['list_transactions'] = ok({ items });
    const { body } = await made.signedIn(scopes).get('/admin/ui/transactions');
    const ways = [...body.matchAll(/data-title="(?:From|To)"><div>(.*?)<\/div>/g)].map(([, cell = '']) =>
      cell.replace(/<[^>]*>/g, ''),
    );
    return { ways, sums: /Posted on this page: (.*?)<\/p>/.exec(body)?.[1]?.replace(/<[^>]*>/g, '') };
  };

  it.each([
    ['a payment of a loan', payment, ['SAV-1', 'LOA-2']],
    ['its reversal', paidBack, ['LOA-2', 'SAV-1']],
    ['a payout', [payout], ['LOA-2', 'Cash']],
    ['the reversal of a payout', [{ ...payout, direction: 'debit', ...reverses }], ['Cash', 'LOA-2']],
    ['a refused deposit to a loan', [{ ...ofLoan, ...refused }], ['Cash', 'LOA-2']],
    ['a refused withdrawal from a loan', [{ ...payout, direction: 'debit', ...refused }], ['LOA-2', 'Cash']],
    [
      'a refused transfer from a loan',
      [{ ...payment[1], transaction_id: `txn_${'a'.repeat(32)}`, transaction_type: 'Transfer', ...refused }],
      ['LOA-2', 'SAV-1'],
    ],
  ])('show %s once, and the way the money went', async (_what, items, ways) => {
    readLoan();
    expect((await shown(items, 'transactions:read accounts:read')).ways).toEqual(ways);
  });

  it('add up what came in and what went out, also if the accounts are not known; then a payment has no way', async () => {
    readLoan();
    const deposit = samples.transaction;
    const items = [payout, { ...deposit, amount: '1.00' }, { ...deposit, ...reverses, direction: 'debit' }, ...payment];
    const sums = 'in 1.00 USD; out 50.00 USD; between accounts 25.00 USD';
    expect((await shown(items, 'transactions:read accounts:read')).sums).toBe(sums);
    const unknown = await shown(items, 'transactions:read');
    expect(unknown.sums).toBe(sums);
    expect(unknown.ways.slice(0, 2)).toEqual([ids.other, 'Cash']);
    expect(unknown.ways.slice(-2)).toEqual([`between ${ids.account}`, `and ${ids.other}`]);
    // The page of the transaction on the loan: known, and not known.
    answers['get_transaction'] = ok(payment[1]);
    const page = async (scopes: string) =>
      (await made.signedIn(scopes).get(`/admin/ui/transactions/${ids.transaction}`)).body.replace(/<[^>]*>/g, ' ');
    expect(await page('transactions:read accounts:read')).toMatch(/From\s+SAV-1\s+Amount[\s\S]*To\s+LOA-2/);
    expect(await page('transactions:read')).toMatch(/Between\s+acc_\S+\s+Amount[\s\S]*And\s+acc_/);
  });

  it('of a loan say what was paid off and lent, and have no sign: neither is a gain or a loss of the customer', async () => {
    const titles = (body: string) =>
      [...body.matchAll(/<td data-title="([^"]+)"[^>]*class="number ?(in|out)?[^"]*"/g)].map(([, title, way]) =>
        [title, way].filter(Boolean).join(': '),
      );
    const opened = async (master: object, path: string) => {
      const { account_number } = master as { account_number: string };
      const line = { ...movement, transaction_type: 'Loan Payment', description: null, reference: null };
      const sums = { opening_balance: '1.00', closing_balance: '1.00', debit_total: '0.00', credit_total: '25.00' };
      const days = { date: '2026-01-02', debit_total: '0.00', credit_total: '25.00', balance: '25.00' };
      const of = { account_id: ids.account, account_number, currency: 'USD', from: null, to: null, ...sums };
      answers = {
        ...answers,
        get_account: ok(master as object),
        list_transactions: ok({ items: [payment[0], payment[0]] }),
        list_entries: ok({ items: [line] }),
        list_holds: ok({ items: [] }),
        get_statement: ok({ item: { ...of, entry_count: 1, entries: [line] } }),
        get_account_days: ok({
          ...of,
          from: '2026-01-01',
          to: '2026-01-02',
          days: [days, { ...days, date: '2026-01-01' }],
        }),
      };
      return (await made.signedIn(everything).get(`${account}${path}`)).body;
    };
    const own = { ...loan, account_id: ids.account };
    for (const path of ['', '/statement']) {
      expect(titles(await opened(own, path)), path).toEqual(['Paid off', 'Lent', 'Balance']);
      expect(titles(await opened(samples.master, path)), path).toEqual(['Out: out', 'In: in', 'Balance']);
    }
    const list = await opened(own, '/transactions');
    expect(titles(list).slice(0, 2)).toEqual(['Paid off, USD', 'Lent, USD']);
    expect(list).toContain('Posted on this page: paid off <strong>50.00 USD</strong>, lent <strong>–</strong>');
    expect(titles(await opened(samples.master, '/transactions'))[0]).toBe('Out, USD: out');
    expect(await opened(own, '/days')).toContain('lent 25.00, paid off 0.00; balance');
    // Of an account that was empty before, only its last days are drawn.
    const drawn = async () =>
      (await made.signedIn(everything).get(`${account}/days`)).body.match(/<rect class="day"/g)?.length;
    expect(await drawn()).toBe(90);
    const found = answers['get_account_days'] as { ok: true; data: object };
    answers['get_account_days'] = ok({
      ...found.data,
      opening_balance: '0.00',
      from: '2025-10-05',
      to: '2026-01-02',
    });
    expect(await drawn()).toBe(3);
    expect(await opened(own, '/statement')).toMatch(/<dt>Paid off<\/dt><dd>0\.00 USD<\/dd>/);
  });
});

describe('the lists', () => {
  it.each([
    ['clients', 'list_clients'],
    ['accounts', 'list_accounts'],
    ['transactions', 'list_transactions'],
  ] as const)('of %s are filtered by external_id', async (path, name) => {
    answers[name] = ok({ items: [] });
    const { body } = await made.signedIn(everything).get(`/admin/ui/${path}?external_id=CRM-7`);
    expect(body).toContain('name="external_id" value="CRM-7"');
    expect(lastSent()).toMatchObject({ external_id: 'CRM-7' });
  });

  it('and the search compare as the fields store: trimmed, but not an external_id', async () => {
    // contract: clients-21, names-1
    answers['list_clients'] = ok({ items: [] });
    await made
      .signedIn(everything)
      .get('/admin/ui/clients?external_id=%20CRM+7+&email=+a%2Bb%40m%C3%BCnchen.example%0A');
    expect(lastSent()).toMatchObject({ external_id: ' CRM 7 ', email: 'a+b@xn--mnchen-3ya.example' });
    answers['search_records'] = ok([]);
    await made.signedIn('clients:read').get('/admin/ui/find?q=+CRM+7+');
    expect(lastSent()).toMatchObject({ q: ' CRM 7 ' });
  });

  it('an e-mail address of any script can be entered: the browser does not check it', async () => {
    const { body } = await made.signedIn(everything).get('/admin/ui/clients/new');
    expect(body).toMatch(/<input type="text" name="email"[^>]* inputmode="email"/);
  });
});

describe('clients', () => {
  it('a client shows its accounts to people with accounts:read, and its name as text', async () => {
    answers['list_accounts'] = ok({ items: [samples.master] });
    const all = await made.signedIn(everything).get(client);
    expect(all.body).toContain('&lt;i&gt;Grace&lt;/i&gt; Høpper');
    expect(all.body).toContain(`href="${account}"`);
    const few = await made.signedIn('clients:read').get(client);
    expect(few.statusCode).toBe(200);
    expect(few.body).not.toMatch(/SAV-1|Correct names/);
  });

  it('external_id and metadata are shown for clients, accounts, transactions, and transfers that have them', async () => {
    const names = { external_id: 'CRM-<7>', metadata: { branch: 'Nairobi <3>' } };
    answers = {
      get_client: ok({ ...retail, ...names }),
      get_account: ok({ ...samples.master, ...names }),
      get_ledger_accounts: ok([samples.ledger]),
      get_transaction: ok({ ...samples.transaction, ...names }),
      get_transfer: ok({ ...samples.transfer, ...names }),
      list_accounts: ok({ items: [] }),
      list_entries: ok({ items: [] }),
      list_holds: ok({ items: [] }),
      list_status_transitions: ok({ items: [] }),
      list_notes: ok({ items: [] }),
    };
    for (const path of [
      client,
      account,
      `/admin/ui/transactions/${ids.transaction}`,
      `/admin/ui/transfers/${ids.transfer}`,
    ]) {
      const { body } = await made.signedIn('clients:read accounts:read transactions:read').get(path);
      expect(body, path).toContain('<dd>CRM-&lt;7&gt;</dd>');
      expect(body, path).toContain('branch: Nairobi &lt;3&gt;');
    }
  });

  it('a change of contact data sends only the changed fields', async () => {
    answers['update_client'] = ok(retail);
    const { session, post } = made.signedIn(everything);
    const same = {
      csrf_token: session.csrf,
      email: 'g@b.cc',
      was_email: 'g@b.cc',
      contact_number: '+254700000001',
      was_contact_number: '+254700000001',
    };
    const answer = await post(`${client}/contact`, {
      ...same,
      address: '',
      was_address: 'Home',
      ussd_status: 'inactive',
      was_ussd_status: 'inactive',
    });
    expect([answer.statusCode, answer.headers.location]).toEqual([303, `${client}?saved=corrected`]);
    expect(lastSent()).toMatchObject({ changes: { address: null } });
    const before = made.sent.length;
    expect((await post(`${client}/contact`, same)).statusCode).toBe(303);
    expect(made.sent).toHaveLength(before);
    const wrong = await post(`${client}/contact`, { ...same, email: 'nonsense' });
    expect(wrong.statusCode).toBe(400);
    expect(wrong.body).toMatch(
      /name="was_email" value="g@b.cc"[\s\S]*value="nonsense"[\s\S]*E-mail must be an e-mail address/,
    );
  });

  it('a client is created with the key of its form; a corrected form has another', async () => {
    answers['create_client'] = ok(retail);
    answers['search_records'] = answers['search_postings'] = ok([]);
    answers['list_clients'] = ok({ items: [] });
    const { session, get, post } = made.signedIn(everything);
    const key = keyIn((await get('/admin/ui/clients/new')).body);
    const fields = {
      csrf_token: session.csrf,
      idempotency_key: key,
      client_type: 'Retail',
      first_name: 'Grace',
      last_name: 'Høpper',
      email: 'g@b.cc',
      contact_number: '+254 700 000 001',
      address: '',
      ussd_phone_number: '',
      ussd_status: 'inactive',
    };
    expect((await post('/admin/ui/clients/new', fields)).headers.location).toBe(`${client}?saved=opened`);
    const first = lastSent();
    await post('/admin/ui/clients/new', fields);
    expect(lastSent()).toEqual(first);
    const wrong = await post('/admin/ui/clients/new', { ...fields, email: 'x' });
    expect([wrong.statusCode, keyIn(wrong.body) === key]).toEqual([400, false]);
  });

  it('a possible duplicate is created only after confirmation that it is another person', async () => {
    answers['create_client'] = ok(retail);
    answers['search_postings'] = ok([]);
    const namesake = { ...retail, client_id: `cli_${'9'.repeat(32)}`, first_name: 'Grace', last_name: 'Høpperson' };
    answers['list_clients'] = ({ q, client_ids }) =>
      ok({ items: q === 'Grace Høpper' ? [namesake] : client_ids === undefined ? [] : [retail] });
    const by = (matched: string) => ({ ...hit('client', ids.client), title: 'Grace <b>', matched });
    answers['search_records'] = ({ q }) =>
      ok(q === 'g@b.cc' ? [by('email')] : q === '+254700000001' ? [by('phone')] : []);
    const { session, post } = made.signedIn(everything);
    const fields = {
      csrf_token: session.csrf,
      idempotency_key: 'dup',
      made_at: '2099-01-01T00:00:00.000Z',
      client_type: 'Retail',
      first_name: 'Grace',
      last_name: 'Høpper',
      email: 'g@b.cc',
      contact_number: '+254700000001',
    };
    const warned = await post('/admin/ui/clients/new', fields);
    expect(warned.statusCode).toBe(409);
    expect(warned.body).toMatch(/This client may already exist[\s\S]*Grace &lt;b&gt;[\s\S]*phone, e-mail/);
    const others = `${ids.client},${namesake.client_id}`;
    expect(warned.body).toContain(`name="others" value="${others}"`);
    expect(warned.body).toContain('name, or its beginning');
    // What tells them apart, and no button that creates somebody by Enter.
    expect(warned.body).toMatch(new RegExp(`${retail.contact_number.replace('+', '[+]')}[^]*${retail.email}`));
    expect(warned.body).toMatch(/autofocus>Grace &lt;b&gt;<\/a>[^]*<button>It is somebody else: create the client</);
    const wanted = { ...fields, others };
    expect((await post('/admin/ui/clients/new', wanted)).headers.location).toBe(`${client}?saved=opened`);
    // The form itself created this client when it was sent the first time.
    const earlier = { ...fields, made_at: '2000-01-01T00:00:00.000Z' };
    expect((await post('/admin/ui/clients/new', earlier)).headers.location).toBe(`${client}?saved=opened`);
  });

  it('if somebody else changed the client meanwhile, both versions are shown, and the input is kept', async () => {
    const now = { ...retail, email: 'theirs@b.cc', address: 'Their street', last_name: 'Hopper' };
    answers['get_client'] = ok(now);
    answers['update_client'] = refused('version_mismatch', 'changed');
    const { session, get, post } = made.signedIn(everything);
    const form = (await get(`${client}/contact`)).body;
    const etag = /name="etag" value="([^"]+)"/.exec(form)?.[1]?.replaceAll('&quot;', '"') ?? '';
    const answer = await post(`${client}/contact`, {
      csrf_token: session.csrf,
      etag,
      was_email: 'g@b.cc',
      email: 'mine@b.cc',
      was_last_name: 'Høpper',
      last_name: 'Høpper',
      was_contact_number: '+254700000001',
      contact_number: '+254700000002',
    });
    expect(answer.statusCode).toBe(412);
    const text = answer.body.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
    expect(text).toMatch(/E-mail g@b.cc theirs@b.cc mine@b.cc/);
    expect(text).toMatch(/Last name Høpper Hopper not changed/);
    expect(answer.body).toMatch(/name="email" value="mine@b.cc"/);
    expect(answer.body).toMatch(/name="last_name" value="Hopper"/);
    expect(answer.body).toMatch(/name="contact_number" value="\+254700000002"/);
    expect(answer.body).toMatch(/name="was_email" value="theirs@b.cc"/);
  });
});

describe('accounts', () => {
  it('a search for the client that is not answered is not taken for a client that is not there', async () => {
    const { session, post } = made.signedIn(everything);
    const open = () => post('/admin/ui/accounts/new', { csrf_token: session.csrf, client_id: 'Ada', currency: 'USD' });
    answers['search_records'] = 'no_reply';
    const away = await open();
    expect([away.statusCode, away.body.includes('No client was found')]).toEqual([503, false]);
    answers['search_records'] = answers['search_postings'] = ok([]);
    expect((await open()).body).toContain('No client was found for “Ada”.');
  });

  it('freezing requires a confirmation, and shows reason and note', async () => {
    answers['change_account_status'] = ok({ ...samples.master, status: 'Frozen', balance: '10.50' });
    const { session, post } = made.signedIn(everything);
    const fields = { csrf_token: session.csrf, idempotency_key: 'k1', reason: 'fraud', note: 'called the branch' };
    const before = made.sent.filter(({ headers }) => headers['ce_type']?.includes('status')).length;
    const unconfirmed = await post(`${account}/freezing`, fields);
    expect(unconfirmed.statusCode).toBe(400);
    expect(unconfirmed.body).toContain('called the branch');
    expect(made.sent.filter(({ headers }) => headers['ce_type']?.includes('status'))).toHaveLength(before);
    expect((await post(`${account}/freezing`, { ...fields, confirmed: 'yes' })).headers.location).toBe(
      `${account}?saved=freezing`,
    );
    expect(lastSent()).toMatchObject({ status: 'Frozen', reason: 'fraud', note: 'called the branch' });
    expect((await made.signedIn('accounts:read').get(`${account}/freezing`)).statusCode).toBe(403);
  });

  it('its page and the form that unfreezes it show why it is frozen', async () => {
    answers['list_entries'] = answers['list_holds'] = ok({ items: [] });
    const bare = {
      transition_id: 'str_1',
      account_id: ids.account,
      from_status: 'Active',
      to_status: 'Frozen',
      created_at: samples.client.created_at,
    };
    const frozen = { ...bare, reason: 'customer_request', note: 'lost <card>', actor: 'key:k' };
    answers['list_status_transitions'] = ok({ items: [frozen] });
    const { get } = made.signedIn(everything);
    const why = '<dt>Reason</dt><dd>request of the customer: lost &lt;card&gt;</dd>';
    expect((await get(account)).body).toContain(why);
    expect((await get(`${account}/unfreezing`)).body).toContain(why);
    answers['get_ledger_accounts'] = ok([{ ...samples.ledger, status: 'Active' }]);
    expect((await get(account)).body).not.toContain(why);
    // The response to a caller who is bound to a client.
    answers['get_ledger_accounts'] = ok([samples.ledger]);
    answers['list_status_transitions'] = ok({ items: [bare] });
    expect((await get(account)).body).not.toContain('<dt>Reason</dt>');
  });

  it('the page has the latest entries with their balances, and confirms what was done', async () => {
    answers['list_notes'] = answers['list_status_transitions'] = answers['list_holds'] = ok({ items: [] });
    const line = {
      ...movement,
      transaction_type: 'Transfer',
      description: null,
      reference: 'RENT',
      counterparty_account_id: `acc_${'7'.repeat(32)}`,
      counterparty_account_number: 'CHK-77',
    };
    answers['list_entries'] = ok({ items: [line] });
    answers['list_accounts'] = ok({ items: [{ ...samples.master, account_id: line.counterparty_account_id }] });
    answers['list_clients'] = ok({ items: [{ ...samples.client, company_name: 'Landlord <b>' }] });
    answers['get_ledger_accounts'] = ({ account_ids }) =>
      ok((account_ids as string[]).map((account_id) => ({ ...samples.ledger, account_id })));
    const { get } = made.signedIn(everything);
    const { body } = await get(`${account}?saved=freezing`);
    expect(body).toContain('Account SAV-1 frozen. <a data-next href="/admin/ui/counter">Next customer</a>');
    expect(body).not.toContain('/counter/receipts/');
    const opened = (await get(`${account}?saved=opened`)).body;
    expect(opened).toContain(`href="/admin/ui/counter/receipts/${movement.transaction_id}"`);
    expect(body).toMatch(
      />Transfer from<\/a> Landlord &lt;b&gt;, <span class="whole"><a href="[^"]+">CHK-77<\/a><\/span><br><span class="quiet text">RENT<\/span>/,
    );
    // Without a name that the person may not see.
    const without = async (changes: object, scopes = everything) => {
      answers['list_entries'] = ok({ items: [{ ...line, ...changes }] });
      return (await made.signedIn(scopes).get(account)).body.replace(/<[^>]*>/g, '');
    };
    const repaid = { transaction_type: 'Loan Payment', direction: 'debit' };
    expect(await without(repaid)).toContain('Loan repayment to Landlord &lt;b&gt;, CHK-77');
    expect(await without({ reverses_transaction_id: ids.transaction })).toContain('Reversal of Transfer to Landlord');
    expect(await without({ direction: 'debit' })).toContain('Transfer to Landlord');
    expect(await without({}, 'accounts:read transactions:read')).toContain('Transfer from CHK-77');
    expect(body).toContain('<strong>25.00</strong>');
    expect((await get(`${account}?saved=%3Cb%3E`)).body).not.toContain('role="status">Account');
    answers['get_ledger_accounts'] = ok([{ ...samples.ledger, available_balance: '1.00' }]);
    expect((await get(account)).body).toContain('<dt>Available</dt><dd>1.00 USD</dd>');
  });

  it('the list shows clients and totals, as far as the person’s scopes allow', async () => {
    answers['list_accounts'] = ok({
      items: [samples.master, { ...samples.master, account_id: `acc_${'7'.repeat(32)}` }],
    });
    answers['get_ledger_accounts'] = ok([samples.ledger, { ...samples.ledger, account_id: `acc_${'7'.repeat(32)}` }]);
    answers['list_clients'] = (data) => ok({ items: data['client_ids'] === ids.client ? [retail] : [] });
    const { body } = await made.signedIn(everything).get('/admin/ui/accounts');
    expect(body).toContain(`href="${client}">&lt;i&gt;Grace&lt;/i&gt; Høpper</a>`);
    expect(body).toMatch(/On this page: balances <strong>[\d.\u00a0]+ USD</);
    answers['list_clients'] = 'no_reply';
    expect((await made.signedIn('accounts:read').get('/admin/ui/accounts')).body).toContain(ids.client);
  });

  it.each([
    ['Active', ['freezing', 'deactivation']],
    ['Inactive', ['freezing', 'activation']],
    ['Frozen', ['unfreezing']],
  ])('one that is %s offers %s', async (status, offered) => {
    answers['get_ledger_accounts'] = ok([{ ...samples.ledger, status }]);
    answers['list_notes'] =
      answers['list_status_transitions'] =
      answers['list_entries'] =
      answers['list_holds'] =
        ok({ items: [] });
    const { body } = await made.signedIn(everything).get(account);
    expect(
      [...body.matchAll(/href="[^"]*\/(freezing|unfreezing|activation|deactivation)"/g)].map(([, change]) => change),
    ).toEqual(offered);
    expect(body).toContain(`href="${client}">&lt;i&gt;Grace&lt;/i&gt; Høpper</a>`);
  });

  it.each([
    ['deactivation', 'Inactive'],
    ['activation', 'Active'],
  ])('%s sends %s, and needs no reason', async (change, status) => {
    answers['change_account_status'] = ok({ ...samples.master, status, balance: '10.50' });
    const { session, post } = made.signedIn(everything);
    await post(`${account}/${change}`, {
      csrf_token: session.csrf,
      idempotency_key: change,
      reason: '',
      confirmed: 'yes',
    });
    expect(lastSent()).toMatchObject({ status, reason: null });
  });

  it('an initial deposit is shown first, and sent digit by digit; an invalid amount is reported at its field', async () => {
    answers['open_account'] = ok({ ...samples.master, balance: '0.10' });
    answers['list_tills'] = ok({ items: [] });
    const { session, get, post } = made.signedIn(everything);
    const fields = {
      csrf_token: session.csrf,
      client_id: ids.client,
      account_type: 'Savings',
      currency: 'usd',
      initial_deposit: '9999999999999.99',
    };
    for (const [account_type, says] of [
      ['Loan', 'Lent, and paid out in cash'],
      ['Savings', 'First deposit, in cash'],
    ] as const) {
      const before = made.sent.length;
      const { headers } = await post('/admin/ui/accounts/new', { ...fields, account_type, idempotency_key: 'o1' });
      const summary = (await get(String(headers.location))).body;
      expect(summary.replace(/\s/g, ' ')).toContain(`<dt>${says}</dt><dd>9 999 999 999 999.99 USD</dd>`);
      expect(summary).toContain('Your till is closed: this cash will be in no till.');
      expect(made.sent.slice(before).filter(({ headers }) => headers['ce_type']?.includes('open_account'))).toEqual([]);
    }
    const { headers } = await post('/admin/ui/accounts/new', { ...fields, idempotency_key: 'o1' });
    const [address = '', of = ''] = String(headers.location).split('?of=');
    const opened = await post(address, { csrf_token: session.csrf, of });
    expect(opened.headers.location).toBe(`${account}?saved=opened`);
    expect(made.sent.at(-1)?.headers['idempotency-key']).toBe('o1');
    expect(lastSent()).toMatchObject({ currency: 'USD', initial_deposit: '9999999999999.99' });
    const wrong = await post('/admin/ui/accounts/new', { ...fields, idempotency_key: 'o2', initial_deposit: '1.500' });
    expect(wrong.statusCode).toBe(400);
    expect(wrong.body).toMatch(/id="initial_deposit-reason">Is this 1500, or 1.50\?/);
    expect(wrong.body).toContain('For <strong>');
  });

  it('an account is opened for the client that the search finds, of several for the chosen one or another, in the usual currency of the client', async () => {
    answers['open_account'] = ok({ ...samples.master, balance: '0.00' });
    const found = (...found: string[]) => {
      const hit = { kind: 'client', title: 't', subtitle: 's', matched: 'name', created_at: samples.client.created_at };
      answers['search_records'] = ok(found.map((id) => ({ ...hit, id })));
      answers['search_postings'] = ok([]);
      answers['list_clients'] = ok({ items: found.map((client_id) => ({ ...samples.client, client_id })) });
    };
    const { session, get, post } = made.signedIn(everything);
    const send = (client_id: string) =>
      post('/admin/ui/accounts/new', { csrf_token: session.csrf, client_id, account_type: 'Savings', currency: 'USD' });
    found(ids.client);
    expect((await send('wanjiru')).headers.location).toBe(`${account}?saved=opened`);
    expect(lastSent()).toMatchObject({ client_id: ids.client });
    found(ids.client, `cli_${'b'.repeat(32)}`);
    const several = await send('wanjiru');
    expect([several.statusCode, several.body]).toEqual([
      400,
      expect.stringContaining('Several clients match, perhaps more than these.'),
    ]);
    expect(several.body).toContain(`<option value="${ids.client}">x, +254700000001</option>`);
    // A word that was mistyped can be typed again.
    expect(several.body).toMatch(/Or another client <input [^>]*name="other_words" value=""/);
    const again = (other_words: string) =>
      post('/admin/ui/accounts/new', {
        csrf_token: session.csrf,
        client_id: '',
        other_words,
        account_type: 'Savings',
        currency: 'USD',
      });
    found(ids.client);
    expect((await again('wanjiku')).headers.location).toBe(`${account}?saved=opened`);
    found();
    const none = (await again('wanjiki')).body;
    expect(none).toContain('No client was found for “wanjiki”.');
    expect(none).toContain('name="client_id" value="wanjiki"');
    expect((await send('wanjiru')).body).toContain('No client was found for “wanjiru”.');
    const form = async (query = `?client_id=${ids.client}`) => (await get(`/admin/ui/accounts/new${query}`)).body;
    const accounts = (...codes: string[]) => {
      answers['list_accounts'] = ok({ items: codes.map((currency) => ({ ...samples.master, currency })) });
    };
    accounts('USD', 'USD');
    expect(await form()).toContain('<option value="USD" selected>');
    accounts('USD', 'KES');
    expect(await form()).toContain('<option value="" selected>Choose one</option>');
    // Accounts of others are not read to guess it.
    answers['list_accounts'] = ok({ items: [] });
    const before = made.sent.length;
    await form();
    await form('');
    const asked = made.sent.slice(before).map(({ value }) => String(value));
    expect(asked.filter((text) => text.includes('"limit":20'))).toEqual([expect.stringContaining(ids.client)]);
  });

  it('downloads are recorded as exports, with the file and its filters', async () => {
    // contract: audit-3
    answers['list_transactions'] = ok({ items: [] });
    made.recorded.length = 0;
    expect(
      (await made.signedIn(everything).get(`${account}/transactions.csv?status=Completed&from_day=2026-01-01&x=1`))
        .statusCode,
    ).toBe(200);
    const records = made.recorded.map(({ value }) => JSON.parse(String(value)) as AuditRecord);
    expect(records.filter(({ action }) => action === 'export')).toMatchObject([
      {
        resource_id: ids.account,
        details: { file: 'accounts-transactions.csv', filters: { status: 'Completed', from: '2026-01-01' } },
      },
    ]);
  });

  it('an account’s pages ask at once for all that does not depend on the account', async () => {
    const wanted = ['list_entries', 'list_status_transitions', 'list_holds', 'list_notes', 'get_account_limits'];
    const { get } = made.signedIn(everything);
    for (const [path, names] of [
      ['', wanted],
      ['/entries', ['list_entries']],
      ['/statement', ['get_statement']],
    ] as const) {
      const before = made.sent.length;
      const sent = () => made.sent.slice(before).map(({ headers }) => messageOfType(headers['ce_type'] ?? ''));
      const missing = () => names.filter((name) => !sent().includes(name as ReturnType<typeof messageOfType>));
      answers['get_account'] = async () => {
        await eventually(() => missing().length === 0);
        return ok(samples.master);
      };
      await get(`${account}${path}`);
      expect(missing(), path).toEqual([]);
    }
  });

  it('transactions keep their filters over pages and orders, and can be downloaded as CSV', async () => {
    answers['list_transactions'] = (data) =>
      ok({
        items: [{ ...samples.transaction, description: '=1+1' }],
        ...(data['after'] === undefined ? { next: { at: samples.transaction.created_at, id: ids.transaction } } : {}),
      });
    const { get } = made.signedIn(everything);
    const { body } = await get(`${account}/transactions?status=Completed&from_day=2026-01-01&to_day=2026-01-02`);
    expect(made.sent.map(({ value }) => JSON.parse(String(value)) as unknown)).toContainEqual({
      account_id: ids.account,
      limit: 50,
      status: 'Completed',
      from: '2026-01-01T00:00:00.000Z',
      to: '2026-01-03T00:00:00.000Z',
      order: 'desc',
    });
    expect(body).toMatch(/aria-sort="descending"><a href="[^"]*status=Completed[^"]*order=asc"/);
    expect(body).toMatch(/href="[^"]*status=Completed[^"]*cursor=[^"]+" rel="next"/);
    const file = await get(`${account}/transactions.csv?status=Completed`);
    expect(file.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': 'attachment',
    });
    expect(file.body.trimEnd().split('\r\n')).toHaveLength(3);
    expect(file.body).toContain(`"25.00","USD","Completed","","","'=1+1"`);
    const [first = ''] = (await get(`${account}/transactions.csv?sep=yes`)).body.split('\r\n');
    expect(first).toBe('\ufeffsep=,');
    answers['list_transactions'] = ok({
      items: [{ ...samples.transaction, reverses_transaction_id: ids.transaction }],
    });
    answers['list_accounts'] = ok({ items: [samples.master] });
    answers['list_clients'] = ok({ items: [samples.client] });
    const named = await get('/admin/ui/transactions.csv');
    expect(named.body).toContain('"2026-01-02 03:04:05","","SAV-1","x","Reversal of Deposit","credit","25.00"');
    const wrong = await get(`${account}/transactions?min_amount=x`);
    expect([wrong.statusCode, wrong.body.includes('These filters are not valid: Amount from must be')]).toEqual([
      400,
      true,
    ]);
  });

  it('one that does not exist is reported on a page', async () => {
    for (const name of ['get_account', 'get_statement', 'list_entries'])
      answers[name] = refused('account_not_found', 'no such account');
    const { get } = made.signedIn(everything);
    for (const path of [account, `${account}/statement`, `${account}/entries`, `${account}/entries.csv`])
      expect((await get(path)).statusCode, path).toBe(404);
  });
});

describe('a transaction', () => {
  const timeline = {
    transaction: samples.transaction,
    request: {
      request_id: 'req-7',
      actor: 'key:t',
      idempotency_key: 'once',
      accepted_at: samples.transaction.created_at,
    },
    command: { name: 'create_transaction', id: ids.transaction, topic: 'ledger.commands', partition: 3 },
    booked_at: '2026-01-02T03:04:05.690Z',
    entries: [
      {
        entry_id: 'ent_1-1',
        operation_id: 'opr_1',
        transaction_id: ids.transaction,
        account_id: ids.account,
        account_number: 'SAV-1',
        account_type: 'Savings',
        sequence: 1,
        direction: 'credit',
        side: 'CR',
        amount: '25.00',
        currency: 'USD',
        balance_after: '25.00',
        created_at: '2026-01-02T03:04:05.690Z',
      },
    ],
    events: [
      {
        ce_id: 'a-b',
        type: 'corebanking.transaction.completed.v1',
        topic: 'transactions',
        key: ids.account,
        state: 'published',
        recorded_at: '2026-01-02T03:04:05.690Z',
        published_at: '2026-01-02T03:04:05.700Z',
      },
    ],
  };

  it('shows its timeline to auditors only, and its receipt to people who may open it', async () => {
    answers['get_timeline'] = ok(timeline);
    const path = `/admin/ui/transactions/${ids.transaction}`;
    const { body } = await made.signedIn(everything).get(path);
    for (const text of [
      'req-7',
      'create_transaction',
      '(+12 ms)',
      '(+22 ms)',
      'corebanking.<wbr>transaction.<wbr>completed.<wbr>v1',
      'a-b',
      'Published',
      `href="/admin/ui/counter/receipts/${ids.transaction}"`,
    ])
      expect(body).toContain(text);
    const few = await made.signedIn('transactions:read').get(path);
    expect(few.statusCode).toBe(200);
    expect(few.body).not.toMatch(/Timeline|receipts/);
  });

  it('a transfer redirects to it', async () => {
    answers['get_transfer'] = ok(samples.transfer);
    answers['get_timeline'] = ok(timeline);
    const { body } = await made.signedIn(everything).get(`/admin/ui/transfers/${ids.transfer}`);
    expect(body).toContain(`href="/admin/ui/transactions/${ids.transaction}"`);
    expect(body).toContain('req-7');
  });
});
