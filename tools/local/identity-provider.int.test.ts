import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fastify } from 'fastify';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Scope, scopes } from '#libs/contracts/scopes.ts';
import { loadConfig } from '#libs/service/config.ts';
import { createKeySet } from '#services/gateway/access/jwks.ts';
import { createTokenVerifier } from '#services/gateway/access/tokens.ts';
import {
  authorization,
  Browser,
  decodeClaims,
  type Parameters,
  redeem,
  redirectUri,
  type Tokens,
} from '../../tests/support/sign-in.ts';
import { AUDIENCE, MAIN_CLIENT, startIdentityProvider } from './bank.ts';
import { idpConfig } from './identity-provider.ts';
import { freePort } from './ports.ts';
import { awaitReady } from './ready.ts';
import { users } from './users.ts';

/** Tests the identity provider as a process, which is used as by a browser and the gateway. */
const dir = mkdtempSync(join(tmpdir(), 'identity-provider-'));
const port = await freePort();
const issuer = `http://127.0.0.1:${port}`;
const [clientSecret, userPassword] = [randomUUID(), randomUUID()];
const provider = startIdentityProvider({
  port,
  keysFile: join(dir, 'keys.json'),
  clientSecret,
  userPassword,
  log: join(dir, 'log'),
});
beforeAll(() => awaitReady({ url: `${issuer}/jwks` }, 20_000));
afterAll(async () => {
  await provider.stop(2000);
  rmSync(dir, { recursive: true, force: true });
});

const everything = ['openid', 'profile', ...scopes].join(' ');

/** Opens the sign-in page and submits this name and password. */
async function signIn(
  userName: string,
  changes: Parameters = {},
  browser = new Browser(),
  password: string = userPassword,
) {
  const asked = authorization(issuer, changes);
  const { url } = await browser.visit(asked.url);
  const outcome = await browser.visit(url, { user_name: userName, password });
  return { ...asked, ...outcome, browser, code: outcome.left?.searchParams.get('code') ?? '' };
}

async function requestTokens(
  userName: string,
  scope = everything,
  browser = new Browser(),
): Promise<Tokens & { nonce: string | undefined }> {
  const { code, verifier, parameters } = await signIn(userName, { scope }, browser);
  const answer = await redeem(issuer, clientSecret, code, verifier);
  expect(answer.status).toBe(200);
  return { ...((await answer.json()) as Tokens), nonce: parameters['nonce'] };
}

test.each([undefined, 'production', 'staging'])('does not start if BANK_MODE is %s', (mode) => {
  expect(() => loadConfig(idpConfig, { BANK_MODE: mode, IDP_CLIENT_SECRET: clientSecret })).toThrow(
    /IDP_CLIENT_SECRET: .*local development/,
  );
});

describe('signing in', () => {
  test('the page shows its purpose and the users, without scripts and with a strict policy', async () => {
    const { page } = await new Browser().visit(authorization(issuer).url);
    expect(page?.status).toBe(200);
    const policy = page?.headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("form-action 'self' http://127.0.0.1:* http://localhost:*;");
    expect(policy).not.toContain('unsafe');
    const html = (await page?.text()) ?? '';
    expect(html).not.toMatch(/<script|\son\w+=|\sstyle=/);
    expect(html).toContain('For development only');
    for (const { user_name, name } of users) expect(html).toContain(`<dt>${user_name}</dt><dd>${name}`);
  });

  test.each(users)(
    '$user_name gets the requested scopes that $user_name is allowed, and is a member of staff',
    async ({ user_name, name, scopes: own }) => {
      // contract: four-eyes-21
      const { access_token, id_token, scope, nonce, expires_in } = await requestTokens(user_name);
      expect(scope.split(' ').sort()).toEqual([...own].sort());
      expect(expires_in).toBe(3600);
      expect(decodeClaims(access_token)).toMatchObject({
        iss: issuer,
        aud: AUDIENCE,
        sub: user_name,
        name,
        client_id: 'dashboard',
        scope,
      });
      expect(decodeClaims(id_token)).toMatchObject({ iss: issuer, aud: 'dashboard', sub: user_name, name, nonce });

      const keySet = createKeySet({ url: `${issuer}/jwks`, logger: pino({ level: 'silent' }), maxStaleMs: 60_000 });
      const verify = await createTokenVerifier(fastify(), {
        issuer,
        audience: AUDIENCE,
        algorithms: ['RS256'],
        keySet,
        wholeBankClients: ['dashboard'],
        maxLifetimeS: 3600,
        types: ['at+jwt'],
      });
      const caller = await verify(access_token);
      expect(caller).toMatchObject({
        actor: `jwt:${issuer}|${user_name}`,
        scopes: new Set(own),
        boundClientId: undefined,
        isStaff: true,
      });
    },
  );

  test('a token has no more scopes than were requested', async () => {
    const asked: Scope[] = ['clients:read', 'keys:manage'];
    expect((await requestTokens('admin', ['openid', ...asked].join(' '))).scope.split(' ').sort()).toEqual(asked);
    expect((await requestTokens('officer', ['openid', ...asked].join(' '))).scope).toBe('clients:read');
  });

  test('a wrong password and an unknown name get the same refusal, and the next attempt can succeed', async () => {
    const texts = new Set<string>();
    for (const [name, password] of [
      ['admin', 'wrong'],
      ['admin', ''],
      ['nobody', userPassword],
      ['Admin', userPassword],
      ['__proto__', 'x'],
    ] as const) {
      const { page, left } = await signIn(name, {}, new Browser(), password);
      expect(left).toBeUndefined();
      texts.add(((await page?.text()) ?? '').replace(`value="${name}"`, ''));
    }
    expect(texts.size).toBe(1);
    expect([...texts][0]).toContain('do not belong together');

    const { browser, url } = await signIn('officer', {}, new Browser(), 'wrong');
    const { left } = await browser.visit(url, { user_name: ' officer ', password: userPassword });
    expect(left?.searchParams.get('code')).toBeTruthy();
  });

  test('input is shown as text', async () => {
    const { page } = await signIn('"><script>alert(1)</script>', {}, new Browser());
    const html = (await page?.text()) ?? '';
    expect(html).toContain('value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"');
    expect(html).not.toContain('<script');
  });

  test('a form without the cookie of its sign-in is refused, and so is one that is too large', async () => {
    const { browser, url } = await signIn('admin', {}, new Browser(), 'wrong');
    const stranger = await new Browser().visit(url, { user_name: 'admin', password: userPassword });
    expect([stranger.page?.status, stranger.left]).toEqual([400, undefined]);
    expect((await browser.visit(url, { user_name: 'admin', password: 'x'.repeat(5000) })).page?.status).toBe(413);
  });

  test('a signed-in user is redirected immediately; with prompt=login another user can sign in', async () => {
    const browser = new Browser();
    await requestTokens('admin', everything, browser);
    const again = await browser.visit(authorization(issuer).url);
    expect(again.left?.searchParams.get('code')).toBeTruthy();
    const { code, verifier } = await signIn('auditor', { prompt: 'login' }, browser);
    const { id_token } = (await (await redeem(issuer, clientSecret, code, verifier)).json()) as Tokens;
    expect(decodeClaims(id_token)['sub']).toBe('auditor');
  });
});

describe('requirements of the code flow', () => {
  test.each<[string, Parameters]>([
    ['no PKCE', { code_challenge: undefined, code_challenge_method: undefined }],
    ['PKCE in plain', { code_challenge_method: 'plain' }],
    ['a token instead of a code', { response_type: 'id_token' }],
  ])('%s is redirected back with an error', async (_, changes) => {
    const { left } = await new Browser().visit(authorization(issuer, changes).url);
    expect(`${left?.origin}${left?.pathname}`).toBe(redirectUri);
    const answer = new URLSearchParams(left?.search || left?.hash.slice(1));
    expect([answer.get('error'), answer.get('code')]).toEqual(['invalid_request', null]);
  });

  test.each([
    'http://127.0.0.1:43210/elsewhere',
    'http://evil.example/admin/callback',
    'http://127.0.0.1.evil.example/admin/callback',
    'https://127.0.0.1:43210/admin/callback',
    'http://127.0.0.1:43210/admin/callback?x=1',
    'http://user@127.0.0.1:43210/admin/callback',
  ])('redirect_uri %s is reported as an error and never followed', async (uri) => {
    const { page, left } = await new Browser().visit(authorization(issuer, { redirect_uri: uri }).url);
    expect(left).toBeUndefined();
    expect(page?.status).toBe(400);
    expect(await page?.text()).toContain('redirect_uri');
  });

  test('a code requires its verifier, its redirect_uri, and the secret, and works once', async () => {
    const spoiled: [Record<string, string>, string][] = [
      [{ code_verifier: 'x'.repeat(43) }, clientSecret],
      [{ redirect_uri: 'http://localhost:43210/admin/callback' }, clientSecret],
      [{}, 'wrong'],
    ];
    for (const [changes, secret] of spoiled) {
      const { code, verifier } = await signIn('admin', { scope: everything });
      expect((await redeem(issuer, secret, code, verifier, changes)).status).toBeGreaterThanOrEqual(400);
    }
    const { code, verifier } = await signIn('admin', { scope: everything });
    expect((await redeem(issuer, clientSecret, code, verifier)).status).toBe(200);
    expect((await redeem(issuer, clientSecret, code, verifier)).status).toBe(400);
  });
});

describe('signing out', () => {
  const end = (parameters: Record<string, string>) => `${issuer}/session/end?${new URLSearchParams(parameters)}`;
  const after = { post_logout_redirect_uri: 'http://127.0.0.1:43210/admin/login', state: 'abc' };
  const isSignedIn = async (browser: Browser) => (await browser.visit(authorization(issuer).url)).left !== undefined;

  test('with the user’s ID token it happens immediately and redirects to the dashboard', async () => {
    const browser = new Browser();
    const { id_token } = await requestTokens('officer', everything, browser);
    expect(await isSignedIn(browser)).toBe(true);
    const url = end({ ...after, id_token_hint: id_token });
    expect((await browser.visit(url)).left?.href).toBe('http://127.0.0.1:43210/admin/login?state=abc');
    expect(await isSignedIn(browser)).toBe(false);
    // The user signs out again without a session. No page may require a script.
    expect((await browser.visit(url)).left?.href).toBe('http://127.0.0.1:43210/admin/login?state=abc');
  });

  test('without it, or with another user’s, it asks for confirmation', async () => {
    const browser = new Browser();
    await requestTokens('officer', everything, browser);
    const { id_token } = await requestTokens('admin');
    for (const hint of [{}, { id_token_hint: id_token }] as Record<string, string>[]) {
      const { page } = await browser.visit(end({ ...after, client_id: 'dashboard', ...hint }));
      const html = (await page?.text()) ?? '';
      expect(html).not.toContain('<script');
      expect(await isSignedIn(browser)).toBe(true);
      if ('id_token_hint' in hint) {
        const xsrf = /name="xsrf" value="(\w+)"/.exec(html)?.[1] ?? '';
        const { left } = await browser.visit(`${issuer}/session/end/confirm`, { xsrf, logout: 'yes' });
        expect(left?.href).toBe('http://127.0.0.1:43210/admin/login?state=abc');
      }
    }
    expect(await isSignedIn(browser)).toBe(false);
  });

  test('never redirects to an unregistered address', async () => {
    const browser = new Browser();
    const { id_token } = await requestTokens('admin', everything, browser);
    const { page, left } = await browser.visit(
      end({ id_token_hint: id_token, post_logout_redirect_uri: 'http://evil.example/admin' }),
    );
    expect([page?.status, left]).toEqual([400, undefined]);
    expect(await isSignedIn(browser)).toBe(true);
  });
});

test('machines get tokens, and cannot use the dashboard’s client', async () => {
  const ask = (client_id: string, rest: Record<string, string> = {}) =>
    fetch(`${issuer}/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret: clientSecret, ...rest }),
    });
  const { access_token } = (await (await ask(MAIN_CLIENT)).json()) as Tokens;
  expect(decodeClaims(access_token)).toMatchObject({
    sub: MAIN_CLIENT,
    client_id: MAIN_CLIENT,
    aud: AUDIENCE,
    scope: scopes.join(' '),
  });
  expect(decodeClaims(access_token)).not.toHaveProperty('name');
  expect((await ask(MAIN_CLIENT, { scope: 'openid' })).status).toBe(400);
  expect((await ask('dashboard')).status).toBe(400);
});
