import { hash } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { setBankFormats } from '#libs/service/formats.ts';
import { ids, ok, refused, samples, testApp } from '../test/test-app.ts';

const line = {
  entry_id: 'ent_1',
  operation_id: 'opr_1',
  transaction_id: ids.transaction,
  account_id: ids.account,
  direction: 'credit',
  side: 'CR',
  amount: '10.00',
  currency: 'USD',
  created_at: '2026-01-02T03:04:05.678Z',
  transaction_type: 'Deposit',
  reference: null,
};

function page(from: number, to: number, count: number) {
  return {
    account_id: ids.account,
    account_number: 'SAV-1234567897',
    currency: 'USD',
    from: null,
    to: null,
    opening_balance: '0.00',
    closing_balance: `${count * 10}.00`,
    debit_total: '0.00',
    credit_total: `${count * 10}.00`,
    entry_count: count,
    entries: Array.from({ length: to - from }, (_, i) => ({
      ...line,
      sequence: from + i,
      balance_after: '0.00',
      description: `Payment ${from + i}.`,
    })),
  };
}

const url = `/accounts/${ids.account}/statement`;
const asPage = { accept: 'text/html' };

/** A bank whose account has three entries on two pages; the client is a company. */
function bank(count = 3, account_number = 'SAV-1234567897') {
  const item = (from: number, to: number) => ({ ...page(from, to, count), account_number });
  return testApp(({ name, data }) => {
    if (name === 'get_account') return ok(samples.master);
    if (name === 'get_client')
      return ok({ ...samples.client, company_name: 'Baraka Traders', address: 'Moi Road\nNairobi' });
    if (name !== 'get_statement') return refused('internal_error');
    return ok(data['after'] === undefined ? { item: item(1, 3), next: { at: '', id: '2.4' } } : { item: item(3, 4) });
  });
}

afterEach(() => setBankFormats({ timeZone: 'UTC', locale: undefined }));

/** Returns the text of a page, without its markup. */
function visibleText(page: string): string {
  return page
    .replace(/<style>.*<\/style>/s, '')
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ');
}

test('a caller that accepts HTML gets the whole period on one page, with the bank and the holder', async () => {
  // contract: accounts-27
  const address = ['1 Kenyatta Avenue'];
  setBankFormats({ name: 'Bank of Nairobi', address, timeZone: 'Africa/Nairobi', locale: 'en-KE' });
  const { app, keyHeader, sent } = await bank();
  const answer = await app.inject({ url: `${url}?from=2026-01-01`, headers: { ...keyHeader(), ...asPage } });
  expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  const text = visibleText(answer.payload);
  for (const part of [
    'Bank of Nairobi 1 Kenyatta Avenue',
    'Baraka Traders Moi Road Nairobi',
    'Times those of Africa/Nairobi',
    'Closing balance 30.00 USD',
  ])
    expect(text).toContain(part);
  // 03:04 UTC is 06:04 in Nairobi.
  for (const n of [1, 2, 3]) expect(text).toMatch(new RegExp(`6:04:05\\D* Deposit Payment ${n}\\. 10\\.00 0\\.00`));
  const asked = sent.map((message) => JSON.parse(String(message.value)));
  expect(asked.slice(0, 2)).toMatchObject([{ from: '2026-01-01T00:00:00.000Z', limit: 500 }, { after: { id: '2.4' } }]);
  await app.close();
});

test.each([
  ['SAV-1234567897', 'In 30.00 USD Out 0.00 USD', 'Details Out In Balance'],
  // The balance of a loan is what is owed.
  ['LOA-1234567897', 'Lent 30.00 USD Paid off 0.00 USD', 'Details Paid off Lent Balance'],
])('the page names the movements of %s', async (account_number, totals, columns) => {
  const { app, keyHeader } = await bank(3, account_number);
  const { payload } = await app.inject({ url, headers: { ...keyHeader(), ...asPage } });
  const text = visibleText(payload);
  expect(text).toContain(totals);
  expect(text).toContain(columns);
  await app.close();
});

test('the page says from whom and to whom money went, with names for callers who may read every client', async () => {
  // contract: accounts-27
  const other = (n: number) => `acc_${String(n).repeat(32)}`;
  const lines = [
    ['Transfer', 'credit', 1],
    ['Transfer', 'debit', 2],
    ['Loan Payment', 'debit', 3],
  ] as const;
  const { app, keyHeader } = await testApp(({ name, data }) => {
    if (name === 'get_account') return ok(samples.master);
    if (name === 'get_client') return ok(samples.client);
    if (name === 'list_accounts') {
      const asked = String(data['account_ids']).split(',');
      const rows = asked.map((account_id) => ({
        ...samples.master,
        account_id,
        client_id: `cli_${account_id.slice(4)}`,
      }));
      // One was erased meanwhile, or belongs to nobody who is found.
      return ok({ items: rows.filter(({ account_id }) => account_id !== other(3)) });
    }
    if (name === 'list_clients') {
      const asked = String(data['client_ids']).split(',');
      return ok({
        items: asked.map((client_id) => ({
          ...samples.client,
          client_id,
          company_name: `Owner <${client_id.at(-1)}>`,
        })),
      });
    }
    const one = page(1, 2, 3);
    const [entry] = one.entries;
    const transfers = lines.map(([transaction_type, direction, n]) => ({
      ...entry,
      transaction_type,
      direction,
      counterparty_account_id: other(n),
      counterparty_account_number: `CHK-${n}`,
    }));
    const undone = { ...transfers[0], direction: 'debit', reverses_transaction_id: ids.transaction };
    return ok({ item: { ...one, entries: [...transfers, undone] } });
  });
  const shown = async (key: object) =>
    visibleText((await app.inject({ url, headers: { ...keyHeader(key), ...asPage } })).payload);
  const read = ['transactions:read', 'accounts:read'];
  const named = await shown({ scopes: [...read, 'clients:read'] });
  for (const part of [
    'Transfer from Owner &lt;1&gt;, CHK-1',
    'Transfer to Owner &lt;2&gt;, CHK-2',
    'Loan repayment to CHK-3',
    'Reversal of Transfer from Owner &lt;1&gt;, CHK-1',
  ])
    expect(named).toContain(part);
  expect(await shown({ scopes: read })).toContain('Transfer from CHK-1');
  expect(await shown({ scopes: [...read, 'clients:read'], client_id: ids.client })).toContain('Transfer from CHK-1');
  await app.close();
});

test('where clocks are set back, the period and the entries of both hours are told apart', async () => {
  // contract: envelope-23
  setBankFormats({ timeZone: 'Europe/Berlin', locale: undefined });
  const [from, to] = ['2026-10-25T00:30:00.000Z', '2026-10-25T01:30:00.000Z'];
  const { app, keyHeader } = await testApp(({ name }) => {
    if (name === 'get_account') return ok(samples.master);
    if (name === 'get_client') return ok(samples.client);
    const one = page(1, 3, 2);
    const entries = one.entries.map((entry, at) => ({ ...entry, created_at: `2026-10-25T0${at}:45:00.000Z` }));
    return ok({ item: { ...one, from, to, entries } });
  });
  const { payload } = await app.inject({ url: `${url}?from=${from}&to=${to}`, headers: { ...keyHeader(), ...asPage } });
  const text = visibleText(payload);
  expect(text).toContain('Period from 2026-10-25 02:30:00 GMT+2 until 2026-10-25 02:30:00 GMT+1');
  expect(text).toMatch(/2026-10-25 02:45:00 GMT\+2 Deposit Payment 1.*2026-10-25 02:45:00 GMT\+1 Deposit Payment 2/);
  await app.close();
});

test('the page needs nothing but itself: its policy allows its own style and nothing else', async () => {
  // contract: accounts-27
  const { app, keyHeader } = await bank();
  const { payload, headers } = await app.inject({ url, headers: { ...keyHeader(), ...asPage } });
  const [, style = ''] = /<style>(.*)<\/style>/s.exec(payload) ?? [];
  expect(headers['content-security-policy']).toBe(
    `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; frame-ancestors 'none'`,
  );
  expect(payload).not.toMatch(/<script|<link|<img|\bsrc=|https?:/);
  await app.close();
});

test('texts of callers stay text, in any script', async () => {
  const description = '<b>田中さん</b> محمد "&" שלום';
  const { app, keyHeader } = await testApp(({ name }) => {
    const one = page(1, 2, 1);
    if (name === 'get_account') return ok(samples.master);
    if (name === 'get_client') return ok({ ...samples.client, company_name: '<i>አበበ</i>', address: null });
    return ok({ item: { ...one, entries: one.entries.map((entry) => ({ ...entry, description })) } });
  });
  const { payload } = await app.inject({ url, headers: { ...keyHeader(), ...asPage } });
  expect(payload).toContain('&lt;b&gt;田中さん&lt;/b&gt; محمد &quot;&amp;&quot; שלום');
  expect(payload).toContain('&lt;i&gt;አበበ&lt;/i&gt;');
  await app.close();
});

test('without clients:read it does not name the holder', async () => {
  const { app, keyHeader } = await bank();
  const headers = { ...keyHeader({ scopes: ['transactions:read'] }), ...asPage };
  const answer = await app.inject({ url, headers });
  expect(answer.statusCode).toBe(200);
  const text = visibleText(answer.payload);
  expect([text.includes('Payment 3.'), text.includes('Baraka')]).toEqual([true, false]);
  await app.close();
});

test('too many entries, a cursor, and an unknown parameter are refused by name; refusals of the ledger are returned', async () => {
  const { app, keyHeader } = await bank(10_001);
  const call = async (path: string) => {
    const answer = await app.inject({ url: path, headers: { ...keyHeader(), ...asPage } });
    return [answer.statusCode, answer.json().code, answer.json().errors?.[0]?.field];
  };
  expect(await call(url)).toEqual([400, 'validation_failed', 'from']);
  expect(await call(`${url}?cursor=x`)).toEqual([400, 'validation_failed', 'cursor']);
  expect(await call(`${url}?fom=2026-01-01`)).toEqual([400, 'unknown_parameter', 'fom']);
  expect(await call('/accounts/x/statement')).toEqual([404, 'account_not_found', undefined]);
  await app.close();
});

test('a caller may request one page or file at a time; other callers and JSON are not concerned', async () => {
  // contract: permission-37
  let go: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  let asked = 0;
  const { app, keyHeader } = await testApp(async ({ name }) => {
    if (name === 'get_account') return ok(samples.master);
    if (name === 'get_client') return ok(samples.client);
    if (asked++ === 0) await gate;
    return ok({ item: page(1, 2, 1) });
  });
  const [greedy, other] = [keyHeader(), keyHeader()];
  const get = (headers: object) => app.inject({ url, headers: { ...headers } });
  const first = get({ ...greedy, ...asPage });
  while (asked === 0) await new Promise((resolve) => setImmediate(resolve));
  const second = await get({ ...greedy, ...asPage });
  expect([second.statusCode, second.json().code, second.headers['retry-after']]).toEqual([429, 'rate_limited', '1']);
  expect((await get({ ...other, ...asPage })).statusCode).toBe(200);
  expect((await get(greedy)).statusCode).toBe(200);
  const file = { url: `${url}?on=2026-01-02`, headers: { ...greedy, accept: 'application/xml' } };
  expect((await app.inject(file)).statusCode).toBe(429);
  go();
  expect((await first).statusCode).toBe(200);
  expect((await get({ ...greedy, ...asPage })).statusCode).toBe(200);
  expect((await app.inject(file)).statusCode).toBe(200);
  await app.close();
});

const day = `${url}?on=2026-01-02`;
const asXml = { accept: 'application/xml' };

test('a caller that accepts XML gets the whole day as one file, and asks the ledger for that day', async () => {
  // contract: days-23
  const { app, keyHeader, sent } = await bank();
  for (const accept of ['application/xml', 'text/xml']) {
    const answer = await app.inject({ url: day, headers: { ...keyHeader(), accept } });
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, `${accept}; charset=utf-8`]);
    expect(answer.payload).toMatch(/^<\?xml [^]*<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt\.053\.001\.08">/);
    expect(answer.payload.match(/<Ustrd>[^<]*/g)).toEqual([1, 2, 3].map((n) => `<Ustrd>Payment ${n}.`));
    expect(answer.payload).toContain('<Ownr><Nm>Baraka Traders</Nm></Ownr>');
    expect(answer.payload).toMatch(/<\/Document>\n$/);
    expect(answer.headers['content-disposition']).toBe(
      'attachment; filename="statement-SAV-1234567897-2026-01-02.xml"',
    );
  }
  const asked = sent.map((message) => JSON.parse(String(message.value)));
  expect(asked[0]).toEqual({ account_id: ids.account, on: '2026-01-02', limit: 500 });
  const head = await app.inject({ method: 'HEAD', url: day, headers: { ...keyHeader(), ...asXml } });
  expect([head.statusCode, head.payload]).toEqual([200, '']);
  await app.close();
});

test('other requests are served while a file is made', async () => {
  const { app, keyHeader } = await testApp(({ name }) => {
    if (name !== 'get_statement') return ok(name === 'get_account' ? samples.master : samples.client);
    return ok({ item: page(1, 501, 500) });
  });
  const answer = await app.inject({ url: day, headers: { ...keyHeader(), ...asXml }, payloadAsStream: true });
  let turn = 0;
  let isRead = false;
  const count = () => void (isRead || (turn++, setImmediate(count)));
  count();
  const made = new Map<number, number>();
  for await (const piece of answer.stream())
    made.set(turn, (made.get(turn) ?? 0) + String(piece).split('<Ntry>').length - 1);
  isRead = true;
  const counts = [...made.values()];
  expect(counts.reduce((sum, one) => sum + one)).toBe(500);
  // As many entries as are made without a pause.
  expect(Math.max(...counts)).toBeLessThanOrEqual(100);
  await app.close();
});

test('the file does not name the holder without clients:read', async () => {
  // contract: days-24
  const { app, keyHeader } = await bank();
  const headers = { ...keyHeader({ scopes: ['transactions:read'] }), ...asXml };
  const { payload } = await app.inject({ url: day, headers });
  expect([payload.includes('<NtryRef>3</NtryRef>'), payload.includes('Ownr')]).toEqual([true, false]);
  await app.close();
});

test('XML without a day, with a cursor, and a day with a period are refused by name', async () => {
  // contract: days-23
  const { app, keyHeader } = await bank();
  const call = async (path: string, accept: string) => {
    const answer = await app.inject({ url: path, headers: { ...keyHeader(), accept } });
    return [answer.statusCode, answer.json().code, answer.json().errors?.[0]];
  };
  const wrong = (field: string, message: unknown) => [
    400,
    'validation_failed',
    { field, code: 'validation_failed', message },
  ];
  for (const period of ['', '?from=2026-01-01', '?effective_from=2026-01-01&effective_to=2026-01-01'])
    expect(await call(`${url}${period}`, 'text/xml')).toEqual(
      wrong('on', 'on is required: text/xml is the statement of one day'),
    );
  expect(await call(`${day}&cursor=x`, 'application/xml')).toEqual(wrong('cursor', expect.any(String)));
  for (const accept of ['application/json', 'text/html', 'application/xml'])
    for (const name of ['from', 'to', 'effective_from', 'effective_to'])
      expect(await call(`${day}&${name}=2026-01-01`, accept)).toEqual(
        wrong('on', 'on cannot be combined with from, to, effective_from, and effective_to'),
      );
  expect(await call(`${url}?on=2026-02-30`, 'application/xml')).toEqual(wrong('on', expect.any(String)));
  expect((await call('/accounts/x/statement?on=2026-01-01', 'application/xml'))[1]).toBe('account_not_found');
  await app.close();
});

test('a refusal of the ledger is the response; a failure after the first page ends the connection', async () => {
  // contract: days-28
  let failsAt = 1;
  let asked = 0;
  const { app, keyHeader } = await testApp(({ name }) => {
    if (name !== 'get_statement') return ok(name === 'get_account' ? samples.master : samples.client);
    return ++asked === failsAt
      ? refused('validation_failed')
      : ok({ item: page(1, 3, 9), next: { at: '', id: '2.4' } });
  });
  const get = () => app.inject({ url: day, headers: { ...keyHeader(), ...asXml } });
  expect((await get()).statusCode).toBe(400);
  [failsAt, asked] = [3, 0];
  await expect(get()).rejects.toThrow();
  await app.close();
});

test('too many entries of a day for paper are refused with another form', async () => {
  const { app, keyHeader } = await bank(10_001);
  const answer = await app.inject({ url: day, headers: { ...keyHeader(), ...asPage } });
  expect([answer.statusCode, answer.json().errors]).toMatchObject([
    400,
    [{ field: 'on', message: expect.stringMatching(/use JSON or application\/xml$/) }],
  ]);
  await app.close();
});
