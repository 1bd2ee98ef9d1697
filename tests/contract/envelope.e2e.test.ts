import { describe, expect, it } from 'vitest';
import { type Answer, corporate, type ErrorBody, expectError, rawHttp, retail, unknownId } from '../support/client.ts';
import { readTopic } from '../support/kafka.ts';
import { eventually, useSharedBank } from '../support/world.ts';

/** Tests the contract of envelope, ids, and time; the table of errors; and requests without credentials. */
const world = useSharedBank();
const { api } = world;

describe('Envelope, ids, time', () => {
  it('POST responds 201 with a Location that returns the same resource', async () => {
    // contract: envelope-4
    const client = await api.post('/clients', retail());
    const { client_id } = client.data<{ client_id: string }>();
    const opening = await api.post('/accounts', {
      client_id,
      account_type: 'Current',
      currency: 'USD',
      initial_deposit: 50,
    });
    const { account_id } = opening.data<{ account_id: string }>();
    const other = await api.account(client_id);
    const deposit = await api.post('/transactions', { account_id, transaction_type: 'Deposit', amount: 5 });
    const transfer = await api.post('/transfers', {
      from_account_id: account_id,
      to_account_id: other.account_id,
      amount: 5,
    });
    const { transaction_id } = deposit.body as { transaction_id: string };
    expect([client, deposit, transfer].map(locationPath)).toEqual([
      `/clients/${client_id}`,
      `/transactions/${transaction_id}`,
      `/transfers/${transfer.data<{ transfer_id: string }>().transfer_id}`,
    ]);
    expect(locationPath(opening)).toBe(`/accounts/${account_id}`);
    expect((await api.get(locationPath(client))).body).toEqual(client.body);
    expect((await api.get(locationPath(transfer))).body).toEqual(transfer.body);
    expect((await api.get(locationPath(deposit))).body).toEqual({ status: 'success', data: deposit.body });
  });

  it('the Location of a note is the list that contains it', async () => {
    const { account_id, client_id } = await api.newAccount();
    for (const path of [`/clients/${client_id}/notes`, `/accounts/${account_id}/notes`]) {
      const note = await api.post(path, { note: 'x' });
      expect([note.status, note.header('location')]).toEqual([201, path]);
      expect((await api.get(locationPath(note))).list()).toEqual([note.data()]);
    }
  });

  function locationPath(answer: Answer): string {
    return new URL(answer.header('location') ?? '', 'http://localhost').pathname;
  }

  it('ids have a type prefix and 128 bits', async () => {
    // contract: envelope-7
    const account = await api.newAccount({ initial_deposit: 10 });
    const other = await api.newAccount();
    expect(account.client_id).toMatch(/^cli_[0-9a-f]{32}$/);
    expect(account.account_id).toMatch(/^acc_[0-9a-f]{32}$/);
    expect((await api.transact(account.account_id, 'Deposit', 1)).transaction_id).toMatch(/^txn_[0-9a-f]{32}$/);
    expect((await api.transfer(account.account_id, other.account_id, 1)).transfer_id).toMatch(/^trf_[0-9a-f]{32}$/);
  });

  it.each([
    'x',
    'acc_',
    "acc_' or '1'='1",
    unknownId('cli'),
    `acc_${'z'.repeat(32)}`,
    'a'.repeat(90),
    '../etc/passwd',
    '%00',
    '\u{1F4B0}',
  ])('a malformed id is like an unknown one: %s', async (id) => {
    // contract: envelope-10
    const path = id === '%00' ? id : encodeURIComponent(id);
    expectError(await api.get(`/accounts/${path}`), 404, 'account_not_found');
    expectError(await api.get(`/transactions/${path}`), 404, 'transaction_not_found');
    expectError(await api.get(`/transfers/${path}`), 404, 'transfer_not_found');
    if (!id.startsWith('cli')) expectError(await api.get(`/clients/${path}`), 404, 'client_not_found');
    expectError(
      await api.post('/transactions', { account_id: id, transaction_type: 'Deposit', amount: 1 }),
      404,
      'account_not_found',
    );
    const account = await api.newAccount();
    expectError(
      await api.post('/transfers', { from_account_id: id, to_account_id: account.account_id, amount: 1 }),
      404,
      'account_not_found',
    );
    expectError(
      await api.post('/transfers', { from_account_id: account.account_id, to_account_id: id, amount: 1 }),
      404,
      'account_not_found',
    );
  });

  it('created_at is the time of acceptance; entries have the posting time', async () => {
    // contract: envelope-13
    const before = Date.now();
    const account = await api.newAccount();
    const transaction = await api.transact(account.account_id, 'Deposit', 1);
    const [entry] = await api.entries(account.account_id);
    const after = Date.now();
    // The clocks of a gateway and the database may differ by 5 s (libs/service/clock.ts).
    const slackMs = 5_000;
    const moments = [
      before,
      ...[account.created_at, transaction.created_at, entry?.created_at ?? ''].map((at) => Date.parse(at)),
      after,
    ];
    for (const [i, moment] of moments.entries())
      expect(moment, JSON.stringify(moments)).toBeGreaterThanOrEqual((moments[i - 1] ?? 0) - slackMs);
  });

  it('X-Request-Id is accepted, returned, and included in error body, command, and event', async () => {
    // contract: envelope-15
    const account = await api.newAccount();
    const id = `request ~${Date.now()}!`;
    const answer = await api.post(
      '/transactions',
      { account_id: account.account_id, transaction_type: 'Deposit', amount: 1 },
      { 'x-request-id': id },
    );
    expect(answer.header('x-request-id')).toBe(id);
    expect(expectError(await api.get('/nowhere', { 'x-request-id': id }), 404, 'route_not_found').request_id).toBe(id);
    const { transaction_id } = answer.body as { transaction_id: string };
    expect(
      await world.sql('select request_id from v_transactions where transaction_id = $1', [transaction_id]),
    ).toEqual([{ request_id: id }]);
    const commands = await readTopic(world.bank, 'ledger.commands');
    expect(commands.filter(({ headers }) => headers['request-id'] === id)).toHaveLength(1);
    const events = await eventually(async () => {
      const found = (await readTopic(world.bank, 'transactions')).filter(({ headers }) => headers['request-id'] === id);
      return found.length > 0 && found;
    });
    expect(events).toHaveLength(1);
  });

  it('the transactions of a request are found by its X-Request-Id, given or generated', async () => {
    // contract: envelope-37
    const [{ account_id: from }, { account_id: to }] = [
      await api.newAccount({ initial_deposit: 5 }),
      await api.newAccount(),
    ];
    const body = { from_account_id: from, to_account_id: to, amount: 1 };
    for (const headers of [undefined, { 'x-request-id': `mine ${Date.now()}` }]) {
      const made = await api.post('/transfers', body, headers);
      expect(made.status).toBe(201);
      const query = new URLSearchParams({ request_id: made.header('x-request-id') ?? '' });
      const legs = (await api.get(`/transactions?${query}`)).list() as { account_id: string }[];
      expect(legs.map(({ account_id }) => account_id).sort()).toEqual([from, to].sort());
    }
    expect((await api.get('/transactions?request_id=nobody')).list()).toEqual([]);
  });

  it.each([
    ['missing', undefined],
    ['longer than 128 characters', 'x'.repeat(129)],
    ['not printable', 'tab\there'],
  ])('X-Request-Id is generated if it is %s', async (_, given) => {
    // contract: envelope-15
    const id = (await api.get('/', given === undefined ? {} : { 'x-request-id': given })).header('x-request-id');
    expect(id).toMatch(/^[\x20-\x7e]{1,128}$/);
    expect(id).not.toBe(given);
  });
});

describe('Errors', () => {
  it('an error reports every violation; if all violations have the same code, it is the code of the error', async () => {
    const two = expectError(
      await api.post('/clients', { ...retail(), first_name: '', email: 'nobody' }),
      400,
      'validation_failed',
    );
    expect(two.errors?.map(({ field }) => field).sort()).toEqual(['email', 'first_name']);
    const unknown = expectError(
      await api.post('/clients', { ...retail(), nickname: 'x', age: 3 }),
      400,
      'unknown_field',
    );
    expect(unknown.errors?.map(({ field, code }) => [field, code]).sort()).toEqual([
      ['age', 'unknown_field'],
      ['nickname', 'unknown_field'],
    ]);
    const mixed = expectError(
      await api.post('/transactions', { account_id: unknownId('acc'), transaction_type: 'Loan', amount: 0 }),
      400,
      'validation_failed',
    );
    expect(mixed.errors?.map(({ field, code }) => [field, code]).sort()).toEqual([
      ['amount', 'invalid_amount'],
      ['transaction_type', 'invalid_transaction_type'],
    ]);
    for (const { message } of mixed.errors ?? []) expect(message.length).toBeGreaterThan(0);
  });

  it('every missing or null field is validation_failed', async () => {
    // contract: errors-4, transactions-1
    const everything = { account_id: unknownId('acc'), transaction_type: 'Deposit', amount: 1 };
    for (const field of Object.keys(everything)) {
      for (const value of [undefined, null]) {
        const error = expectError(
          await api.post('/transactions', { ...everything, [field]: value }),
          400,
          'validation_failed',
        );
        expect(error.errors).toEqual([{ field, code: 'validation_failed', message: expect.stringContaining(field) }]);
      }
    }
    for (const field of ['client_id', 'account_type', 'currency']) {
      expectError(
        await api.post('/accounts', {
          client_id: unknownId('cli'),
          account_type: 'Savings',
          currency: 'USD',
          [field]: null,
        }),
        400,
        'validation_failed',
      );
    }
  });

  it.each(['[]', '"text"', '12', 'null', 'true', ''])('a body that is not an object is refused: %s', async (raw) => {
    const answer = await api.send('POST', '/clients', { raw, headers: { 'content-type': 'application/json' } });
    expect(answer.status).toBe(400);
    expect(['validation_failed', 'malformed_json']).toContain(answer.error.code);
  });

  it.each(['{', '{"a":}', "{'a':1}", '{"a":1}x', '{"a":1,}', '\u00ff'])('%s is malformed_json', async (raw) => {
    expectError(await api.send('POST', '/clients', { raw }), 400, 'malformed_json');
  });

  it.each([
    ['lists in lists', `${'['.repeat(30_000)}${']'.repeat(30_000)}`],
    ['objects in objects', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
    ['an open end', '[{"a":'.repeat(10_000)],
    ['ten thousand fields', `{${Array.from({ length: 5000 }, (_, i) => `"f${i}":1`).join()}}`],
  ])('input that is expensive to process is refused immediately: %s', async (_, raw) => {
    const answer = await api.send('POST', '/clients', { raw });
    expect(answer.status).toBe(400);
    expect(answer.text.length).toBeLessThan(64 * 1024);
  });

  it.each([
    '/clients/',
    '//clients',
    '/Clients',
    '/accounts/number//balance',
    '/accounts/number/SAV-1',
    '/transactions/a/b',
    '/clients;x=1',
    '/clients%2fussd%2fsearch',
  ])('a malformed path is 404: %s', async (path) => {
    expect((await api.get(path)).status).toBe(404);
  });

  it('HEAD returns the headers of GET, without a body', async () => {
    // contract: envelope-6
    const answer = await api.send('HEAD', '/clients');
    expect([answer.status, answer.text]).toEqual([200, '']);
    expect((await api.with({}).send('HEAD', '/clients')).status).toBe(401);
  });

  it('an unknown route is 404 route_not_found, an unknown method 405 method_not_allowed', async () => {
    // contract: errors-12
    expectError(await api.get('/nowhere'), 404, 'route_not_found');
    expectError(await api.get('/clients/x/y/z'), 404, 'route_not_found');
    for (const [method, path] of [
      ['DELETE', '/clients'],
      ['PUT', '/transactions'],
      ['PATCH', '/transfers'],
      ['POST', '/'],
    ] as const) {
      const answer = await api.send(method, path, { body: {} });
      expectError(answer, 405, 'method_not_allowed');
      expect(answer.header('allow')).toMatch(/GET/);
    }
  });

  it('a body over 64 KiB is 413 body_too_large; other content types are 415 unsupported_media_type', async () => {
    // contract: errors-13
    const padded = (bytes: number) => ({
      raw: `${JSON.stringify(corporate()).slice(0, -1)}${' '.repeat(bytes - JSON.stringify(corporate()).length)}}`,
    });
    expect((await api.send('POST', '/clients', padded(64 * 1024))).status).toBe(201);
    expectError(await api.send('POST', '/clients', padded(64 * 1024 + 1)), 413, 'body_too_large');
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml']) {
      expectError(
        await api.send('POST', '/clients', { raw: JSON.stringify(corporate()), headers: { 'content-type': type } }),
        415,
        'unsupported_media_type',
      );
    }
    expect(
      (
        await api.send('POST', '/clients', {
          body: corporate(),
          headers: { 'content-type': 'application/json; charset=utf-8' },
        })
      ).status,
    ).toBe(201);
  });

  it.each([
    ['a malformed request line', 'GARBAGE\r\n\r\n'],
    ['a malformed header', 'GET / HTTP/1.1\r\nHost: x\r\nno colon here\r\n\r\n'],
    ['too long headers', `GET / HTTP/1.1\r\nHost: x\r\nx-long: ${'y'.repeat(100_000)}\r\n\r\n`],
    ['two Content-Lengths', 'POST /clients HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}'],
  ])('errors of the HTTP parser have this body: %s', async (_, text) => {
    const received = await rawHttp(api.baseUrl, text);
    expect(received).toMatch(/^HTTP\/1\.1 4\d\d /);
    const body = JSON.parse(received.slice(received.indexOf('{'), received.lastIndexOf('}') + 1)) as ErrorBody;
    expect(body).toMatchObject({
      status: 'error',
      message: expect.any(String),
      code: expect.any(String),
      request_id: expect.any(String),
    });
  });

  it('callers never see messages of drivers or stack traces', async () => {
    // contract: errors-8
    for (const answer of [
      await api.get('/accounts/%00'),
      await api.get('/accounts?cursor=%00'),
      await api.send('POST', '/clients', { raw: '{"client_type":{"a":1}}' }),
      await api.get('/clients/%E0%A4%A'),
    ]) {
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
      expect(answer.text).not.toMatch(/ at .*\.ts|node_modules|zod|postgres|kafkajs|syntax error/i);
    }
  });
});

describe('Errors: authentication precedes everything else', () => {
  it('an unknown path, an unknown method, and a malformed body without credentials are 401', async () => {
    // contract: permission-1
    const nobody = api.with({});
    expectError(await nobody.get('/nowhere'), 401, 'missing_credentials');
    expectError(await nobody.send('DELETE', '/clients'), 401, 'missing_credentials');
    expectError(await nobody.send('POST', '/clients', { raw: '{' }), 401, 'missing_credentials');
    expectError(await nobody.get('/clients?nonsense=1'), 401, 'missing_credentials');
    expectError(await nobody.get('/admin/api-keys'), 401, 'missing_credentials');
  });

  it('401 has WWW-Authenticate', async () => {
    // contract: permission-3
    expect((await api.with({}).get('/')).header('www-authenticate')).toMatch(/^Bearer/);
    expect((await api.withKey('x').get('/')).header('www-authenticate')).toMatch(/^Bearer/);
  });

  it('a request with both credentials is ambiguous_credentials', async () => {
    // contract: permission-4
    const both = api.with({ 'x-api-key': world.bank.api_key, authorization: `Bearer ${await world.bank.token()}` });
    expectError(await both.get('/'), 401, 'ambiguous_credentials');
  });

  it.each(['Basic YTpi', 'Bearer', 'Bearer ', 'bearer a b', 'Token x'])(
    'an unknown or malformed Authorization header is 401: %s',
    async (authorization) => {
      const answer = await api.with({ authorization }).get('/');
      expect(answer.status).toBe(401);
    },
  );

  it('CORS preflights and /docs, which contain no data, need no credentials', async () => {
    // contract: permission-2
    const nobody = api.with({});
    const preflight = await nobody.send('OPTIONS', '/clients', {
      headers: { origin: 'http://localhost:5173', 'access-control-request-method': 'POST' },
    });
    expect(preflight.status).toBeLessThan(300);
    expect((await nobody.get('/docs')).status).toBeLessThan(400);
  });
});
