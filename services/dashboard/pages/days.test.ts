import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { bankDay } from '#libs/service/formats.ts';
import { ids, ok, refused, samples } from '../../gateway/test/test-app.ts';
import { type Answers, answering, issuer, testDashboard } from '../test/test-dashboard.ts';

/** The days of the books, and the limits of an account, without a browser: who sees what, and what is sent. */
let made: Awaited<ReturnType<typeof testDashboard>>;
let answers: Answers;

const url = '/admin/ui/books/days';
const dayMs = 86_400_000;
const ago = (days: number) => bankDay(Date.now() - days * dayMs);
const accountant = 'books:read books:close approvals:write';
const hash = 'ab'.repeat(32);
const closing = (date: string) => ({
  date,
  closed_at: '2026-01-02T03:04:05.678Z',
  closed_by: `jwt:${issuer}|<ada>`,
  totals: [
    {
      currency: 'USD',
      class: 'liability',
      opening: '1000.00',
      debits: '20.00',
      credits: '120.50',
      closing: '1100.50',
      entry_count: 12,
      operation_count: 7,
    },
  ],
  accounts_sha256: hash,
  previous_hash: '0'.repeat(64),
  hash,
});
const line = `{"account_id":"${ids.account}","account_number":"SAV-1","currency":"USD","class":"liability","opening":"0.00","closing":"1.50","sum":"1.50","count":1,"first_sequence":1,"last_sequence":1}`;
const balanceOf = (debit_total: string, assets: string) => ({
  currency: 'USD',
  debit_total,
  credit_total: debit_total,
  assets,
  liabilities: assets,
  difference: '0.00',
});
/** The list of closed days has these as its first and last. */
const closedFrom = (first: string, last: string) => (data: Record<string, unknown>) =>
  ok({ items: [closing(data['order'] === 'asc' ? first : last)] });

const someLimits = ok({ account_id: ids.account, currency: 'USD', per_day_out: '1500.00', out_today: '12.00' });
const notClosed = refused('day_not_found', 'no', { closed_up_to: null });
const isClosed = ({ date }: Record<string, unknown>) => ok(closing(String(date)));

beforeAll(async () => {
  made = await testDashboard(answering(() => answers));
});
beforeEach(() => {
  made.sent.length = 0;
  answers = {
    list_day_closings: ok({ items: [] }),
    list_approvals: ok({ items: [] }),
    get_day_closing: notClosed,
    close_day: () => {
      answers['get_day_closing'] = isClosed;
      return ok({ date: ago(1), closed_at: closing('').closed_at, closed_by: closing('').closed_by });
    },
    get_client: ok(samples.client),
    get_account: ok(samples.master),
    get_ledger_accounts: ok([{ ...samples.ledger, status: 'Active' }]),
    get_account_limits: someLimits,
    set_account_limits: ok({ account_id: ids.account, currency: 'USD' }),
  };
});
afterAll(() => made.app.close());

const visibleText = (page: string) =>
  page
    .replaceAll('\u00a0', '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');
const sent = (name: string) =>
  made.sent
    .filter(({ headers }) => headers['ce_type'] === `corebanking.command.${name}.v1`)
    .map(({ value }) => JSON.parse(String(value)) as Record<string, unknown>);
/** The state of a day in the calendar of its month. */
async function stateOf(day: string, scopes = accountant): Promise<{ state: string; href: string | undefined }> {
  const { body } = await made.signedIn(scopes).get(`${url}?month=${day.slice(0, 7)}`);
  const [, state = '', , href] =
    new RegExp(`<td class="(\\w+)"[^>]*>(<a href="([^"]+)">)?<time datetime="${day}">`).exec(body) ?? [];
  return { state, href };
}

describe('the calendar', () => {
  it('says that no day is closed yet, and lets any ended day be the first', async () => {
    const { body } = await made.signedIn(accountant).get(url);
    expect(body).toContain('No day has been closed yet');
    expect(body).toContain(`href="${url}/${ago(1)}/closing">Close ${ago(1)}</a>`);
    expect(await stateOf(ago(1))).toEqual({ state: 'next', href: `${url}/${ago(1)}/closing` });
    expect(await stateOf(ago(40))).toEqual({ state: 'open', href: `${url}/${ago(40)}/closing` });
    expect(await stateOf(ago(0))).toEqual({ state: 'today', href: undefined });
  });

  it('shows which days are closed, closable, and open, with links as far as the scopes allow', async () => {
    answers['list_day_closings'] = closedFrom(ago(6), ago(4));
    expect(await stateOf(ago(7))).toEqual({ state: 'closed', href: undefined });
    expect(await stateOf(ago(5))).toEqual({ state: 'closed', href: `${url}/${ago(5)}` });
    expect(await stateOf(ago(4))).toEqual({ state: 'closed', href: `${url}/${ago(4)}` });
    expect(await stateOf(ago(3))).toEqual({ state: 'next', href: `${url}/${ago(3)}/closing` });
    expect(await stateOf(ago(2))).toEqual({ state: 'open', href: undefined });
    expect(await stateOf(ago(3), 'books:read')).toEqual({ state: 'next', href: undefined });
    expect(visibleText((await made.signedIn(accountant).get(url)).body)).toContain(
      `Closed up to ${ago(4)} . 3 ended days are still open.`,
    );
    expect((await made.signedIn('accounts:read').get(url)).statusCode).toBe(403);
    answers['list_day_closings'] = closedFrom(ago(6), ago(1));
    const { body } = await made.signedIn(accountant).get(url);
    expect(body).toContain('Every day that has ended is closed.');
    expect(body).not.toContain('/closing"');
  });

  it('knows closed days of which the totals are not calculated yet', async () => {
    answers['get_day_closing'] = ({ date }) =>
      date === ago(4)
        ? refused('service_unavailable', 'totals', { closed_up_to: ago(4) })
        : refused('day_not_found', 'no', { closed_up_to: ago(4) });
    for (const listed of [ok({ items: [] }), closedFrom(ago(6), ago(5))]) {
      answers['list_day_closings'] = listed;
      expect(await stateOf(ago(4))).toEqual({ state: 'closed', href: `${url}/${ago(4)}` });
      expect(await stateOf(ago(3))).toEqual({ state: 'next', href: `${url}/${ago(3)}/closing` });
      const { statusCode, body } = await made.signedIn(accountant).get(`${url}/${ago(4)}/closing`);
      expect([statusCode, body.includes('The day is closed already.')]).toEqual([400, true]);
    }
    answers['get_day_closing'] = refused('service_unavailable', 'away');
    expect((await made.signedIn(accountant).get(url)).statusCode).toBe(503);
  });

  it('leads from month to month, and not beyond the current one', async () => {
    const { get } = made.signedIn(accountant);
    const { body } = await get(`${url}?month=2024-03`);
    expect(body).toContain('<h1>Days: March 2024</h1>');
    expect(body).toMatch(/month=2024-02">February 2024<[\s\S]*month=2024-04">April 2024</);
    // It begins on a Friday and ends on a Sunday.
    expect(body.match(/<td><\/td>/g)).toHaveLength(4);
    expect((await get(`${url}?month=2024-02`)).body.match(/datetime="2024-02-\d\d"/g)).toHaveLength(29);
    for (const month of ['2999-01', '2024-13', '<b>'])
      expect((await get(`${url}?month=${month}`)).body).toContain(`datetime="${ago(0)}"`);
  });
});

describe('closing a day', () => {
  const waiting = (effective_date: string) => ({
    approval_id: `apr_${'a'.repeat(32)}`,
    action: 'backdate',
    summary: 'x',
    scopes: [],
    request: { operation: 'create_transaction', method: 'POST', path: '/transactions', body: { effective_date } },
    requested_by: 'jwt:x|bob',
    requested_at: '2026-01-02T03:04:05.678Z',
    expires_at: '2026-01-02T03:04:05.678Z',
    status: 'Waiting',
    decided_by: null,
    decided_at: null,
    reason: null,
  });

  it('says what it means and which requests it makes impossible, and is sent once it is confirmed', async () => {
    answers['list_approvals'] = ok({ items: [waiting(ago(1)), waiting(ago(0)), waiting(ago(9))] });
    const { session, get, post } = made.signedIn(accountant);
    const { body } = await get(`${url}/${ago(1)}/closing`);
    expect(visibleText(body)).toContain(`nothing is posted with the value date ${ago(1)} or an earlier one`);
    expect(visibleText(body)).toContain('2 requests with value dates up to this day wait for approval');
    expect(body).toContain('This is the first closing');
    expect(body).toContain(`hx-get="${url}/${ago(1)}/preview"`);
    const fields = { csrf_token: session.csrf, idempotency_key: 'k1' };
    expect((await post(`${url}/${ago(1)}/closing`, fields)).statusCode).toBe(400);
    expect(sent('close_day')).toEqual([]);
    const closed = await post(`${url}/${ago(1)}/closing`, { ...fields, confirmed: 'yes' });
    expect(closed.headers.location).toBe(`${url}/${ago(1)}?closed`);
    expect(sent('close_day')).toEqual([{ date: ago(1) }]);
    expect((await get(`${url}/${ago(1)}?closed`)).body).toContain('The day was closed.');
  });

  it('says that it does not know all requests that wait, if it does not', async () => {
    const said = async () => visibleText((await made.signedIn(accountant).get(`${url}/${ago(1)}/closing`)).body);
    answers['list_approvals'] = ok({ items: [waiting(ago(1))], next: { at: '2026-01-02T03:04:05.678Z', id: 'a' } });
    expect(await said()).toContain('At least 1 request with a value date up to this day waits');
    answers['list_approvals'] = ok({ items: [waiting(ago(0))], next: { at: '2026-01-02T03:04:05.678Z', id: 'a' } });
    expect(await said()).toContain('It is not known how many requests');
    answers['list_approvals'] = refused('service_unavailable', 'away');
    expect(await said()).toContain('It is not known how many requests');
    answers['list_approvals'] = ok({ items: [waiting(ago(0))] });
    expect(await said()).not.toMatch(/It is not known|requests? with/);
  });

  it('leads people who may not read the books to no page of theirs', async () => {
    const { session, get, post } = made.signedIn('books:close');
    const page = await get(`${url}/${ago(1)}/closing`);
    expect(page.body).toMatch(/href="\/admin\/ui"[^>]*>Cancel</);
    const fields = { csrf_token: session.csrf, confirmed: 'yes' };
    const closed = await post(`${url}/${ago(1)}/closing`, { ...fields, idempotency_key: 'k4' });
    expect([closed.statusCode, closed.body.includes('The day was closed.')]).toEqual([200, true]);
    answers['get_day_closing'] = notClosed;
    answers['close_day'] = 'no_reply';
    const unknown = await post(`${url}/${ago(1)}/closing`, { ...fields, idempotency_key: 'k5' });
    expect([unknown.statusCode, unknown.body.includes('The bank has not confirmed yet')]).toEqual([200, true]);
  });

  it('is not offered for a day that has not ended, is closed, or is not the next one', async () => {
    answers['list_day_closings'] = closedFrom(ago(6), ago(4));
    const { get } = made.signedIn(accountant);
    for (const [day, why] of [
      [ago(0), 'The day has not ended yet.'],
      [ago(4), 'The day is closed already.'],
      [ago(2), `Days are closed in order. Close ${ago(3)} first.`],
      ['2026-02-30', 'This is not a day.'],
      ['2026-13-01', 'This is not a day.'],
      ['x', 'This is not a day.'],
    ] as const) {
      const { statusCode, body } = await get(`${url}/${day}/closing`);
      expect([statusCode, visibleText(body).includes(why)], day).toEqual([400, true]);
      expect(body).not.toContain('Close the day</button>');
    }
    for (const page of ['2026-13-01', '2026-02-30/preview', '2026-13-01/preview', 'x/preview']) {
      const { statusCode, body } = await get(`${url}/${page}`);
      expect([statusCode, body.includes('This is not a day.')], page).toEqual([400, true]);
    }
    expect((await made.signedIn('books:read').get(`${url}/${ago(3)}/closing`)).statusCode).toBe(403);
  });

  it('that the bank refuses says why', async () => {
    answers['close_day'] = refused('day_not_closable', 'the next day to close is <b>');
    const { session, post } = made.signedIn(accountant);
    const answer = await post(`${url}/${ago(1)}/closing`, {
      csrf_token: session.csrf,
      idempotency_key: 'k2',
      confirmed: 'yes',
    });
    expect([answer.statusCode, answer.body.includes('the next day to close is &lt;b&gt;')]).toEqual([400, true]);
  });

  it('whose outcome is not known leads to the page of the day, which asks for it', async () => {
    answers['close_day'] = 'no_reply';
    const { session, post } = made.signedIn(accountant);
    const fields = { csrf_token: session.csrf, idempotency_key: 'k3', confirmed: 'yes' };
    expect((await post(`${url}/${ago(1)}/closing`, fields)).headers.location).toBe(`${url}/${ago(1)}?asked`);
  });

  it('previews the books of the day: what moved, and its end', async () => {
    answers['get_trial_balance'] = ({ on }) =>
      ok(on === ago(2) ? [balanceOf('99999999999999999.00', '90.00')] : [balanceOf('100000000000000003.50', '94.50')]);
    const { body } = await made.signedIn('books:read').get(`${url}/${ago(1)}/preview`);
    expect(visibleText(body)).toMatch(/USD 4\.50 4\.50 94\.50 94\.50 0\.00/);
  });
});

describe('a closed day', () => {
  it('shows its totals and hashes, who closed it, and leads to the days around it', async () => {
    answers['list_day_closings'] = closedFrom('2026-01-01', '2026-01-02');
    answers['get_day_closing'] = ({ date }) => (date === '2026-01-02' ? isClosed({ date }) : notClosed);
    answers['list_audit'] = ok({
      items: [
        {
          audit_id: `aud_${'1'.repeat(32)}`,
          created_at: '2026-01-03T00:00:00.000Z',
          actor: 'jwt:https://id.example|ada',
          action: 'close_day',
          resource_id: '2026-01-02',
          outcome: 'success',
          request_id: 'r-1',
          details: { approved_by: 'jwt:https://id.example|mary', approval_id: `apr_${'a'.repeat(32)}` },
          address: null,
        },
      ],
    });
    const { body } = await made.signedIn('books:read audit:read transactions:read').get(`${url}/2026-01-02`);
    const text = visibleText(body);
    expect(body).toContain('<div id="day">');
    expect(text).toContain('by &lt;ada&gt;');
    expect(text).toContain('Approved by mary');
    expect(body).toContain(`href="/admin/ui/approvals/apr_${'a'.repeat(32)}"`);
    expect(body).toContain('transactions?effective_from=2026-01-02&amp;effective_to=2026-01-02"');
    expect(text).toContain('no earlier day was closed');
    expect(text).toContain('USD liabilities 1000.00 20.00 120.50 1100.50 12 7');
    expect(body).toContain(hash);
    expect(body).toContain(`href="${url}/2026-01-01"`);
    expect(body).not.toContain(`href="${url}/2026-01-03"`);
  });

  it('is downloaded as the bank sends it; a refusal is a page', async () => {
    answers['list_day_lines'] = ok({ lines: [line] });
    const { get } = made.signedIn('books:read');
    const file = await get(`${url}/2026-01-02/accounts.csv`);
    expect(file.headers).toMatchObject({ 'content-type': 'text/csv; charset=utf-8' });
    expect(file.body).toMatch(/^account_id,account_number,.*\r?\nacc_a+,SAV-1,USD,liability,0.00,1.50,/);
    const records = made.recorded.map(({ value }) => JSON.parse(String(value)) as AuditRecord);
    expect(records.filter(({ action }) => action === 'export')).toMatchObject([
      { resource_id: null, details: { file: 'books-days-accounts.csv', filters: { on: '2026-01-02' } } },
    ]);
    answers['list_day_lines'] = refused('day_not_found', 'no');
    const none = await get(`${url}/2026-01-02/accounts.csv`);
    expect([none.statusCode, none.headers['content-type']]).toEqual([404, 'text/html; charset=utf-8']);
  });

  it('of which the export cannot be recorded is not downloaded, and the file of the bank is closed', async () => {
    // It never ends, so that the bank sends it until it is closed.
    answers['list_day_lines'] = ok({ lines: Array.from({ length: 500 }, () => line), next: ids.account });
    const { session, get } = made.signedIn('books:read');
    const headers = { authorization: `Bearer ${session.token}` };
    const activity = { action: 'export', outcome: 'success', file: 'x.csv' };
    for (let n = 0; n < 60; n++)
      await made.gateway.inject({ method: 'POST', url: '/admin/activities', headers, payload: activity });
    expect((await get(`${url}/2026-01-02/accounts.csv`)).statusCode).toBe(429);
    answers['list_day_lines'] = ok({ lines: [line] });
    const file = { method: 'GET', url: '/admin/day-closings/2026-01-02/accounts', headers } as const;
    await vi.waitFor(async () => expect((await made.gateway.inject(file)).statusCode).toBe(200), 5_000);
  });

  it('that is being calculated is asked for again; one that is not closed says so', async () => {
    const { get } = made.signedIn(accountant);
    answers['get_day_closing'] = refused('service_unavailable', 'wait', { closed_up_to: '2026-01-02' });
    const waits = `<div id="day" hx-get="${url}/2026-01-02?asked" hx-trigger="every 5s`;
    expect((await get(`${url}/2026-01-02`)).body).toContain(waits);
    answers['get_day_closing'] = refused('service_unavailable', 'away');
    expect((await get(`${url}/2026-01-02`)).statusCode).toBe(503);
    answers['get_day_closing'] = notClosed;
    const none = await get(`${url}/2026-01-02`);
    expect([none.statusCode, none.body.includes('This day is not closed')]).toEqual([404, true]);
    expect(none.body).toContain('>Close it</a>');
    answers['list_day_closings'] = closedFrom('2026-01-05', '2026-01-06');
    const before = (await get(`${url}/2026-01-02`)).body;
    expect(before).toMatch(/This day was closed with <a [^>]*>2026-01-05<\/a>, the first closing/);
    expect(before).not.toContain('>Close it</a>');
    expect((await get(`${url}/2026-01-02?asked`)).body).toContain(waits);
  });
});

describe('the limits of an account', () => {
  const limits = `/admin/ui/accounts/${ids.account}/limits`;
  const all = 'clients:read accounts:read accounts:limits transactions:read';

  it('are shown on its page, and changed by people with the scope', async () => {
    answers['list_notes'] =
      answers['list_status_transitions'] =
      answers['list_entries'] =
      answers['list_holds'] =
        ok({
          items: [],
        });
    const account = await made.signedIn(all).get(`/admin/ui/accounts/${ids.account}`);
    expect(visibleText(account.body)).toContain('Limits At most out per day 1500.00 USD');
    answers['get_account_limits'] = refused('service_unavailable', 'away');
    const away = await made.signedIn(all).get(`/admin/ui/accounts/${ids.account}`);
    expect(visibleText(away.body)).toContain('Limits not known');
    answers['get_account_limits'] = someLimits;
    const { session, get, post } = made.signedIn(all);
    const { body } = await get(limits);
    expect(visibleText(body)).toMatch(/At most per posting no limit .* Out today 12\.00 USD/);
    expect(body).toContain('name="per_day_out" value="1500.00"');
    const entered = { csrf_token: session.csrf, per_transaction: '1,500', per_day_out: ' ', minimum_balance: '0' };
    // Somebody else has changed the limit since the page was shown.
    const late = await post(limits, { ...entered, shown_per_day_out: '900.00' });
    expect(late.statusCode).toBe(400);
    expect(visibleText(late.body)).toContain('Somebody has changed this meanwhile: 1500.00 USD.');
    expect(sent('set_account_limits')).toEqual([]);
    const [, shown = ''] = /name="shown_per_day_out" value="([^"]*)"/.exec(late.body) ?? [];
    const fields = { ...entered, shown_per_day_out: shown };
    expect((await post(limits, fields)).headers.location).toBe(`${limits}?saved`);
    expect(sent('set_account_limits')).toEqual([
      { account_id: ids.account, per_transaction: '1500', minimum_balance: '0' },
    ]);
    const few = await made.signedIn('accounts:read').get(limits);
    expect([few.statusCode, few.body.includes('name="per_day_out"')]).toEqual([200, false]);
    expect((await made.signedIn('accounts:read').post(limits, fields)).statusCode).toBe(403);
  });

  it.each([
    ['minimum_balance', '10.50', 'Available is only 10.50 USD: nothing could leave the account'],
    ['per_day_out', '12', '12.00 USD left the account today'],
    ['minimum_balance', '10.49', undefined],
    ['per_day_out', '12.01', undefined],
  ])('that lock the money in are sent only after a summary that says so: %s %s', async (name, limit, warning) => {
    const { session, get, post } = made.signedIn(all);
    const [, shown = ''] = /name="shown_per_day_out" value="([^"]*)"/.exec((await get(limits)).body) ?? [];
    const entered = { csrf_token: session.csrf, shown_per_day_out: shown, per_day_out: '1500', [name]: limit };
    const { headers } = await post(limits, entered);
    expect(headers.location).toContain(warning === undefined ? '?saved' : '/admin/ui/summary/limits?of=');
    expect(sent('set_account_limits')).toHaveLength(warning === undefined ? 1 : 0);
    if (warning === undefined) return;
    const summary = visibleText((await get(String(headers.location))).body);
    expect(summary).toContain(warning);
    expect(summary).not.toContain('Needs approval');
  });

  it('with an invalid amount are not sent; the reason is beside the field', async () => {
    const { session, post } = made.signedIn(all);
    const { statusCode, body } = await post(limits, {
      csrf_token: session.csrf,
      per_transaction: '1.500',
      per_day_out: 'much',
      minimum_balance: '5',
    });
    expect(statusCode).toBe(400);
    expect(body).toMatch(/id="per_transaction-reason">Is this 1500, or 1.50\?/);
    expect(body).toMatch(/id="per_day_out-reason">This is not an amount/);
    expect(body).toContain('name="minimum_balance" value="5"');
    expect(sent('set_account_limits')).toEqual([]);
  });

  it('do not exist for a loan', async () => {
    answers['get_account'] = ok({ ...samples.master, account_type: 'Loan' });
    const { body } = await made.signedIn(all).get(limits);
    expect(body).toContain('A loan has no limits');
    expect(body).not.toContain('name="per_day_out"');
  });
});
