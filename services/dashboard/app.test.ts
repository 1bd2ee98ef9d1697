import { once } from 'node:events';
import { connect } from 'node:net';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { ids, ok, samples } from '../gateway/test/test-app.ts';
import { ownPath } from './pages/sign-in.ts';
import { type Answers, answering, issuer, testDashboard } from './test/test-dashboard.ts';

/** The dashboard's frame without a browser: who gets in, what forms are taken, what headers pages have. */
let made: Awaited<ReturnType<typeof testDashboard>>;
const signedIn = (scope: string) => made.signedIn(scope);

beforeAll(async () => {
  const answers: Answers = {
    list_api_keys: ok({ items: [{ key_id: `key_${'1'.repeat(32)}`, ...samples.key, name: '<b>partner</b>' }] }),
    list_accounts: ok({ items: [samples.master] }),
    get_ledger_accounts: ok([samples.ledger]),
    list_clients: ok({ items: [samples.client] }),
  };
  made = await testDashboard(answering(() => answers));
});
afterAll(() => made.app.close());

describe('without a session', () => {
  it.each(['/admin/ui', '/admin/ui/api-keys', '/admin/ui/nothing-here'])(
    '%s redirects to the sign-in page',
    async (url) => {
      for (const cookie of ['', 'bank_session=made-up', `bank_session=${'A'.repeat(200)}`]) {
        const answer = await made.app.inject({ method: 'GET', url, headers: { cookie } });
        expect([answer.statusCode, answer.headers.location]).toEqual([
          303,
          `/admin/login?to=${encodeURIComponent(url)}`,
        ]);
        expect(answer.body).toBe('');
      }
    },
  );

  it('a search of an ended session, or of a tab in which it was ended, leads to our own page, which says so', async () => {
    const { get, session } = made.signedIn('clients:read');
    const cookie = `bank_session=${made.sessions.seal({ ...session, expires_ms: 0 })}`;
    const told = '/admin/login?ended&to=%2Fadmin%2Fui%2Fcounter%3Fq%3Dada';
    for (const [held, site] of [
      [cookie, 'none'],
      ['', 'same-origin'],
    ] as const) {
      const { headers } = await get('/admin/ui/counter?q=ada', { cookie: held, 'sec-fetch-site': site });
      expect(headers.location).toBe(told);
    }
    const { body } = await made.app.inject(told);
    expect(body).toContain('Your session has ended');
    expect(body).toMatch(/autofocus href="\/admin\/login\/start\?to=%2Fadmin%2Fui%2Fcounter%3Fq%3Dada"/);
  });

  it('a form redirects there too and changes nothing', async () => {
    const before = made.sent.length;
    const answer = await made.app.inject({
      method: 'POST',
      url: '/admin/ui/api-keys/new',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: 'name=x',
    });
    expect([answer.statusCode, answer.headers.location]).toEqual([303, '/admin/login?lost']);
    expect(made.sent).toHaveLength(before);
  });

  it('the API does not accept a session; its endpoints require their own credentials', async () => {
    const { cookie } = signedIn('keys:manage');
    const answer = await made.gateway.inject({ method: 'GET', url: '/admin/api-keys', headers: { cookie } });
    expect([answer.statusCode, answer.json().code]).toEqual([401, 'missing_credentials']);
  });

  it('/admin redirects to the dashboard; the sign-in page and static files are public', async () => {
    expect((await made.app.inject('/admin')).headers.location).toBe('/admin/ui');
    const page = await made.app.inject('/admin/login?signed_out');
    expect(page.statusCode).toBe(200);
    const files = [...page.body.matchAll(/(?:href|src)="(\/admin\/assets\/[^"]+)"/g)].map((match) => match[1] ?? '');
    // The mark is its icon, too.
    expect(files).toHaveLength(5);
    for (const url of files) {
      const file = await made.app.inject(url);
      expect([file.statusCode, file.headers['cache-control']]).toEqual([200, 'public, max-age=31536000, immutable']);
    }
  });

  it('its style names the files of the typeface, each for the scripts that need it', async () => {
    const page = await made.app.inject('/admin/login?signed_out');
    const style = await made.app.inject(/href="([^"]+style[^"]+)"/.exec(page.body)?.[1] ?? '');
    const fonts = [...style.body.matchAll(/url\((\/admin\/assets\/geist-[^)]+)\)[^}]+unicode-range/g)];
    expect(fonts.length).toBeGreaterThan(3);
    const font = await made.app.inject(fonts.at(-1)?.[1] ?? '');
    expect([font.statusCode, font.headers['content-type']]).toEqual([200, 'font/woff2']);
    expect(style.body).not.toContain('url(./');
  });

  it.each([
    ['br', brotliDecompressSync],
    ['gzip', gunzipSync],
  ] as const)('files are sent as %s to browsers that read it', async (encoding, open) => {
    const page = await made.app.inject('/admin/login?signed_out');
    const url = /src="([^"]+htmx[^"]+)"/.exec(page.body)?.[1] ?? '';
    const [plain, packed] = [
      await made.app.inject(url),
      await made.app.inject({ url, headers: { 'accept-encoding': `${encoding}, other` } }),
    ];
    expect(plain.headers).not.toHaveProperty('content-encoding');
    expect(packed.headers).toMatchObject({ 'content-encoding': encoding, vary: 'accept-encoding' });
    expect(open(packed.rawPayload).equals(plain.rawPayload)).toBe(true);
    expect(packed.rawPayload.length).toBeLessThan(plain.rawPayload.length / 2);
    const refused = await made.app.inject({ url, headers: { 'accept-encoding': `${encoding};q=0` } });
    expect(refused.headers).not.toHaveProperty('content-encoding');
  });

  it('an unavailable issuer is reported on a page', async () => {
    const answer = await made.app.inject({
      method: 'GET',
      url: '/admin/login/start',
      headers: { host: 'bank.example' },
    });
    expect(answer.statusCode).toBe(503);
    expect(answer.body).toContain('The identity provider does not answer');
  });

  it('a callback without a sign-in is reported on a page', async () => {
    const answer = await made.app.inject('/admin/callback?code=x&state=y');
    expect(answer.statusCode).toBe(400);
    expect(answer.body).toContain('Begin again');
  });
});

describe('a page', () => {
  it('has the strict policy and no inline script or style, and is not cached', async () => {
    const answer = await signedIn('keys:manage').get('/admin/ui', { origin: 'http://elsewhere.example' });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    expect(answer.headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    });
    expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
    expect(answer.body).not.toMatch(/<style|style=|<script>|\son\w+=/);
  });

  it.each([
    ['same-origin', 'br'],
    ['none', 'br'],
    // Otherwise somebody who causes requests and sees their sizes could guess what is on the page.
    ['cross-site', undefined],
    ['same-site', undefined],
    [undefined, undefined],
  ])('that a %s request asked for is sent as %s', async (site, encoding) => {
    const accepts = { 'accept-encoding': 'gzip, deflate, br' };
    const answer = await signedIn('keys:manage').get('/admin/ui', {
      ...accepts,
      ...(site !== undefined && { 'sec-fetch-site': site }),
    });
    expect(answer.headers['content-encoding']).toBe(encoding);
    const text = encoding === 'br' ? String(brotliDecompressSync(answer.rawPayload)) : answer.body;
    expect(text).toContain('<h1>Home</h1>');
    expect(answer.headers['content-length']).toBe(String(answer.rawPayload.length));
  });

  it('shows only what the person’s scopes allow', async () => {
    const admin = await signedIn('keys:manage').get('/admin/ui');
    const officer = await signedIn('clients:read').get('/admin/ui');
    expect(admin.body).toContain('href="/admin/ui/api-keys"');
    expect(officer.body).not.toContain('href="/admin/ui/api-keys"');
    const refused = await signedIn('clients:read').get('/admin/ui/api-keys');
    expect(refused.statusCode).toBe(403);
    expect(refused.body).toContain('the scope keys:manage is required');
  });

  it('gets its data from the API as the person, and escapes it', async () => {
    const answer = await signedIn('keys:manage').get('/admin/ui/api-keys', { 'x-request-id': 'page-1' });
    expect(answer.body).toContain('&lt;b&gt;partner&lt;/b&gt;');
    expect(made.sent.at(-1)?.headers).toMatchObject({ 'request-id': 'page-1', actor: `jwt:${issuer}|ada` });
    expect((await signedIn('keys:manage').get('/admin/ui/api-keys.csv')).body).toContain(
      '"<b>partner</b>","active","live","accounts:read"',
    );
  });

  it('that refreshes itself does not extend the session, and redirects as a whole to the sign-in page after its end', async () => {
    const { session, get } = signedIn('keys:manage');
    const old = { ...session, seen_ms: session.seen_ms - 10 * 60_000 };
    const cookie = `bank_session=${made.sessions.seal(old)}`;
    expect((await get('/admin/ui', { cookie })).headers['set-cookie']).toContain('bank_session=');
    expect((await get('/admin/ui', { cookie, 'hx-request': 'true' })).headers['set-cookie']).toBeUndefined();
    const over = await get('/admin/ui', { cookie: 'bank_session=', 'hx-request': 'true' });
    expect([over.statusCode, over.headers['hx-redirect'], over.headers.location]).toEqual([
      204,
      '/admin/login?ended',
      undefined,
    ]);
  });

  it('that does not exist is a readable 404', async () => {
    const answer = await signedIn('').get('/admin/ui/nothing-here');
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([404, 'text/html; charset=utf-8']);
  });
});

describe('a form', () => {
  const fields = (csrf: string) => ({ csrf_token: csrf, name: 'x', scopes: 'keys:manage', environment: 'live' });

  it.each([
    ['without the token', { csrf_token: '' }, {}],
    ['with the token of another session', { csrf_token: 'AAAAAAAAAAAAAAAAAAAAAA' }, {}],
    ['sent by another site', {}, { 'sec-fetch-site': 'cross-site' }],
    ['sent by a neighbour', {}, { 'sec-fetch-site': 'same-site' }],
    ['sent by another origin', {}, { origin: 'http://elsewhere.example' }],
    ['sent from nowhere', {}, { origin: 'null' }],
  ])('%s changes nothing', async (_case, change, headers) => {
    const { session, post } = signedIn('keys:manage');
    const before = made.sent.length;
    const answer = await post(
      '/admin/ui/api-keys/new',
      { ...fields(session.csrf), ...change },
      headers as Record<string, string>,
    );
    expect(answer.statusCode).toBe(403);
    expect(answer.body).toContain('Nothing was changed');
    expect(made.sent).toHaveLength(before);
  });

  it('of our own page is accepted, and refusals by the API are shown at their fields', async () => {
    const { session, post } = signedIn('keys:manage');
    const answer = await post(
      '/admin/ui/api-keys/new',
      { ...fields(session.csrf), name: ' ' },
      { origin: 'http://bank.example', 'sec-fetch-site': 'same-origin' },
    );
    expect(answer.statusCode).toBe(400);
    expect(answer.body).toContain('must have 1 to 100 characters');
  });

  it('asks for its scope before it reads the fields', async () => {
    const { cookie } = signedIn('clients:read');
    for (const [scope, status] of [
      [cookie, 403],
      [signedIn('keys:manage').cookie, 415],
    ] as const) {
      const headers = { cookie: scope, 'content-type': 'text/plain' };
      const answer = await made.app.inject({ method: 'POST', url: '/admin/ui/api-keys/new', headers, payload: 'x' });
      expect(answer.statusCode).toBe(status);
    }
  });

  it('has a bounded number of fields, because reading a million of them takes seconds', async () => {
    const { cookie } = signedIn('transactions:write');
    const part = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n';
    for (const [type, payload] of [
      ['application/x-www-form-urlencoded', 'a&'.repeat(1_000_000)],
      ['multipart/form-data; boundary=x', `${part.repeat(1_001)}--x--\r\n`],
    ] as const) {
      const headers = { cookie, 'content-type': type };
      const url = '/admin/ui/counter/batches/preview';
      const answer = await made.app.inject({ method: 'POST', url, headers, payload });
      expect([answer.statusCode, answer.body]).toEqual([413, expect.stringContaining('Too large')]);
    }
  });
});

const told = () =>
  made.recorded
    .filter(({ topic }) => topic === 'test.accounts.commands')
    .map(({ value }) => JSON.parse(String(value)) as AuditRecord);

describe('a refused request', () => {
  it('is recorded with its page or form', async () => {
    const { session, get, post } = signedIn('clients:read');
    await made.auditRecords.flush();
    made.recorded.length = 0;
    await get('/admin/ui/api-keys/new');
    await get(`/admin/ui/api-keys/key_${'1'.repeat(32)}/rotation`);
    await post('/admin/ui/books/verification', { csrf_token: session.csrf });
    await signedIn('clients:write').post('/admin/ui/clients/new', { csrf_token: 'of somebody else' });
    await made.auditRecords.flush();
    expect(told().map(({ action, outcome }) => [action, outcome])).toEqual([
      ['page:api-keys/new', 'insufficient_scope'],
      ['page:api-keys/:key_id/rotation', 'insufficient_scope'],
      ['form:books/verification', 'insufficient_scope'],
      ['form:clients/new', 'invalid_credentials'],
    ]);
    expect(new Set(told().map(({ actor }) => actor))).toEqual(new Set([`jwt:${issuer}|ada`]));
  });
});

describe('signing out', () => {
  it('is recorded', async () => {
    const { session, post } = signedIn('');
    made.recorded.length = 0;
    await post('/admin/logout', { csrf_token: session.csrf });
    expect(told()).toEqual([
      expect.objectContaining({
        actor: `jwt:${issuer}|ada`,
        action: 'sign_out',
        outcome: 'success',
        resource_id: session.id,
        address: '127.0.0.1',
      }),
    ]);
  });

  it('ends the session, also for a copy of the cookie', async () => {
    const { session, get, post } = signedIn('keys:manage');
    expect((await get('/admin/ui/api-keys')).statusCode).toBe(200);
    const answer = await post('/admin/logout', { csrf_token: session.csrf });
    expect(answer.headers.location).toBe('/admin/login?signed_out');
    expect(answer.headers['set-cookie']).toContain('Max-Age=0');
    expect((await get('/admin/ui/api-keys')).statusCode).toBe(303);
    // A page without data asks too.
    expect((await get('/admin/ui')).statusCode).toBe(303);
  });

  it('after the end of the session says so, and forgets it; another site cannot make a browser forget one', async () => {
    const { post, session } = signedIn('');
    const cookie = `bank_session=${made.sessions.seal({ ...session, expires_ms: 0 })}`;
    const { headers } = await post('/admin/logout', { csrf_token: session.csrf }, { cookie });
    expect([headers.location, headers['set-cookie']]).toEqual([
      '/admin/login?signed_out',
      expect.stringMatching(/^bank_session=;.*Max-Age=0/),
    ]);
    // The browser sends no cookie with a form of another site.
    const foreign = await post('/admin/logout', {}, { cookie: 'other=1', 'sec-fetch-site': 'cross-site' });
    expect(foreign.headers['set-cookie']).toBeUndefined();
  });

  it('cannot be caused by another site', async () => {
    const { get, post } = signedIn('keys:manage');
    expect((await post('/admin/logout', {}, { 'sec-fetch-site': 'cross-site' })).statusCode).toBe(403);
    expect((await get('/admin/ui')).statusCode).toBe(200);
  });
});

describe('a form sent after the end of its session', () => {
  const form = '/admin/ui/clients/new';
  const entered = { first_name: 'Grace <b>', idempotency_key: 'once', email: '' };
  const cookieIn = (header: unknown) => /bank_form=([^;]+)/.exec([header].flat().join('; '))?.[1] ?? '';

  it('is restored after signing in, only to the same person, and nothing was changed', async () => {
    const before = signedIn('clients:write');
    await before.post('/admin/logout', { csrf_token: before.session.csrf });
    const sent = made.sent.length;
    const answer = await before.post(form, { ...entered, csrf_token: before.session.csrf });
    expect([answer.statusCode, answer.headers.location]).toEqual([303, '/admin/login?to=%2Fadmin%2Fui%2Fkept-form']);
    expect(made.sent).toHaveLength(sent);
    const kept = cookieIn(answer.headers['set-cookie']);
    const signInPage = async (cookie: string) =>
      await made.app.inject({ url: String(answer.headers.location), headers: { cookie } });
    expect((await signInPage(`bank_form=${kept}`)).body).toContain('the form is kept</strong> for ten minutes');
    expect((await signInPage('')).headers.location).toBe('/admin/login/start?to=%2Fadmin%2Fui%2Fkept-form');
    const again = signedIn('clients:write');
    const { body } = await again.get('/admin/ui/kept-form', { cookie: `${again.cookie}; bank_form=${kept}` });
    expect(body).toContain('Nothing has been done yet.');
    expect(body).toContain('<dt>What</dt><dd>Create a client</dd>');
    expect(body).toContain('<dt>First name</dt><dd><span class="lines">Grace &lt;b&gt;</span></dd>');
    expect(body).not.toContain('<dt>Idempotency key</dt>');
    expect(body).toContain(
      `<form method="post" action="${form}"><input type="hidden" name="csrf_token" value="${again.session.csrf}">`,
    );
    expect(body).toContain('name="idempotency_key" value="once"');
    const isGone = async (form: string) => {
      const answer = await again.get('/admin/ui/kept-form', { cookie: `${again.cookie}; bank_form=${form}` });
      return answer.statusCode === 404 && answer.body.includes('There is no form to give back.');
    };
    expect([await isGone(kept), await isGone(kept.slice(2)), await isGone('')]).toEqual([false, true, true]);
    // The sealed cookie identifies the person whose session expired.
    const eve = made.sessions.begin({
      id: 'ses_1',
      actor: 'jwt:x|eve',
      token: 'x',
      name: 'Eve',
      scopes: '',
      expiresInMs: 0,
    });
    const hers = await again.post(
      form,
      { ...entered, csrf_token: eve.csrf },
      { cookie: `bank_session=${made.sessions.seal(eve)}` },
    );
    expect(await isGone(cookieIn(hers.headers['set-cookie']))).toBe(true);
    expect(cookieIn(hers.headers['set-cookie'])).not.toBe('');
  });

  it('names its account and client; one that confirms a summary leads to the summary', async () => {
    const teller = 'accounts:read clients:read transactions:write';
    const { session, post } = signedIn(teller);
    const cookie = `bank_session=${made.sessions.seal({ ...session, expires_ms: 0 })}`;
    const back = async (url: string, fields: Record<string, string>) => {
      const { headers } = await post(url, { ...fields, csrf_token: session.csrf }, { cookie });
      return signedIn(teller).get('/admin/ui/kept-form', {
        cookie: `${signedIn(teller).cookie}; bank_form=${cookieIn(headers['set-cookie'])}`,
      });
    };
    const { body } = await back(`/admin/ui/counter/${ids.account}/deposit`, { amount: '321.50', description: 'Rent' });
    for (const fact of [
      '<dt>What</dt><dd>Deposit</dd>',
      'SAV-1</a>, Savings, 10.50 USD</dd>',
      '<dt>Client</dt><dd><a href',
      '<span class="lines">321.50</span>',
      '<span class="lines">Rent</span>',
    ])
      expect(body).toContain(fact);
    const limits = await back(`/admin/ui/accounts/${ids.account}/limits`, { per_day_out: '5', shown_per_day_out: '7' });
    expect(limits.body).toContain('<dt>Most out per day</dt><dd><span class="lines">5</span></dd>');
    expect(limits.body).not.toMatch(/<dt>Shown/);
    const summary = await back('/admin/ui/counter/summary', { of: 'sealed' });
    expect(summary.headers.location).toBe('/admin/ui/counter/summary?of=sealed');
  });

  it('is also kept if a page in another window has refreshed itself meanwhile', async () => {
    const { get, session } = signedIn('books:read');
    const cookie = `bank_session=${made.sessions.seal({ ...session, expires_ms: 0 })}`;
    const refreshed = await get('/admin/ui/today', { cookie, 'hx-request': 'true' });
    expect(refreshed.headers['hx-redirect']).toBe('/admin/login?ended');
    expect(refreshed.headers['set-cookie']).toBeUndefined();
  });

  it('is also kept after another window has asked for a page, which leaves the cookie that says whose it was', async () => {
    const { get, post, session } = signedIn('clients:write');
    const cookie = `bank_session=${made.sessions.seal({ ...session, expires_ms: 0 })}`;
    expect((await get('/admin/ui', { cookie })).headers['set-cookie']).toBeUndefined();
    const ended = signedIn('clients:write');
    await ended.post('/admin/logout', { csrf_token: ended.session.csrf });
    const asked = await ended.get('/admin/ui');
    expect([asked.statusCode, asked.headers['set-cookie']]).toEqual([303, undefined]);
    const { headers } = await post(form, { ...entered, csrf_token: session.csrf }, { cookie });
    expect(headers.location).toBe('/admin/login?to=%2Fadmin%2Fui%2Fkept-form');
    // What cannot be read is of no use.
    expect((await get('/admin/ui', { cookie: 'bank_session=made-up' })).headers['set-cookie']).toContain('Max-Age=0');
  });

  it('is not kept if another page created it, or it is too long', async () => {
    const { session, post } = signedIn('clients:write');
    const cookie = `bank_session=${made.sessions.seal({ ...session, expires_ms: 0 })}`;
    const own = { ...entered, csrf_token: session.csrf };
    for (const [fields, headers] of [
      [{ ...own, csrf_token: 'x' }, {}],
      [own, { 'sec-fetch-site': 'cross-site' }],
      [{ ...own, first_name: 'x'.repeat(4000) }, {}],
    ] as const) {
      const answer = await post(form, fields, { ...headers, cookie });
      expect([answer.headers.location, cookieIn(answer.headers['set-cookie'])]).toEqual(['/admin/login?lost', '']);
    }
  });
});

it.each([
  ['/admin/ui/api-keys?x=1', '/admin/ui/api-keys?x=1'],
  ['/admin/ui', '/admin/ui'],
  ['//evil.example', '/admin/ui'],
  ['/admin/uix', '/admin/ui'],
  ['/admin/ui/\\evil', '/admin/ui'],
  ['https://evil.example/admin/ui', '/admin/ui'],
  [undefined, '/admin/ui'],
])('after sign-in %s leads to %s', (to, path) => {
  expect(ownPath(to)).toBe(path);
});

it('one address has a tenth of the connections; the oldest makes room for the next', async () => {
  const { app } = await testDashboard(() => 'no_reply');
  const port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
  const open = async (localAddress: string) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  try {
    const others = await open('127.0.0.3');
    const opened = [];
    for (let i = 0; i < 200; i++) opened.push(await open('127.0.0.2'));
    const oldest = opened[0] ?? others;
    const closed = once(oldest, 'close', { signal: AbortSignal.timeout(5_000) });
    expect(oldest.closed).toBe(false);
    opened.push(await open('127.0.0.2'));
    await closed;
    expect([others, ...opened].filter((socket) => socket.closed)).toEqual([oldest]);
  } finally {
    app.server.closeAllConnections();
    await app.close();
  }
});

describe('the answer to a form', () => {
  /** The addresses of all forms, from fastify's list of routes: a tree with one part of an address on each line. */
  function formUrls(): string[] {
    const open: string[] = [];
    return made.app
      .printRoutes({ commonPrefix: false })
      .split('\n')
      .flatMap((line) => {
        const [, indent = '', part = '', methods = ''] = /^([│ ]*)[├└]── (\S*) \(([^)]*)\)/.exec(line) ?? [];
        const depth = indent.length / 4;
        open.splice(depth, open.length, part);
        return methods.includes('POST') ? [open.join('')] : [];
      });
  }

  it('names the page that a browser shows again, which every form has', async () => {
    const forms = formUrls().filter((url) => url.startsWith('/admin/ui'));
    expect(forms).toContain('/admin/ui/counter/summary');
    expect(forms.length).toBeGreaterThan(15);
    const person = signedIn('openid');
    for (const url of forms) {
      const { body, statusCode } = await person.post(url.replaceAll(/:\w+/g, 'x'), {});
      expect([statusCode, /data-here="([^"]*)"/.exec(body)?.[1]], url).toEqual([
        403,
        expect.stringMatching(/^\/admin\/ui\/\w/),
      ]);
    }
  });

  it.each([
    ['/admin/ui/clients/new', { first_name: 'x' }, '/admin/ui/clients/new'],
    ['/admin/ui/counter/batches/preview', {}, '/admin/ui/counter/batches'],
    ['/admin/ui/counter/batches/sending', { of: 'x' }, '/admin/ui/counter/batches'],
    ['/admin/ui/counter/summary', { of: 'a b' }, '/admin/ui/counter/summary?of=a+b'],
    ['/admin/ui/clients/new', { csrf_token: 'of another session' }, '/admin/ui/clients/new'],
    ['/admin/ui/clients/new', { client_type: 'Corporate' }, '/admin/ui/clients/new?client_type=Corporate'],
    ['/admin/ui/accounts/new', { client_id: ids.client }, `/admin/ui/accounts/new?client_id=${ids.client}`],
  ])('%s with %j is followed by %s', async (url, fields, here) => {
    const person = signedIn('clients:write accounts:write transactions:write transfers:write');
    const { body } = await person.post(url, { csrf_token: person.session.csrf, ...fields });
    expect(/data-here="([^"]*)"/.exec(body)?.[1]).toBe(here);
    expect((await person.get('/admin/ui')).body).not.toContain('data-here');
  });
});
