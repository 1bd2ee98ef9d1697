import { describe, expect, it } from 'vitest';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { type errorCodes, problemSchema } from '#libs/contracts/errors.ts';
import { type Answer, corporate, expectError, type HeaderFields, newKey, type RestAccount } from '../support/client.ts';
import { everyEndpoint, exchange, expectViolations } from '../support/hostile.ts';
import { together, useSharedBank } from '../support/world.ts';

/** Tests what HTTP itself offers: media types, problem details, OPTIONS, conditions, and versions. */
const world = useSharedBank();
const { api } = world;

const headed = (headers: HeaderFields) => (method: string, path: string, body?: unknown) =>
  api.send(method, path, { ...(body !== undefined && { body }), headers });

describe('Bodies', () => {
  const bom = Buffer.from([0xef, 0xbb, 0xbf]);
  const bytes = (body: object) => Buffer.from(JSON.stringify(body));
  const post = (raw: Buffer<ArrayBuffer>, headers = {}) => api.send('POST', '/clients', { raw, headers });

  it('may begin with the byte order mark of UTF-8, and with no other', async () => {
    // contract: envelope-31
    const marked = await post(Buffer.concat([bom, bytes(corporate())]));
    expect(marked.status).toBe(201);
    const text = JSON.stringify(corporate());
    const others: Record<string, Buffer<ArrayBuffer>> = {
      two: Buffer.concat([bom, bom, bytes(corporate())]),
      alone: bom,
      half: Buffer.concat([bom.subarray(0, 2), bytes(corporate())]),
      inside: Buffer.concat([Buffer.from(' '), bom, bytes(corporate())]),
      behind: Buffer.concat([bytes(corporate()), bom]),
      'UTF-16LE': Buffer.from(`\ufeff${text}`, 'utf16le'),
      'UTF-16BE': Buffer.from(`\ufeff${text}`, 'utf16le').swap16(),
      'UTF-16 without a mark': Buffer.from(text, 'utf16le'),
    };
    for (const [name, raw] of Object.entries(others))
      expect([name, (await post(raw)).error.code]).toEqual([name, 'malformed_json']);
  });

  it('a request with and without the mark is the same request', async () => {
    const [body, key] = [bytes(corporate()), { 'idempotency-key': newKey() }];
    const [plain, marked] = [await post(body, key), await post(Buffer.concat([bom, body]), key)];
    expect([marked.status, marked.text, marked.header('idempotent-replayed')]).toEqual([201, plain.text, 'true']);
  });

  it('a PATCH may be a merge patch, with the meaning of JSON; no other method may', async () => {
    // contract: envelope-32
    const { client_id } = await api.client();
    const path = `/clients/${client_id}`;
    for (const type of ['application/merge-patch+json', 'Application/Merge-Patch+JSON; charset=utf-8']) {
      const changed = await headed({ 'content-type': type })('PATCH', path, { address: type });
      expect([changed.status, changed.data()]).toMatchObject([200, { address: type }]);
    }
    const removed = await headed({ 'content-type': 'application/merge-patch+json' })('PATCH', path, { address: null });
    expect(removed.data()).toMatchObject({ address: null });
    for (const type of ['application/json-patch+json', 'application/merge-patch', 'text/json', 'application/*']) {
      const refused = await headed({ 'content-type': type })('PATCH', path, { address: 'x' });
      expectError(refused, 415, 'unsupported_media_type');
      expect(refused.header('accept-patch')).toBe('application/json, application/merge-patch+json');
      expect([refused.header('accept'), refused.header('accept-encoding')]).toEqual(['application/json', null]);
    }
    const posted = await headed({ 'content-type': 'application/merge-patch+json' })('POST', '/clients', corporate());
    expectError(posted, 415, 'unsupported_media_type');
    expect(posted.header('accept-patch')).toBeNull();
    expect((await api.get(path)).header('accept-patch')).toBe('application/json, application/merge-patch+json');
  });

  it.each(['gzip', 'br', 'deflate', 'zstd', 'compress', 'x-gzip', 'gzip, identity', 'identity, identity', 'aes128gcm'])(
    'of the coding %s are 415 with Accept-Encoding',
    async (coding) => {
      // contract: errors-13
      for (const [method, path] of [
        ['POST', '/clients'],
        ['PATCH', `/clients/cli_${'0'.repeat(32)}`],
      ] as const) {
        const refused = await headed({ 'content-encoding': coding })(method, path, corporate());
        expectError(refused, 415, 'unsupported_media_type');
        expect(refused.header('accept-encoding')).toBe('identity');
      }
    },
  );
});

describe('Problem details', () => {
  const accept = 'application/problem+json';

  function expectProblem(answer: Answer, code: keyof typeof errorCodes): void {
    expect(answer.header('content-type')).toBe('application/problem+json');
    const problem = problemSchema.strict().parse(answer.body);
    expect(problem).toMatchObject({ code, status: answer.status, request_id: answer.header('x-request-id') });
    expect([problem.type, problem.instance]).toEqual([
      `urn:core-banking:error:${code}`,
      `urn:core-banking:request:${encodeURIComponent(problem.request_id)}`,
    ]);
    expect(problem.title).toMatch(/^[A-Z]/);
    expect(URL.canParse(problem.instance)).toBe(true);
  }

  it('have the same code, status, violations, and details as the other error body', async () => {
    // contract: errors-9
    const { account_id } = await api.newAccount();
    const withdrawal = { account_id, transaction_type: 'Withdrawal', amount: 5 };
    const cases: [keyof typeof errorCodes, string, string, unknown?, HeaderFields?][] = [
      ['validation_failed', 'POST', '/clients', {}],
      ['unknown_parameter', 'GET', '/clients?nonsense=1'],
      ['invalid_cursor', 'GET', '/clients?cursor=x'],
      ['malformed_json', 'POST', '/clients', undefined, { 'content-type': 'application/json' }],
      ['insufficient_funds', 'POST', '/transactions', withdrawal],
      ['client_not_found', 'GET', '/clients/x'],
      ['account_not_found', 'GET', '/accounts/%ZZ'],
      ['route_not_found', 'GET', '/nowhere'],
      ['method_not_allowed', 'PUT', '/clients'],
      ['unsupported_media_type', 'POST', '/clients', {}, { 'content-type': 'text/plain' }],
      ['missing_idempotency_key', 'POST', '/batches', {}],
    ];
    for (const [code, method, path, body, headers] of cases) {
      const raw = body === undefined && headers ? '{' : undefined;
      const send = (own: HeaderFields) =>
        api.send(method, path, {
          ...(raw !== undefined ? { raw } : body !== undefined ? { body } : {}),
          headers: { ...headers, ...own, 'x-request-id': 'a b/ü?'.replace('ü', '%') },
        });
      const [own, problem] = [await send({}), await send({ accept })];
      expectProblem(problem, code);
      const { status: _error, message, details, ...rest } = own.error;
      expect(problem.body).toMatchObject({ ...rest, status: own.status, detail: message });
      expect(Object.keys((problem.body as { details?: object }).details ?? {})).toEqual(Object.keys(details ?? {}));
    }
    const nobody = api.with({});
    expectProblem(await nobody.send('GET', '/', { headers: { accept } }), 'missing_credentials');
    expectProblem(await api.withKey('x').send('GET', '/x', { headers: { accept } }), 'invalid_credentials');
    const reader = api.withKey((await api.key({ scopes: ['clients:read'] })).api_key);
    expectProblem(await reader.send('GET', '/accounts', { headers: { accept } }), 'insufficient_scope');
    expect((await api.send('HEAD', '/nowhere', { headers: { accept } })).header('content-type')).toBe(accept);
  });

  it.each([
    ['application/problem+json', true],
    ['APPLICATION/PROBLEM+JSON', true],
    ['application/problem+json;charset=utf-8', true],
    ['application/json, application/problem+json', true],
    ['application/problem+json, application/json', true],
    ['application/problem+json, application/json;q=0.9', true],
    ['application/problem+json;q=0.9, application/json', false],
    ['application/problem+json;q=0.5, */*;q=0.1', true],
    ['application/problem+json;q=0.5, */*', false],
    ['application/problem+json;q=0.5, application/*;q=0.4, */*', true],
    ['application/problem+json;q=0', false],
    ['application/problem+json; q=0.001', true],
    ['application/json', false],
    ['application/*', false],
    ['*/*', false],
    ['text/html', false],
    ['application/problem+xml', false],
    ['application/problem+jsonx', false],
    ['', false],
  ])('are chosen by Accept: %s', async (accepted, isProblem) => {
    const answer = await api.send('GET', '/nowhere', { headers: { accept: accepted } });
    expect(answer.header('content-type')).toBe(isProblem ? accept : 'application/json; charset=utf-8');
    expect((await api.send('GET', '/', { headers: { accept: accepted } })).body).toMatchObject({ status: 'success' });
  });

  it.each([
    ['a malformed header', `GET / HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\nno colon\r\n\r\n`],
    ['a header behind it', `GET / HTTP/1.1\r\nHost: x\r\nX: a\rb\r\naccept:${accept}\r\n\r\n`],
    ['a tunnel', `CONNECT x:1 HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\n\r\n`],
    ['two lengths', `POST / HTTP/1.1\r\nAccept: ${accept}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n`],
  ])('also what the HTTP parser refuses: %s', async (_, bytes) => {
    const { answers } = await exchange(api.baseUrl, bytes);
    expect(answers).toHaveLength(1);
    expect(answers[0]?.head).toMatch(/\r\ncontent-type: application\/problem\+json/i);
    expect(problemSchema.strict().parse(JSON.parse(answers[0]?.body ?? ''))).toMatchObject({
      status: 400,
      title: 'Validation failed',
    });
  });

  it('also a body that breaks off or is malformed, by the Accept of its request', async () => {
    for (const body of ['zz\r\n', '5\r\nabcdefgh\r\n']) {
      const head = `POST /clients HTTP/1.1\r\nHost: x\r\nx-api-key: ${world.bank.api_key}\r\nAccept: ${accept}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
      const { answers } = await exchange(api.baseUrl, head + body);
      expect(answers.map(({ head: text }) => /content-type: (\S+)/i.exec(text)?.[1])).toEqual([accept]);
    }
  });
});

describe('OPTIONS', () => {
  it('names the methods of a path, and the media types of PATCH', async () => {
    // contract: errors-12, envelope-33
    for (const { path } of everyEndpoint) {
      const answer = await api.send('OPTIONS', path);
      const methods = Object.values(endpoints).flatMap((one) =>
        new RegExp(`^${one.path.replace(/:\w+/g, '[^/]+')}$`).test(path) ? [one.method] : [],
      );
      expect([answer.status, answer.text]).toEqual([204, '']);
      expect(answer.header('allow')?.split(', ').sort()).toEqual(
        [...new Set([...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'])].sort(),
      );
      expect(answer.header('accept-patch') !== null).toBe(methods.includes('PATCH'));
      expect((await api.with({}).send('OPTIONS', path)).status).toBe(401);
    }
    expectError(await api.send('OPTIONS', '/nowhere'), 404, 'route_not_found');
  });
});

describe('Conditions', () => {
  const stale = `"${'0'.repeat(32)}"`;
  const known = ['/clients/:client_id', '/accounts/:account_id', '/clients/ussd/search'];

  it('GET and HEAD with the ETag in If-None-Match are 304 without a body, with the headers of the 200', async () => {
    // contract: clients-28, accounts-16, envelope-35
    const { account_id, client_id } = await api.newAccount({ initial_deposit: 10 });
    for (const path of [`/accounts/${account_id}`, `/clients/${client_id}`]) {
      const full = await api.get(path);
      const tag = full.header('etag') ?? '';
      expect(tag).toMatch(/^"[0-9a-f]{32}"$/);
      for (const ifNoneMatch of [tag, `W/${tag}`, `"x", ${tag}`, `"a,b",W/${tag} , "y"`, '*', ' * '])
        for (const method of ['GET', 'HEAD']) {
          const answer = await headed({ 'if-none-match': ifNoneMatch })(method, path);
          expect([ifNoneMatch, answer.status, answer.text]).toEqual([ifNoneMatch, 304, '']);
          for (const name of ['etag', 'cache-control', 'accept-patch'])
            expect(answer.header(name)).toBe(full.header(name));
        }
      for (const other of [stale, 'W/"x"', tag.slice(1, -1), tag.toUpperCase(), '', '**', `"*"`]) {
        const answer = await headed({ 'if-none-match': other })('GET', path);
        expect([other, answer.status, answer.text]).toEqual([other, 200, full.text]);
      }
      const mismatched = await headed({ 'if-match': stale })('GET', path);
      expectError(mismatched, 412, 'version_mismatch');
      expect([mismatched.header('etag'), mismatched.header('accept-patch')]).toEqual([null, null]);
      expectError(await headed({ 'if-match': `W/${tag}` })('GET', path), 412, 'version_mismatch');
      expect((await headed({ 'if-match': tag, 'if-unmodified-since': 'x' })('GET', path)).status).toBe(200);
      expect((await headed({ 'if-match': tag, 'if-none-match': tag })('GET', path)).status).toBe(304);
    }
    expect((await headed({ 'if-none-match': '*' })('GET', `/accounts/acc_${'0'.repeat(32)}`)).status).toBe(404);
    expect((await headed({ 'if-none-match': '*' })('GET', '/accounts')).status).toBe(200);
  });

  it('the ETag of an account is that of the response that made or changed it, and changes with money and status', async () => {
    // contract: accounts-16
    const { client_id } = await api.client();
    const opened = await api.post('/accounts', {
      client_id,
      account_type: 'Savings',
      currency: 'USD',
      initial_deposit: 10,
    });
    const { account_id } = opened.data<RestAccount>();
    const path = `/accounts/${account_id}`;
    const tag = async () => (await api.get(path)).header('etag');
    const tags = [opened.header('etag')];
    expect([opened.header('etag'), opened.data()]).toEqual([await tag(), (await api.get(path)).data()]);
    const steps: (() => Promise<unknown>)[] = [
      () => api.transact(account_id, 'Deposit', 5),
      () => api.transact(account_id, 'Withdrawal', 5),
      () => api.post(`${path}/holds`, { amount: 3 }),
      () => api.setStatus(account_id, 'Frozen', 'fraud'),
      () => api.setStatus(account_id, 'Active'),
    ];
    for (const step of steps) {
      await step();
      tags.push(await tag());
    }
    // Only after the withdrawal is the account shown as it was.
    expect(tags[2]).toBe(tags[0]);
    expect(new Set(tags).size).toBe(tags.length - 1);
    const changed = await api.post(`${path}/status-transitions`, { status: 'Inactive' });
    expect([changed.header('etag'), changed.data()]).toEqual([await tag(), (await api.get(path)).data()]);
    expect(Object.keys(changed.data())).not.toContain('status_version');
  });

  it('a status transition takes If-Match: one of ten concurrent ones of one version changes the status', async () => {
    // contract: accounts-16
    const { account_id } = await api.newAccount({ initial_deposit: 10 });
    const path = `/accounts/${account_id}`;
    const change = (ifMatch: string, status: string) =>
      headed({ 'if-match': ifMatch })('POST', `${path}/status-transitions`, { status, reason: 'fraud' });
    const tag = (await api.get(path)).header('etag') ?? '';
    const answers = await together(10, (i) => change(tag, i % 2 === 0 ? 'Frozen' : 'Inactive'));
    const [winner] = answers.filter(({ status }) => status === 200);
    const { status } = (await api.get(path)).data<RestAccount>();
    expect(winner?.data()).toMatchObject({ status });
    // Who asks for the status that it has by then loses nothing.
    expect(answers.filter((one) => one.status === 412).length).toBeGreaterThanOrEqual(5);
    expect((await api.get(`${path}/status-transitions`)).list()).toHaveLength(1);
    for (const mismatched of [tag, stale, `W/${tag}`, 'nonsense', '""']) {
      expectError(await change(mismatched, 'Active'), 412, 'version_mismatch');
      expect((await change(mismatched, status)).status).toBe(200);
    }
    const current = (await api.get(path)).header('etag') ?? '';
    expect((await change(`${stale}, ${current}`, 'Active')).status).toBe(200);
    await api.transact(account_id, 'Deposit', 1);
    expectError(await change(current, 'Frozen'), 412, 'version_mismatch');
    expect((await change('*', 'Frozen')).status).toBe(200);
    expect((await api.get(`${path}/status-transitions`)).list()).toHaveLength(3);
  });

  it('a change that was made already is not refused, whatever version it names', async () => {
    // contract: clients-29
    const { client_id } = await api.client();
    const path = `/clients/${client_id}`;
    const tag = (await api.get(path)).header('etag') ?? '';
    const send = (address: string) => headed({ 'if-match': tag })('PATCH', path, { address });
    const [first, repeat] = [await send('Here'), await send('Here')];
    expect([repeat.status, repeat.text, repeat.header('etag')]).toEqual([200, first.text, first.header('etag')]);
    expectError(await send('There'), 412, 'version_mismatch');
  });

  it.each(everyEndpoint.map(({ name, method, path }) => [name, method, path] as const))(
    'a condition that is not checked is 400 and named: %s',
    async (name, method, path) => {
      // contract: envelope-34
      const endpoint = endpoints[name as keyof typeof endpoints];
      const takesIfMatch = known.includes(endpoint.path) || name === 'change_account_status';
      const send = (...names: string[]) =>
        api.send(method, path, {
          ...(method === 'GET' ? {} : { body: {} }),
          headers: Object.fromEntries(names.map((one) => [one, stale])),
        });
      const refused = async (names: string[], expected: string[]) =>
        expectViolations(
          await send(...names),
          expected.map((field) => [field, 'validation_failed']),
        );
      await refused(['If-Unmodified-Since'], ['If-Unmodified-Since']);
      if (!takesIfMatch) await refused(['If-Match', 'If-Unmodified-Since'], ['If-Match', 'If-Unmodified-Since']);
      if (method !== 'GET') await refused(['If-None-Match'], ['If-None-Match']);
      const harmless = await send('If-Modified-Since', 'If-Range', ...(method === 'GET' ? ['If-None-Match'] : []));
      expect(harmless.text).not.toMatch(/If-/);
    },
  );
});
