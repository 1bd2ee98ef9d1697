import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { approvalActions, type OwnRules } from '#libs/contracts/approvals.ts';
import { ids, ok, refused, samples } from '../../gateway/test/test-app.ts';
import { type Answers, answering, testDashboard } from '../test/test-dashboard.ts';
import { type Asked, whyApproval } from './needs-approval.ts';

/** What the pages say, before a request is sent, about the approval that it will need. */

const kes = { currency: 'KES', limit: '1000000', posted: '400000', left: '600000' };
const rules: OwnRules = { day: '2026-01-02', actions: [...approvalActions], limits: [kes] };
const deposit = (amount: string, currency = 'KES', effective_date?: string): Asked => ({
  action: 'post_above',
  amount,
  currency,
  ...(effective_date !== undefined && { effective_date }),
});

describe('a request', () => {
  it.each<[Asked, string | undefined]>([
    [deposit('600000.00'), undefined],
    [
      deposit('600000.01'),
      'one person alone posts at most 1000000.00 KES a day, and you have posted 400000.00 KES today',
    ],
    [
      deposit('1000000.00'),
      'one person alone posts at most 1000000.00 KES a day, and you have posted 400000.00 KES today',
    ],
    [deposit('1000000.01'), 'every posting above 1000000.00 KES'],
    [deposit('9999999999999999.00'), 'every posting above 1000000.00 KES'],
    [deposit('0.01', 'EUR'), 'every posting in EUR'],
    [deposit('1', 'KES', '2026-01-01'), 'every value date before today'],
    [deposit('1', 'KES', '2026-01-02'), undefined],
    [{ action: 'reverse' }, 'every reversal'],
    [{ action: 'raise_limit' }, 'every change of limits that allows more'],
  ])('%j needs an approval because of: %s', (asked, why) => {
    expect(whyApproval(rules, asked)?.replaceAll('\u00a0', '')).toBe(why);
    expect(whyApproval({ ...rules, actions: [] }, asked)).toBeUndefined();
  });
});

const everything =
  'clients:read clients:write accounts:read accounts:write accounts:status accounts:limits transactions:read transactions:write transactions:reverse transfers:write';
const asks = 'Needs approval: a second person decides.';
let made: Awaited<ReturnType<typeof testDashboard>>;
let answers: Answers;
let status = 'Active';

beforeAll(async () => {
  made = await testDashboard(
    answering(() => answers),
    {
      fourEyes: { actions: new Set(approvalActions), keys: false, limits: new Map([['USD', '1000']]), timeZone: 'UTC' },
    },
  );
});
beforeEach(() => {
  made.sent.length = 0;
  status = 'Active';
  const ledger = { ...samples.ledger, balance: '100.00', available_balance: '60.00' };
  answers = {
    get_client: ok(samples.client),
    get_account: ok(samples.master),
    get_ledger_accounts: ({ account_ids }) =>
      ok((account_ids as string[]).map((account_id) => ({ ...ledger, status, account_id }))),
    get_balance_by_number: refused('account_not_found'),
    get_account_limits: ok({ account_id: ids.account, currency: 'USD', per_day_out: '500.00' }),
    get_transaction: ok(samples.transaction),
    list_accounts: ok({ items: [samples.master] }),
    list_clients: ok({ items: [samples.client] }),
    list_status_transitions: ok({ items: [] }),
    list_notes: ok({ items: [] }),
    list_tills: ok({ items: [] }),
    list_posted: ok([{ currency: 'USD', day: new Date().toISOString().slice(0, 10), amount: '900.00' }]),
    search_records: ok([]),
    search_postings: ok([]),
    open_account: ok({ ...samples.master, balance: '1.00' }),
    set_account_limits: ok({ account_id: ids.account, currency: 'USD' }),
    update_client: ok(samples.client),
    request_approval: ok({}),
  };
});
afterAll(() => made.app.close());

const commands = () => made.sent.filter(({ headers }) => /command\./.test(headers['ce_type'] ?? ''));

/** Sends the form and, if it leads to a summary, returns that. */
async function send(url: string, fields: Record<string, string>) {
  const person = made.signedIn(everything);
  const answer = await person.post(url, { csrf_token: person.session.csrf, idempotency_key: 'k1', ...fields });
  const to = String(answer.headers.location ?? '');
  const isSummary = to.startsWith('/admin/ui/summary/') || to.includes('/counter/summary');
  return { to, summary: isSummary ? (await person.get(to)).body : undefined };
}

const contact = {
  email: 'a@b.cc',
  contact_number: '+254700000001',
  address: '',
  company_name: 'x',
  registration_number: 'y',
};
const was = Object.fromEntries(Object.entries(contact).map(([name, value]) => [`was_${name}`, value]));

describe('the summary', () => {
  const opening = { client_id: ids.client, account_type: 'Savings', currency: 'USD' };
  it.each<[name: string, url: string, fields: Record<string, string>, isAsked: boolean]>([
    ['a deposit within the day', `/admin/ui/counter/${ids.account}/deposit`, { amount: '100' }, false],
    ['a deposit above the day', `/admin/ui/counter/${ids.account}/deposit`, { amount: '100.01' }, true],
    ['a withdrawal', `/admin/ui/counter/${ids.account}/withdrawal`, { amount: '1000.01' }, true],
    ['a reversal', `/admin/ui/transactions/${ids.transaction}/reversal`, { reason: 'twice' }, true],
    ['an account with cash within the day', '/admin/ui/accounts/new', { ...opening, initial_deposit: '100' }, false],
    ['an account with cash above the day', '/admin/ui/accounts/new', { ...opening, initial_deposit: '100.01' }, true],
    [
      'higher limits',
      `/admin/ui/accounts/${ids.account}/limits`,
      { per_day_out: '600', shown_per_day_out: '500' },
      true,
    ],
    [
      'another phone',
      `/admin/ui/clients/${ids.client}/contact`,
      { ...was, ...contact, contact_number: '+254711222333' },
      true,
    ],
  ])('of %s says whether it needs an approval, before anything is sent', async (_name, url, fields, isAsked) => {
    const { summary = '' } = await send(url, fields);
    expect([summary.includes(asks), />Ask for approval</.test(summary)]).toEqual([isAsked, isAsked]);
    expect(commands()).toEqual([]);
  });

  it.each([
    ['an account without cash', '/admin/ui/accounts/new', { ...opening, initial_deposit: '' }],
    ['lower limits', `/admin/ui/accounts/${ids.account}/limits`, { per_day_out: '400', shown_per_day_out: '500' }],
    ['another address', `/admin/ui/clients/${ids.client}/contact`, { ...was, ...contact, address: 'Kijabe Street' }],
  ])('is left out for %s, which needs none', async (_name, url, fields) => {
    expect((await send(url, fields)).summary).toBeUndefined();
    expect(commands()).toHaveLength(1);
  });

  it('says so if the rules are not known now', async () => {
    answers['list_posted'] = 'no_reply';
    const { summary } = await send(`/admin/ui/counter/${ids.account}/deposit`, { amount: '1' });
    expect(summary).toContain('It is not known now whether this needs the approval of a second person.');
  });

  it('of limits, an account, and a contact is sent as it was entered', async () => {
    const cases = [
      [
        `/admin/ui/accounts/${ids.account}/limits`,
        { per_day_out: '600', shown_per_day_out: '500' },
        { per_day_out: '600' },
      ],
      ['/admin/ui/accounts/new', { ...opening, initial_deposit: '1,000.01' }, { initial_deposit: '1000.01' }],
      [
        `/admin/ui/clients/${ids.client}/contact`,
        { ...was, ...contact, email: 'c@d.ee' },
        { changes: { email: 'c@d.ee' } },
      ],
    ] as const;
    for (const [url, fields, sent] of cases) {
      const person = made.signedIn(everything);
      const { headers } = await person.post(url, { csrf_token: person.session.csrf, ...fields });
      const address = new URL(String(headers.location), 'http://bank.example');
      made.sent.length = 0;
      await person.post(address.pathname, {
        csrf_token: person.session.csrf,
        of: address.searchParams.get('of') ?? '',
      });
      expect(commands().map(({ value }) => JSON.parse(String(value)) as unknown)).toMatchObject([sent]);
      // The way back shows what was entered.
      const back = /href="([^"]*)">Change/.exec((await person.get(String(headers.location))).body)?.[1] ?? '';
      const form = (await person.get(back.replaceAll('&amp;', '&'))).body;
      for (const value of Object.values(fields)) expect(form).toContain(`value="${value}"`);
    }
  });
});

describe('a change of a contact that somebody else has changed meanwhile', () => {
  it('shows both versions before the summary, and after going back to the form', async () => {
    const url = `/admin/ui/clients/${ids.client}/contact`;
    const fields = { ...was, ...contact, was_email: 'old@b.cc', email: 'mine@b.cc', etag: '"of before"' };
    const person = made.signedIn(everything);
    const answer = await person.post(url, { csrf_token: person.session.csrf, ...fields });
    expect(answer.statusCode).toBe(412);
    expect(answer.body).toContain('Somebody else has changed this client since you opened the form.');
    expect(answer.body).toContain('name="email" value="mine@b.cc"');
  });
});

describe('an unknown outcome', () => {
  it('of limits says where a request that waits already is listed, because asking again may make another', async () => {
    const person = made.signedIn(everything);
    const send = (to: string, fields: Record<string, string>) =>
      person.post(to, { csrf_token: person.session.csrf, ...fields });
    const limits = { per_day_out: '600', shown_per_day_out: '500' };
    const { headers } = await send(`/admin/ui/accounts/${ids.account}/limits`, limits);
    const address = new URL(String(headers.location), 'http://bank.example');
    answers['request_approval'] = answers['set_account_limits'] = 'no_reply';
    const confirmed = await send(address.pathname, { of: address.searchParams.get('of') ?? '' });
    const { body } = await person.get(String(confirmed.headers.location));
    expect(body).toContain('Look at <a href="/admin/ui/approvals/mine">Asked by me</a> first');
    expect(body).not.toContain('at most once');
  });
});

describe('the form', () => {
  it('of unfreezing says that it needs an approval, and that of freezing does not', async () => {
    const { get } = made.signedIn(everything);
    status = 'Frozen';
    const unfreezing = (await get(`/admin/ui/accounts/${ids.account}/unfreezing`)).body;
    // Why it is safe now must be said; the reasons of a freezing are none.
    expect(unfreezing).toMatch(/Why it may be used again <textarea name="note"[^>]* required/);
    expect(unfreezing).not.toContain('name="reason"');
    const { session, post } = made.signedIn('accounts:read accounts:status');
    const fields = { csrf_token: session.csrf, idempotency_key: 'k', confirmed: 'yes', note: ' ' };
    const without = await post(`/admin/ui/accounts/${ids.account}/unfreezing`, fields);
    expect([without.statusCode, without.body.includes('id="note-reason">Say why.')]).toEqual([400, true]);
    expect([unfreezing.includes(asks), />Ask for approval</.test(unfreezing)]).toEqual([true, true]);
    status = 'Active';
    const freezing = (await get(`/admin/ui/accounts/${ids.account}/freezing`)).body;
    expect([freezing.includes(asks), />Freeze the account</.test(freezing)]).toEqual([false, true]);
  });

  it.each([
    ['/admin/ui/api-keys/new', asks],
    [`/admin/ui/api-keys/key_${'1'.repeat(32)}/rotation`, asks],
    ['/admin/ui/webhooks/new', asks],
    [`/admin/ui/webhooks/whk_${'1'.repeat(32)}/rotation`, asks],
    [`/admin/ui/webhooks/whk_${'1'.repeat(32)}/change`, 'only after a second person has approved them'],
  ])('%s says that a second person must approve it', async (url, says) => {
    answers['get_api_key'] = ok({ ...samples.key, key_id: `key_${'1'.repeat(32)}` });
    answers['get_webhook'] = ok({
      webhook_id: `whk_${'1'.repeat(32)}`,
      url: 'https://a.example/',
      event_types: ['*'],
      ordering: 'account',
      blocked_accounts: [],
      description: null,
      status: 'Active',
      client_id: null,
      created_by: 'x',
      created_at: samples.key.created_at,
      updated_at: samples.key.created_at,
      failing_since: null,
      previous_secret_ends_at: null,
    });
    expect((await made.signedIn('keys:manage webhooks:manage').get(url)).body).toContain(says);
  });
});
