import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openingTransactionId } from '#libs/contracts/ids.ts';
import { ids, ok, refused, samples } from '../../gateway/test/test-app.ts';
import { type Answers, answering, issuer, testDashboard } from '../test/test-dashboard.ts';

/**
 * The counter without a browser: who sees a form, what is sent with which key, and how each outcome
 * is shown.
 */
let made: Awaited<ReturnType<typeof testDashboard>>;
let answers: Answers;

const url = '/admin/ui/counter';
const teller = 'clients:read accounts:read transactions:read transactions:write transfers:write';
const masters: Record<string, object> = {
  [ids.account]: samples.master,
  [ids.other]: { ...samples.master, account_id: ids.other, account_number: 'LOA-2', account_type: 'Loan' },
};
const ledgers: Record<string, object> = {
  [ids.account]: { ...samples.ledger, status: 'Active', balance: '1000.00', available_balance: '900.50' },
  [ids.other]: {
    ...samples.ledger,
    account_id: ids.other,
    account_number: 'LOA-2',
    status: 'Active',
    balance: '300.00',
    available_balance: '300.00',
  },
};
const till = {
  till_id: `til_${'a'.repeat(32)}`,
  actor: `jwt:${issuer}|ada`,
  status: 'Open',
  opened_at: samples.client.created_at,
  opening: [{ currency: 'USD', amount: '5.00' }],
  closed_at: null,
  balances: [],
  reason: null,
  closed_by: null,
};
const frozen = { ...ledgers[ids.account], status: 'Frozen' };

beforeAll(async () => {
  made = await testDashboard(answering(() => answers));
});
beforeEach(() => {
  made.sent.length = 0;
  answers = {
    get_client: ok(samples.client),
    get_account: ({ account_id }) => ok(masters[String(account_id)]),
    get_ledger_accounts: ({ account_ids }) => ok((account_ids as string[]).map((id) => ledgers[id])),
    get_balance_by_number: refused('account_not_found'),
    list_accounts: ok({ items: Object.values(masters) }),
    search_records: ok([]),
    search_postings: ok([]),
    list_notes: ok({ items: [] }),
    list_tills: ok({ items: [till] }),
    create_transaction: ok({ ...samples.transaction, amount: '1500.50' }),
    get_transaction: ok({ ...samples.transaction, amount: '1500.50' }),
  };
});
afterAll(() => made.app.close());

const visibleText = (page: string) =>
  page
    .replaceAll('\u00a0', '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');
const hidden = (page: string, name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(page)?.[1] ?? '';
const commands = () =>
  made.sent.filter(({ headers }) => /command\.create_(transaction|transfer)\./.test(headers['ce_type'] ?? ''));

/** From the form to its summary. */
async function entered(kind: string, typed: Record<string, string>) {
  const person = made.signedIn(teller);
  const form = (await person.get(`${url}/${ids.account}/${kind}`)).body;
  const key = hidden(form, 'idempotency_key');
  const answer = await person.post(`${url}/${ids.account}/${kind}`, {
    csrf_token: person.session.csrf,
    idempotency_key: key,
    ...typed,
  });
  const of = new URL(answer.headers.location ?? '/', 'http://bank.example').searchParams.get('of') ?? '';
  const confirm = () => person.post(`${url}/summary`, { csrf_token: person.session.csrf, of });
  return { ...person, key, of, answer, confirm };
}

describe('the form', () => {
  it('shows name, status, and available balance first, and only what the person’s scopes allow', async () => {
    const { body } = await made.signedIn(teller).get(`${url}/${ids.account}/deposit`);
    expect(visibleText(body)).toContain('Customer x Account SAV-1 , Savings Status Active Available 900.50 USD');
    for (const kind of ['deposit', 'withdrawal', 'transfer', 'repayment'])
      expect(body).toContain(`href="${url}/${ids.account}/${kind}"`);
    const cash = (await made.signedIn('accounts:read transactions:write').get(`${url}/${ids.account}/deposit`)).body;
    expect([cash.includes('/withdrawal"'), cash.includes('/transfer"')]).toEqual([true, false]);
  });

  it('shows the notes on the customer and on the account to those who may read them', async () => {
    answers['list_notes'] = ({ client_id }) => {
      const note = { note: client_id === undefined ? 'Joint <account>' : 'Hard of hearing', actor: 'key:k' };
      const { created_at } = samples.client;
      return ok({ items: [{ note_id: 'nte_1', client_id: ids.client, account_id: null, ...note, created_at }] });
    };
    const form = async (scope: string) =>
      visibleText((await made.signedIn(scope).get(`${url}/${ids.account}/withdrawal`)).body);
    const both = await form(teller);
    expect(both).toContain('Notes on the customer Hard of hearing');
    expect(both).toContain('Notes on the account Joint &lt;account&gt;');
    expect(await form('accounts:read transactions:write')).not.toContain('Hard of hearing');
  });

  it('and its summary say if cash will be in no till', async () => {
    const says = 'Your till is closed: this cash will be in no till.';
    const shown = async () => {
      const { of, get } = await entered('withdrawal', { amount: '5' });
      const pages = await Promise.all([
        get(`${url}/${ids.account}/deposit`),
        get(`${url}/summary?of=${of}`),
        get(`${url}/${ids.account}/transfer`),
      ]);
      return pages.map(({ body }) => visibleText(body).includes(says));
    };
    expect(await shown()).toEqual([false, false, false]);
    answers['list_tills'] = ok({ items: [] });
    expect(await shown()).toEqual([true, true, false]);
    const asked = made.sent.filter(({ headers }) => headers['ce_type']?.includes('list_tills')).at(-1);
    expect(JSON.parse(String(asked?.value))).toMatchObject({ actor: till.actor, status: 'Open' });
  });

  it('is missing without the scope, and so is the link to it', async () => {
    const reader = made.signedIn('clients:read accounts:read transactions:read');
    for (const path of ['', `/${ids.account}/deposit`, `/${ids.account}/transfer`])
      expect((await reader.get(`${url}${path}`)).statusCode, path).toBe(403);
    answers['list_notes'] = answers['list_status_transitions'] = ok({ items: [] });
    answers['list_entries'] = answers['list_holds'] = ok({ items: [] });
    expect((await reader.get(`/admin/ui/accounts/${ids.account}`)).body).not.toContain(url);
    expect((await made.signedIn(teller).get(`/admin/ui/accounts/${ids.account}`)).body).toContain(
      `href="${url}/${ids.account}/deposit"`,
    );
    const posted = await made.signedIn('accounts:read transfers:write');
    expect((await posted.post(`${url}/${ids.account}/deposit`, { csrf_token: posted.session.csrf })).statusCode).toBe(
      403,
    );
  });

  it('is missing for an account that is not Active, and for cash on a loan', async () => {
    answers['get_ledger_accounts'] = ok([frozen]);
    const { body } = await made.signedIn(teller).get(`${url}/${ids.account}/deposit`);
    expect(body).toContain('Account SAV-1 is Frozen');
    expect(body).not.toContain('name="amount"');
    answers['get_ledger_accounts'] = ok([ledgers[ids.other]]);
    expect((await made.signedIn(teller).get(`${url}/${ids.other}/deposit`)).body).not.toContain('name="amount"');
  });

  it.each([
    ['deposit', { amount: '1.500' }, 'Is this 1500, or 1.50?'],
    ['transfer', { amount: '5', other_number: 'SAV-404' }, 'There is no account SAV-404'],
    ['transfer', { amount: '5', other_number: 'sav-1' }, 'Choose another account'],
  ])('%s explains what is wrong with %j, and keeps the input', async (kind, typed, words) => {
    const { answer } = await entered(kind, typed);
    expect(answer.statusCode).toBe(400);
    expect(visibleText(answer.body)).toContain(words);
    for (const value of Object.values(typed)) expect(answer.body).toContain(`value="${value}"`);
    expect(commands()).toEqual([]);
  });
});

describe('a deposit', () => {
  it('is shown first, then executed with the form’s key, and ends on a page that can be read again', async () => {
    const { key, of, get, confirm } = await entered('deposit', {
      amount: '1 500,50',
      reference: ' slip 7 ',
      description: '<b>',
    });
    const page = (await get(`${url}/summary?of=${of}`)).body;
    expect(visibleText(page)).toContain(
      'From Cash Amount 1500.50 USD To SAV-1 , Savings x Available now 900.50 USD Available after 2401.00 USD Reference slip 7 Description &lt;b&gt;',
    );
    expect(commands()).toEqual([]);
    const [first, second] = await Promise.all([confirm(), confirm()]);
    expect([first.statusCode, first.headers.location, second.headers.location]).toEqual([
      303,
      `${url}/receipts/${ids.transaction}`,
      `${url}/receipts/${ids.transaction}`,
    ]);
    const sent = commands();
    expect(sent).toHaveLength(2);
    // One id: the ledger does it once.
    expect(new Set(sent.map(({ headers }) => headers['ce_id'])).size).toBe(1);
    expect(sent[0]?.headers['idempotency-key']).toBe(key);
    expect(JSON.parse(String(sent[0]?.value))).toMatchObject({
      account_id: ids.account,
      transaction_type: 'Deposit',
      amount: '1500.5',
      currency: 'USD',
      reference: 'slip 7',
      description: '<b>',
    });
  });

  it('cannot be confirmed by a link or another person’s form', async () => {
    const { of, session, post } = await entered('deposit', { amount: '5' });
    expect((await post(`${url}/summary`, { of })).statusCode).toBe(403);
    expect((await post(`${url}/summary`, { csrf_token: session.csrf, of: `${of.slice(0, -4)}AAAA` })).statusCode).toBe(
      404,
    );
    expect((await made.signedIn(teller).get(`${url}/summary?of=made-up`)).statusCode).toBe(404);
    expect(commands()).toEqual([]);
  });
});

describe('an unknown outcome', () => {
  it.each([
    ['accepted, without a reply', 'no_reply'],
    ['perhaps never accepted', 'unacknowledged'],
    ['not sent, where an earlier click may have been', 'not_sent'],
    ['answered with what cannot be read', 'malformed'],
  ] as const)('%s: the page says so, and repeats with the same key', async (_case, answer) => {
    answers['create_transaction'] = answer;
    const { of, get, confirm } = await entered('deposit', { amount: '5' });
    const unknown = await confirm();
    expect(unknown.headers.location).toBe(`${url}/summary/outcome?of=${of}`);
    // It can be read while no service responds.
    answers['get_account'] = 'not_sent';
    const page = (await get(`${url}/summary/outcome?of=${of}`)).body;
    for (const text of ['Not known yet', 'Do not enter it again', '5.00 USD', 'SAV-1', 'Ask again'])
      expect(visibleText(page)).toContain(text);
    expect(hidden(page, 'of')).toBe(of);
    answers['create_transaction'] = ok(samples.transaction);
    expect((await confirm()).headers.location).toBe(`${url}/receipts/${ids.transaction}`);
    expect(new Set(commands().map(({ headers }) => headers['ce_id'])).size).toBe(1);
  });
});

describe('a refusal', () => {
  it.each([
    ['insufficient_funds', 'There is not enough money in account SAV-1: 900.50 USD can be taken from it.'],
    ['inactive_account', 'Account SAV-1 is Frozen: no money can be moved'],
    ['balance_limit_exceeded', 'would be larger than the bank allows'],
    ['deadline_exceeded', 'will not do it later. Enter it again.'],
    ['idempotency_key_reused', 'has already been used for something else'],
  ] as const)('%s is explained, on a form with a new key', async (code, words) => {
    answers['create_transaction'] = refused(code, 'words of the API');
    const { key, confirm } = await entered('withdrawal', { amount: '5', reference: 'slip 8' });
    if (code === 'inactive_account') answers['get_ledger_accounts'] = ok([frozen]);
    const { body, statusCode } = await confirm();
    expect(statusCode).toBeGreaterThanOrEqual(400);
    expect(visibleText(body)).toContain(words);
    expect(body).not.toContain('words of the API');
    expect(body).not.toContain(code);
    if (code === 'inactive_account') return;
    expect(body).toContain('value="slip 8"');
    expect(hidden(body, 'idempotency_key')).not.toBe(key);
  });
});

describe('a summary that the bank would refuse', () => {
  it.each([
    ['withdrawal', {}, 'There is not enough money in account SAV-1: 900.50 USD can be taken from it.'],
    ['repayment', { other_number: 'LOA-2' }, 'This is more than is still owed: 300.00 USD.'],
  ])('%s: to change it is the next step, and keeps what was entered', async (kind, more, why) => {
    const balance = { account_id: ids.other, account_number: 'LOA-2', balance: '1', currency: 'USD' };
    answers['get_balance_by_number'] = ok(balance);
    const amount = kind === 'withdrawal' ? '900.51' : '300.01';
    const { of, get } = await entered(kind, { amount, description: 'all <of> it', ...more });
    const { body } = await get(`${url}/summary?of=${of}`);
    expect(visibleText(body)).toContain(why);
    const [, change = ''] = /<a role="button" autofocus href="([^"]+)">Change</.exec(body) ?? [];
    expect(body).toMatch(/<button class="secondary">(Pay out|Repay)/);
    const form = (await get(change.replaceAll('&amp;', '&'))).body;
    for (const value of [amount, 'all &lt;of&gt; it', ...Object.values(more)])
      expect(form).toContain(`value="${value}"`);
  });
});

describe('a loan repayment', () => {
  it('goes from the customer’s account to the loan, also if the counter was opened with the loan', async () => {
    answers['get_balance_by_number'] = ({ account_number }) =>
      ok({
        account_id: account_number === 'LOA-2' ? ids.other : ids.account,
        account_number,
        balance: '1',
        currency: 'USD',
      });
    answers['create_transfer'] = ok(samples.transfer);
    const { get, of, confirm } = await entered('repayment', { amount: '100', other_number: 'loa-2' });
    expect(visibleText((await get(`${url}/summary?of=${of}`)).body)).toContain(
      'From SAV-1 , Savings x Available now 900.50 USD Available after 800.50 USD Amount 100.00 USD To LOA-2 , Loan x Still owed now 300.00 USD Still owed after 200.00 USD',
    );
    expect((await confirm()).headers.location).toBe(`${url}/receipts/${ids.transfer}`);
    const { session, post } = made.signedIn(teller);
    const answer = await post(`${url}/${ids.other}/repayment`, {
      csrf_token: session.csrf,
      idempotency_key: 'k',
      amount: '100',
      other_number: 'SAV-1',
    });
    await post(`${url}/summary`, {
      csrf_token: session.csrf,
      of: new URL(answer.headers.location ?? '', 'http://x').searchParams.get('of') ?? '',
    });
    for (const { value } of commands())
      expect(JSON.parse(String(value))).toMatchObject({
        from_account_id: ids.account,
        to_account_id: ids.other,
        amount: '100',
      });
    expect(commands()).toHaveLength(2);
  });
});

const hit = (kind: 'client' | 'account', id: string) => ({
  kind,
  id,
  title: 't',
  subtitle: 's',
  matched: 'name',
  created_at: samples.client.created_at,
});

describe('a receipt', () => {
  const statement = {
    account_id: ids.account,
    account_number: 'SAV-1',
    currency: 'USD',
    from: null,
    to: null,
    opening_balance: '0.00',
    closing_balance: '0.00',
    debit_total: '0.00',
    credit_total: '0.00',
    entry_count: 0,
  };

  it('has a short number, the amount in words, and the teller if this person asked for the posting', async () => {
    answers['get_statement'] = ok({ item: { ...statement, entries: [] } });
    answers['list_transactions'] = ok({ items: [{ ...samples.transaction, amount: '1500.50' }] });
    const { get, confirm } = await entered('deposit', { amount: '1500.50' });
    const address = String((await confirm()).headers.location);
    const shown = async () => visibleText((await get(address)).body);
    expect(await shown()).toContain('In words One thousand five hundred and 50/100 USD Customer x');
    expect(await shown()).toMatch(
      /Teller Ada Receipt number NANAN-ANANA Signature of the bank .*Signature of the customer/,
    );
    expect(
      made.sent.filter(({ headers }) => headers['ce_type']?.includes('list_transactions')).at(-1)?.value,
    ).toContain(`"actor":"jwt:${issuer}|ada"`);
    // Only the bank's copy says in which till the cash is.
    const till = { till_id: `til_${'a'.repeat(32)}`, actor: `jwt:${issuer}|ada`, status: 'Closed', opening: [] };
    const at = Date.parse(samples.transaction.created_at);
    const opened = (fromMs: number, toMs: number) => {
      const [opened_at, closed_at] = [fromMs, toMs].map((ms) => new Date(at + ms).toISOString());
      return ok({ items: [{ ...till, opened_at, closed_at, balances: [], reason: null, closed_by: null }] });
    };
    for (const [tills, says] of [
      [opened(-60_000, 60_000), /UTC Teller Ada .* Till opened 2026-01-02 03:03:05 Teller Ada/],
      [opened(-60_000, -1), /UTC Teller Ada .* Till none Teller Ada/],
    ] as const) {
      answers['list_tills'] = tills;
      expect(await shown()).toMatch(says);
    }
    // What was no cash over the counter is in none (contract: tills-3).
    const opening = { transaction_id: openingTransactionId(ids.account), description: 'Opening balance' };
    for (const posting of [
      { batch_id: `bat_${'a'.repeat(32)}` },
      { reverses_transaction_id: `txn_${'b'.repeat(32)}` },
      opening,
    ]) {
      const other = { ...samples.transaction, ...posting };
      answers['get_transaction'] = ok(other);
      answers['list_transactions'] = ok({ items: [other] });
      expect(await shown(), JSON.stringify(posting)).toMatch(/ Teller Ada /);
      expect(await shown(), JSON.stringify(posting)).not.toContain(' Till ');
    }
    answers['get_transaction'] = ok(samples.transaction);
    answers['list_transactions'] = ok({ items: [] });
    expect(await shown()).toContain('Printed by Ada Receipt number');
    const by = (name: string) => `jwt:${issuer}|${name}`;
    const record = {
      audit_id: `aud_${'1'.repeat(32)}`,
      created_at: samples.transaction.created_at,
      actor: by('olivia'),
      action: 'create_transaction',
      resource_id: ids.transaction,
      outcome: 'success',
      request_id: 'r',
      details: { approved_by: by('mary') },
      address: null,
    };
    answers['list_audit'] = ok({ items: [record] });
    const auditor = made.signedIn('audit:read transactions:read accounts:read clients:read');
    expect(visibleText((await auditor.get(address)).body)).toContain('Teller olivia Approved by mary Printed by Ada');
    // What a program has posted has no record: another one is not its making.
    answers['list_audit'] = ok({ items: [{ ...record, action: 'export' }] });
    expect(visibleText((await auditor.get(address)).body)).not.toMatch(/olivia|mary/);
  });

  it('says what is available now of the balance, on its day, as long as nothing was posted since', async () => {
    const { transaction_id, transaction_type, direction, amount, currency, created_at } = samples.transaction;
    const posted = { transaction_id, transaction_type, direction, amount, currency, created_at };
    const more = {
      entry_id: 'ent_1',
      operation_id: 'opr_1',
      side: 'CR',
      sequence: 1,
      description: null,
      reference: null,
    };
    const line = { ...posted, ...more, account_id: ids.account, balance_after: '1000.00' };
    answers['get_statement'] = ok({ item: { ...statement, entries: [line] } });
    answers['list_transactions'] = ok({ items: [] });
    const { get } = made.signedIn(teller);
    const shown = async () => visibleText((await get(`${url}/receipts/${ids.transaction}`)).body);
    const old = await shown();
    expect(old).toContain('Balance after 1000.00 USD');
    expect(old).not.toContain('Available');
    answers['get_transaction'] = ok({ ...samples.transaction, created_at: new Date().toISOString() });
    expect(await shown()).toContain('Balance after 1000.00 USD Available now 900.50 USD');
    answers['get_statement'] = ok({ item: { ...statement, entries: [{ ...line, balance_after: '7.00' }] } });
    const later = await shown();
    expect(later).toContain('Balance after 7.00 USD');
    expect(later).not.toContain('Available');
  });

  it('says that nothing was posted again, unless it is the second click of a double click', async () => {
    answers['get_statement'] = ok({ item: { ...statement, entries: [] } });
    answers['list_transactions'] = ok({ items: [] });
    const { get, confirm } = await entered('deposit', { amount: '1500.50' });
    const repeated = async (created_at: string) => {
      answers['create_transaction'] = { ...ok({ ...samples.transaction, created_at }), replayed: true };
      return String((await confirm()).headers.location);
    };
    const again = await repeated(samples.transaction.created_at);
    expect(visibleText((await get(again)).body)).toContain('Posted before; nothing was posted again.');
    const clicked = await repeated(new Date().toISOString());
    expect(visibleText((await get(clicked)).body)).not.toContain('Posted before');
  });
});

describe('a summary that was confirmed before', () => {
  it('says when it was posted, with its receipt and no button', async () => {
    const { of, get, confirm } = await entered('deposit', { amount: '1500.50' });
    const shown = async () => visibleText((await get(`${url}/summary?of=${of}`)).body);
    expect(await shown()).toContain('is this right?');
    await confirm();
    answers['search_postings'] = ok([
      { ...hit('account', ids.transaction), kind: 'transaction', matched: 'idempotency_key' },
    ]);
    await setTimeout(2_000);
    const again = await get(`${url}/summary?of=${of}`);
    expect(visibleText(again.body)).toContain('Already posted at 2026-01-02 03:04');
    expect(again.body).toContain(`href="${url}/receipts/${ids.transaction}"`);
    expect(again.body).not.toContain('name="of"');
    answers['get_transaction'] = ok({ ...samples.transaction, status: 'Failed', failure_code: 'insufficient_funds' });
    expect(await shown()).toContain('is this right?');
  });
});

describe('to change a summary', () => {
  const changing = async () => {
    const one = await entered('deposit', { amount: '1500.50', reference: 'slip 9' });
    const form = async (path = `${ids.account}/deposit`) => (await one.get(`${url}/${path}?of=${one.of}`)).body;
    return { ...one, form };
  };

  it('keeps its key, so that what may be posted already is posted once; only the same account and kind are filled in', async () => {
    const { key, form, post, session } = await changing();
    const { body, again } = { body: await form(), again: await form() };
    expect([hidden(body, 'idempotency_key'), hidden(again, 'idempotency_key')]).toEqual([key, key]);
    expect(body).toContain('value="slip 9"');
    const fields = { csrf_token: session.csrf, idempotency_key: key, amount: 'x' };
    const wrong = await post(`${url}/${ids.account}/deposit`, fields);
    expect([wrong.statusCode, hidden(wrong.body, 'idempotency_key')]).toEqual([400, key]);
    for (const path of [`${ids.account}/withdrawal`, `${ids.other}/repayment`]) {
      const other = await form(path);
      expect(hidden(other, 'idempotency_key'), path).not.toBe(key);
      expect(other, path).not.toContain('slip 9');
    }
  });

  it('shows what became of it, if it was confirmed; a refused one is entered under a new key', async () => {
    const { of, key, form, get } = await changing();
    answers['search_postings'] = ok([
      { ...hit('account', ids.transaction), kind: 'transaction', matched: 'idempotency_key' },
    ]);
    await setTimeout(2_000);
    const posted = await form();
    expect(visibleText(posted)).toContain('Already posted at 2026-01-02 03:04');
    expect(posted).not.toContain('name="amount"');
    answers['get_transaction'] = ok({ ...samples.transaction, status: 'Pending' });
    const { headers } = await get(`${url}/${ids.account}/deposit?of=${of}`);
    expect(headers.location).toBe(`${url}/summary/outcome?of=${of}`);
    answers['get_transaction'] = ok({ ...samples.transaction, status: 'Failed', failure_code: 'insufficient_funds' });
    const refusedOne = await form();
    expect(refusedOne).toContain('value="slip 9"');
    expect(hidden(refusedOne, 'idempotency_key')).not.toBe(key);
  });
});

describe('the other account', () => {
  const third = `acc_${'e'.repeat(32)}`;
  const accounts = () => {
    const items = [
      [ids.other, 'LOA-2', 'Loan'],
      [`acc_${'f'.repeat(32)}`, 'SAV-4', 'Savings'],
      [third, 'CHK-3', 'Checking'],
    ].map(([account_id, account_number, account_type]) => ({
      ...samples.master,
      account_id,
      account_number,
      account_type,
    }));
    answers['list_accounts'] = ok({ items });
    answers['list_clients'] = ok({ items: [samples.client] });
    answers['get_account'] = ({ account_id }) =>
      ok(items.find((one) => one.account_id === account_id) ?? samples.master);
    answers['get_ledger_accounts'] = ({ account_ids }) =>
      ok(
        (account_ids as string[]).map((id) => {
          const amount = id === third ? '1000.00' : '300.00';
          return { ...ledgers[ids.other], account_id: id, balance: amount, available_balance: amount };
        }),
      );
  };
  const radios = (body: string) =>
    [...body.matchAll(/type="radio" name="chosen" value="([^"]+)"( autofocus| checked)?>/g)].map((found) =>
      found.slice(1),
    );

  it('is found by name, and is the only possible one of that customer', async () => {
    accounts();
    answers['search_records'] = ok([hit('client', ids.client)]);
    const { answer, get } = await entered('repayment', { amount: '5', other_number: 'otieno' });
    expect(visibleText((await get(answer.headers.location ?? '')).body)).toContain('To LOA-2 , Loan x');
    answers['search_records'] = ok([]);
    const unknown = (await entered('transfer', { amount: '5', other_number: 'nobody' })).answer;
    expect([unknown.statusCode, unknown.body.includes('No account was found for “nobody”')]).toEqual([400, true]);
  });

  it('is no loan of those that match a transfer, and what is paid to one by its number is called a repayment', async () => {
    accounts();
    answers['search_records'] = ok([hit('account', ids.other)]);
    const { answer: named } = await entered('transfer', { amount: '5', other_number: 'otieno' });
    expect([named.statusCode, visibleText(named.body).includes('For a loan, use Loan repayment.')]).toEqual([
      400,
      true,
    ]);
    answers['get_balance_by_number'] = ({ account_number }) =>
      ok({ account_id: ids.other, account_number, balance: '1', currency: 'USD' });
    const { answer, get } = await entered('transfer', { amount: '5', other_number: 'LOA-2' });
    const summary = (await get(answer.headers.location ?? '')).body;
    expect(summary).toContain('Loan repayment: is this right?');
    expect(visibleText(summary)).toContain('Repay 5.00 USD');
    expect(summary).toContain(`${url}/${ids.account}/repayment?of=`);
  });

  it('that pays a loan is the one of the customer with most money, unless another is chosen', async () => {
    accounts();
    const { get, post, session } = made.signedIn(teller);
    const form = (await get(`${url}/${ids.other}/repayment`)).body;
    expect(radios(form)).toEqual([
      ['CHK-3', ' checked'],
      ['SAV-4', undefined],
    ]);
    expect(form).toMatch(/name="amount"[^>]* autofocus/);
    expect(form).not.toMatch(/name="other_number"[^>]* required/);
    const typed = { csrf_token: session.csrf, other_number: '', found_for: '', chosen: 'SAV-4' };
    const wrong = (await post(`${url}/${ids.other}/repayment`, { ...typed, amount: 'x' })).body;
    expect(radios(wrong)).toEqual([
      ['CHK-3', undefined],
      ['SAV-4', ' checked'],
    ]);
    answers['get_balance_by_number'] = ({ account_number }) =>
      ok({ account_id: `acc_${'f'.repeat(32)}`, account_number, balance: '1', currency: 'USD' });
    const { headers } = await post(`${url}/${ids.other}/repayment`, { ...typed, amount: '5' });
    expect(visibleText((await get(headers.location ?? '')).body)).toContain('From SAV-4 , Savings');
  });

  it('that pays a loan can be chosen after another was typed wrongly; the wrong field has the focus', async () => {
    accounts();
    const { get, post, session } = made.signedIn(teller);
    const send = (fields: Record<string, string>) =>
      post(`${url}/${ids.other}/repayment`, { csrf_token: session.csrf, amount: '5', ...fields });
    const { body } = await send({ other_number: 'SAV-99', found_for: '', chosen: 'CHK-3' });
    expect(visibleText(body)).toContain('There is no account SAV-99.');
    expect(radios(body)).toEqual([
      ['CHK-3', undefined],
      ['SAV-4', undefined],
    ]);
    expect(body).toMatch(/name="other_number" value="SAV-99"[^>]* autofocus/);
    answers['get_balance_by_number'] = ({ account_number }) =>
      account_number === 'SAV-99'
        ? refused('account_not_found')
        : ok({
            account_id: account_number === 'CHK-3' ? third : `acc_${'f'.repeat(32)}`,
            account_number,
            balance: '1',
            currency: 'USD',
          });
    const found_for = hidden(body, 'found_for');
    for (const [fields, from] of [
      [{ other_number: 'SAV-99', chosen: 'SAV-4' }, 'SAV-4'],
      [{ other_number: '', chosen: 'SAV-4' }, 'SAV-4'],
      // What is typed anew counts.
      [{ other_number: 'CHK-3', chosen: 'SAV-4' }, 'CHK-3'],
    ] as const) {
      const { headers } = await send({ found_for, ...fields });
      expect(visibleText((await get(headers.location ?? '')).body)).toContain(`From ${from} ,`);
    }
  });

  it('of a repayment is a loan, if the customer’s is none', async () => {
    accounts();
    answers['get_balance_by_number'] = ({ account_number }) =>
      ok({ account_id: third, account_number, balance: '1', currency: 'USD' });
    const { answer } = await entered('repayment', { amount: '5', other_number: 'chk-3' });
    expect(answer.statusCode).toBe(400);
    expect(visibleText(answer.body)).toContain('Account CHK-3 is not a loan: use a transfer.');
  });

  it('is chosen if several match, with the amount kept; the only loan of the customer is chosen already', async () => {
    accounts();
    answers['search_records'] = ok([hit('client', ids.client)]);
    const { answer } = await entered('transfer', { amount: '5', other_number: '700000001' });
    expect(answer.statusCode).toBe(400);
    expect(answer.body).toContain('name="amount" value="5"');
    expect(answer.body).toContain('name="other_number" value="700000001"');
    expect(visibleText(answer.body)).toMatch(/Several accounts match\. .* CHK-3 x \+254700000001 Checking/);
    expect(answer.body).not.toContain('aria-invalid');
    expect(radios(answer.body)).toEqual([
      ['CHK-3', ' autofocus'],
      ['SAV-4', undefined],
    ]);
    expect(visibleText(answer.body)).not.toContain('More customers match');
    const { body: twice } = (await entered('transfer', { amount: 'x', other_number: '700000001' })).answer;
    expect(radios(twice).map(([, focus]) => focus)).toEqual([undefined, undefined]);
    expect(twice).toMatch(/name="amount"[^>]* autofocus/);
    // What is typed instead counts, not what was chosen for another word.
    const found_for = '700000001';
    answers['get_balance_by_number'] = ({ account_number }) =>
      ok({ account_id: account_number === 'CHK-3' ? third : ids.other, account_number, balance: '1', currency: 'USD' });
    // A phone adds a blank after a suggestion.
    for (const [other_number, to, asked = found_for] of [
      [found_for, 'CHK-3'],
      ['LOA-2', 'LOA-2'],
      ['Kamau ', 'CHK-3', 'Kamau '],
    ] as const) {
      const { of, get } = await entered('transfer', { amount: '5', other_number, found_for: asked, chosen: 'CHK-3' });
      expect(visibleText((await get(`${url}/summary?of=${of}`)).body)).toContain(`To ${to} ,`);
    }
    const form = (await made.signedIn(teller).get(`${url}/${ids.account}/repayment`)).body;
    expect(form).toContain('name="other_number" value="LOA-2"');
  });
});

describe('the first page', () => {
  it('finds a customer by name, and redirects from an account number to its form', async () => {
    const { get } = made.signedIn(teller);
    answers['search_records'] = ok([hit('client', ids.client)]);
    const { body } = await get(`${url}?q=x`);
    expect(body).toContain(`href="${url}/${ids.account}/deposit"`);
    expect(body).toContain(`href="${url}/${ids.other}/repayment"`);
    answers['search_records'] = ({ q }) => ok(q === 'SAV-1' ? [hit('account', ids.account)] : []);
    expect((await get(`${url}?q=sav-1`)).headers.location).toBe(`${url}/${ids.account}/deposit`);
    expect((await get(`${url}?q=nobody`)).body).toContain('No customer or account was found');
    answers['search_postings'] = ok([{ ...hit('account', ids.transaction), kind: 'transaction' }]);
    expect((await get(`${url}?q=WNSN7-XP0N1`)).headers.location).toBe('/admin/ui/find?q=WNSN7-XP0N1');
  });

  it('leads a customer who has no account yet to the opening of one', async () => {
    answers['search_records'] = ok([hit('client', ids.client)]);
    answers['list_clients'] = ok({ items: [samples.client] });
    answers['list_accounts'] = ok({ items: [] });
    const shown = async (scope: string) => (await made.signedIn(scope).get(`${url}?q=x`)).body;
    const body = await shown(`${teller} accounts:write`);
    expect(visibleText(body)).toContain('This customer has no account yet. x , +254700000001 Open an account');
    expect(body).toContain(`autofocus href="/admin/ui/accounts/new?client_id=${ids.client}"`);
    expect(body).toContain(`href="/admin/ui/clients/${ids.client}"`);
    expect(await shown(teller)).not.toContain('/accounts/new');
  });

  it('has what customers ask for first, what is owed, and why an account is frozen', async () => {
    const cold = `acc_${'e'.repeat(32)}`;
    const items = [...Object.values(masters).toReversed(), { ...samples.master, account_id: cold, status: 'Frozen' }];
    answers['list_accounts'] = ok({ items });
    answers['get_ledger_accounts'] = ({ account_ids }) =>
      ok((account_ids as string[]).map((id) => ledgers[id] ?? { ...frozen, account_id: id, account_number: 'CUR-3' }));
    const change = { transition_id: 'str_1', account_id: cold, created_at: samples.client.created_at, actor: 'key:k' };
    const why = { reason: 'customer_request', note: 'lost <card>' };
    answers['list_status_transitions'] = ok({
      items: [{ ...change, from_status: 'Active', to_status: 'Frozen', ...why }],
    });
    answers['list_clients'] = ok({ items: [samples.client] });
    answers['search_records'] = ok([hit('client', ids.client)]);
    const { body } = await made.signedIn(teller).get(`${url}?q=x`);
    expect(visibleText(body)).toMatch(
      /SAV-1 x \S+ Savings Active 900\.50 USD available LOA-2 x \S+ Loan Active 300\.00 USD owed SAV-1 x \S+ Savings Frozen request of the customer: lost &lt;card&gt; 900\.50 USD available/,
    );
  });
});

describe('a value date', () => {
  it('is asked of people with the scope, sent as it was entered, and refused at its field', async () => {
    expect((await made.signedIn(teller).get(`${url}/${ids.account}/deposit`)).body).not.toContain('effective_date');
    const person = made.signedIn(`${teller} transactions:backdate`);
    const { body } = await person.get(`${url}/${ids.account}/deposit`);
    expect(body).toMatch(/type="date" name="effective_date"[^>]* max="\d{4}-\d\d-\d\d"/);
    const { answer, confirm, get } = await entered('deposit', { amount: '1500.5', effective_date: '2026-01-05' });
    const summary = visibleText((await get(answer.headers.location ?? '')).body);
    expect(summary).toContain('Value date 2026-01-05');
    answers['create_transaction'] = refused('day_closed');
    const { body: refusal, statusCode } = await confirm();
    expect(commands().map(({ value }) => JSON.parse(String(value)) as object)).toMatchObject([
      { amount: '1500.5', effective_date: '2026-01-05' },
    ]);
    expect(statusCode).toBe(400);
    expect(visibleText(refusal)).toContain('The books of this value date are closed.');
  });
});
