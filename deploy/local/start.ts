/**
 * `npm start`: a whole bank on this machine. Postgres, Kafka, the identity provider, migrations, topics and the three
 * services, supervised until Ctrl-C. LOCAL_DIR (default .local) holds all data, PORT (default 3000) is the public
 * port; KAFKA_BROKERS and DATABASE_URL name existing servers instead; GATEWAYS, LEDGERS and ACCOUNTS (default 1)
 * are the numbers of processes.
 */
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTopics, makeApiKey, migrateService, startIdentityProvider, startService } from './bank.ts';
import type { BankSettings, ServiceKind, ServiceSpec } from './bank.ts';
import { killAllChildren } from './child.ts';
import { connectionOf, removeConnection, summary, writeConnection } from './connection.ts';
import type { Connection } from './connection.ts';
import { startInfrastructure } from './infra.ts';
import type { Step } from './infra.ts';
import { openLocalDir, PROJECT } from './local-dir.ts';
import type { LocalDir } from './local-dir.ts';
import { logTail } from './log-file.ts';
import { accepts, isFree } from './ports.ts';
import { awaitReady, statusOf } from './ready.ts';
import { supervise } from './supervisor.ts';
import type { Supervised } from './supervisor.ts';

const READY_TIMEOUT_MS = 60_000;
const STOP_SERVICE_MS = 12_000;
const STOP_IDP_MS = 3000;

/** Things to stop, last started first. */
type Stops = (() => Promise<void>)[];
type Service = { spec: ServiceSpec; running: Supervised; health_url: string };

const say = (line: string) => void process.stdout.write(`${line}\n`);

/** Prints one line per step when it is done, with the time it took. */
const step: Step = async (title, work) => {
  const startedAt = performance.now();
  const line = (mark: string) => say(`  ${mark} ${title.padEnd(48)} ${((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)} s`);
  try {
    const result = await work();
    line('✓');
    return result;
  } catch (error) {
    line('✗');
    throw error;
  }
};

function count(name: string): number {
  const value = Number(process.env[name] ?? 1);
  if (!Number.isInteger(value) || value < 1 || value > 16) throw new Error(`${name} must be a whole number from 1 to 16`);
  return value;
}

async function publicPort(): Promise<number> {
  const port = Number(process.env['PORT'] ?? 3000);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Error(`PORT "${process.env['PORT']}" is not a port number`);
  if (!(await isFree(port))) throw new Error(`port ${port} is taken by another program. Set PORT to a free one`);
  return port;
}

/** A named server of the environment must answer, or the start says so at once. */
async function checkReachable(variable: string, host: string, port: number): Promise<void> {
  if (await accepts(host, port, 3000)) return;
  throw new Error(`${variable} names ${host}:${port}, but nothing answers there`);
}

/** Kafka and Postgres: our own, or those that the environment names. */
async function findInfrastructure(local: LocalDir, stops: Stops): Promise<{ brokers: string; ownerUrl: string }> {
  const brokers = process.env['KAFKA_BROKERS'] || undefined;
  const databaseUrl = process.env['DATABASE_URL'] || undefined;
  if (brokers !== undefined) {
    const [host = '', port] = brokers.split(',')[0]!.split(':');
    await checkReachable('KAFKA_BROKERS', host, Number(port ?? 9092));
  }
  if (databaseUrl !== undefined) {
    if (!URL.canParse(databaseUrl)) throw new Error('DATABASE_URL is not a URL such as postgres://user:password@host:5432/database');
    const { hostname, port } = new URL(databaseUrl);
    await checkReachable('DATABASE_URL', hostname, Number(port || 5432));
  }
  const infra = await startInfrastructure(local, {
    kafka: brokers === undefined,
    postgres: databaseUrl === undefined,
    step,
    keep: (name, start) => supervise(name, start, { report: say }),
  });
  stops.push(infra.stop);
  return { brokers: brokers ?? infra.brokers, ownerUrl: databaseUrl ?? infra.ownerUrl };
}

async function startIdp(local: LocalDir, stops: Stops): Promise<string> {
  const port = await local.port('identity_provider');
  const start = async () =>
    startIdentityProvider({
      port,
      keysFile: join(local.path, 'identity-provider-keys.json'),
      clientSecret: local.secret('client_secret'),
      log: local.log('identity-provider'),
      onStart: local.recordProcess,
    });
  const idp = await supervise('identity-provider', start, { report: say });
  stops.push(() => idp.stop(STOP_IDP_MS));
  const issuer = `http://127.0.0.1:${port}`;
  await awaitReady({ url: `${issuer}/jwks` }, 20_000, keepsDying(idp));
  return issuer;
}

function keepsDying(process: Supervised): () => string | undefined {
  return () => (process.deaths() < 3 ? undefined : `never answered: ${process.name} keeps dying`);
}

async function serviceSpecs(local: LocalDir, port: number): Promise<ServiceSpec[]> {
  const counts: [ServiceKind, number][] = [
    ['ledger', count('LEDGERS')],
    ['accounts', count('ACCOUNTS')],
    ['gateway', count('GATEWAYS')],
  ];
  const specs: ServiceSpec[] = [];
  for (const [kind, wanted] of counts) {
    for (let n = 1; n <= wanted; n++) {
      const name = n === 1 ? kind : `${kind}-${n}`;
      const own = kind !== 'gateway' ? undefined : n === 1 ? port : await local.port(name);
      specs.push({ kind, name, port: own, healthPort: await local.port(`${name}_health`), log: local.log(name), onStart: local.recordProcess });
    }
  }
  return specs;
}

async function startServices(specs: ServiceSpec[], settings: BankSettings, onRestart: () => void, stops: Stops): Promise<Service[]> {
  const services: Service[] = [];
  for (const spec of specs) {
    const running = await supervise(spec.name, async () => startService(spec, settings), { onRestart, report: say });
    services.push({ spec, running, health_url: `http://127.0.0.1:${spec.healthPort}/readyz` });
  }
  const stopKind = (test: (spec: ServiceSpec) => boolean) =>
    Promise.all(services.filter(({ spec }) => test(spec)).map(({ running }) => running.stop(STOP_SERVICE_MS)));
  // Gateways first: what they still wait for must be answered.
  stops.push(async () => {
    await stopKind((spec) => spec.kind === 'gateway');
    await stopKind((spec) => spec.kind !== 'gateway');
  });
  const ready = ({ spec, running, health_url }: Service) =>
    step(`${spec.name} ready`, () =>
      awaitReady({ url: health_url }, READY_TIMEOUT_MS, keepsDying(running)).catch((error: Error) => {
        throw new Error(`${error.message}\nThe end of ${spec.log}:\n${logTail(spec.log)}`);
      }),
    );
  await Promise.all(services.map(ready));
  return services;
}

/** The kept API key, as long as this database and this Kafka know it; else a new one. */
async function workingApiKey(local: LocalDir, settings: BankSettings, baseUrl: string): Promise<string> {
  const kept = local.value('api_key');
  const probe = (key: string) => ({ url: `${baseUrl}/`, headers: { 'x-api-key': key } });
  if (kept !== undefined) {
    let status = await statusOf(probe(kept));
    for (let attempt = 0; status !== 200 && status !== 401 && attempt < 50; attempt++) {
      await sleep(200);
      status = await statusOf(probe(kept));
    }
    if (status === 200) return kept;
  }
  const made = await makeApiKey(settings);
  local.keepValue('api_key', made);
  await awaitReady(probe(made), READY_TIMEOUT_MS);
  return made;
}

async function startBank(local: LocalDir, stops: Stops): Promise<void> {
  const port = await publicPort();
  const infrastructure = findInfrastructure(local, stops);
  const [{ brokers, ownerUrl }, issuer] = await Promise.all([infrastructure, step('Identity provider', () => startIdp(local, stops))]);
  const settings: BankSettings = {
    brokers,
    ownerUrl,
    issuer,
    topicPrefix: process.env['TOPIC_PREFIX'] ?? '',
    rolePasswords: { ledger: local.secret('role_ledger'), accounts: local.secret('role_accounts') },
    apiKeyPepper: local.secret('api_key_pepper'),
    idempotencySecret: local.secret('idempotency_secret'),
  };
  await Promise.all([
    step('Database schemas', () => Promise.all([migrateService('ledger', settings), migrateService('accounts', settings)])),
    step('Kafka topics', () => createTopics(settings)),
  ]);
  let connection: Connection | undefined;
  const specs = await serviceSpecs(local, port);
  const entries = () =>
    services.map(({ spec, running, health_url }) => ({
      name: spec.name,
      pid: running.pid(),
      health_url,
      ...(spec.kind === 'gateway' && spec.name !== 'gateway' ? { base_url: `http://127.0.0.1:${spec.port}` } : {}),
    }));
  const write = () => {
    if (connection !== undefined) writeConnection(local.path, { ...connection, services: entries() });
  };
  const services = await startServices(specs, settings, write, stops);
  const base_url = `http://127.0.0.1:${port}`;
  const api_key = await step('API key', () => workingApiKey(local, settings, base_url));
  connection = connectionOf({
    base_url,
    issuer,
    api_key,
    client_secret: local.secret('client_secret'),
    kafka_brokers: brokers,
    database_url: ownerUrl,
    services: entries(),
  });
  write();
  stops.push(async () => removeConnection(local.path));
  say(`\n  Ready after ${(performance.now() / 1000).toFixed(1)} s. Data and logs are in ${local.path}; Ctrl-C stops everything.`);
  say(summary(connection));
}

/** Starts everything and returns when it runs; on failure stops what was started, prints one message and exits 1. */
export async function main(): Promise<void> {
  // A closed pipe (npm start | head) must not end the bank.
  process.stdout.on('error', () => {});
  const stops: Stops = [];
  let stopping = false;
  const stopAll = async (code: number) => {
    if (stopping) return;
    stopping = true;
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop().catch((error: Error) => say(error.message));
    await killAllChildren();
    release();
    process.exit(code);
  };
  let release = () => {};
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (!stopping) say('\n  Stopping …');
      void stopAll(0);
    });
  }
  try {
    const local = await openLocalDir(process.env['LOCAL_DIR'] || join(PROJECT, '.local'));
    release = local.release;
    removeConnection(local.path);
    if (local.cleared.length > 0) say(`  Ended what an earlier run left: ${local.cleared.join(', ')}`);
    await startBank(local, stops);
  } catch (error) {
    if (stopping) return;
    process.stderr.write(`\nCannot start: ${(error as Error).message}\n`);
    await stopAll(1);
  }
}

if (import.meta.main) await main();
