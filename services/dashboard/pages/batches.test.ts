import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Answer, ids, ok, refused, samples } from '../../gateway/test/test-app.ts';
import { type Answers, answering, issuer, testDashboard } from '../test/test-dashboard.ts';
import { toOmitted } from './batch-views.ts';

/**
 * Batches without a browser: what is sent under which key, what is said of every outcome, and what
 * a stranger's page can do.
 */
let made: Awaited<ReturnType<typeof testDashboard>>;
let answers: Answers;

const url = '/admin/ui/counter/batches';
const batch_id = `bat_${'a'.repeat(32)}`;
const clerk = 'accounts:read transactions:read transactions:write transfers:write';
const ledger = { ...samples.ledger, status: 'Active', balance: '100.00', available_balance: '60.00' };
const idsByNumber: Record<string, string> = { 'SAV-1': ids.account, 'SAV-2': ids.other };
const head = { totals: [], actor: 'key:x', created_at: '2026-01-02T03:04:05.678Z' };
const file = 'from,to,amount,description\nSAV-1,SAV-2,"1,5",a\nSAV-9,SAV-2,1,\n,SAV-2,3,\n';

beforeAll(async () => {
  made = await testDashboard(answering(() => answers));
});
beforeEach(() => {
  made.sent.length = 0;
  const toNumber = (id: unknown) => (id === ids.account ? 'SAV-1' : 'SAV-2');
  answers = {
    get_balance_by_number: ({ account_number }) => {
      const account_id = idsByNumber[String(account_number)];
      return account_id === undefined
        ? refused('account_not_found')
        : ok({ account_id, account_number, balance: '100', currency: 'USD' });
    },
    get_account: ({ account_id }) => ok({ ...samples.master, account_id, account_number: toNumber(account_id) }),
    get_ledger_accounts: ({ account_ids }) =>
      ok((account_ids as string[]).map((account_id) => ({ ...ledger, account_id }))),
    list_accounts: ({ account_ids }) =>
      ok({
        items: String(account_ids)
          .split(',')
          .map((account_id) => ({
            ...samples.master,
            account_id,
            account_number: toNumber(account_id),
          })),
      }),
    list_batches: ok({ items: [] }),
    create_batch: (data) => ok({ results: (data['items'] as object[]).map((_, index) => itemResult(index)) }),
    get_batch: ok({
      batch_id,
      mode: 'independent',
      status: 'Completed',
      counts: { completed: 1, failed: 1, pending: 0 },
      ...head,
      results: [itemResult(0), itemResult(1)],
    }),
  };
});
afterAll(() => made.app.close());

const itemResult = (index: number) =>
  index === 0
    ? { index, status: 'Completed', transfer: { ...samples.transfer, metadata: { line: '2' } } }
    : {
        index,
        status: 'Failed',
        transaction: { ...samples.transaction, metadata: { line: '4' }, status: 'Failed' },
        error: { code: 'balance_limit_exceeded', message: 'words of the API' },
      };

const visibleText = (page: string) =>
  page
    .replaceAll('\u00a0', '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');
const hidden = (page: string, name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(page)?.[1] ?? '';
const commands = () => made.sent.filter(({ headers }) => headers['ce_type']?.includes('command.create_batch.'));

/** Sends the form with a file, like a browser. */
async function upload(fields: Record<string, string>, text: string | Buffer, at = made) {
  const person = at.signedIn(clerk);
  const form = new FormData();
  for (const [name, value] of Object.entries({ csrf_token: person.session.csrf, ...fields })) form.append(name, value);
  form.append('file', new Blob([text as string], { type: 'text/csv' }), 'wages <b>.csv');
  const encoded = new Response(form);
  const answer = await at.app.inject({
    method: 'POST',
    url: `${url}/preview`,
    headers: {
      host: 'bank.example',
      cookie: person.cookie,
      'content-type': encoded.headers.get('content-type') ?? '',
    },
    payload: Buffer.from(await encoded.arrayBuffer()),
  });
  const of = hidden(answer.body, 'of');
  const send = () => person.post(`${url}/sending`, { csrf_token: person.session.csrf, of });
  return { ...person, answer, of, send };
}

describe('a file', () => {
  it('is checked line by line, and sent once under the key of the form', async () => {
    const { answer, send } = await upload({ idempotency_key: 'k', mode: 'independent' }, file);
    expect(answer.statusCode).toBe(200);
    expect(visibleText(answer.body)).toMatch(
      /wages &lt;b&gt;.csv Can be sent 2 payments Cannot be sent 1 .*3 There is no account SAV-9/,
    );
    // The lines that are not sent can be corrected in a file that is read again.
    const [, omitted = ''] = /href="data:text\/csv;charset=utf-8,([^"]+)"/.exec(answer.body) ?? [];
    expect(decodeURIComponent(omitted)).toContain('"SAV-9","SAV-2","1","","","","There is no account SAV-9.');
    const again = (await upload({}, decodeURIComponent(omitted))).answer;
    expect(visibleText(again.body)).toContain('2 There is no account SAV-9. Check the number.');
    expect(commands()).toEqual([]);
    const [first, second] = await Promise.all([send(), send()]);
    expect(first.headers.location).toMatch(/^\/admin\/ui\/counter\/batches\/bat_[0-9a-f]{32}$/);
    expect(second.headers.location).toBe(first.headers.location);
    const items = commands().flatMap(({ value }) => (JSON.parse(String(value)) as { items: object[] }).items);
    expect(items).toContainEqual({
      transfer: expect.objectContaining({
        from_account_id: ids.account,
        to_account_id: ids.other,
        amount: '1.5',
        currency: 'USD',
        description: 'a',
        metadata: { line: '2' },
      }),
    });
    expect(items).toContainEqual({
      transaction: expect.objectContaining({
        account_id: ids.other,
        transaction_type: 'Deposit',
        amount: '3',
        metadata: { line: '4' },
      }),
    });
    expect(new Set(commands().map(({ headers }) => headers['ce_id'])).size).toBe(commands().length / 2);
    expect(JSON.parse(String(commands()[0]?.value))).toMatchObject({
      external_id: createHash('sha256').update(file).digest('hex'),
      metadata: {
        file_name: 'wages <b>.csv',
        form: 'k',
        omitted: '1',
        omitted_lines: '3',
        omitted_1: '[[3,"SAV-9","SAV-2","1.00","USD","unknown_from"]]',
      },
    });
  });

  const sentOnce = (form: string, changes: object = {}) =>
    ok({
      items: [
        {
          batch_id,
          mode: 'independent',
          status: 'Completed',
          counts: { completed: 2, failed: 0, pending: 0 },
          ...head,
          actor: 'jwt:x|bob',
          totals: [{ currency: 'USD', amount: '4.50' }],
          metadata: { file_name: 'wages of may.csv', form },
          ...changes,
        },
      ],
    });

  it('that was sent before is sent again only with a tick, whoever sent it, even if that was after the check', async () => {
    const { send, of, post, session } = await upload({ idempotency_key: 'k' }, file);
    answers['list_batches'] = sentOnce('another form');
    const asked = await send();
    expect(asked.statusCode).toBe(409);
    for (const text of ['same content was sent before', 'wages of may.csv', 'bob', '2 posted', '4.50 USD'])
      expect(visibleText(asked.body)).toContain(text);
    expect([hidden(asked.body, 'of'), commands()]).toEqual([of, []]);
    const { answer } = await upload({ idempotency_key: 'k' }, file);
    expect(visibleText(answer.body)).toContain('same content was sent before');
    // The warning comes before the tables, and its tick has the focus.
    expect(answer.body).toMatch(
      /same content was sent before[^]* autofocus[^>]*> Pay everything[^]*What cannot be sent<[^]*<table/,
    );
    const confirmed = await post(`${url}/sending`, { csrf_token: session.csrf, of, confirmed: 'yes' });
    expect([confirmed.statusCode, commands().length]).toEqual([303, 1]);
    // The list now has this form's own batch, too.
    answers['list_batches'] = sentOnce('k');
    expect((await send()).headers.location).toBe(confirmed.headers.location);
    const asksFor = made.sent.filter(({ headers }) => headers['ce_type']?.includes('query.list_batches.'));
    expect(JSON.parse(String(asksFor[0]?.value))).toMatchObject({
      external_id: createHash('sha256').update(file).digest('hex'),
    });
  });

  it.each([
    ['with other line ends', file.replaceAll('\n', '\r\n')],
    ['with carriage returns alone', file.replaceAll('\n', '\r')],
    ['with a byte order mark', `\ufeff${file}`],
    ['without its last line end, or with more', file.trimEnd()],
    ['in UTF-16', Buffer.from(`\ufeff${file}`, 'utf16le')],
  ])('that was sent before is known if it was saved again %s', async (_how, again) => {
    answers['list_batches'] = ({ external_id }) =>
      external_id === createHash('sha256').update(file).digest('hex') ? sentOnce('another form') : ok({ items: [] });
    const { answer } = await upload({}, again);
    expect(visibleText(answer.body)).toContain('same content was sent before');
  });

  it('of which nothing was posted before needs no tick', async () => {
    for (const changes of [
      { status: 'Refused', counts: { completed: 0, failed: 2, pending: 0 } },
      { counts: { completed: 0, failed: 2, pending: 0 } },
    ]) {
      answers['list_batches'] = sentOnce('another form', changes);
      expect((await (await upload({}, file)).send()).statusCode).toBe(303);
    }
    answers['list_batches'] = sentOnce('another form', { counts: { completed: 0, failed: 0, pending: 2 } });
    expect((await (await upload({}, file)).send()).statusCode).toBe(409);
  });

  it('with equal lines is sent only with a tick', async () => {
    const { answer, send, post, session, of } = await upload({}, 'to,amount\nSAV-2,5\nSAV-2,7\nSAV-2,5.00\n');
    expect(visibleText(answer.body)).toContain('more than once: see line 4');
    expect([(await send()).statusCode, commands()]).toEqual([409, []]);
    expect((await post(`${url}/sending`, { csrf_token: session.csrf, of, confirmed: 'yes' })).statusCode).toBe(303);
  });

  it('with 1,500.75 without quotation marks pays nothing for that line', async () => {
    const { answer, send } = await upload({}, 'from,to,amount\nSAV-1,SAV-2,1,500.75\n,SAV-2,3\n');
    expect(visibleText(answer.body)).toContain('2 The line has 4 values, but the first line has 3 names.');
    await send();
    const [sent] = commands().map(({ value }) => JSON.parse(String(value)) as { items: object[] });
    expect(sent?.items).toMatchObject([{ transaction: { amount: '3' } }]);
  });

  it('with a line that the API would not accept does not promise to send it', async () => {
    const rows = ['SAV-2,1,turned \u202e', 'SAV-2,2,ok'];
    const { answer, send } = await upload({}, `to,amount,description\n${rows.join('\n')}`);
    expect(visibleText(answer.body)).toMatch(/2 The description must not contain/);
    expect(visibleText(answer.body)).toContain('Can be sent 1 payment Cannot be sent 1');
    expect((await send()).statusCode).toBe(303);
  });

  it('says how much cannot be sent, to whom, and in the bank’s format, if it can be read', async () => {
    const over = 'from,to,amount\nSAV-1,SAV-2,190000\nSAV-1,SAV-2,0.50\n,SAV-2,"1234567,5"\n';
    const { answer } = await upload({ mode: 'atomic' }, `${over}SAV-2,SAV-2,1000`);
    const text = visibleText(answer.body);
    expect(text).toMatch(/Cannot be sent 2 , together 191000\.00 USD/);
    expect(text).toMatch(/can be taken from it\. SAV-1 SAV-2 190000\.00 USD/);
    const { answer: other } = await upload({ mode: 'independent' }, `${over}SAV-9,SAV-2,7\nSAV-1,SAV-2,much`);
    expect(visibleText(other.body)).toMatch(/Cannot be sent 3 If/);
  });

  it('with a refused line is not sent if it is all or nothing', async () => {
    const { answer, of } = await upload({ mode: 'atomic' }, file);
    expect([visibleText(answer.body).includes('This file cannot be sent'), of]).toEqual([true, '']);
  });

  it('of more than 500 payments cannot be all or nothing; one that is too large is refused', async () => {
    const many = `to,amount\n${'SAV-2,1\n'.repeat(501)}`;
    const { answer } = await upload({ mode: 'atomic' }, many);
    expect([answer.statusCode, answer.body.includes('At most 500')]).toEqual([400, true]);
    const huge = await upload({}, 'x'.repeat(2_200_000));
    expect([huge.answer.statusCode, huge.answer.body.includes('Too large')]).toEqual([413, true]);
  });

  it('of the largest size is sent: the payments in it do not count as a second body of the person', async () => {
    const { of, session, cookie } = await upload({}, file);
    const fields = new URLSearchParams({ csrf_token: session.csrf, of, rest: '' }).toString();
    const address = await made.app.listen({ host: '127.0.0.1', port: 0 });
    const sent = await fetch(`${address}${url}/sending`, {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
      body: fields.padEnd(2 * 1024 * 1024, 'x'),
      redirect: 'manual',
    });
    expect(sent.headers.get('location')).toContain(`${url}/bat_`);
  });

  it('cannot be sent with another person’s form, or without the scope', async () => {
    const { of, post, session, cookie } = await upload({}, file);
    expect((await post(`${url}/sending`, { of })).statusCode).toBe(403);
    expect((await post(`${url}/sending`, { csrf_token: session.csrf, of: `${of.slice(0, -4)}AAAA` })).statusCode).toBe(
      404,
    );
    const reader = made.signedIn('accounts:read transactions:read');
    expect((await reader.post(`${url}/sending`, { csrf_token: reader.session.csrf, of })).statusCode).toBe(403);
    expect((await reader.get(url)).statusCode).toBe(403);
    const broken = await made.app.inject({
      method: 'POST',
      url: `${url}/preview`,
      headers: { host: 'bank.example', cookie, 'content-type': 'multipart/form-data; boundary=x' },
      payload: 'no form',
    });
    expect(broken.statusCode).toBe(400);
    expect(commands()).toEqual([]);
  });
});

describe('its outcome', () => {
  it.each(['unacknowledged', 'not_sent', 'malformed'] as const)(
    'is unknown (%s): the page says so, and repeats it with the same key',
    async (answer) => {
      const create = answers['create_batch'] as Answer;
      answers['create_batch'] = answer;
      const { send, of } = await upload({}, file);
      const unknown = (await send()).body;
      for (const text of ['Not known yet', 'Do not upload the file again']) expect(unknown).toContain(text);
      expect(hidden(unknown, 'of')).toBe(of);
      answers['create_batch'] = create;
      const before = new Set(commands().map(({ headers }) => headers['ce_id']));
      expect((await send()).headers.location).toContain(`${url}/bat_`);
      expect(new Set(commands().map(({ headers }) => headers['ce_id']))).toEqual(before);
    },
  );

  it('is a refusal of all: the lines are named with their reasons', async () => {
    answers['create_batch'] = {
      ok: false,
      refusal: {
        code: 'batch_refused',
        message: 'words of the API',
        errors: [{ field: 'items[1].transaction', code: 'approval_required', message: 'words of the API' }],
      },
    };
    const { send } = await upload({}, file);
    const { body, statusCode } = await send();
    expect(statusCode).toBe(400);
    expect(visibleText(body)).toContain('nothing was posted');
    expect(visibleText(body)).toContain('4 A second person must approve this');
    expect(body).not.toContain('words of the API');
  });

  it('is shown by line, with reasons, and as a file', async () => {
    const { get } = made.signedIn(clerk);
    const page = visibleText((await get(`${url}/${batch_id}`)).body);
    expect(page).toContain('1 of 2 payments were refused.');
    expect(page).toMatch(/2 Posted Transfer SAV-1 SAV-2 5.00 USD/);
    expect(page).toContain('4 Refused The balance would be larger than the bank allows.');
    expect(page).not.toContain('words of the API');
    const only = visibleText((await get(`${url}/${batch_id}?only=refused`)).body);
    expect([only.includes('4 Refused'), only.includes('2 Posted')]).toEqual([true, false]);
    const csv = (await get(`${url}/${batch_id}/results.csv`)).body;
    expect(csv).toContain(
      '"4","Refused","The balance would be larger than the bank allows.","Deposit","","SAV-1","25.00"',
    );
  });

  it('says which lines of the file were never sent, by name and total of what was', async () => {
    const metadata = { file_name: 'wages.csv', omitted: '3', omitted_lines: '3, 5, 6' };
    const sent = (completed: number, failed: number, results: object[]) => {
      const head_ = { ...head, totals: [{ currency: 'USD', amount: '5.00' }], metadata };
      const counts = { completed, failed, pending: 0 };
      return { batch_id, mode: 'independent', status: 'Completed', counts, ...head_, results };
    };
    answers['get_batch'] = ok(sent(1, 0, [itemResult(0)]));
    answers['list_clients'] = ok({ items: [samples.client] });
    const { get } = made.signedIn(`${clerk} clients:read`);
    const shown = async () => visibleText((await get(`${url}/${batch_id}`)).body);
    expect(await shown()).toMatch(
      /1 of 4 payments in the file were posted; 3 lines were never sent: 3, 5, 6\. .*Never sent 3 Total posted 5\.00 USD .*SAV-1 x SAV-2 x 5\.00 USD/,
    );
    expect(await shown()).not.toContain('All payments were posted');
    expect(await shown()).not.toMatch(/3 Never sent/);
    answers['get_batch'] = ok(sent(1, 1, [itemResult(0), itemResult(1)]));
    expect(await shown()).toMatch(/1 of 2 payments were refused\. .*1 of 5 payments in the file were posted; 3 lines/);
    answers['list_batches'] = ok({ items: [{ ...sent(1, 0, []), results: undefined }] });
    expect(visibleText((await get(url)).body)).toContain('wages.csv 3 lines never sent');
  });

  it('has the lines that were never sent, with what they say as far as it can be kept, and no names that were typed', async () => {
    const line = {
      from: 'SAV-1',
      to: 'SAV-9',
      amount: '1,9',
      currency: 'USD',
      reference: '',
      description: 'Rent of <x>',
    };
    const refusedLines = [
      { line: { ...line, line: 3 }, code: 'unknown_to' },
      { line: { ...line, line: 5, to: `JANE ${'x'.repeat(60)}` }, code: 'unknown_to' },
      { line: { ...line, line: 6, amount: '5 JANE' }, code: 'invalid_amount' },
      { line: { ...line, line: 7, currency: 'jane' }, code: 'currency_mismatch' },
    ].map((one) => ({ ...one, reason: 'There is no account JANE. Check the number.', currency: 'USD' }));
    const metadata = { file_name: 'wages.csv', ...toOmitted(refusedLines), omitted_7: '{"not":"ours"}' };
    const { omitted_1 = '' } = metadata as Record<string, string>;
    expect(omitted_1).not.toMatch(/JAN|Rent/i);
    const counts = { completed: 1, failed: 1, pending: 0 };
    const batch = { batch_id, mode: 'independent', status: 'Completed', counts, ...head, metadata };
    answers['get_batch'] = ok({ ...batch, results: [itemResult(0), itemResult(1)] });
    const { get } = made.signedIn(clerk);
    const all = visibleText((await get(`${url}/${batch_id}`)).body);
    expect(all).toMatch(
      /2 Posted .* 3 Never sent There is no account with this number in To\. SAV-1 SAV-9 1\.90 USD 4 Refused .* 5 Never sent There is no account with this number in To\. SAV-1 1\.90 USD 6 Never sent This is not an amount in the currency of the account\. SAV-1 SAV-9 USD 7 Never sent The account has another currency\. SAV-1 SAV-9 1\.90 /,
    );
    expect(all).not.toContain('not kept');
    const only = visibleText((await get(`${url}/${batch_id}?only=never-sent`)).body);
    expect([only.includes('3 Never sent'), only.includes('2 Posted')]).toEqual([true, false]);
    const csv = (await get(`${url}/${batch_id}/results.csv`)).body;
    expect(csv).toContain(
      '"3","Never sent","There is no account with this number in To.","","SAV-1","SAV-9","1.90","USD"',
    );
    // The metadata takes so many; the numbers of the others stay.
    const many = toOmitted(
      Array.from({ length: 900 }, (_, i) => ({
        line: { ...line, line: i + 2 },
        reason: 'x'.repeat(300),
        code: 'unknown_to',
        currency: 'USD',
      })),
    );
    expect(Object.values(many).every((text) => text.length <= 500)).toBe(true);
    expect([Object.keys(many).length, many['omitted']]).toEqual([14, '900']);
    // What is missing is said where its rows would be.
    answers['get_batch'] = ok({ ...batch, metadata: many, results: [] });
    const missing = /(\d+) more lines are not kept: see your file\./;
    const page = visibleText((await get(`${url}/${batch_id}?only=never-sent`)).body);
    const file = (await get(`${url}/${batch_id}/results.csv`)).body.trim().split('\r\n');
    const kept = file.filter((row) => row.includes('"SAV-9"')).length;
    expect(kept).toBeGreaterThan(50);
    expect(missing.exec(page)?.[1]).toBe(String(900 - kept));
    expect(file.at(-1)).toMatch(/^"","Never sent","\d+ more lines are not kept: see your file\.","","","",""/);
    expect(missing.exec(file.at(-1) ?? '')?.[1]).toBe(String(900 - kept));
    expect(visibleText((await get(`${url}/${batch_id}?only=refused`)).body)).not.toMatch(missing);
  });

  it('is refreshed automatically while something is unknown', async () => {
    answers['get_batch'] = ok({
      batch_id,
      mode: 'independent',
      status: 'Pending',
      counts: { completed: 1, failed: 0, pending: 1 },
      ...head,
      results: [itemResult(0), { index: 1, status: 'Pending' }],
    });
    const { body } = await made.signedIn(clerk).get(`${url}/${batch_id}`);
    expect(body).toContain(`hx-get="${url}/${batch_id}"`);
    expect(visibleText(body)).toContain('1 of 2 payments are decided.');
    expect(visibleText(body)).toContain('2 Not known yet');
  });

  it('of a batch that was refused as a whole can also be read by its id', async () => {
    answers['get_batch'] = {
      ok: false,
      refusal: {
        code: 'batch_refused',
        message: 'x',
        errors: [{ field: 'items[1].transfer', code: 'insufficient_funds', message: 'x' }],
      },
    };
    const { get } = made.signedIn(clerk);
    expect((await get(`${url}?batch=${batch_id}`)).headers.location).toBe(`${url}/${batch_id}`);
    expect(visibleText((await get(`${url}/${batch_id}`)).body)).toContain('Payment 2: There is not enough money');
  });

  it('that were sent are listed by who sent them and by day', async () => {
    const actor = `jwt:${issuer}|ada`;
    const query = new URLSearchParams({ actor, from_day: '2026-01-02', to_day: '2026-01-02' });
    const { body } = await made
      .signedIn('transactions:write transactions:read')
      .get(`/admin/ui/counter/batches?${query}`);
    const asked = made.sent.filter(({ headers }) => headers['ce_type']?.includes('query.list_batches.')).at(-1);
    expect(JSON.parse(String(asked?.value))).toMatchObject({
      actor,
      from: '2026-01-02T00:00:00.000Z',
      to: '2026-01-03T00:00:00.000Z',
    });
    expect(body).toContain(`<option value="${actor}" selected>Me</option>`);
    // Others may have been sent.
    expect(visibleText(body)).toContain('No file matches. Clear the filters');
  });
});
