import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Answer, ids, ok, refused, samples } from '../../gateway/test/test-app.ts';
import { type Answers, answering, testDashboard } from '../test/test-dashboard.ts';

/**
 * Reversals, holds and erasures without a browser: what is shown before, what is sent under which
 * key, what is said of every outcome.
 */
let made: Awaited<ReturnType<typeof testDashboard>>;
let answers: Answers;

const time = '2026-01-02T03:04:05.678Z';
const everything =
  'clients:read accounts:read transactions:read transactions:write transactions:reverse transfers:write holds:write clients:erase';
const ledger = { ...samples.ledger, status: 'Active', balance: '100.00', available_balance: '60.00' };
const hold = {
  hold_id: ids.hold,
  account_id: ids.account,
  amount: '40.00',
  captured_amount: '10.00',
  currency: 'USD',
  status: 'Active',
  description: 'card',
  reference: 'slip 9',
  expires_at: '2999-01-01T00:00:00.000Z',
  created_at: time,
  updated_at: time,
};

beforeAll(async () => {
  made = await testDashboard(answering(() => answers));
});
beforeEach(() => {
  made.sent.length = 0;
  answers = {
    get_client: ok(samples.client),
    get_account: ({ account_id }) => ok({ ...samples.master, account_id }),
    get_ledger_accounts: ({ account_ids }) =>
      ok((account_ids as string[]).map((account_id) => ({ ...ledger, account_id }))),
    get_balance_by_number: refused('account_not_found'),
    list_accounts: ok({ items: [samples.master] }),
    get_transaction: ok(samples.transaction),
    get_hold: ok(hold),
    list_holds: ok({ items: [hold] }),
    list_entries: ok({ items: [] }),
    list_status_transitions: ok({ items: [] }),
    list_notes: ok({ items: [] }),
  };
});
afterAll(() => made.app.close());

const visibleText = (page: string) =>
  page
    .replaceAll('\u00a0', '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');
const hidden = (page: string, name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(page)?.[1] ?? '';
const commands = (name: string) => made.sent.filter(({ headers }) => headers['ce_type']?.includes(`command.${name}.`));
const parseBody = (command: { value: unknown } | undefined) =>
  JSON.parse(String(command?.value)) as Record<string, unknown>;

interface Case {
  task: string;
  form: string;
  fields: Record<string, string>;
  command: string;
  answer: Answer;
  /** On the summary. */
  says: string[];
  sent: Record<string, unknown>;
  done: string;
}
const cases: Case[] = [
  {
    task: 'reversal',
    form: `/admin/ui/transactions/${ids.transaction}/reversal`,
    fields: { reason: 'entered <twice>' },
    command: 'reverse_transaction',
    answer: ok({ ...samples.transaction, reverses_transaction_id: ids.transaction, direction: 'debit' }),
    says: [
      'Deposit of 25.00 USD',
      'SAV-1, x: available 60.00 USD 35.00 USD',
      'Cash of the bank – 25.00 USD less',
      'entered &lt;twice&gt;',
    ],
    sent: { reverses_transaction_id: ids.transaction, reason: 'entered <twice>' },
    done: `/admin/ui/transactions/${ids.transaction}?reversed`,
  },
  {
    task: 'erasure',
    form: `/admin/ui/clients/${ids.client}/erasure`,
    fields: { confirmed: 'yes' },
    command: 'erase_client',
    answer: ok({
      client_id: ids.client,
      erased_at: time,
      replaced: { kept_replies: 1, audit_records: 4, approvals: 0, status_notes: 2 },
      revoked_keys: 1,
      remaining: [{ place: 'topic transactions', holds: 'descriptions', gone_at: time }],
    }),
    says: ['Client x', 'Names, contacts, notes and stored replies kept erased', 'cannot be restored'],
    sent: { client_id: ids.client },
    done: '',
  },
];
/** From the form to its summary. */
async function entered({ form, fields }: Case) {
  const person = made.signedIn(everything);
  const drawn = (await person.get(form)).body;
  const key = hidden(drawn, 'idempotency_key');
  const answer = await person.post(form, { csrf_token: person.session.csrf, idempotency_key: key, ...fields });
  const address = answer.headers.location ?? '';
  const of = new URL(address || '/', 'http://bank.example').searchParams.get('of') ?? '';
  const confirm = () => person.post(address.split('?')[0] ?? '', { csrf_token: person.session.csrf, of });
  return { ...person, key, of, answer, address, confirm };
}

describe.each(cases)('$task', (one) => {
  it('is shown first, then executed once with the form’s key', async () => {
    const { key, address, get, confirm } = await entered(one);
    expect(address).toContain(`/admin/ui/summary/${one.task}?of=`);
    const page = visibleText((await get(address)).body);
    for (const text of one.says) expect(page).toContain(text);
    // A warning is no refusal, which screen readers say at once.
    expect((await get(address)).body).not.toContain('role="alert"');
    expect(commands(one.command)).toEqual([]);
    answers[one.command] = one.answer;
    const [first, second] = await Promise.all([confirm(), confirm()]);
    expect([first.headers.location ?? '', second.headers.location ?? '']).toEqual([one.done, one.done]);
    const sent = commands(one.command);
    // One id: it is done once.
    expect(new Set(sent.map(({ headers }) => headers['ce_id'])).size).toBe(1);
    expect(sent[0]?.headers['idempotency-key']).toBe(key);
    expect(parseBody(sent[0])).toMatchObject(one.sent);
  });

  it.each(['no_reply', 'not_sent', 'malformed'] as const)(
    'with an unknown outcome (%s) says so, and is repeated with the same key',
    async (answer) => {
      answers[one.command] = answer;
      const { address, get, confirm } = await entered(one);
      const unknown = (await confirm()).headers.location ?? '';
      expect(unknown).toBe(address.replace('?', '/outcome?'));
      // It can be read while no service responds.
      const before = answers;
      answers = {};
      const page = visibleText((await get(unknown)).body);
      for (const text of ['Not known yet', 'Do not enter it again', 'Ask again']) expect(page).toContain(text);
      answers = { ...before, [one.command]: one.answer };
      expect((await confirm()).headers.location ?? '').toBe(one.done);
      expect(new Set(commands(one.command).map(({ headers }) => headers['ce_id'])).size).toBe(1);
    },
  );

  it('that is refused explains the reason, and the form has the input and a new key', async () => {
    answers[one.command] = refused('deadline_exceeded', 'words of the API');
    const { key, confirm, get } = await entered(one);
    const { statusCode, body } = await confirm();
    expect(statusCode).toBe(409);
    expect(visibleText(body)).toContain('It was refused, and nothing was done. The bank could not do this in time');
    expect(body).not.toContain('words of the API');
    const again = /<a href="([^"]*)" role="button" autofocus>Go back/.exec(body)?.[1] ?? '';
    const form = (await get(again)).body;
    expect(hidden(form, 'idempotency_key')).not.toBe(key);
    if (one.fields['reference']) expect(form).toContain(`value="${one.fields['reference']}"`);
  });

  it('cannot be confirmed by another person’s link, or as another task', async () => {
    const { of, session, post, get } = await entered(one);
    const other = one.task === 'erasure' ? 'reversal' : 'erasure';
    const fields = { csrf_token: session.csrf, of };
    expect((await post(`/admin/ui/summary/${other}`, fields)).statusCode).toBe(404);
    expect((await post(`/admin/ui/summary/${one.task}`, { of })).statusCode).toBe(403);
    expect((await get(`/admin/ui/summary/${one.task}?of=made-up`)).statusCode).toBe(404);
    expect((await made.signedIn('accounts:read').get(one.form)).statusCode).toBe(403);
    expect(commands(one.command)).toEqual([]);
  });
});

describe('a reversal', () => {
  const url = `/admin/ui/transactions/${ids.transaction}`;
  const show = async () => (await made.signedIn(everything).get(`${url}/reversal`)).body;

  it.each([
    [{ status: 'Failed', failure_code: 'insufficient_funds' }, 'It was refused and moved no money'],
    [{ reverses_transaction_id: ids.transaction }, 'It is itself a reversal'],
    [{ reversed_by_transaction_id: ids.transaction }, 'It was already reversed'],
  ])('of one with %j is not offered, and its page explains why', async (changes, words) => {
    answers['get_transaction'] = ok({ ...samples.transaction, ...changes });
    expect((await made.signedIn(everything).get(url)).body).not.toContain(`${url}/reversal`);
    const body = await show();
    expect(visibleText(body)).toContain(words);
    expect(body).not.toContain('name="reason"');
  });

  it('is offered on the page of the transaction to people with the scope', async () => {
    expect((await made.signedIn(everything).get(url)).body).toContain(`href="${url}/reversal"`);
    expect((await made.signedIn('transactions:read').get(url)).body).not.toContain(`${url}/reversal`);
  });

  it('shows the changes on both accounts of a transfer, and the new outstanding amount of a loan', async () => {
    const leg = { transfer_id: ids.transfer, counterparty_account_id: ids.other, direction: 'debit' };
    answers['get_transaction'] = ok({ ...samples.transaction, ...leg, transaction_type: 'Transfer' });
    expect(visibleText(await show())).toMatch(/available 60.00 USD 85.00 USD .*available 60.00 USD 35.00 USD/);
    answers['get_account'] = ({ account_id }) =>
      ok({ ...samples.master, account_id, ...(account_id === ids.other && { account_type: 'Loan' }) });
    answers['get_transaction'] = ok({ ...samples.transaction, ...leg, transaction_type: 'Loan Payment' });
    const repayment = await show();
    expect(visibleText(repayment)).toMatch(/available 60.00 USD 85.00 USD .*still owed 100.00 USD 125.00 USD/);
    const { address, get } = await entered(cases[0] as Case);
    const summary = (await get(address)).body;
    for (const [page, says] of [
      [repayment, 'Reverse a Loan repayment'],
      [repayment, 'Loan repayment of'],
      [summary, 'Reverse this Loan repayment'],
    ] as const) {
      expect(page).toContain(says);
      expect(page).not.toContain('Loan Payment');
    }
  });

  it('that cannot succeed says so first: insufficient funds, a frozen account', async () => {
    answers['get_transaction'] = ok({ ...samples.transaction, amount: '60.01' });
    expect(visibleText(await show())).toContain('There is not enough money in account SAV-1');
    answers['get_ledger_accounts'] = ok([{ ...ledger, status: 'Frozen' }]);
    expect(visibleText(await show())).toContain('Account SAV-1 is Frozen');
  });

  it('requires a reason', async () => {
    const { session, post } = made.signedIn(everything);
    const answer = await post(`${url}/reversal`, { csrf_token: session.csrf, reason: ' ' });
    expect([answer.statusCode, answer.body.includes('Say why.')]).toEqual([400, true]);
  });

  it('of a transaction that was reversed meanwhile redirects to that reversal', async () => {
    const details = { reversal_transaction_id: ids.transaction };
    answers['reverse_transaction'] = refused('already_reversed', 'x', details);
    const { confirm } = await entered(cases[0] as Case);
    expect((await confirm()).body).toContain(`href="${url}"`);
  });
});

describe('holds', () => {
  it('are on the account’s page, with the held amount and a link to release them', async () => {
    const { body } = await made.signedIn(everything).get(`/admin/ui/accounts/${ids.account}`);
    expect(visibleText(body)).toContain('Held 40.00 USD');
    expect(body.match(/>Available</g)).toHaveLength(1);
    expect(body).toContain(`href="/admin/ui/holds/${ids.hold}"`);
    expect(visibleText(body)).toContain('the end of 2998-12-31');
    expect(body).toContain(`href="/admin/ui/holds/${ids.hold}/release"`);
    const reader = await made.signedIn('accounts:read transactions:read').get(`/admin/ui/accounts/${ids.account}`);
    expect(reader.body).not.toContain('/release');
  });

  it('are released after a summary, and not after they have ended', async () => {
    const { get, post, session } = made.signedIn(everything);
    const url = `/admin/ui/holds/${ids.hold}`;
    const address = (await get(`${url}/release`)).headers.location ?? '';
    expect(visibleText((await get(address)).body)).toContain('SAV-1: available 60.00 USD 90.00 USD');
    answers['release_hold'] = ok({ ...hold, status: 'Released' });
    const of = new URL(address, 'http://x').searchParams.get('of') ?? '';
    const done = await post('/admin/ui/summary/release', { csrf_token: session.csrf, of });
    expect(done.headers.location).toBe(`${url}?released`);
    answers['get_hold'] = ok({ ...hold, status: 'Released' });
    expect((await get(`${url}/release`)).headers.location).toBe(url);
    expect((await get(url)).body).not.toContain('/release');
  });
});

describe('an erasure', () => {
  const url = `/admin/ui/clients/${ids.client}`;

  it('is offered on the client’s page to people with the scope, and shows what prevents it', async () => {
    expect((await made.signedIn(everything).get(url)).body).toContain(`href="${url}/erasure"`);
    expect((await made.signedIn('clients:read').get(url)).body).not.toContain('/erasure');
    expect(visibleText((await made.signedIn(everything).get(`${url}/erasure`)).body)).toContain(
      'Active 100.00 USD pay the money out, deactivate it',
    );
  });

  it('that the bank refuses names each account and what to do', async () => {
    answers['erase_client'] = refused('erasure_refused', 'x', {
      accounts: [{ account_id: ids.account, reasons: ['has_money', 'within_retention'], kept_until: time }],
    });
    const { confirm } = await entered(cases[1] as Case);
    const { statusCode, body } = await confirm();
    expect(statusCode).toBe(400);
    expect(visibleText(body)).toMatch(/SAV-1 : pay the money out, .*keep its data for longer \(until 2026-01-02\)/);
  });

  it('shows what it has replaced, and what remains', async () => {
    answers['erase_client'] = (cases[1] as Case).answer;
    const { confirm } = await entered(cases[1] as Case);
    expect(visibleText((await confirm()).body)).toMatch(
      /Notes on accounts 2 .*Postings stay in the books.*are deleted by 2026-01-02.*topic transactions descriptions 2026-01-02/,
    );
    answers['get_client'] = ok({ ...samples.client, erased_at: time });
    expect(visibleText((await made.signedIn(everything).get(url)).body)).toContain('This client was erased');
  });

  it('is not sent without the check box', async () => {
    const { session, post } = made.signedIn(everything);
    expect((await post(`${url}/erasure`, { csrf_token: session.csrf })).statusCode).toBe(400);
  });
});
