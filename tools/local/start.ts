/**
 * `npm start`: runs a complete bank on this machine: Postgres, Kafka, the identity provider,
 * migrations, topics, and the five services, supervised until Ctrl-C. LOCAL_DIR (default .local)
 * contains all data, PORT (default 3000) is the public port. KAFKA_BROKERS and DATABASE_URL name
 * existing servers to use instead. GATEWAYS, LEDGERS, ACCOUNTS, and WEBHOOKS (default 1) are the
 * numbers of processes.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { postgresVersions } from '#libs/postgres/version.ts';
import { loadToolConfig } from '#libs/service/config.ts';
import { fourEyesConfig } from '#services/gateway/config.ts';
import { awaitAll } from './await-all.ts';
import type { BankSettings } from './bank.ts';
import { createTopics, makeApiKey, migrateService, signingKeys, startIdentityProvider } from './bank.ts';
import { createConnection, removeConnection, summary, writeConnection } from './connection.ts';
import { startInfrastructure } from './infra.ts';
import type { Launch } from './launch.ts';
import { createLaunch, untilReady } from './launch.ts';
import type { LocalDir } from './local-dir.ts';
import { openLocalDir, PROJECT } from './local-dir.ts';
import { refuseUnusable } from './other-bank.ts';
import { accepts, isFree } from './ports.ts';
import { awaitReady, probeStatus } from './ready.ts';
import { startServices } from './services.ts';
import { supervise } from './supervisor.ts';

const KEY_WORKS_MS = 60_000;
const PARENT_CHECK_MS = 250;
const STOP_MS = { kafka: 15_000, postgres: 10_000, 'identity-provider': 3000 } as const;

function count(name: string): number {
  const value = Number(process.env[name] ?? 1);
  if (!Number.isInteger(value) || value < 1 || value > 16)
    throw new Error(`${name} must be a whole number from 1 to 16`);
  return value;
}

async function publicPort(): Promise<number> {
  const port = Number(process.env['PORT'] ?? 3000);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new Error(`PORT "${process.env['PORT']}" is not a port number`);
  if (!(await isFree(port))) throw new Error(`port ${port} is taken by another program. Set PORT to a free one`);
  return port;
}

/** A server that the environment names must respond. Otherwise the start fails immediately. */
async function checkReachable(variable: ServerVariable, host: string, port: number): Promise<void> {
  if (await accepts(host, port, 3000)) return;
  throw new Error(`${variable} names ${host}:${port}, but nothing answers there. Start it, or ${instead(variable)}`);
}

async function checkBrokers(brokers: string): Promise<void> {
  const [host = '', port] = brokers.split(',')[0]!.split(':');
  await checkReachable('KAFKA_BROKERS', host, Number(port ?? 9092));
}

async function checkDatabase(databaseUrl: string): Promise<void> {
  if (!/^postgres(ql)?:$/.test(URL.parse(databaseUrl)?.protocol ?? ''))
    throw new Error('DATABASE_URL is not a URL such as postgres://user:password@host:5432/database');
  const { hostname, port } = new URL(databaseUrl);
  await checkReachable('DATABASE_URL', hostname, Number(port || 5432));
}

type ServerVariable = 'KAFKA_BROKERS' | 'DATABASE_URL';

function instead(variable: ServerVariable): string {
  return `correct ${variable}, or unset it: npm start then runs a server of its own`;
}

/** Adds the environment variable to errors of the server that it names. */
async function named<T>(variable: ServerVariable, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!process.env[variable]) throw error;
    throw new Error(
      `${(error as Error).message}\nThis is the server of ${variable} (tested are PostgreSQL ${postgresVersions.oldest} to ${postgresVersions.newest} and Kafka 4): ${instead(variable)}`,
      { cause: error },
    );
  }
}

/**
 * Books and events belong together: a bank that exists must have the folders of both, because with one of them it would
 * be inconsistent.
 */
function checkComplete(local: LocalDir): void {
  const missing = ['kafka', 'postgres'].filter((name) => !existsSync(join(local.path, name)));
  if (local.value('api_key') === undefined || missing.length !== 1) return;
  throw new Error(
    `${local.path} holds a bank, but not the folder ${missing[0]}. Put that back, or delete all of it: the next start then makes an empty bank`,
  );
}

/** Starts Kafka and Postgres, or uses those in the environment. */
async function findInfrastructure(launch: Launch, local: LocalDir): Promise<{ brokers: string; ownerUrl: string }> {
  const brokers = process.env['KAFKA_BROKERS'] || undefined;
  const databaseUrl = process.env['DATABASE_URL'] || undefined;
  await awaitAll([brokers && checkBrokers(brokers), databaseUrl && checkDatabase(databaseUrl)]);
  if (brokers === undefined && databaseUrl === undefined) checkComplete(local);
  const infra = await startInfrastructure(local, {
    kafka: brokers === undefined,
    postgres: databaseUrl === undefined,
    step: launch.step,
    async keep(name, start) {
      const startThere = () => {
        // A restart would otherwise make an empty database or broker under a running bank.
        local.checkThere();
        return start();
      };
      const server = await supervise(name, startThere, { report: launch.report });
      launch.onStop(name, () => server.stop(STOP_MS[name]));
      return server;
    },
  });
  return { brokers: brokers ?? infra.brokers, ownerUrl: databaseUrl ?? infra.ownerUrl };
}

/** The password is short enough to type. */
const userPassword = (local: LocalDir): string => local.secret('user_password', 8);

async function startIdp(launch: Launch, local: LocalDir): Promise<string> {
  const port = await local.port('identity_provider');
  const start = async () =>
    startIdentityProvider({
      port,
      keysFile: join(local.path, 'identity-provider-keys.json'),
      clientSecret: local.secret('client_secret'),
      userPassword: userPassword(local),
      log: local.log('identity-provider'),
      onStart: local.recordProcess,
    });
  const idp = await supervise('identity-provider', start, { report: launch.report });
  launch.onStop('identity-provider', () => idp.stop(STOP_MS['identity-provider']));
  const issuer = `http://127.0.0.1:${port}`;
  await untilReady(idp, `${issuer}/jwks`, local.log('identity-provider'), 60_000);
  return issuer;
}

/** Returns the kept API key if this database and this Kafka know it, otherwise a new one. */
async function workingApiKey(local: LocalDir, settings: BankSettings, baseUrl: string): Promise<string> {
  const kept = local.value('api_key');
  const probe = (key: string) => ({ url: `${baseUrl}/`, headers: { 'x-api-key': key } });
  if (kept !== undefined) {
    let status = await probeStatus(probe(kept));
    for (let attempt = 0; status !== 200 && status !== 401 && attempt < 50; attempt++) {
      await sleep(200);
      status = await probeStatus(probe(kept));
    }
    if (status === 200) return kept;
  }
  const made = await makeApiKey(settings);
  local.keepValue('api_key', made);
  await awaitReady(probe(made), KEY_WORKS_MS);
  return made;
}

async function startBank(launch: Launch, local: LocalDir): Promise<void> {
  // Otherwise the gateway would refuse it after the servers have started.
  loadToolConfig(z.object(fourEyesConfig));
  const counts = {
    ledger: count('LEDGERS'),
    accounts: count('ACCOUNTS'),
    webhooks: count('WEBHOOKS'),
    gateway: count('GATEWAYS'),
    dashboard: 1,
  };
  const port = await publicPort();
  const [{ brokers, ownerUrl }, issuer] = await awaitAll([
    findInfrastructure(launch, local),
    launch.step('Identity provider', () => startIdp(launch, local)),
  ]);
  const settings: BankSettings = {
    brokers,
    ownerUrl,
    issuer,
    topicPrefix: process.env['TOPIC_PREFIX'] ?? '',
    rolePasswords: {
      ledger: local.secret('role_ledger'),
      accounts: local.secret('role_accounts'),
      webhooks: local.secret('role_webhooks'),
    },
    apiKeyPepper: local.secret('api_key_pepper'),
    webhookSecretKey: local.secret('webhook_secret_key'),
    signing: signingKeys(local),
    dashboard: { clientSecret: local.secret('client_secret'), sessionSecret: local.secret('session_secret') },
  };
  await awaitAll([
    launch.step('Database schemas', () =>
      named('DATABASE_URL', async () => {
        await refuseUnusable(settings);
        await awaitAll(
          (['ledger', 'accounts', 'webhooks'] as const).map((service) => migrateService(service, settings)),
        );
      }),
    ),
    launch.step('Kafka topics', () => named('KAFKA_BROKERS', () => createTopics(settings))),
  ]);
  let write = () => {};
  const dashboardPort = await local.port('dashboard');
  const services = await startServices(launch, local, settings, counts, port, dashboardPort, () => write());
  const base_url = `http://127.0.0.1:${port}`;
  const api_key = await launch.step('API key', () => workingApiKey(local, settings, base_url));
  const [client_secret, dashboard_password] = [local.secret('client_secret'), userPassword(local)];
  const known = {
    base_url,
    dashboard_url: `http://127.0.0.1:${dashboardPort}/admin`,
    issuer,
    api_key,
    client_secret,
    dashboard_password,
    kafka_brokers: brokers,
    database_url: ownerUrl,
  };
  write = () => writeConnection(local.path, createConnection({ ...known, services: services() }));
  write();
  launch.onStop('connection', async () => {
    write = () => {};
    removeConnection(local.path);
  });
  launch.say(
    `\n  Ready after ${(performance.now() / 1000).toFixed(1)} s. Data and logs are in ${local.path}; Ctrl-C stops everything.`,
  );
  launch.say(summary(createConnection({ ...known, services: services() })));
}

/**
 * A signal may end only npm or its shell: the shell does not forward SIGTERM, and kill -9 reaches no other process. A
 * launcher whose npm has ended stops instead of continuing unnoticed.
 */
function stopWithNpm(stop: () => void): void {
  if (process.env['npm_lifecycle_event'] !== 'start') return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    stop();
  }, PARENT_CHECK_MS);
}

/**
 * Starts everything and returns when it runs. On failure it stops what was started, prints one
 * message, and exits with 1.
 */
export async function main(): Promise<void> {
  const launch = createLaunch();
  let local: LocalDir | undefined;
  let stopping = false;
  const stop = async (code: number) => {
    if (stopping) return;
    stopping = true;
    try {
      local?.checkThere();
      local?.stopping();
    } catch (error) {
      launch.say(`  ${(error as Error).message}`);
    }
    await launch.stopAll();
    local?.release();
    process.exit(code);
  };
  const stopOnRequest = () => {
    if (!stopping) launch.say('\n  Stopping …');
    void stop(0);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stopOnRequest);
  stopWithNpm(stopOnRequest);
  try {
    local = await openLocalDir(process.env['LOCAL_DIR'] || join(PROJECT, '.local'));
    removeConnection(local.path);
    if (local.cleared.length > 0) launch.say(`  Ended what an earlier run left: ${local.cleared.join(', ')}`);
    await startBank(launch, local);
  } catch (error) {
    if (stopping) return;
    process.stderr.write(`\nCannot start: ${(error as Error).message}\n`);
    await stop(1);
  }
}

if (import.meta.main) await main();
