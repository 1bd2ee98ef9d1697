import { beforeAll, describe, expect, it } from 'vitest';
import {
  newKey,
  type RestAccount,
  type RestKey,
  type RestTransaction,
  type RestTransfer,
  type RestTransition,
  retail,
} from '../support/client.ts';
import { postRaw } from '../support/hostile.ts';
import { readTopic } from '../support/kafka.ts';
import { eventually, useSharedBank } from '../support/world.ts';

/**
 * Harmless input that looks hostile: texts in any script, and texts with a meaning in SQL, shells,
 * templates, or HTML. They are stored and returned unchanged.
 */
const world = useSharedBank();
const { api } = world;

let account: RestAccount;
let other: RestAccount;
beforeAll(async () => {
  [account, other] = [await api.newAccount({ initial_deposit: 1000 }), await api.newAccount()];
});

const texts: Record<string, string> = {
  emojis: '\u{1F600}\u{1F468}\u{1F467}\u{1F1F0}\u{1F1EA}\u{1F3FF}',
  'right to left': '\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627',
  Chinese: '\u674e\u5c0f\u9f99',
  'beyond the basic plane': '\u{20BB7}\u{10FFFD}',
  'combining marks': `Z\u0351\u036b\u0343${'\u0301'.repeat(20)}`,
  composed: '\u00c5ngstr\u00f6m',
  decomposed: 'A\u030angstro\u0308m',
  'zero width': 'a\u200b\u2060b',
  joiners: '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u0915\u094d\u200d\u0937',
  'a replacement character': 'a\ufffdb',
  'look-alikes': '\u0430\u0435\u043e \uff11\u0662',
  'ligatures and special cases': '\ufb01 \u00df \u0130 \u0131 \u01c5',
  SQL: "'; drop table transactions; --",
  'SQL, more': "x' or 1=1 /* ' || pg_sleep(5) || ' */ \"; $$ E'\\x00' $1 ?",
  LIKE: '100% _\\_ %',
  COPY: '\\N \\. \\t',
  arrays: '{1,2} "{}" NULL (1,2)',
  templates: '{{7*7}} ${7*7} <%= 7*7 %> #{7*7} %{x}',
  formats: '%s %d %n %p %x %00 %%',
  'a page': `<script>alert(1)</script><img src=x onerror='x'>&lt;&amp;"`,
  'a shell': '$(reboot) `id` | cat; && || > /dev/null',
  'a path': '../../../../etc/passwd',
  'a look-up': '${jndi:ldap://127.0.0.1/a}',
  JSON: '{"a":[1,{"__proto__":null}]} \\u0000 \\',
  quotes: `"'\u2018\u2019\u201c\u201d\u00ab\u00bb\u0060`,
  'a number': '1e400',
  words: 'null',
  'more words': 'undefined NaN true [object Object]',
  CSV: "=cmd|' /C calc'!A0",
  headers: 'x\\r\\nSet-Cookie: a=b',
  'blanks inside': 'a  \u00a0\u3000 b',
};

/** Deposits by id, with their descriptions. */
const booked = new Map<string, string>();

describe.each(Object.entries(texts))('%s', (_, text) => {
  it('in a client', async () => {
    // A name has no invisible character.
    const name = text.replace(/[\u200b\u2060]/g, '');
    const names = { first_name: name, last_name: name, address: text };
    const client = await api.client(names);
    expect(client).toMatchObject(names);
    expect((await api.get(`/clients/${client.client_id}`)).data()).toEqual(client);
    const company = {
      client_type: 'Corporate',
      company_name: name,
      registration_number: name.slice(0, 60).toWellFormed(),
      email: 'a@b.co',
      contact_number: '+254700000001',
    };
    const answer = await api.post('/clients', company);
    expect([answer.status, answer.data()]).toEqual([201, expect.objectContaining(company)]);
    expect(
      (await api.send('PATCH', `/clients/${client.client_id}`, { body: { address: `${text}.` } })).data(),
    ).toMatchObject({ ...names, address: `${text}.` });
  });

  it('in a deposit, its reversal, a transfer', async () => {
    const deposit = await api.transact(account.account_id, 'Deposit', 1, { description: text, reference: text });
    expect(deposit).toMatchObject({ description: text, reference: text });
    expect(
      (await api.get(`/transactions?reference=${encodeURIComponent(text)}`))
        .list<RestTransaction>()
        .map(({ transaction_id }) => transaction_id),
    ).toContain(deposit.transaction_id);
    booked.set(deposit.transaction_id, text);
    expect((await api.post(`/transactions/${deposit.transaction_id}/reversal`, { reason: text })).status).toBe(201);
    const transfer = await api.transfer(account.account_id, other.account_id, 1, { description: text });
    expect((await api.get(`/transfers/${transfer.transfer_id}`)).data<RestTransfer>().description).toBe(text);
  });

  it('in a note, in the name of a key', async () => {
    expect(
      (await api.post(`/accounts/${other.account_id}/status-transitions`, { status: 'Inactive', note: text })).status,
    ).toBe(200);
    const [last] = (await api.get(`/accounts/${other.account_id}/status-transitions`)).list<RestTransition>();
    expect(last?.note).toBe(text);
    await api.setStatus(other.account_id, 'Active');
    const key = await api.key({ name: text, scopes: ['clients:read'] });
    expect((await api.get(`/admin/api-keys/${key.key_id}`)).data<RestKey>().name).toBe(text);
  });
});

it('the events of the deposits contain them unchanged', async () => {
  const events = await eventually(async () => {
    const found = (await readTopic(world.bank, 'transactions'))
      .filter(({ headers }) => headers['ce_type']?.includes('.completed.'))
      .map(({ value }) => JSON.parse(String(value)) as { transaction: RestTransaction });
    return (
      [...booked.keys()].every((id) => found.some(({ transaction }) => transaction.transaction_id === id)) && found
    );
  });
  const described = new Map(
    events.map(({ transaction }) => [transaction.transaction_id, [transaction.description, transaction.reference]]),
  );
  for (const [id, text] of booked) expect(described.get(id)).toEqual([text, text]);
});

describe('texts in headers', () => {
  it.each(["'; drop table commands; --", '%s%n ${7*7} {{7*7}}', '"\\', '../../x', '<script>', ', ,'])(
    'Idempotency-Key and X-Request-Id: %s',
    async (text) => {
      const key = `${newKey()} ${text}`;
      const send = () =>
        api.post(
          '/transactions',
          { account_id: account.account_id, transaction_type: 'Deposit', amount: 1 },
          { 'idempotency-key': key, 'x-request-id': key },
        );
      const [first, again] = [await send(), await send()];
      expect([first.status, again.status, again.header('idempotent-replayed'), first.header('x-request-id')]).toEqual([
        201,
        201,
        'true',
        key,
      ]);
      expect(again.text).toBe(first.text);
      expect((await api.get(`/transactions?idempotency_key=${encodeURIComponent(key)}`)).list()).toEqual([first.body]);
      expect(
        (await api.get(`/transactions?idempotency_key=${encodeURIComponent(`${key.slice(0, -1)}%`)}`)).list(),
      ).toEqual([]);
    },
  );
});

describe('limits count characters, not bytes or code units', () => {
  it.each([
    ['ASCII', 'x'],
    ['two bytes', '\u00e9'],
    ['three bytes', '\u674e'],
    ['four bytes', '\u{1F600}'],
    ['marks', '\u0301'],
  ])('%s', async (_, character) => {
    const of = (count: number) => character.repeat(count);
    const client = (count: number) => api.post('/clients', { ...retail(), first_name: of(count) });
    const deposit = (description: number, reference: number) =>
      api.post('/transactions', {
        account_id: account.account_id,
        transaction_type: 'Deposit',
        amount: 1,
        description: of(description),
        reference: of(reference),
      });
    expect((await client(100)).status).toBe(201);
    expect((await client(101)).status).toBe(400);
    const longest = await deposit(255, 100);
    expect(longest.body).toMatchObject({ description: of(255), reference: of(100) });
    expect((await api.get(`/transactions?reference=${encodeURIComponent(of(100))}`)).list()).toEqual([longest.body]);
    expect((await deposit(256, 100)).error.errors?.map(({ field }) => field)).toEqual(['description']);
    expect((await deposit(255, 101)).error.errors?.map(({ field }) => field)).toEqual(['reference']);
  });
});

describe('JSON escapes do not change a text', () => {
  it.each<[string, string]>([
    ['\\u0041\\u00e9', 'A\u00e9'],
    ['\\ud83d\\ude00', '\u{1F600}'],
    ['\\uD83D\\uDE00', '\u{1F600}'],
    ['\\/\\"\\\\', '/"\\'],
    ['a:b,c{d}[e]', 'a:b,c{d}[e]'],
    ['\\\\u0000', '\\u0000'],
    ['\\\\ud800', '\\ud800'],
    ['\u007e\u00a1', '~\u00a1'],
    ['  trimmed \\u0020', 'trimmed'],
    ['__proto__', '__proto__'],
  ])('%s', async (written, text) => {
    const answer = await postRaw(
      api,
      '/transactions',
      `{"account_id":"${account.account_id}","transaction_type":"Deposit","\\u0061mount":1,"description":"${written}"}`,
    );
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body).toMatchObject({ description: text });
  });
});
