import { join } from 'node:path';
import { parseEnv } from 'node:util';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { startCluster } from '../../tests/faults/cluster.ts';
import { createRandom } from '../../tests/faults/random.ts';
import { Api, newKey } from '../../tests/support/client.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { decodeClaims } from '../../tests/support/sign-in.ts';
import { startChild } from '../../tools/local/child.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';
import { freePort } from '../../tools/local/ports.ts';
import { awaitReady } from '../../tools/local/ready.ts';
import { type Check, expect, type Part, prepare } from './check.ts';
import { createRealm, example, type Keycloak, type Realm, startKeycloak } from './keycloak-server.ts';
import { inBrowser } from './sign-in.ts';

const partMs = 30 * 60_000;
/** maxKeyAgeMs of services/gateway/config.ts. */
const keysMaxAgeMs = 300_000;
/** The outcome is unknown, or the bank or the issuer is temporarily unavailable. */
const undecided = new Set([202, 503, 504]);
const patienceMs = 120_000;
const noRoles = 'a customer who signs in to the dashboard may do nothing';

/**
 * Connects a bank with a real Keycloak. The realm and the gateway's settings are the files of deploy/keycloak, which
 * docs/security/identity-providers.md explains; only their addresses are replaced.
 */
export const keycloak: Part = {
  name: 'keycloak',
  needsEngine: false,
  planted: {
    defect: 'every role in the tokens of the dashboard',
    foundBy: noRoles,
    says: /a list of accounts was answered 200/,
  },
  limitMs: partMs,
  async run(check) {
    const prepared = await prepare(check, { part: 'keycloak', script: 'keycloak.sh', timeoutMs: partMs });
    if (prepared === undefined) return;
    const keycloak = await check.step('Keycloak starts', () => startKeycloak(check, prepared));
    const { realm, bank, dashboardUrl } = await check.step(
      'a bank has the realm and the settings of deploy/keycloak',
      () => connect(check, keycloak),
    );
    await check.step('programs and people have the scopes of their roles', () => useRoles(realm, bank));
    await check.step('a customer reaches the accounts of one client, and cannot become another one', () =>
      useBinding(realm, bank),
    );
    await check.step(noRoles, async () => {
      const { access_token } = await realm.personTokens('carla', 'dashboard');
      await expectStatuses('the customer', {
        'a list of accounts': [() => bank.withToken(access_token).get('/accounts'), 403],
      });
    });
    await inBrowser(check, 'a person signs in to the dashboard and out', (page) =>
      visit(page, realm, bank, dashboardUrl),
    );
    await check.step('tokens for another audience, of another realm, and ID tokens are refused', () =>
      useForeignTokens(keycloak, realm, bank),
    );
    await check.step('a new key is accepted at once, and a disabled one is refused after a while', () =>
      changeKeys(realm, bank),
    );
  },
};

async function connect(check: Check, keycloak: Keycloak): Promise<{ realm: Realm; bank: Api; dashboardUrl: string }> {
  const cluster = await startCluster(join(check.dir, 'keycloak-bank'), createRandom('keycloak'));
  check.onEnd(() => cluster.stop());
  const gateway = cluster.node('gateway');
  await Promise.all(['gateway', 'gateway-2', 'ledger-2'].map((name) => cluster.node(name).stop()));
  const [port, healthPort] = [await freePort(), await freePort()];
  const dashboardUrl = `http://127.0.0.1:${port}`;
  const realm = await createRealm(keycloak, 'bank', dashboardUrl, (clients) => {
    const dashboard = clients.find(({ clientId }) => clientId === 'dashboard');
    if (check.selfTest) Object.assign(dashboard ?? {}, { fullScopeAllowed: true });
  });
  const settings = (file: string) => parseEnv(example(file, keycloak, dashboardUrl)) as Record<string, string>;
  gateway.start({ ...settings('gateway.env'), TRUST_PROXY: 'loopback' });
  await gateway.ready();
  const dashboard = startChild({
    name: 'dashboard',
    command: process.execPath,
    args: [join(PROJECT, 'services/dashboard/main.ts')],
    cwd: PROJECT,
    env: {
      ...process.env,
      ...settings('dashboard.env'),
      BANK_MODE: 'trial',
      API_URL: gateway.baseUrl,
      PORT: String(port),
      HEALTH_PORT: String(healthPort),
      DASHBOARD_CLIENT: `dashboard:${(await realm.readClient('dashboard')).secret}`,
      SESSION_SECRET: realm.password,
    },
    log: join(check.dir, 'keycloak-dashboard.log'),
    marker: 'services/dashboard/main.ts',
  });
  check.onEnd(() => dashboard.stop(10_000));
  await awaitReady({ url: `http://127.0.0.1:${healthPort}/readyz` }, patienceMs);
  const bank = new Api(
    () => gateway.baseUrl,
    () => ({ 'x-api-key': cluster.apiKey }),
  );
  return { realm, bank, dashboardUrl };
}

/** Expects the statuses of requests, by their names. On a busy machine, a request is repeated until it is decided. */
async function expectStatuses(what: string, requests: Record<string, [() => Promise<{ status: number }>, number]>) {
  for (const [name, [send, wanted]] of Object.entries(requests)) {
    const { status } = await eventually(async () => {
      const answer = await send();
      return !undecided.has(answer.status) && answer;
    }, patienceMs);
    expect(status === wanted, `${what}: ${name} was answered ${status}`);
  }
}

/** Opens an account with money for a new client. */
const openAccount = (bank: Api) => eventually(() => bank.newAccount({ initial_deposit: 10 }), patienceMs);

async function useRoles(realm: Realm, bank: Api): Promise<void> {
  const { account_id } = await openAccount(bank);
  await realm.person('tina', 'teller');
  await realm.person('amina', 'auditor');
  const program = await realm.machineToken('back-office');
  const { access_token: teller } = await realm.personTokens('tina', 'dashboard');
  const { access_token: auditor } = await realm.personTokens('amina', 'dashboard');
  for (const [who, token, posts, reads] of [
    ['the program', program, 201, 403],
    ['the teller', teller, 201, 403],
    ['the auditor', auditor, 403, 200],
  ] as const) {
    const caller = bank.withToken(token);
    const key = newKey();
    const deposit = { account_id, transaction_type: 'Deposit', amount: 3 };
    await expectStatuses(who, {
      'the account': [() => caller.get(`/accounts/${account_id}`), 200],
      'a deposit': [() => caller.once(key, '/transactions', deposit), posts],
      'the trial balance': [() => caller.get('/admin/trial-balance'), reads],
    });
  }
  const readers = await eventually(async () => {
    const records = await bank.all<AuditRecord>(`/admin/audit?resource_id=${account_id}&reads=with`);
    const actors = records.filter(({ action }) => action === 'get_account').map(({ actor }) => actor);
    return actors.length > 1 && new Set(actors);
  });
  const [programId, tellerId] = [program, teller].map((token) => `jwt:${realm.issuer}|${decodeClaims(token)['sub']}`);
  expect(readers.has(tellerId ?? '') && !readers.has(programId ?? ''), `reads of people: ${[...readers].join(', ')}`);
}

async function useBinding(realm: Realm, bank: Api): Promise<void> {
  const [own, other] = [await openAccount(bank), await openAccount(bank)];
  const attributes = { bank_client_id: [own.client_id] };
  const id = await realm.person('carla', 'customer', attributes);
  const { access_token } = await realm.personTokens('carla', 'customer-app');
  const customer = bank.withToken(access_token);
  const accounts = await eventually(() => customer.all<{ account_id: string }>('/accounts'), patienceMs);
  const ids = accounts.map(({ account_id }) => account_id);
  expect(ids.join() === own.account_id, `the customer sees ${ids.length} accounts`);
  const transfer = (from: string, to: string) => {
    const key = newKey();
    return () => customer.once(key, '/transfers', { from_account_id: from, to_account_id: to, amount: 1 });
  };
  await expectStatuses('the customer', {
    'the own account': [() => customer.get(`/accounts/${own.account_id}`), 200],
    'an account of another client': [() => customer.get(`/accounts/${other.account_id}`), 404],
    'a transfer': [transfer(own.account_id, other.account_id), 201],
    'a transfer back': [transfer(other.account_id, own.account_id), 404],
  });
  const accountPage = `${realm.issuer}/account/`;
  const { access_token: ownToken } = await realm.personTokens('carla', 'account-console', accountPage);
  const headers = {
    authorization: `Bearer ${ownToken}`,
    accept: 'application/json',
    'content-type': 'application/json',
  };
  const person = (await (await fetch(accountPage, { headers })).json()) as object;
  const change = (attributes: object) =>
    fetch(accountPage, { method: 'POST', headers, body: JSON.stringify({ ...person, attributes }) });
  await expectStatuses("the customer's own page", {
    'saving it': [() => change({}), 204],
    'another client': [() => change({ bank_client_id: [other.client_id] }), 400],
  });
  const kept = await realm.admin<{ attributes?: unknown }>('GET', `/users/${id}`);
  expect(JSON.stringify(kept.attributes) === JSON.stringify(attributes), 'the customer has changed the attribute');
  await realm.person('newcomer', 'customer');
  const { access_token: unbound } = await realm.personTokens('newcomer', 'customer-app');
  await expectStatuses('a customer without bank_client_id', {
    'a list of accounts': [() => bank.withToken(unbound).get('/accounts'), 401],
  });
}

type Page = Parameters<Parameters<typeof inBrowser>[2]>[0];

async function visit(page: Page, realm: Realm, bank: Api, dashboardUrl: string): Promise<void> {
  await page.goto(`${dashboardUrl}/admin`);
  await page.waitForURL(`${realm.issuer}/**`);
  await page.getByLabel('Username or email').fill('amina');
  await page.getByLabel('Password', { exact: true }).fill(realm.password);
  await page.getByRole('button', { name: 'Sign In' }).click();
  await page.waitForURL(`${dashboardUrl}/admin/ui**`);
  const text = await page.getByRole('banner').innerText();
  expect(/amina auditor/.test(text) && /Books/.test(text) && !/Counter/.test(text), `the header says ${text}`);
  const cookies = (await page.context().cookies(dashboardUrl)).map(({ name, value }) => `${name}=${value}`);
  const statusOfCopy = async () =>
    (await fetch(`${dashboardUrl}/admin/ui`, { headers: { cookie: cookies.join('; ') }, redirect: 'manual' })).status;
  expect((await statusOfCopy()) === 200, 'a copy of the cookie does not work');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('You are signed out.').waitFor();
  expect((await statusOfCopy()) === 303, 'a copy of the cookie works after signing out');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(`${realm.issuer}/**`);
  await page.getByLabel('Password', { exact: true }).waitFor();
  const [user] = await realm.admin<{ id: string }[]>('GET', '/users?username=amina');
  const actor = `jwt:${realm.issuer}|${user?.id}`;
  await eventually(async () => {
    const records = await bank.all<AuditRecord>('/admin/audit?action=sign_out');
    return records.some((record) => record.actor === actor);
  });
}

async function useForeignTokens(keycloak: Keycloak, realm: Realm, bank: Api): Promise<void> {
  const withToken = (token: string) => () => bank.withToken(token).get('/accounts');
  const other = await createRealm(keycloak, 'other', bank.baseUrl);
  const { id } = await realm.readClient('back-office');
  const mappers = `/clients/${id}/protocol-mappers/models`;
  const audience = (await realm.admin<{ id: string; name: string; config: object }[]>('GET', mappers)).find(
    ({ name }) => name === 'audience',
  );
  expect(audience !== undefined, 'back-office has no audience');
  const change = (name: string) =>
    realm.admin('PUT', `${mappers}/${audience.id}`, {
      ...audience,
      config: { ...audience.config, 'included.custom.audience': name },
    });
  await change('another-service');
  const elsewhere = await realm.machineToken('back-office');
  await change('core-banking');
  await expectStatuses('back-office', {
    'a token for another audience': [withToken(elsewhere), 401],
    'a token of another realm': [withToken(await other.machineToken('back-office')), 401],
    'the ID token of a teller': [withToken((await realm.personTokens('tina', 'dashboard')).id_token), 401],
    'its own token': [withToken(await realm.machineToken('back-office')), 200],
  });
}

/** Resolves with the time for which the disabled key was accepted. */
async function changeKeys(realm: Realm, bank: Api): Promise<string> {
  const listStatus = async (token: string) => (await bank.withToken(token).get('/accounts')).status;
  const old = await realm.machineToken('back-office');
  expect((await listStatus(old)) === 200, 'the token is not accepted');
  const type = 'org.keycloak.keys.KeyProvider';
  const { id: parentId } = await realm.admin<{ id: string }>('GET', '');
  const providers = await realm.admin<{ id: string; providerId: string; config: object }[]>(
    'GET',
    `/components?type=${type}`,
  );
  const before = providers.find(({ providerId }) => providerId === 'rsa-generated');
  expect(before !== undefined, 'the realm has no generated RSA key');
  await realm.admin('POST', '/components', {
    ...{ name: 'rsa-next', providerId: 'rsa-generated', providerType: type, parentId },
    config: { priority: ['200'], algorithm: ['RS256'] },
  });
  const next = await realm.machineToken('back-office');
  // Until the gateway may fetch the keys again, it answers 503.
  await eventually(async () => (await listStatus(next)) === 200);
  expect((await listStatus(old)) === 200, "the earlier key's token is not accepted any more");
  await realm.admin('PUT', `/components/${before.id}`, { ...before, config: { ...before.config, enabled: ['false'] } });
  const disabledAt = performance.now();
  await eventually(async () => (await listStatus(old)) === 401, keysMaxAgeMs);
  expect(Number(decodeClaims(old)['exp']) * 1000 > Date.now(), 'the token has expired meanwhile');
  const seconds = ((performance.now() - disabledAt) / 1000).toFixed(0);
  expect((await listStatus(next)) === 200, "the new key's token is refused");
  return `refused after ${seconds} s`;
}
