import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { ids, ok, samples } from '../../gateway/test/test-app.ts';
import { type Answers, answering, testDashboard } from '../test/test-dashboard.ts';
import { actionText, changeGroups, readGroup, recordTitle } from './audit-words.ts';

/** Who and what an auditor asks for: by name, and in words. */
let made: Awaited<ReturnType<typeof testDashboard>>;
let more: Answers = {};
const people = ['officer', 'office', 'auditor'].map((name) => ({ actor: `jwt:https://id.example|${name}`, name }));
const key = { actor: `key:key_${'1'.repeat(32)}`, name: 'Payroll' };
const record = {
  audit_id: `aud_${'1'.repeat(32)}`,
  created_at: '2026-01-02T03:04:05.678Z',
  actor: key.actor,
  action: 'request_approval',
  resource_id: null,
  outcome: 'success',
  request_id: 'r-1',
  details: { expires_at: '2026-01-03T03:04:05.678Z' },
  address: null,
};

beforeAll(async () => {
  made = await testDashboard(
    answering(() => ({
      list_audit: ok({ items: [record] }),
      list_audit_actors: ({ q }) =>
        ok(
          [...people, key].filter(
            ({ actor, name }) => actor === q || name.toLowerCase().includes(String(q ?? '').toLowerCase()),
          ),
        ),
      list_staff_names: ok([{ actor: people[0]?.actor, name: 'Olivia Officer' }]),
      ...more,
    })),
  );
});
afterAll(() => made.app.close());

const open = (query: string) => made.signedIn('audit:read').get(`/admin/ui/audit${query}`);
const askedActor = () =>
  made.sent
    .filter(({ headers }) => headers['ce_type']?.includes('list_audit.'))
    .map(({ value }) => (JSON.parse(String(value)) as { actor?: string }).actor)
    .at(-1);

describe('who', () => {
  it.each([
    ['officer', people[0]?.actor],
    ['OFFICER', people[0]?.actor],
    ['audi', people[2]?.actor],
    ['pay', key.actor],
    ['me', undefined],
  ])('%s leads to the records of that person or key', async (typed, actor) => {
    const { headers } = await open(`?who=${typed}&reads=with`);
    const to = new URL(String(headers.location), 'http://bank.example');
    expect(to.searchParams.get('actor')).toBe(actor ?? made.signedIn('').session.actor);
    expect([to.searchParams.get('who'), to.searchParams.get('reads')]).toEqual([null, 'with']);
  });

  it('is chosen where several match, and nobody else’s records are shown until then', async () => {
    const { body } = await open('?who=offic');
    expect(body).toContain('Several match “offic”');
    for (const { name } of people.slice(0, 2))
      expect(body).toMatch(new RegExp(`audit\\?actor=[^"]*${name}"[^>]*>${name}</a>`));
    expect(askedActor()).toBe('to be chosen');
    expect((await open('?who=nobody')).body).toContain('Nobody in the audit has a name with “nobody”.');
  });

  it('is suggested by name, and keys have names for people who may not read keys', async () => {
    const { body } = await open('');
    for (const name of ['Me', 'officer', 'Payroll']) expect(body).toContain(`<option value="${name}"></option>`);
    expect(body).toContain('>key Payroll</a>');
    expect((await open(`?actor=${key.actor}`)).body).toContain('By key Payroll only.');
    expect((await open(`?actor=${people[0]?.actor}`)).body).toContain('By Olivia Officer only.');
  });
});

describe('about whom', () => {
  const found = (kind: string, id: string, title: string) => ({
    kind,
    id,
    title,
    subtitle: 'x',
    matched: 'name',
    created_at: record.created_at,
  });
  const [one, two] = [found('client', ids.client, 'Ada Lo'), found('account', ids.account, 'SAV-1')];
  const auditor = () => made.signedIn('audit:read clients:read accounts:read');
  const lastSubject = () =>
    made.sent
      .filter(({ headers }) => headers['ce_type']?.includes('list_audit.'))
      .map(({ value }) => (JSON.parse(String(value)) as { subject?: string }).subject)
      .at(-1);

  it('is entered by name or number, and leads to the records about that customer or account', async () => {
    more = { search_records: ok([one]), search_postings: ok([]) };
    const { headers } = await auditor().get('/admin/ui/audit?about=ada&reads=with');
    const to = new URL(String(headers.location), 'http://bank.example').searchParams;
    expect([to.get('subject'), to.get('about'), to.get('reads')]).toEqual([ids.client, null, 'with']);
    more = { search_records: ok([one, two]), search_postings: ok([]) };
    const { body } = await auditor().get('/admin/ui/audit?about=a');
    expect(body).toContain(`audit?subject=${ids.account}" title="x">SAV-1</a>`);
    expect(askedActor()).toBe('to be chosen');
    more = { search_records: ok([]), search_postings: ok([]) };
    expect((await auditor().get('/admin/ui/audit?about=a')).body).toContain('No customer or account was found');
  });

  it('is said by name, with what was done in words, and by whom it was approved', async () => {
    const deposit = {
      ...record,
      action: 'create_transaction',
      resource_id: ids.transaction,
      details: {
        account_id: ids.account,
        transaction_type: 'Deposit',
        amount: '15',
        currency: 'USD',
        approved_by: 'jwt:https://id.example|mary',
        counted: [{ currency: 'USD', amount: '7' }],
      },
    };
    more = {
      list_audit: ok({ items: [deposit] }),
      list_accounts: ok({ items: [samples.master] }),
      get_ledger_accounts: ok([samples.ledger]),
      list_clients: ok({ items: [samples.client] }),
    };
    const { body } = await auditor().get(`/admin/ui/audit?subject=${ids.client}`);
    expect(lastSubject()).toBe(ids.client);
    // What is missing is said before the records, with the way there.
    const [, missing = ''] = /(Postings by programs.*?)<table/s.exec(body) ?? [];
    expect(missing).toContain(`<a href="/admin/ui/clients/${ids.client}">`);
    const ofAccount = await made
      .signedIn('audit:read transactions:read')
      .get(`/admin/ui/audit?subject=${ids.account}&from_day=2026-01-02`);
    expect(ofAccount.body).toContain(`href="/admin/ui/accounts/${ids.account}/transactions?from_day=2026-01-02"`);
    expect((await auditor().get('/admin/ui/audit')).body).not.toContain('Postings by programs');
    const text = body
      .replace(/<[^>]*>/g, ' ')
      .replaceAll('\u00a0', ' ')
      .replaceAll('\u202f', '');
    expect(text).toMatch(/About\s+x\s+only/);
    expect(text).toMatch(/Deposit\s+15\.00 USD, counted 7\.00 USD\s+approved by mary/);
    expect(text).toMatch(/SAV-1\s*, Savings,\s+x/);
    expect(text).not.toContain('[object');
    const file = (await auditor().get(`/admin/ui/audit.csv?subject=${ids.client}`)).body
      .replaceAll('\u00a0', ' ')
      .replaceAll('\u202f', '');
    expect(file).toContain('"2026-01-02 03:04:05","Payroll"');
    for (const cell of ['"Deposit: 15.00 USD, counted 7.00 USD"', '"SAV-1"', '"x"']) expect(file).toContain(cell);
  });
});

describe('what', () => {
  beforeEach(() => {
    more = {};
  });

  it('has words, and a group for every action that changes something', () => {
    const groups = [...changeGroups, readGroup];
    const grouped = new Map(groups.flatMap(([title, actions]) => actions.map(([name]) => [name, title])));
    const changing = Object.entries(endpoints).flatMap(([name, { method }]) => (method === 'GET' ? [] : [name]));
    for (const name of [...changing, 'request_approval', 'expire_approval', 'unknown_route', 'verify_audit'])
      if (name !== 'record_activity') expect(grouped.has(name), name).toBe(true);
    for (const [name] of grouped) expect(actionText(name), name).toMatch(/^[A-Z][^_]*$/);
    expect(actionText('page:api-keys/new')).toBe('Open the page api-keys/new');
  });

  it('offers reads and sign-ins only among records of reads, and names no session', async () => {
    const signIn = { ...record, action: 'sign_in', resource_id: 'ses_abc', details: {} };
    more = { list_audit: ok({ items: [signIn] }) };
    const [changes, reads] = [(await open('')).body, (await open('?reads=with')).body];
    for (const choice of ['<option value="get_client">', '<option value="sign_in">'])
      expect([changes.includes(choice), reads.includes(choice)]).toEqual([false, true]);
    expect(reads).toContain('>Sign in</a>');
    expect(reads).not.toContain('ses_abc');
  });

  it('was asked for, approved, and done is shown each at its own time, with amount and account', async () => {
    const at = (time: string, changes: object) => ({ ...record, created_at: `2026-01-02T${time}.000Z`, ...changes });
    const approval_id = `apr_${'a'.repeat(32)}`;
    const summary = `Reverse transaction ${ids.transaction} of 15.00 USD on account ${ids.account}`;
    const asked = { action: 'reverse', summary, about: [ids.account] };
    const posted = { transaction_type: 'Deposit', amount: '15.00', currency: 'USD', account_ids: [ids.account] };
    more = {
      list_audit: ok({
        items: [
          at('09:28:12', {
            action: 'reverse_transaction',
            details: { ...posted, approval_id, approved_by: key.actor },
          }),
          at('09:28:11', { action: 'approve_request', request_id: 'r-2', resource_id: approval_id, details: asked }),
          at('09:22:52', { action: 'request_approval', resource_id: approval_id, details: asked }),
        ],
      }),
      list_accounts: ok({ items: [samples.master] }),
      get_ledger_accounts: ok([samples.ledger]),
    };
    const { get } = made.signedIn('audit:read accounts:read');
    const plain = (text: string) => text.replaceAll('\u00a0', ' ').replaceAll('\u202f', '');
    const rows = (await get('/admin/ui/audit')).body
      .split('<tr>')
      .slice(2)
      .map((row) => plain(row.replace(/<[^>]*>/g, ' ')));
    expect(rows).toEqual([
      expect.stringMatching(/09:28:12.*Reversal of the Deposit\s+15\.00 USD\s+approved by.*SAV-1/s),
      expect.stringMatching(
        /09:28:11.*Approve\s+Reverse transaction txn_\w{6}… of 15\.00 USD on account SAV-1.*SAV-1/s,
      ),
      expect.stringMatching(
        /09:22:52.*Ask for an approval\s+Reverse transaction txn_\w{6}… of 15\.00 USD on account SAV-1/s,
      ),
    ]);
    const file = plain((await get('/admin/ui/audit.csv')).body);
    for (const text of ['"Reversal of the Deposit: 15.00 USD"', '"Approve: Reverse transaction txn_'])
      expect(file).toContain(text);
  });

  it('on a loan is called a repayment, as in lists', () => {
    const loan = { transaction_type: 'Loan Payment' };
    expect(recordTitle('create_transaction', loan)).toBe('Loan repayment');
    expect(recordTitle('reverse_transaction', loan)).toBe('Reversal of the Loan repayment');
    for (const [from_status, to_status, title] of [
      ['Active', 'Frozen', 'Freeze'],
      ['Frozen', 'Active', 'Unfreeze'],
      ['Inactive', 'Active', 'Activate'],
      ['Active', 'Inactive', 'Deactivate'],
      [undefined, undefined, 'Freeze, activate, or deactivate'],
    ] as const)
      expect(recordTitle('change_account_status', { from_status, to_status })).toBe(title);
  });

  it('is shown in words, with times of the bank', async () => {
    const { body } = await open('');
    expect(body).toContain('<optgroup label="Money">');
    expect(body).toContain('>Ask for an approval</a>');
    expect(body).toContain('>2026-01-03 03:04:05 UTC</time>');
  });
});
