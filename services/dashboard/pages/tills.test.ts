import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setBankFormats } from '#libs/service/formats.ts';
import { type Answer, ok, samples } from '../../gateway/test/test-app.ts';
import { type Answers, answering, issuer, testDashboard } from '../test/test-dashboard.ts';

/** Tills without a browser: what their forms read and send, and what is shown when the bank refuses. */
let made: Awaited<ReturnType<typeof testDashboard>>;
let answers: Answers = {};

beforeAll(async () => {
  made = await testDashboard(answering(() => answers));
});
afterAll(() => made.app.close());

const till_id = `til_${'a'.repeat(32)}`;
const open = {
  till_id,
  actor: `jwt:${issuer}|ada`,
  status: 'Open',
  opened_at: samples.client.created_at,
  opening: [{ currency: 'KES', amount: '5000.00' }],
  closed_at: null,
  balances: [],
  reason: null,
  closed_by: null,
};
const balance = {
  currency: 'KES',
  opening: '5000.00',
  cash_in: '10.00',
  cash_in_count: 1,
  cash_out: '0.00',
  cash_out_count: 0,
  expected: '5010.00',
  counted: '5000.00',
  difference: '-10.00',
};
const closed = {
  ...open,
  status: 'Closed',
  closed_at: open.opened_at,
  balances: [balance],
  reason: 'lost <b>',
  closed_by: open.actor,
};
const day = { actor: open.actor, on: '2026-01-02', totals: [], refused: 0, batch_items: 0, customers: [] };
const names = ok([{ actor: `jwt:${issuer}|bea`, name: 'Bea Boss' }]);
/** A request that waits for an approval. */
const asked = (transaction_type: string, operation = 'create_transaction') => ({
  approval_id: `apr_${'a'.repeat(32)}`,
  action: 'post_above',
  summary: `${operation === 'open_account' ? operation : transaction_type} of 5 KES`,
  request: {
    operation,
    method: 'POST',
    path: '/',
    body: { transaction_type, account_type: 'Savings', amount: '5', initial_deposit: '5', currency: 'KES' },
  },
  requested_by: open.actor,
  requested_at: open.opened_at,
  expires_at: open.opened_at,
  status: 'Waiting',
  decided_by: null,
  decided_at: null,
  reason: null,
});
const sent = (name: string) =>
  made.sent
    .filter(({ headers }) => headers['ce_type'] === `corebanking.command.${name}.v1`)
    .map(({ value }) => JSON.parse(String(value)) as Record<string, unknown>);
const text = (body: string) => body.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');

describe('a till', () => {
  it.each([
    ['5,000 KES', [{ currency: 'KES', amount: '5000' }]],
    [
      'kes 0; 12,5 USD;',
      [
        { currency: 'KES', amount: '0' },
        { currency: 'USD', amount: '12.5' },
      ],
    ],
    [
      'JPY 1,000\n0.125 KWD',
      [
        { currency: 'JPY', amount: '1000' },
        { currency: 'KWD', amount: '0.125' },
      ],
    ],
  ])('is opened with %j', async (others, counted) => {
    answers = { list_tills: ok({ items: [] }), open_till: ok(open) };
    const { session, post } = made.signedIn('transactions:write');
    const answer = await post('/admin/ui/tills/open', { csrf_token: session.csrf, idempotency_key: 'k', others });
    expect([answer.statusCode, answer.headers.location]).toEqual([303, `/admin/ui/tills/${till_id}?opened`]);
    expect(sent('open_till').at(-1)).toMatchObject({ counted });
  });

  it('asks for the currency of the bank first, and leads back to where it was needed, or to the counter', async () => {
    answers = { list_tills: ok({ items: [] }), open_till: ok(open), get_till: ok(open) };
    const { session, get, post } = made.signedIn('transactions:write');
    const cameFrom = '/admin/ui/counter/summary?of=a%20b';
    const page = `/admin/ui/tills/open?${new URLSearchParams({ to: cameFrom })}`;
    setBankFormats({ timeZone: 'UTC', locale: 'en-KE-u-cu-kes' });
    const { body } = await get(page);
    setBankFormats({ timeZone: 'UTC', locale: undefined });
    expect(body).toMatch(/name="counted_KES"[^>]* required autofocus/);
    expect(body).toContain(`name="to" value="${cameFrom}"`);
    const opened = async (to: string) => {
      const fields = { csrf_token: session.csrf, idempotency_key: 'k', counted_KES: '5000', to };
      return (await post('/admin/ui/tills/open', fields)).headers.location;
    };
    expect(await opened(cameFrom)).toBe(cameFrom);
    const own = `/admin/ui/tills/${till_id}?opened`;
    for (const elsewhere of [
      ...['https://x.example/admin/ui/', '//x.example/admin/ui/', '/admin/ui/\\x', '/admin/ui/\nx'],
      ...['/admin/ui/..', '/admin/ui/../../v1/x', '/admin/ui/%2e%2E/x', '/admin/ui/x/../../../admin/uix/'],
    ])
      expect(await opened(elsewhere), elsewhere).toBe(own);
    // It was opened meanwhile, on another page.
    answers['list_tills'] = ok({ items: [open] });
    expect((await get(page)).headers.location).toBe(cameFrom);
    expect((await get(own)).body).toContain('data-next href="/admin/ui/counter"');
  });

  it.each([
    ['', 'Enter what you counted.'],
    ['5000', 'In “5000” there is no currency, such as KES.'],
    ['5 XXQ', 'In “5 XXQ” there is no currency'],
    ['KES 5; KES 6', 'KES is there twice.'],
    ['-5 KES', 'Enter an amount above 0.'],
    ['1.5 JPY', 'JPY'],
    ['KES', 'Enter what you counted, or 0.'],
  ])('is not opened with %j, and says why at the field', async (others, message) => {
    answers = { list_tills: ok({ items: [] }) };
    const before = sent('open_till').length;
    const { session, post } = made.signedIn('transactions:write');
    const { statusCode, body } = await post('/admin/ui/tills/open', { csrf_token: session.csrf, others });
    expect([statusCode, sent('open_till').length]).toEqual([400, before]);
    expect(/<small id="others-reason">([^<]*)</.exec(body)?.[1]).toContain(message);
  });

  it('is closed by counting its currencies; a refusal says what is missing, and what differs', async () => {
    const { session, get, post } = made.signedIn('transactions:write');
    const total = {
      currency: 'USD',
      cash_in: '1.00',
      cash_in_count: 1,
      cash_out: '0.00',
      cash_out_count: 0,
      net_cash: '1.00',
      transferred: '0.00',
      transferred_count: 0,
    };
    answers = {
      get_till: ok(open),
      get_staff_day: ok({ ...day, totals: [total] }),
      list_approvals: ok({ items: [asked('Deposit'), asked('Withdrawal'), asked('Deposit', 'open_account')] }),
    };
    const page = `/admin/ui/tills/${till_id}/close`;
    const form = (await get(page)).body;
    // Cash that was taken for what a second person has not approved is in no till yet; what is to be paid out was not paid.
    expect(text(form)).toMatch(
      /Keep 10.00 KES apart, and do not count it: .* approves it; if none is open, in no till\. Deposit of 5.00 KES, asked 2026-01-02 03:04 open_account of 5.00 KES, asked/,
    );
    expect(text(form)).not.toContain('Withdrawal of');
    expect(made.sent.find(({ headers }) => headers['ce_type']?.includes('list_approvals'))?.value).toMatch(
      /"requested_by":"me"|"asker":"me"/,
    );
    expect([...form.matchAll(/name="(counted_\w+|others|reason)"/g)].map(([, name]) => name)).toEqual([
      'counted_KES',
      'counted_USD',
      'others',
      'reason',
    ]);
    const fields = {
      csrf_token: session.csrf,
      idempotency_key: 'k',
      counted_KES: '5000',
      counted_USD: '1',
      others: '',
      reason: '',
    };
    answers['close_till'] = {
      ok: false,
      refusal: { code: 'till_not_counted', message: 'counted lacks JPY', details: { currencies: ['JPY'] } },
    } as never;
    const lacking = await post(page, fields);
    expect([lacking.statusCode, lacking.body.includes('name="counted_JPY"')]).toEqual([400, true]);
    expect(text(lacking.body)).toContain('Count JPY, too; 0 if there is nothing.');
    answers['close_till'] = {
      ok: false,
      refusal: {
        code: 'till_difference',
        message: 'x',
        details: { currencies: ['KES'] },
      },
    } as never;
    const different = await post(page, fields);
    expect(different.statusCode).toBe(400);
    expect(text(different.body)).toContain('There is a difference in KES. Count again');
    // Whoever counts again does not see what is expected.
    expect(text(different.body)).not.toContain('5 010.00');
    expect(different.body).toMatch(/<textarea name="reason"[^>]* required/);
    answers['close_till'] = ok(closed);
    const done = await post(page, { ...fields, reason: ' lost ' });
    expect([done.statusCode, done.headers.location]).toEqual([303, `/admin/ui/tills/${till_id}?closed`]);
    expect(sent('close_till').at(-1)).toMatchObject({
      till_id,
      counted: [
        { currency: 'KES', amount: '5000' },
        { currency: 'USD', amount: '1' },
      ],
      reason: 'lost',
    });
    answers['get_till'] = ok(closed);
    expect((await get(page)).headers.location).toBe(`/admin/ui/tills/${till_id}`);
  });

  it('says how much cash to keep apart only if that is known of every request', async () => {
    const list = (...more: object[]) => ok({ items: [asked('Deposit'), ...more] });
    answers = { get_till: ok(open), get_staff_day: ok(day), list_approvals: list() };
    const shown = async () =>
      text((await made.signedIn('transactions:write').get(`/admin/ui/tills/${till_id}/close`)).body);
    expect(await shown()).toContain('Keep 5.00 KES apart, and do not count it:');
    // The currency is that of the account, which this person may not see.
    const { request, ...rest } = asked('Deposit');
    const { currency: _, ...body } = request.body;
    answers['list_approvals'] = list({ ...rest, request: { ...request, body } });
    const unknown = await shown();
    expect(unknown).toContain('Keep this cash apart, and do not count it:');
    expect(unknown).not.toContain('Keep 5.00 KES');
  });

  it('says which cash to keep apart: that of a withdrawal that is to be reversed, too', async () => {
    const [paid, taken] = ['a', 'b'].map((letter) => `txn_${letter.repeat(32)}`);
    const reversal = (id = '') => ({
      ...asked('', 'reverse_transaction'),
      action: 'reverse',
      summary: `reversal of ${id}`,
      request: { operation: 'reverse_transaction', method: 'POST', path: `/transactions/${id}/reversal`, body: {} },
    });
    answers = {
      get_till: ok(open),
      get_staff_day: ok(day),
      list_approvals: ok({ items: [reversal(paid), reversal(taken)] }),
      get_transaction: ({ transaction_id }) =>
        ok({ ...samples.transaction, transaction_type: transaction_id === paid ? 'Withdrawal' : 'Deposit' }),
    };
    const shown = async (scopes: string) =>
      text((await made.signedIn(scopes).get(`/admin/ui/tills/${till_id}/close`)).body);
    const apart = await shown('transactions:write transactions:read');
    // The withdrawal may have been entered for another customer, and its cash be gone.
    expect(apart).toMatch(
      /If the customer has given this cash back, keep it apart, too: .* If not, nothing is to be done\. .*Reversal of the Withdrawal of 25.00 USD/,
    );
    expect(apart).not.toContain('do not count it');
    expect(apart).not.toContain('Reversal of the Deposit');
    // Of another person's till, the requests are not known, and neither are one's own if they cannot be read.
    answers['list_approvals'] = 'no_reply';
    expect(await shown('transactions:write')).toContain('It cannot be read now which cash waits for an approval.');
    answers['get_till'] = ok({ ...open, actor: 'jwt:x|bob' });
    expect(await shown('transactions:write books:read')).toContain(
      'Ask whose till it is for cash that was taken and waits for an approval.',
    );
  });

  it('is shown with its figures, to its person and to people with books:read, and listed', async () => {
    answers = {
      get_till: ok(closed),
      list_tills: ok({ items: [closed, { ...open, till_id: `til_${'b'.repeat(32)}` }] }),
      list_staff_names: ok([{ actor: open.actor, name: 'Ada Teller' }]),
    };
    const { body } = await made.signedIn('accounts:read').get(`/admin/ui/tills/${till_id}`);
    expect(text(body)).toMatch(
      /Reason lost &lt;b&gt; .*KES 5 000\.00 10\.00 1 posting 0\.00 0 postings 5 010\.00 5 000\.00 −10\.00/,
    );
    expect(body).toContain('data-print');
    answers['get_till'] = ok({ ...closed, actor: 'jwt:x|bob' });
    expect((await made.signedIn('accounts:read').get(`/admin/ui/tills/${till_id}`)).statusCode).toBe(404);
    expect((await made.signedIn('books:read').get(`/admin/ui/tills/${till_id}`)).statusCode).toBe(200);
    const list = (await made.signedIn('books:read').get('/admin/ui/tills')).body;
    expect(text(list)).toMatch(/KES 5 000\.00 10\.00 0\.00 5 010\.00 5 000\.00 −10\.00 lost &lt;b&gt;/);
    const { body: file } = await made.signedIn('books:read').get('/admin/ui/tills.csv');
    expect(file).toContain(`"${till_id}","Ada Teller",`);
    expect(file).toContain('"KES","5000.00","10.00","0.00","5010.00","5000.00","-10.00","lost <b>"');
  });
});

it('a till that another person has closed says who, by name, in the list and on its page', async () => {
  const by = { ...closed, closed_by: `jwt:${issuer}|bea` };
  answers = { list_tills: ok({ items: [by] }), get_till: ok(by), list_staff_names: names };
  for (const page of ['', `/${till_id}`])
    expect((await made.signedIn('books:read').get(`/admin/ui/tills${page}`)).body).toContain('>Bea Boss</span>');
});

describe('the count at an opening', () => {
  const before = { ...closed, till_id: `til_${'b'.repeat(32)}` };
  const shown = async (tills: object[]) => {
    answers = { list_tills: ok({ items: tills }), get_till: ok(open) };
    return text((await made.signedIn('transactions:write').get(`/admin/ui/tills/${till_id}`)).body);
  };

  it('that is not the count of the closing before says so, by currency, on the page of the till alone', async () => {
    const counted = { ...before, balances: [balance, { ...balance, currency: 'USD', counted: '7.00' }] };
    const other = { ...counted, balances: [{ ...balance, counted: '5012.50' }] };
    expect(await shown([open, counted])).toMatch(/Since the last closing −7\.00 USD/);
    expect(await shown([open, other, counted])).toMatch(/Since the last closing −12\.50 KES/);
    const asked = await made.signedIn('transactions:write').get('/admin/ui/tills/open');
    expect(text(asked.body)).not.toMatch(/5012|12\.50|Since the last/);
  });

  it.each([
    ['is the same', [open, before]],
    ['is the first', [open]],
    ['is not among the latest', [before]],
  ])('that %s says nothing', async (_what, tills) => {
    expect(await shown(tills)).not.toContain('Since the last closing');
  });

  it('of another person that is open has what it should contain, and who has one open already is led to it', async () => {
    const { counted: _, difference: __, ...sums } = balance;
    const theirs = { ...open, till_id: `til_${'b'.repeat(32)}`, actor: `jwt:${issuer}|bea`, so_far: [sums] };
    answers = {
      get_till: ok(theirs),
      list_tills: ok({ items: [theirs, { ...theirs, so_far: [{ ...sums, expected: '1.50' }] }, open] }),
    };
    const { get } = made.signedIn('books:read transactions:write');
    expect(text((await get(`/admin/ui/tills/${theirs.till_id}`)).body)).toContain('KES 5 000.00 10.00 1 posting');
    const both = answers['list_tills'] as Answer;
    const older = ok({ items: [open] });
    answers['list_tills'] = ({ status }) => (status === 'Open' ? both : older);
    const list = (await get('/admin/ui/tills')).body;
    expect(text(list)).toContain('Should be in the 2 tills that are open, other than yours: 5 011.50 KES');
    expect(list).not.toContain('more than it had');
    expect(list).toContain(`<option value="${theirs.actor}">`);
    // A drawer cannot hold less than nothing, so it takes nothing from what the others hold.
    const empty = { ...theirs, so_far: [{ ...sums, expected: '-68700.00' }] };
    answers['list_tills'] = ok({ items: [theirs, empty] });
    const negative = (await get('/admin/ui/tills')).body;
    expect(text(negative)).toContain('Should be in the 2 tills that are open: 5 010.00 KES');
    expect(text(negative)).toContain('The till of bea has paid out 68 700.00 KES more than it had.');
    expect(negative).toMatch(/<span class="pill bad"><svg.*?<\/svg>−68.700\.00<\/span>/);
    answers['list_tills'] = ({ status }) => (status === 'Open' ? 'no_reply' : older);
    expect(text((await get('/admin/ui/tills')).body)).toContain('in the tills that are open is not known now.');
    // Without a filter, there is none to clear.
    answers = { list_tills: ok({ items: [] }) };
    for (const query of ['', '?order=asc', '?status='])
      expect(text((await get(`/admin/ui/tills${query}`)).body), query).toContain(
        'No till has been opened yet. Count and open yours',
      );
    expect(text((await get('/admin/ui/tills?status=Open')).body)).toContain('No till matches. Clear the filters');
    const auditor = (await made.signedIn('books:read').get('/admin/ui/tills')).body;
    expect(auditor).toContain('No till has been opened yet.');
    expect(auditor).not.toContain('/tills/open');
    answers['list_tills'] = ok({ items: [open] });
    expect((await get('/admin/ui/tills/open')).headers.location).toBe(`/admin/ui/tills/${till_id}?already`);
    answers['get_till'] = ok(open);
    expect(text((await get(`/admin/ui/tills/${till_id}?already`)).body)).toContain('Your till is open already.');
  });
});
