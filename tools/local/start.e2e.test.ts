import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { authorization, Browser, redeem, type Tokens } from '../../tests/support/sign-in.ts';
import { processIdentity } from './child.ts';
import type { Connection } from './connection.ts';
import { freePort } from './ports.ts';
import { probeStatus } from './ready.ts';

/** Tests `npm start` with its own Kafka and Postgres, in its own folder. */
const dir = mkdtempSync(join(tmpdir(), 'core-banking-start-'));
const file = join(dir, 'connection.json');
const READY_MS = 90_000;

let port: number;
let launcher: ChildProcess;
let output = '';
let first: Connection;

const connection = () => JSON.parse(readFileSync(file, 'utf8')) as Connection;
const health = (key: string) => probeStatus({ url: `http://127.0.0.1:${port}/`, headers: { 'x-api-key': key } });
const recorded = () => JSON.parse(readFileSync(join(dir, 'processes.json'), 'utf8')) as { name: string; pid: number }[];

async function start(): Promise<void> {
  const env: NodeJS.ProcessEnv = { ...process.env, LOCAL_DIR: dir, PORT: String(port) };
  delete env['KAFKA_BROKERS']; // of the test run's own servers
  delete env['DATABASE_URL'];
  output = '';
  launcher = spawn(process.execPath, [join(import.meta.dirname, 'start.mjs')], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [launcher.stdout, launcher.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
  await vi.waitUntil(() => output.includes('paste in order') || launcher.exitCode !== null, {
    timeout: READY_MS,
    interval: 50,
  });
  expect(launcher.exitCode, output).toBeNull();
}

beforeAll(async () => {
  port = await freePort();
  await start();
  first = connection();
}, READY_MS + 5000);

afterAll(async () => {
  if (launcher.exitCode === null && launcher.signalCode === null) {
    launcher.kill('SIGTERM');
    await once(launcher, 'exit');
  }
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

test('connection.json has everything that callers need, and the key works', async () => {
  expect(first.base_url).toBe(`http://127.0.0.1:${port}`);
  expect(first.services.map(({ name }) => name).sort()).toEqual([
    'accounts',
    'dashboard',
    'gateway',
    'ledger',
    'webhooks',
  ]);
  for (const service of first.services) {
    expect(processIdentity(service.pid)).toBeDefined();
    expect(await probeStatus({ url: service.health_url })).toBe(200);
  }
  expect(await health(first.api_key)).toBe(200);
  expect(await health('cbk_test_wrong')).toBe(401);
  expect(await probeStatus({ url: first.docs_url })).toBe(200);
  expect(first.dashboard_users).toEqual(['admin', 'officer', 'manager', 'auditor']);
  expect(output).toContain(`password ${first.dashboard_password}\n`);
});

test('a user signs in at the identity provider, and the bank accepts their token', async () => {
  const issuer = new URL(first.token_endpoint).origin;
  const { url, verifier } = authorization(issuer, { scope: 'openid accounts:read' });
  const browser = new Browser();
  const page = await browser.visit(url);
  const { left } = await browser.visit(page.url, { user_name: 'auditor', password: first.dashboard_password });
  const { access_token } = (await (
    await redeem(issuer, first.client_secret, left?.searchParams.get('code') ?? '', verifier)
  ).json()) as Tokens;
  expect(
    await probeStatus({ url: `${first.base_url}/accounts`, headers: { authorization: `Bearer ${access_token}` } }),
  ).toBe(200);
  expect(
    await probeStatus({ url: `${first.base_url}/clients`, headers: { authorization: `Bearer ${access_token}` } }),
  ).toBe(403);
});

test('only the owner can read the logs and the messages of the broker', () => {
  const mode = (...parts: string[]) => statSync(join(dir, ...parts)).mode & 0o777;
  expect([mode('kafka'), mode('log'), mode('log', 'ledger.log')]).toEqual([0o700, 0o700, 0o600]);
});

test('the dashboard redirects to the sign-in', async () => {
  // contract: permission-5
  expect(new URL(first.dashboard_url).origin).not.toBe(new URL(first.base_url).origin);
  expect((await fetch(`${first.base_url}/admin/ui`)).status).toBe(401);
  const browser = new Browser();
  const { page } = await browser.visit(first.dashboard_url);
  expect(await page?.text()).toContain('<h1>Sign in</h1>');
  const { left } = await browser.visit(`${first.dashboard_url}/login/start`);
  expect(left?.origin).toBe(new URL(first.token_endpoint).origin);
  const form = await browser.visit(left?.href ?? '');
  expect(await form.page?.text()).toContain('For development only.');
});

test('a token of the identity provider is accepted', async () => {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: first.client_id,
    client_secret: first.client_secret,
  });
  const { access_token } = (await (await fetch(first.token_endpoint, { method: 'POST', body })).json()) as {
    access_token: string;
  };
  expect(
    await probeStatus({ url: `${first.base_url}/accounts`, headers: { authorization: `Bearer ${access_token}` } }),
  ).toBe(200);
});

test('the printed curl lines work when pasted in order', () => {
  const lines = output
    .split('\n')
    .filter((line) => line.startsWith('CLIENT_ID=') || line.startsWith('ACCOUNT_ID=') || line.startsWith('curl '));
  expect(lines).toHaveLength(3);
  const [client, account, deposit] = execFileSync('bash', ['-c', lines.join('\n')], { encoding: 'utf8' })
    .trim()
    .split('\n');
  expect(client).toMatch(/^cli_/);
  expect(account).toMatch(/^acc_/);
  expect(JSON.parse(deposit!)).toMatchObject({ account_id: account, amount: 25, status: 'Completed' });
});

test(
  'a start with another LOCAL_DIR does not take the database of a running bank',
  async () => {
    const other = join(dir, 'other');
    const second = spawn(process.execPath, [join(import.meta.dirname, 'start.mjs')], {
      env: {
        ...process.env,
        LOCAL_DIR: other,
        PORT: String(await freePort()),
        KAFKA_BROKERS: first.kafka_brokers,
        DATABASE_URL: first.database_url,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let reason = '';
    second.stderr.on('data', (chunk: Buffer) => (reason += chunk.toString('utf8')));
    const [code] = (await once(second, 'close')) as [number | null];
    expect(reason).toContain('the services of another bank are connected to this database');
    expect(code).toBe(1);
  },
  READY_MS,
);

test('a killed service is restarted, and connection.json has its new pid', async () => {
  for (const name of ['ledger', 'accounts', 'webhooks', 'gateway']) {
    const before = connection().services.find((service) => service.name === name)!;
    process.kill(before.pid, 'SIGKILL');
    const pid = () => connection().services.find((service) => service.name === name)!.pid;
    await vi.waitUntil(() => pid() !== before.pid, { timeout: 10_000, interval: 20 });
    await vi.waitUntil(async () => (await probeStatus({ url: before.health_url })) === 200, {
      timeout: 20_000,
      interval: 100,
    });
  }
  await vi.waitUntil(async () => (await health(first.api_key)) === 200, { timeout: 10_000, interval: 100 });
});

test(
  'after kill -9 of the launcher and one of its servers, a new start has the data and the key',
  async () => {
    const left = recorded();
    process.kill(left.find(({ name }) => name === 'postgres')!.pid, 'SIGKILL');
    launcher.kill('SIGKILL');
    await once(launcher, 'exit');
    await start();
    expect(connection()).toMatchObject({
      base_url: first.base_url,
      api_key: first.api_key,
      dashboard_password: first.dashboard_password,
      kafka_brokers: first.kafka_brokers,
      database_url: first.database_url,
    });
    expect(await health(first.api_key)).toBe(200);
    const response = await fetch(`${first.base_url}/accounts`, { headers: { 'x-api-key': first.api_key } });
    expect(((await response.json()) as { data: { balance: number }[] }).data).toMatchObject([{ balance: 125.5 }]);
  },
  READY_MS,
);

test('SIGTERM stops everything in order, with exit code 0 and no leftover processes', async () => {
  const pids = recorded().map(({ pid }) => pid);
  expect(pids.length).toBeGreaterThanOrEqual(6);
  launcher.kill('SIGTERM');
  const [code] = (await once(launcher, 'exit')) as [number | null];
  expect(code).toBe(0);
  expect(pids.filter((pid) => processIdentity(pid) !== undefined)).toEqual([]);
  expect(existsSync(file)).toBe(false);
}, 60_000);
