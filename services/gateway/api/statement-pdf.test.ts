import { extractText, getDocumentProxy } from 'unpdf';
import { expect, test, vi } from 'vitest';
import { createPdfMaker } from '../statement-pdf/make-pdf.ts';
import type { PrintedStatement } from '../statement-pdf/statement-pdf.ts';
import { ids, ok, refused, samples, testApp } from '../test/test-app.ts';
import { prefersPdf } from './statement-pdf.ts';

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
const asPdf = { accept: 'application/pdf' };

/** A bank whose account has three entries on two pages; the client is a company. */
function bank(count = 3) {
  return testApp(({ name, data }) => {
    if (name === 'get_account') return ok(samples.master);
    if (name === 'get_client')
      return ok({ ...samples.client, company_name: 'Baraka Traders', address: 'Moi Road\nNairobi' });
    if (name !== 'get_statement') return refused('internal_error');
    return ok(
      data['after'] === undefined
        ? { item: page(1, 3, count), next: { at: '', id: '2.4' } }
        : { item: page(3, 4, count) },
    );
  });
}

async function textOf(body: Buffer): Promise<string> {
  const { text } = await extractText(await getDocumentProxy(new Uint8Array(body)), { mergePages: true });
  return text.replace(/\s+/g, ' ');
}

test('a client that accepts PDF gets the whole period with all pages, the bank, and the holder', async () => {
  const { app, keyHeader, sent } = await bank();
  const answer = await app.inject({ url: `${url}?from=2026-01-01`, headers: { ...keyHeader(), ...asPdf } });
  expect([answer.statusCode, answer.headers['content-type'], answer.headers['content-disposition']]).toEqual([
    200,
    'application/pdf',
    `attachment; filename="statement-${ids.account}.pdf"`,
  ]);
  const text = await textOf(answer.rawPayload);
  for (const part of [
    'Bank of Nairobi 1 Kenyatta Avenue',
    'Baraka Traders Moi Road Nairobi',
    'Closing balance 30.00 USD',
  ])
    expect(text).toContain(part);
  for (const n of [1, 2, 3]) expect(text).toContain(`2026-01-02 06:04 Deposit Payment ${n}. 10.00 0.00`);
  const asked = sent.map((message) => JSON.parse(String(message.value)));
  expect(asked.slice(0, 2)).toMatchObject([{ from: '2026-01-01T00:00:00.000Z', limit: 500 }, { after: { id: '2.4' } }]);
  await app.close();
});

test('without clients:read it does not name the holder', async () => {
  const { app, keyHeader } = await bank();
  const headers = { ...keyHeader({ scopes: ['transactions:read'] }), ...asPdf };
  const answer = await app.inject({ url, headers });
  expect(answer.statusCode).toBe(200);
  const text = await textOf(answer.rawPayload);
  expect([text.includes('Payment 3.'), text.includes('Baraka')]).toEqual([true, false]);
  await app.close();
});

test('too many entries, a cursor, and an unknown parameter are refused by name; refusals of the ledger are returned', async () => {
  const { app, keyHeader } = await bank(2001);
  const call = async (path: string) => {
    const answer = await app.inject({ url: path, headers: { ...keyHeader(), ...asPdf } });
    return [answer.statusCode, answer.json().code, answer.json().errors?.[0]?.field];
  };
  expect(await call(url)).toEqual([400, 'validation_failed', 'from']);
  expect(await call(`${url}?cursor=x`)).toEqual([400, 'validation_failed', 'cursor']);
  expect(await call(`${url}?fom=2026-01-01`)).toEqual([400, 'unknown_parameter', 'fom']);
  expect(await call('/accounts/x/statement')).toEqual([404, 'account_not_found', undefined]);
  await app.close();
});

test('PDFs are generated in turn: a caller may request one, others wait for theirs, and JSON does not wait', async () => {
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
  const first = get({ ...greedy, ...asPdf });
  while (asked === 0) await new Promise((resolve) => setImmediate(resolve));
  const second = await get({ ...greedy, ...asPdf });
  expect([second.statusCode, second.json().code, second.headers['retry-after']]).toEqual([429, 'rate_limited', '1']);
  const waiting = get({ ...other, ...asPdf });
  expect((await get(greedy)).statusCode).toBe(200);
  expect(asked).toBe(2);
  go();
  expect([(await first).statusCode, (await waiting).statusCode]).toEqual([200, 200]);
  expect((await get({ ...greedy, ...asPdf })).statusCode).toBe(200);
  await app.close();
});

test('a PDF whose turn does not come in time is refused, and the next one is still made', async () => {
  const make = createPdfMaker(1);
  const { promise, reject } = Promise.withResolvers<PrintedStatement>();
  const first = make(() => promise);
  const read = vi.fn();
  await expect(make(read)).rejects.toMatchObject({ refusal: { code: 'service_unavailable' } });
  expect(read).not.toHaveBeenCalled();
  reject(new Error('the ledger is away'));
  await expect(first).rejects.toThrow('the ledger is away');
  await expect(make(() => Promise.reject(new Error('its turn')))).rejects.toThrow('its turn');
});

test('PDF is returned if it is named and not less preferred than JSON', () => {
  const cases: [string | undefined, boolean][] = [
    [undefined, false],
    ['*/*', false],
    ['application/json', false],
    ['application/pdf', true],
    ['Application/PDF; q=0.9', true],
    ['application/pdf, */*', true],
    ['application/pdf;q=0.5, */*', false],
    ['application/pdf, application/json;q=0.9', true],
    ['application/json, application/pdf', false],
    ['application/pdf;q=0', false],
  ];
  for (const [accept, expected] of cases) expect([accept, prefersPdf(accept)]).toEqual([accept, expected]);
});
