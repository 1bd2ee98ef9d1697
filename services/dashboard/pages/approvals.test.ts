import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setBankFormats } from '#libs/service/formats.ts';
import { ids, ok, refused, samples } from '../../gateway/test/test-app.ts';
import { type Answers, answering, issuer, testDashboard } from '../test/test-dashboard.ts';

/** Approvals without a browser: what is shown to whom, and what a decision sends. The person is ada. */
let made: Awaited<ReturnType<typeof testDashboard>>;
let answers: Answers;

const approval_id = `apr_${'a'.repeat(32)}`;
const url = `/admin/ui/approvals/${approval_id}`;
const time = '2026-01-02T03:04:05.678Z';
const waiting = {
  approval_id,
  action: 'post_above',
  summary: 'Deposit of 1500.00 USD <b>',
  scopes: [],
  request: {
    operation: 'create_transaction',
    method: 'POST',
    path: '/transactions',
    body: {
      account_id: ids.account,
      transaction_type: 'Deposit',
      amount: '1500.00',
      currency: 'USD',
      description: '<i>',
    },
  },
  requested_by: `jwt:${issuer}|bob`,
  requested_at: time,
  expires_at: time,
  status: 'Waiting',
  decided_by: null,
  decided_at: null,
  reason: null,
};
const entered = {
  audit_id: `aud_${'1'.repeat(32)}`,
  created_at: time,
  actor: `jwt:${issuer}|bob`,
  action: 'create_transaction',
  resource_id: ids.transaction,
  outcome: 'success',
  request_id: 'r-1',
  details: {},
  address: null,
};
const shownAs = (changes: object, has_unread_key = false) =>
  ok({ approval: { ...waiting, ...changes }, has_unread_key });
const all = 'approvals:write accounts:read transactions:write';

beforeAll(async () => {
  made = await testDashboard(answering(() => answers));
});
beforeEach(() => {
  answers = {
    list_approvals: ok({ items: [waiting] }),
    get_approval: shownAs({}),
    list_accounts: ok({ items: [samples.master] }),
    get_account: ok(samples.master),
    get_client: ok(samples.client),
    list_notes: ok({ items: [] }),
    get_ledger_accounts: ok([{ ...samples.ledger, balance: '10.50' }]),
  };
});
afterAll(() => made.app.close());

const sent = (name: string) =>
  made.sent
    .filter(({ headers }) => headers['ce_type'] === `corebanking.command.${name}.v1`)
    .map(({ value }) => JSON.parse(String(value)) as Record<string, unknown>);
const lastList = () =>
  JSON.parse(
    String(made.sent.findLast(({ headers }) => headers['ce_type']?.includes('list_approvals'))?.value),
  ) as Record<string, unknown>;
const withoutBlanks = (text: string) => text.replaceAll('\u00a0', '');

describe('approvals', () => {
  it.each([
    ['', { status: 'Waiting', requested_by: 'others' }],
    ['/mine', { requested_by: 'me' }],
    ['/all', {}],
    ['/all?status=Rejected&action=erase', { status: 'Rejected', action: 'erase' }],
  ])('are listed under %s by %j', async (path, filters) => {
    const body = withoutBlanks((await made.signedIn(all).get(`/admin/ui/approvals${path}`)).body);
    const { status, requested_by, action, scopes } = lastList();
    expect({ status, requested_by, action }).toEqual({
      status: undefined,
      requested_by: undefined,
      action: undefined,
      ...filters,
    });
    expect(scopes).toContain('approvals:write');
    for (const text of [`href="${url}"`, 'Large posting', 'Deposit of 1500.00 USD &lt;b&gt;'])
      expect(body).toContain(text);
    const file = await made.signedIn(all).get(`/admin/ui/approvals${path.replace(/(?=\?)|$/, '.csv')}`);
    expect(withoutBlanks(file.body)).toContain('Deposit of 1500.00 USD <b>');
    expect(lastList()).toMatchObject(filters);
  });

  it('do not wait for people who cannot decide; the navigation counts those that wait for those who can', async () => {
    const asker = made.signedIn('transactions:write');
    expect((await asker.get('/admin/ui/approvals')).headers.location).toBe('/admin/ui/approvals/mine');
    expect((await asker.get('/admin/ui/approvals/mine')).body).not.toContain('Waiting for me');
    expect((await asker.get('/admin/ui/approvals/count')).body).not.toContain('class="count">1<');
    const { get } = made.signedIn(all);
    expect((await get('/admin/ui/approvals')).body).toContain('hx-get="/admin/ui/approvals/count"');
    expect((await get('/admin/ui/approvals/count')).body).toContain('<strong class="count">1</strong>');
    const asked = made.sent.filter(({ headers }) => headers['ce_type']?.includes('list_approvals')).slice(-2);
    expect(asked.map(({ value }) => JSON.parse(String(value)))).toContainEqual(
      expect.objectContaining({ status: 'Waiting', requested_by: 'others', limit: 20 }),
    );
    answers['list_approvals'] = refused('service_unavailable');
    expect((await get('/admin/ui/approvals/count')).statusCode).toBe(200);
  });

  it('that were decided are counted in the navigation until their person looks at them', async () => {
    const at = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
    const decided = (status: string, minutes: number) => ({
      ...waiting,
      status,
      ...(status === 'Expired' ? { expires_at: at(minutes) } : { decided_at: at(minutes) }),
    });
    const asked = [
      { ...waiting, expires_at: at(-60) },
      decided('Approved', 1),
      decided('Rejected', 30),
      decided('Expired', 60),
      decided('Approved', 25 * 60),
    ];
    answers['list_approvals'] = (data) => ok({ items: data['requested_by'] === 'me' ? asked : [] });
    const { get } = made.signedIn('transactions:write');
    const count = async (cookie?: string) => {
      const { body } = await get('/admin/ui/approvals/count', cookie === undefined ? {} : { cookie });
      return /<strong class="count info" title="([^"]*)"/.exec(body)?.[1];
    };
    expect(await count()).toBe('3 decided');
    const { headers } = await get('/admin/ui/approvals/mine');
    const mark = [headers['set-cookie']].flat().find((one) => one?.startsWith('bank_looked='));
    const [looked = ''] = mark?.split(';') ?? [];
    expect(mark).toContain('HttpOnly; SameSite=Lax; Max-Age=');
    const { cookie } = made.signedIn('transactions:write');
    expect(await count(`${cookie}; ${looked}`)).toBeUndefined();
    const earlier = looked.replace(/\.\d+$/, `.${Date.now() - 10 * 60_000}`);
    expect(await count(`${cookie}; ${earlier}`)).toBe('1 decided');
    const ofAnother = earlier.replace(/=.{16}/, `=${'0'.repeat(16)}`);
    expect(await count(`${cookie}; ${ofAnother}`)).toBe('3 decided');
  });

  it('show the state before and after, with the current and the future balance, and can be decided by somebody else', async () => {
    const body = withoutBlanks((await made.signedIn(all).get(url)).body);
    for (const text of [
      '10.50 USD',
      '1510.50 USD',
      '&lt;i&gt;',
      'Nothing has been done yet',
      'value="approval"',
      'value="rejection"',
    ])
      expect(body).toContain(text);
    const blind = withoutBlanks((await made.signedIn('approvals:write').get(url)).body);
    expect([blind.includes('10.50'), blind.includes('+1500.00')]).toEqual([false, true]);
  });

  it.each([
    [
      'a withdrawal',
      'Withdrawal',
      '1500.00',
      {},
      'There is not enough money in account SAV-1: 10.50 USD can be taken from it.',
    ],
    // What is held cannot be taken, although the balance would suffice.
    ['more than is free of holds', 'Withdrawal', '10.00', { available_balance: '9.99' }, 'There is not enough money'],
    ['a deposit on a frozen account', 'Deposit', '10.00', { status: 'Frozen' }, 'Account SAV-1 is Frozen'],
    ['what can be paid', 'Withdrawal', '10.00', {}, undefined],
  ])(
    '%s: say before the decision what the bank would refuse',
    async (_, transaction_type, amount, changes, refusal) => {
      answers['get_ledger_accounts'] = ok([{ ...samples.ledger, status: 'Active', balance: '10.50', ...changes }]);
      const body = { ...waiting.request.body, transaction_type, amount };
      answers['get_approval'] = shownAs({ request: { ...waiting.request, body } });
      const page = withoutBlanks((await made.signedIn(all).get(url)).body);
      expect(page.includes('The bank would refuse this now.')).toBe(refusal !== undefined);
      expect(page).toContain(refusal ?? '0.50 USD');
      expect(page).toMatch(
        refusal === undefined ? /formnovalidate>Approve/ : /formnovalidate class="secondary">Approve/,
      );
      if ('available_balance' in changes)
        expect(page.replace(/<[^>]*>/g, ' ')).toMatch(/: available\s+9\.99 USD\s+−0\.01 USD/);
    },
  );

  it('that were approved and then refused are not shown as done, on the page, in the list, and in its file', async () => {
    const message = `account ${ids.account}: balance too low`;
    const outcome = { status: 'error', code: 'insufficient_funds', message };
    const late = { status: 'Approved', decided_by: `jwt:${issuer}|ada`, decided_at: time, outcome };
    answers['get_approval'] = shownAs(late);
    answers['list_approvals'] = ok({
      items: [
        { ...waiting, ...late },
        { ...waiting, ...late, outcome: { status: 'success', data: {} } },
      ],
    });
    const { get } = made.signedIn(all);
    for (const page of [url, '/admin/ui/approvals/all']) {
      const { body } = await get(page);
      expect(body).toContain('Approved, refused when carried out');
      expect(body.match(/pill good/g)?.length ?? 0).toBe(page === url ? 0 : 1);
    }
    const { body } = await get(url);
    expect(body).toContain('refused when it was carried out: account SAV-1: balance too low');
    // What was decided and what became of it are one message.
    expect(body.match(/class="notice /g)).toHaveLength(1);
    const file = (await get('/admin/ui/approvals/all.csv')).body;
    for (const cell of ['"Approved","Refused: account SAV-1: balance too low"', '"Approved","Done"'])
      expect(file).toContain(cell);
  });

  it('of API keys are told apart in the list: by name, and by what the key may do', async () => {
    const body = { name: 'Reader', scopes: ['accounts:read', 'transfers:write', 'transactions:write', 'keys:manage'] };
    const request = { operation: 'create_api_key', method: 'POST', path: '/admin/api-keys', body };
    answers['list_approvals'] = ok({
      items: [{ ...waiting, action: 'create_key', request, expires_at: '2999-01-01T00:00:00.000Z' }],
    });
    const list = (await made.signedIn(all).get('/admin/ui/approvals')).body;
    expect(list.match(/class="pill wait">.*?<\/span>/gs)?.map((pill) => pill.replace(/<[^>]*>/g, ''))).toEqual([
      expect.stringContaining('Moves money'),
      expect.stringContaining('Risk'),
    ]);
  });

  it('are listed with amount, customer, asker, and age, the oldest first, and conspicuous before they expire', async () => {
    answers['list_clients'] = ok({ items: [samples.client] });
    const at = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();
    const dated = (expires: number) => ({ ...waiting, requested_at: at(-95), expires_at: at(expires) });
    answers['list_approvals'] = ok({ items: [dated(125), dated(21 * 60 + 5)] });
    const { get } = made.signedIn(`${all} clients:read`);
    const list = withoutBlanks((await get('/admin/ui/approvals')).body);
    for (const text of ['<strong>1500.00 USD</strong>', '<span class="long">x</span>', '>bob</span>', '>1 h</time>'])
      expect(list).toContain(text);
    expect(list).toMatch(/class="pill wait">.*?In 2 h/s);
    expect(list).toMatch(/<div>in 21 h<\/div>/);
    expect(lastList()).toMatchObject({ order: 'asc' });
    await get('/admin/ui/approvals?order=desc');
    expect(lastList()).toMatchObject({ order: 'desc' });
    await get('/admin/ui/approvals/mine');
    expect(lastList()).toMatchObject({ order: 'desc' });
    const file = (await get('/admin/ui/approvals/all.csv')).body;
    expect(file).toContain('"amount","currency","requested_by"');
    expect(file).toContain('"Large posting"');
    expect(file).toContain('"1500.00","USD","bob"');
  });

  it('lead to the next one once they are decided, and to what was made, as people know it', async () => {
    const decided = { status: 'Approved', decided_by: `jwt:${issuer}|ada`, decided_at: time };
    answers['get_approval'] = shownAs({ ...decided, outcome: { status: 'success', data: samples.transaction } });
    const other = `apr_${'b'.repeat(32)}`;
    answers['list_approvals'] = ok({ items: [{ ...waiting, approval_id: other }, waiting] });
    const body = (await made.signedIn(all).get(url)).body;
    expect(body).toContain(`<a role="button" data-next href="/admin/ui/approvals/${other}">Next request (2 wait)</a>`);
    expect(lastList()).toMatchObject({ status: 'Waiting', requested_by: 'others', order: 'asc' });
    expect(body).toContain(`href="/admin/ui/counter/receipts/${ids.transaction}">Receipt</a>`);
    // A receipt shows the account.
    expect((await made.signedIn('approvals:write transactions:write').get(url)).body).not.toContain(
      '/counter/receipts/',
    );
    answers['list_approvals'] = ok({ items: [] });
    expect((await made.signedIn(all).get('/admin/ui/approvals')).body).toContain('Nothing waits for you.');
    expect((await made.signedIn(all).get(url)).body).toContain('<a href="/admin/ui/approvals" data-next>');
    answers['list_accounts'] = ok({ items: [samples.master] });
    answers['get_approval'] = shownAs({
      ...decided,
      action: 'unfreeze',
      request: { ...waiting.request, operation: 'change_account_status', path: `/accounts/${ids.account}/x`, body: {} },
      outcome: { status: 'success', data: { account_id: ids.account } },
    });
    expect((await made.signedIn(all).get(url)).body).toMatch(/It has been done\.<\/strong> <a href="[^"]*">SAV-1<\/a>/);
  });

  it('are all shown to an auditor, who does not decide', async () => {
    // contract: four-eyes-18
    const { get } = made.signedIn('audit:read clients:read');
    expect((await get('/admin/ui')).body).toContain('href="/admin/ui/approvals"');
    expect((await get('/admin/ui/approvals')).headers.location).toBe('/admin/ui/approvals/all');
    expect((await get('/admin/ui/approvals/all')).body).toContain('Large posting');
    expect((await get(url)).body).not.toContain('value="approval"');
    expect((await made.signedIn('audit:read').get('/admin/ui/approvals/all')).headers.location).toBe(
      '/admin/ui/approvals/mine',
    );
  });

  it('of a reversal show whose money it is, how much, and the notes on customer and account', async () => {
    const request = {
      operation: 'reverse_transaction',
      method: 'POST',
      path: `/transactions/${ids.transaction}/reversal`,
    };
    const reversal = { action: 'reverse', summary: `Reverse transaction ${ids.transaction}` };
    answers['list_clients'] = ok({ items: [samples.client] });
    answers['get_transaction'] = ok(samples.transaction);
    answers['list_notes'] = ok({
      items: [
        {
          note_id: `nte_${'a'.repeat(32)}`,
          client_id: ids.client,
          account_id: null,
          note: 'passport <seen>',
          actor: 'key:k',
          created_at: time,
        },
      ],
    });
    const asked = { ...reversal, request: { ...request, body: { reason: 'typed twice' } } };
    answers['list_approvals'] = ok({ items: [{ ...waiting, ...asked }] });
    answers['get_approval'] = shownAs(asked);
    answers['list_audit'] = ok({ items: [{ ...entered, actor: `jwt:${issuer}|carol` }] });
    const { get } = made.signedIn(`${all} clients:read transactions:read transactions:reverse audit:read`);
    const list = (await get('/admin/ui/approvals')).body;
    for (const text of ['<strong>25.00 USD</strong>', '<span class="long">x</span>']) expect(list).toContain(text);
    const page = (await get(url)).body;
    for (const text of ['25.00 USD', '<h2>Notes: x</h2>', '<h2>Notes: SAV-1</h2>', 'passport &lt;seen&gt;'])
      expect(page).toContain(text);
    // What the person who asked has seen: what it was, and what it leaves.
    const seen = withoutBlanks(page.replace(/<[^>]*>/g, ' '));
    expect(seen).toMatch(/Reversed operation\s+Deposit of 25\.00 USD\s+Posted/);
    expect(seen).toMatch(/SAV-1, x: available\s+10\.50 USD\s+−14\.50 USD/);
    expect(seen).toContain('Entered by');
    expect(seen).toContain('carol');
    expect(list).toContain('Reversal of the Deposit of 25.00');
    // The one who asks is not the one who entered it.
    expect(list + page).not.toMatch(/Own posting|and asks to reverse it/);
    answers['list_audit'] = ok({ items: [entered] });
    // Who decides need not read the audit: the list of postings says it.
    answers['list_transactions'] = ({ actor }) =>
      ok({ items: actor === waiting.requested_by ? [samples.transaction] : [] });
    const approver = made.signedIn(`${all} clients:read transactions:read transactions:reverse`);
    expect((await approver.get('/admin/ui/approvals')).body).toContain('Own posting');
    expect((await approver.get(url)).body).toContain('bob entered this posting, and asks to reverse it.');
    // An item of a file may be on a later page of those of the same time.
    answers['list_transactions'] = ({ after }) =>
      ok(
        after === undefined ? { items: [], next: { at: time, id: ids.transaction } } : { items: [samples.transaction] },
      );
    expect((await approver.get(url)).body).toContain('bob entered this posting, and asks to reverse it.');
    // What was decided still says whose money it was, and who had entered it.
    answers['get_approval'] = shownAs({
      ...asked,
      status: 'Rejected',
      decided_by: `jwt:${issuer}|ada`,
      decided_at: time,
    });
    const decided = withoutBlanks((await get(url)).body.replace(/<[^>]*>/g, ' '));
    expect(decided).toMatch(/Account\s+SAV-1\s*, Savings,\s+x\s/);
    expect(decided).toMatch(/Reversed operation\s+Deposit of 25\.00 USD\s+Posted.*Entered by\s+bob/s);
  });

  it('of an unfreezing show why the account is frozen, who froze it, and why it should be unfrozen', async () => {
    answers['get_approval'] = shownAs({
      action: 'unfreeze',
      summary: `Unfreeze account ${ids.account}`,
      request: {
        operation: 'change_account_status',
        method: 'POST',
        path: `/accounts/${ids.account}/status-transitions`,
        body: { status: 'Active', reason: 'legal', note: 'order lifted' },
      },
    });
    answers['list_status_transitions'] = ok({
      items: [
        {
          transition_id: `sts_${'a'.repeat(32)}`,
          account_id: ids.account,
          from_status: 'Active',
          to_status: 'Frozen',
          reason: 'legal',
          note: 'Court order 12/2026',
          actor: `jwt:${issuer}|carol`,
          created_at: time,
        },
      ],
    });
    const text = (await made.signedIn(`${all} accounts:status`).get(url)).body.replace(/<[^>]*>/g, ' ');
    expect(text).toMatch(/Reason\s+legal: Court order 12\/2026\s+carol\s+2026-01-02 03:04\s+legal: order lifted/);
  });

  it('of an unfreezing still show why the account was frozen when it was decided', async () => {
    const change = (to_status: string, note: string, created_at: string) => ({
      transition_id: `sts_${'a'.repeat(32)}`,
      account_id: ids.account,
      from_status: 'Active',
      to_status,
      reason: 'legal',
      note,
      actor: `jwt:${issuer}|carol`,
      created_at,
    });
    answers['list_status_transitions'] = ok({
      items: [
        change('Frozen', 'again', '2026-03-01T00:00:00.000Z'),
        change('Active', 'lifted', '2026-02-01T00:00:00.000Z'),
        change('Frozen', 'Court order', '2026-01-01T00:00:00.000Z'),
      ],
    });
    answers['get_approval'] = shownAs({
      action: 'unfreeze',
      request: {
        operation: 'change_account_status',
        method: 'POST',
        path: `/accounts/${ids.account}/status-transitions`,
        body: { status: 'Active', reason: 'legal', note: 'order lifted' },
      },
      status: 'Approved',
      decided_by: `jwt:${issuer}|ada`,
      decided_at: '2026-02-01T00:00:00.000Z',
      outcome: { status: 'success', data: samples.master },
    });
    const text = (await made.signedIn(`${all} accounts:status`).get(url)).body.replace(/<[^>]*>/g, ' ');
    expect(text).toMatch(
      /What it changed.*Reason\s+legal: Court order\s+carol\s+2026-01-01 00:00\s+legal: order lifted/s,
    );
  });

  it('of the closing of a day show what it means, the books of the day, and requests that it makes impossible', async () => {
    const request = {
      operation: 'close_day',
      method: 'POST',
      path: '/admin/day-closings',
      body: { date: '2026-01-31' },
    };
    const closing = { action: 'close_day', summary: 'Close the day 2026-01-31', request };
    const dated = (effective_date: string) => ({
      ...waiting,
      request: { ...waiting.request, body: { ...waiting.request.body, effective_date } },
    });
    answers['list_approvals'] = ok({ items: [dated('2026-01-30'), dated('2026-02-01'), waiting] });
    answers['get_approval'] = shownAs(closing);
    answers['list_day_closings'] = ok({ items: [] });
    answers['get_day_closing'] = refused('day_not_found', 'no', { closed_up_to: null });
    const { get } = made.signedIn('approvals:write books:read books:close');
    const { body } = await get(url);
    expect(body).toContain('nothing is posted with the value date 2026-01-31 or an earlier one');
    expect(body).toContain('<strong>1</strong> request with a value date');
    expect(body).toContain('This is the first closing: it closes every day before 2026-01-31 too.');
    expect(body).toContain('hx-get="/admin/ui/books/days/2026-01-31/preview"');
    expect((await made.signedIn('approvals:write').get(url)).body).not.toContain('/preview');
    answers['get_approval'] = shownAs({ ...closing, status: 'Approved', outcome: { status: 'success', data: {} } });
    expect((await get(url)).body).toContain('<a href="/admin/ui/books/days/2026-01-31">2026-01-31</a>');
  });

  it('of higher limits show those of now and those asked for', async () => {
    answers['get_account_limits'] = ok({ account_id: ids.account, currency: 'USD', per_day_out: '50.00' });
    answers['get_approval'] = shownAs({
      action: 'raise_limit',
      request: {
        operation: 'set_account_limits',
        method: 'PUT',
        path: `/accounts/${ids.account}/limits`,
        body: { per_transaction: '75.5' },
      },
    });
    const text = withoutBlanks((await made.signedIn(`${all} accounts:limits`).get(url)).body).replace(/<[^>]*>/g, ' ');
    expect(text).toMatch(/At most per posting\s+no limit\s+75\.50 USD/);
    expect(text).toMatch(/At most out per day\s+50\.00 USD\s+no limit/);
    expect(text).not.toMatch(/Per transaction\s+75\.5/);
  });

  it('of limits that were decided show all that was asked for, and what it replaced by the audit', async () => {
    const request = {
      operation: 'set_account_limits',
      method: 'PUT',
      path: `/accounts/${ids.account}/limits`,
      body: { per_transaction: '75.5', per_day_out: '50' },
    };
    const decided = { status: 'Approved', decided_by: `jwt:${issuer}|ada`, decided_at: time };
    answers['get_approval'] = shownAs({
      action: 'raise_limit',
      request,
      ...decided,
      outcome: { status: 'success', data: {} },
    });
    const before = { per_transaction: '75.50', per_day_out: '50.00', minimum_balance: '500.00' };
    const other = { ...entered, details: { approval_id: `apr_${'b'.repeat(32)}`, before: {} } };
    answers['list_audit'] = ok({ items: [other, { ...entered, details: { approval_id, before } }] });
    const read = async (scopes: string) =>
      withoutBlanks((await made.signedIn(`${all} ${scopes}`).get(url)).body).replace(/<[^>]*>/g, ' ');
    const text = await read('audit:read');
    expect(text).toMatch(/Must stay available\s+500\.00 USD\s+no limit/);
    expect(text).not.toMatch(/At most per posting|At most out per day/);
    const unknown = await read('accounts:limits');
    expect(unknown).toMatch(/At most per posting\s+not known\s+75\.50 USD/);
    expect(unknown).toMatch(/Must stay available\s+not known\s+no limit/);
  });

  it('show amounts in the bank’s format, except in texts that people have written', async () => {
    setBankFormats({ timeZone: 'UTC', locale: 'de-DE' });
    const { get } = made.signedIn('approvals:write');
    for (const text of ['Deposit of 1.500,00 USD', '<strong class="balance">1.500,00 USD</strong>'])
      expect((await get(url)).body).toContain(text);
    answers['get_approval'] = shownAs({ action: 'create_key', summary: 'Fee of 1500 USD' });
    expect((await get(url)).body).toContain('Fee of 1500 USD');
    setBankFormats({ timeZone: 'UTC', locale: undefined });
  });

  it.each([
    [
      'client_contact',
      {
        operation: 'update_client',
        method: 'PATCH',
        path: `/clients/${ids.client}`,
        body: { email: 'new@example.com' },
      },
      'clients:read',
      ['Contact of a client', 'Email', samples.client.email, 'new@example.com'],
    ],
    [
      'client_contact',
      {
        operation: 'update_client',
        method: 'PATCH',
        path: `/clients/${ids.client}`,
        body: { email: 'new@example.com' },
      },
      '',
      ['Email', 'not known', 'new@example.com'],
    ],
    [
      'webhook',
      {
        operation: 'update_webhook',
        method: 'PATCH',
        path: `/webhooks/whk_${'b'.repeat(32)}`,
        body: { url: 'https://evil.example/', event_types: ['*'] },
      },
      'webhooks:manage ops:manage',
      [
        'Webhook',
        'Url',
        'https://old.example/',
        'https://evil.example/',
        'Event types',
        'account.*',
        '<strong>*</strong>',
      ],
    ],
    [
      'create_key',
      {
        operation: 'create_api_key',
        method: 'POST',
        path: '/admin/api-keys',
        body: { name: 'Payroll', scopes: ['accounts:read'], environment: 'live', expires_at: null },
      },
      'keys:manage',
      ['Payroll', 'as late as the bank allows: the key’s page will say when'],
    ],
    [
      'webhook',
      {
        operation: 'create_webhook',
        method: 'POST',
        path: '/webhooks',
        body: { url: 'https://evil.example/', event_types: ['*'], description: null },
      },
      'webhooks:manage',
      ['https://evil.example/', 'Event types'],
    ],
  ])('of %s show old and new values by the names of the fields: %j, %s', async (action, request, more, texts) => {
    // contract: four-eyes-5
    answers['get_webhook'] = ok({
      webhook_id: `whk_${'b'.repeat(32)}`,
      url: 'https://old.example/',
      event_types: ['account.*'],
      description: null,
      status: 'Active',
      client_id: null,
      created_by: 'key:k',
      created_at: time,
      updated_at: time,
      failing_since: null,
      ordering: 'account',
      blocked_accounts: [],
      previous_secret_ends_at: null,
    });
    answers['get_approval'] = shownAs({ action, summary: 'x', request });
    const body = (await made.signedIn(`approvals:write ${more}`).get(url)).body;
    const [, changes = ''] = /What would change(.*)Your decision/s.exec(body) ?? [];
    for (const text of texts.slice(1)) expect(changes).toContain(text);
    expect(body).toContain(texts[0]);
  });

  it('of one’s own wait for somebody else; decided ones have no buttons', async () => {
    answers['get_approval'] = shownAs({ requested_by: `jwt:${issuer}|ada` });
    const own = (await made.signedIn('approvals:write').get(`${url}?asked`)).body;
    expect(own).toContain('Waiting for approval.');
    expect(own).not.toContain('value="approval"');
    expect(own).not.toContain('Next customer');
    const clerk = (await made.signedIn('transactions:write').get(`${url}?asked`)).body;
    expect(clerk).toMatch(/data-next href="\/admin\/ui\/counter">Next customer<\/a> <button [^>]*data-print/);
    const slip = 'the cash was received, and is not posted yet.';
    expect(clerk).toContain(slip);
    const asks = async (operation: string, body: object) => {
      const request = { ...waiting.request, operation, body: { ...waiting.request.body, ...body } };
      answers['get_approval'] = shownAs({ requested_by: `jwt:${issuer}|ada`, request });
      const page = (await made.signedIn('transactions:write').get(url)).body;
      return [page.includes(slip), page.includes('data-print')];
    };
    expect(await asks('open_account', { account_type: 'Savings', initial_deposit: '5' })).toEqual([true, true]);
    // For these, nobody has handed over cash.
    for (const [operation, body] of [
      ['create_transaction', { transaction_type: 'Withdrawal' }],
      ['create_transfer', {}],
      ['open_account', { account_type: 'Loan', initial_deposit: '5' }],
      ['open_account', { account_type: 'Savings', initial_deposit: '0.00' }],
    ] as const)
      expect(await asks(operation, body), JSON.stringify(body)).toEqual([false, false]);
    answers['get_approval'] = shownAs({
      status: 'Approved',
      decided_by: `jwt:${issuer}|ada`,
      decided_at: time,
      outcome: { status: 'success', data: samples.transaction },
    });
    const done = (await made.signedIn(all).get(url)).body;
    expect(done).toContain('It has been done.');
    expect(done).not.toContain('Next customer');
    expect(done).toContain(`href="/admin/ui/transactions/${ids.transaction}"`);
    expect(done).not.toContain('value="approval"');
  });

  it.each([
    ['approval', 'approve_request', ''],
    ['rejection', 'reject_request', 'no receipt'],
  ])('%s is sent, with its reason', async (decision, name, reason) => {
    answers[name] = ok({ ...waiting, status: decision === 'approval' ? 'Approved' : 'Rejected' });
    const { session, post } = made.signedIn(all);
    const answer = await post(url, { csrf_token: session.csrf, idempotency_key: 'k', decision, reason: ` ${reason} ` });
    expect(answer.headers.location).toBe(url);
    expect(sent(name).at(-1)).toMatchObject({
      approval_id,
      reason: reason === '' ? null : reason,
      scopes: expect.arrayContaining(['transactions:write']),
    });
  });

  it('without a response to their decision say so, and show the current state', async () => {
    answers['reject_request'] = 'no_reply';
    const { session, post, get } = made.signedIn(all);
    const fields = { csrf_token: session.csrf, idempotency_key: 'k', decision: 'rejection', reason: 'no' };
    const answer = await post(url, fields);
    expect(answer.headers.location).toBe(`${url}?unknown`);
    expect((await get(`${url}?unknown`)).body).toContain('has not confirmed yet whether your decision was accepted');
  });

  it('cannot be rejected without a reason, or decided twice', async () => {
    const { session, post } = made.signedIn(all);
    const without = await post(url, {
      csrf_token: session.csrf,
      idempotency_key: 'k',
      decision: 'rejection',
      reason: '',
    });
    expect([without.statusCode, without.body.includes('Reason')]).toEqual([400, true]);
    expect(without.body).toMatch(/<textarea name="reason"[^>]* required/);
    expect(without.body).toMatch(/<button name="decision" value="approval" formnovalidate\W/);
    answers['approve_request'] = refused('approval_decided', 'is already Rejected');
    const late = await post(url, { csrf_token: session.csrf, idempotency_key: 'k', decision: 'approval' });
    expect([late.statusCode, late.body.includes('is already Rejected')]).toEqual([409, true]);
    expect((await made.signedIn('transactions:write').post(url, { decision: 'approval' })).statusCode).toBe(403);
  });
});

it.each(['', '/all', `/${approval_id}`])('%s names the person who asked, or their subject', async (page) => {
  const open = async () => (await made.signedIn(all).get(`/admin/ui/approvals${page}`)).body;
  expect(await open()).toContain('>bob</span>');
  const named = { requested_by_name: 'Bob <Builder>' };
  answers['list_approvals'] = ok({ items: [{ ...waiting, ...named }] });
  answers['get_approval'] = shownAs(named);
  expect(await open()).toContain(`title="jwt:${issuer}|bob">Bob &lt;Builder&gt;</span>`);
});
