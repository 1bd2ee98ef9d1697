import { createHash, randomBytes } from 'node:crypto';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from '../../tests/support/sign-in.ts';
import { startChild } from '../../tools/local/child.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';
import { logTail } from '../../tools/local/log-file.ts';
import { freePort } from '../../tools/local/ports.ts';
import { awaitReady } from '../../tools/local/ready.ts';
import { type Check, expect } from './check.ts';

/** It takes 12 s on an idle machine, and minutes on a busy one at idle priority. */
const startMs = 600_000;
const stopMs = 20_000;
/** Maximum heap in MB. */
const heapMb = 512;

/** The folder of the realm and the gateway's settings that docs/security/identity-providers.md explains. */
const examples = join(PROJECT, 'deploy/keycloak');

export interface Keycloak {
  baseUrl: string;
  /** Sends a request to the administration API. Rejects unless the response is 2xx. */
  admin<T = unknown>(method: string, path: string, body?: unknown): Promise<T>;
}

/** Starts a copy of Keycloak in the check's folder, with a database in memory. */
export async function startKeycloak(check: Check, folder: string): Promise<Keycloak> {
  const home = join(check.dir, 'keycloak');
  cpSync(folder, home, { recursive: true });
  const [port, log] = [await freePort(), join(check.dir, 'keycloak.log')];
  const baseUrl = `http://127.0.0.1:${port}`;
  const clientSecret = randomBytes(16).toString('hex');
  const child = startChild({
    name: 'keycloak',
    command: join(home, 'bin/kc.sh'),
    args: [
      ...['start', '--optimized', '--cache=local', '--http-enabled=true', '--http-host=127.0.0.1'],
      ...[`--http-port=${port}`, `--hostname=${baseUrl}`],
    ],
    env: {
      ...process.env,
      JAVA_OPTS_KC_HEAP: `-Xms64m -Xmx${heapMb}m`,
      KC_BOOTSTRAP_ADMIN_CLIENT_ID: 'check',
      KC_BOOTSTRAP_ADMIN_CLIENT_SECRET: clientSecret,
    },
    log,
    marker: home,
  });
  check.onEnd(() => child.stop(stopMs));
  await awaitReady({ url: `${baseUrl}/realms/master` }, startMs, () =>
    child.running() ? undefined : 'never answered: Keycloak ended',
  ).catch((error: Error) => {
    throw new Error(`${error.message}\n${logTail(log)}`);
  });
  const own = { grant_type: 'client_credentials', client_id: 'check', client_secret: clientSecret };
  return {
    baseUrl,
    async admin<T>(method: string, path: string, body?: unknown) {
      // A token is valid for a minute.
      const { access_token } = await requestTokens(`${baseUrl}/realms/master`, own);
      const response = await fetch(`${baseUrl}/admin/realms${path}`, {
        method,
        headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      const text = await response.text();
      expect(response.ok, `Keycloak answered ${method} ${path} with ${response.status}: ${text}`);
      // A created resource is only named by its location.
      return (text === '' ? response.headers.get('location')?.split('/').at(-1) : JSON.parse(text)) as T;
    },
  };
}

interface Tokens {
  access_token: string;
  id_token: string;
}

/** Requests tokens from a realm's token endpoint. */
async function requestTokens(issuer: string, parameters: Record<string, string>): Promise<Tokens> {
  const response = await fetch(`${issuer}/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams(parameters),
  });
  const text = await response.text();
  expect(response.ok, `the token endpoint answered ${response.status}: ${text}`);
  return JSON.parse(text) as Tokens;
}

export type Realm = Awaited<ReturnType<typeof createRealm>>;

/** The example's addresses, which are replaced by those of this machine. */
const exampleUrls = { issuer: 'https://id.bank.example', dashboard: 'https://staff.bank.example' };

/** Returns a file of the example with the addresses of Keycloak and the dashboard. */
export function example(file: string, { baseUrl }: Keycloak, publicUrl: string): string {
  return readFileSync(join(examples, file), 'utf8')
    .replaceAll(exampleUrls.issuer, baseUrl)
    .replaceAll(exampleUrls.dashboard, publicUrl);
}

/** Creates the example's realm under this name; `change` modifies it before. */
export async function createRealm(
  keycloak: Keycloak,
  name: string,
  publicUrl: string,
  change: (clients: Record<string, unknown>[]) => void = () => undefined,
) {
  const realm = { ...JSON.parse(example('realm.json', keycloak, publicUrl)), realm: name };
  change(realm.clients);
  await keycloak.admin('POST', '', realm);
  const issuer = `${keycloak.baseUrl}/realms/${name}`;
  const password = randomBytes(16).toString('hex');
  const admin = <T>(method: string, path: string, body?: unknown) => keycloak.admin<T>(method, `/${name}${path}`, body);
  const readClient = async (clientId: string) => {
    const [client] = await admin<{ id: string; secret?: string; redirectUris: string[] }[]>(
      'GET',
      `/clients?clientId=${clientId}`,
    );
    expect(client !== undefined, `there is no client ${clientId}`);
    return client;
  };
  const readCredentials = async (clientId: string) => {
    const { secret } = await readClient(clientId);
    return { client_id: clientId, ...(secret && { client_secret: secret }) };
  };
  return {
    issuer,
    password,
    admin,
    readClient,
    readCredentials,
    /** Creates a person with a role. Returns the person's id. */
    async person(username: string, role: string, attributes: Record<string, string[]> = {}): Promise<string> {
      const id = await admin<string>('POST', '/users', {
        username,
        firstName: username,
        lastName: role,
        email: `${username}@bank.example`,
        enabled: true,
        attributes,
        credentials: [{ type: 'password', value: password }],
      });
      await admin('POST', `/users/${id}/role-mappings/realm`, [await admin('GET', `/roles/${role}`)]);
      return id;
    },
    /** Returns an access token of a client itself. */
    async machineToken(clientId: string): Promise<string> {
      const credentials = await readCredentials(clientId);
      return (await requestTokens(issuer, { grant_type: 'client_credentials', ...credentials })).access_token;
    },
    /** Returns the tokens of a person who signs in to a client on the realm's own page. */
    async personTokens(username: string, clientId: string, redirectUri?: string): Promise<Tokens> {
      const redirect_uri = redirectUri ?? (await readClient(clientId)).redirectUris[0] ?? '';
      const verifier = randomBytes(32).toString('base64url');
      const asked = new URLSearchParams({
        ...{ client_id: clientId, response_type: 'code', redirect_uri, scope: 'openid', nonce: 'nonce' },
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
      });
      const browser = new Browser();
      const { page } = await browser.visit(`${issuer}/protocol/openid-connect/auth?${asked}`);
      const action = / action="([^"]+)"/.exec((await page?.text()) ?? '')?.[1]?.replaceAll('&amp;', '&');
      expect(action !== undefined, `there is no page to sign in to ${clientId}`);
      const { url, left } = await browser.visit(action, { username, password });
      const code = (left ?? new URL(url)).searchParams.get('code');
      expect(code !== null, `signing in to ${clientId} ended at ${left?.href ?? url}`);
      return requestTokens(issuer, {
        ...(await readCredentials(clientId)),
        ...{ grant_type: 'authorization_code', code, redirect_uri, code_verifier: verifier },
      });
    },
  };
}
