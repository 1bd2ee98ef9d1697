import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isEventTopic, replyPartitions, type TopicName, topicName, topics } from '#libs/contracts/topics.ts';
import { createKafka, type KafkaClient } from '#libs/kafka/client.ts';
import { replyPartition } from '#libs/kafka/request-reply/request-reply.ts';
import { ensureTopics } from '#libs/kafka/topics.ts';
import { type MigrationTarget, migrate } from '#libs/postgres/migrate.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent } from '#libs/postgres/test/test-database.ts';
import { testMacSecrets } from '#libs/service/test/keys.ts';
import { createBootstrapKey } from '#services/accounts/api-keys/api-keys.ts';
import { migrations as accountsMigrations } from '#services/accounts/schema.ts';
import { migrations as ledgerMigrations } from '#services/ledger/schema.ts';
import { migrations as webhooksMigrations } from '#services/webhooks/schema.ts';
import { clientCredentials } from '../../clients/typescript/index.ts';
import { topicSpec, topicsConfig } from '../../deploy/create-topics.ts';
import type { BankSettings, ServiceKind, ServiceSpec, ServiceWithSchema } from '../../tools/local/bank.ts';
import { MAIN_CLIENT, newKeyPair, roleName, startService } from '../../tools/local/bank.ts';
import type { Child } from '../../tools/local/child.ts';
import { trySignal } from '../../tools/local/child.ts';
import { logTail } from '../../tools/local/log-file.ts';
import { freePort } from '../../tools/local/ports.ts';
import { awaitReady } from '../../tools/local/ready.ts';

const READY_MS = 45_000;
const STOP_MS = 12_000;

export type BankOptions = {
  /** The numbers of processes. The default is 1 each. */
  gateways?: number;
  ledgers?: number;
  accounts?: number;
  /** No process by default, because most banks do not need one. */
  webhooks?: number;
  /** No process by default. People sign in at the test issuer; each dashboard calls the gateway of its number. */
  dashboards?: number;
  /** Additional environment of every service. */
  env?: Record<string, string>;
  /** SQL that makes the database before it is migrated: that of an earlier release (tests/released). */
  dump?: string;
};

export type BankProcess = {
  /** The name of the process: gateway, gateway-2, ledger, … */
  name: string;
  /** The pid, which restart() changes. */
  readonly pid: number;
  health_url: string;
  log: string;
  running: () => boolean;
  kill: (signal: NodeJS.Signals) => void;
  /** Sends SIGTERM (with a time limit) and waits until the process has ended. */
  stop: () => Promise<void>;
  /** Kills the process if it is running, starts it again, and waits until it is ready. */
  restart: () => Promise<void>;
  /** Kills the process and starts it again with additional environment. It need not become ready. */
  startWith: (env: Record<string, string>) => Promise<void>;
};

type Addresses = {
  base_urls: string[];
  dashboard_urls: string[];
  /** An API key with every scope. */
  api_key: string;
  issuer: string;
  kafka_brokers: string;
  topic_prefix: string;
  /** With which accounts signs the states of API keys. */
  public_key: string;
  /** A superuser's URL for this bank's own database. */
  database_url: string;
};

/** The functions of a bank whose processes other tests also use. */
export type SharedBank = Addresses & {
  /**
   * An access token with these scopes (default: all); `client`: core-banking-local, reader, or
   * bound:<client_id>.
   */
  token: (scopes?: string[], client?: string) => Promise<string>;
};

export type Bank = SharedBank & {
  processes: BankProcess[];
  /** Returns the process with that name. */
  process: (name: string) => BankProcess;
  stop: () => Promise<void>;
};

/**
 * Starts a complete bank as separate processes on the shared test servers, with its own database and topic prefix.
 * Resolves when every process is ready and the API key works. Throws an error with the ends of the logs. Processes are
 * not restarted automatically; tests kill and restart them.
 */
export async function startBank(options: BankOptions = {}): Promise<Bank> {
  const database = await createTestDatabase();
  const dir = mkdtempSync(join(tmpdir(), 'core-banking-bank-'));
  const secret = () => randomBytes(16).toString('hex');
  const settings: BankSettings = {
    brokers: required('KAFKA_BROKERS'),
    topicPrefix: `${database.name}.`,
    ownerUrl: database.url,
    rolePasswords: { ledger: secret(), accounts: secret(), webhooks: secret() },
    issuer: required('TEST_ISSUER'),
    // Like the keys of messages, these are always the same, so that a bank can read what another one has stored.
    apiKeyPepper: 'the pepper of API keys for tests alone',
    webhookSecretKey: 'the key of secrets of webhooks for tests alone',
    signing: { mac: testMacSecrets, keyPair: newKeyPair() },
    dashboard: options.dashboards
      ? { clientSecret: required('TEST_CLIENT_SECRET'), sessionSecret: secret() + secret() }
      : undefined,
    programs: required('TEST_PROGRAMS'),
    // A check of the books by itself would be another record in what tests count.
    env: { BOOKS_CHECK_AT: 'none', ...options.env },
  };
  const processes: TestProcess[] = [];
  const stop = async () => {
    await Promise.all(
      processes.filter(({ kind }) => kind === 'gateway' || kind === 'dashboard').map((process) => process.stop()),
    );
    await Promise.all(processes.map((process) => process.stop()));
    await Promise.all([database.drop(), removeTopics(settings)]);
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    if (options.dump !== undefined) await restore(database.url, options.dump);
    const target = (kind: ServiceWithSchema) => migrationTarget(kind, settings);
    // These run in this process, because starting a process for each took longer than their work.
    await Promise.all([
      migrate({ ...target('ledger'), ...ledgerMigrations }, silent),
      migrate({ ...target('accounts'), ...accountsMigrations }, silent),
      options.webhooks ? migrate({ ...target('webhooks'), ...webhooksMigrations }, silent) : undefined,
      createTopics(settings, options.gateways ?? 1),
    ]);
    const specs = await serviceSpecs(options, dir);
    processes.push(...specs.map((spec) => testProcess(spec, settings)));
    const serviceUrls = (kind: ServiceKind) =>
      specs.filter((spec) => spec.kind === kind).map((spec) => `http://127.0.0.1:${spec.port}`);
    const base_urls = serviceUrls('gateway');
    const [api_key] = await Promise.all([makeKey(settings), ...processes.map((process) => process.awaitReady())]);
    await Promise.all(
      base_urls.map((url) => awaitReady({ url: `${url}/`, headers: { 'x-api-key': api_key } }, READY_MS)),
    );
    return {
      ...withTokens({
        base_urls,
        dashboard_urls: serviceUrls('dashboard'),
        api_key,
        issuer: settings.issuer,
        kafka_brokers: settings.brokers,
        topic_prefix: settings.topicPrefix,
        public_key: settings.signing.keyPair.publicKey,
        database_url: database.url,
      }),
      processes,
      process: (name) => find(processes, name),
      stop,
    };
  } catch (error) {
    const tails = processes.map(({ name, log }) => `--- ${name}\n${logTail(log, 20)}`).join('\n');
    await stop().catch(() => undefined);
    throw new Error(`the bank did not start: ${(error as Error).message}\n${tails}`, { cause: error });
  }
}

/** Serves the addresses of one bank, which the first request starts. Returns the URL. */
export async function serveSharedBank(stops: (() => Promise<void>)[]): Promise<string> {
  let bank: Promise<Bank> | undefined;
  const server = createServer((_, response) => {
    // Both ledgers execute commands, so that the tests meet what two decide at the same time.
    bank ??= startBank({ gateways: 2, ledgers: 2, env: { SPREAD_COMMANDS: 'true' } });
    bank.then(
      ({ processes: _, ...addresses }) => response.end(JSON.stringify(addresses)),
      (error: Error) => {
        bank = undefined;
        response.writeHead(500).end(error.message);
      },
    );
  });
  const port = await freePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  stops.push(async () => {
    server.close();
    await bank?.then(({ stop }) => stop()).catch(() => undefined);
  });
  return `http://127.0.0.1:${port}`;
}

/** The bank that several files use at the same time (tests/support/global-setup.ts). */
export async function sharedBank(): Promise<SharedBank> {
  const response = await fetch(required('TEST_SHARED_BANK'));
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  const { base_urls, ...addresses } = JSON.parse(text) as Addresses;
  // The first gateway is a different one in each worker, so that the gateways share the requests.
  const first = Number(process.env['VITEST_POOL_ID'] ?? 0) % base_urls.length;
  return withTokens({ ...addresses, base_urls: [...base_urls.slice(first), ...base_urls.slice(0, first)] });
}

function withTokens(addresses: Addresses): SharedBank {
  return {
    ...addresses,
    token: async (scopes, clientId = MAIN_CLIENT) =>
      clientCredentials({
        tokenEndpoint: `${addresses.issuer}/token`,
        clientId,
        clientSecret: required('TEST_CLIENT_SECRET'),
        scope: scopes?.join(' '),
      })(false),
  };
}

function required(name: string): string {
  const value = process.env[name];
  if (!value)
    throw new Error(
      `${name} is not set: end-to-end tests are named *.e2e.test.ts or *.int.test.ts, so that tests/support/global-setup.ts runs`,
    );
  return value;
}

function find(processes: BankProcess[], name: string): BankProcess {
  const found = processes.find((process) => process.name === name);
  if (found === undefined) throw new Error(`this bank has no process ${name}`);
  return found;
}

const processName = (kind: ServiceKind, n: number) => (n === 1 ? kind : `${kind}-${n}`);

async function serviceSpecs(options: BankOptions, dir: string): Promise<ServiceSpec[]> {
  const counts: [ServiceKind, number][] = [
    ['ledger', options.ledgers ?? 1],
    ['accounts', options.accounts ?? 1],
    ['gateway', options.gateways ?? 1],
    ['webhooks', options.webhooks ?? 0],
    ['dashboard', options.dashboards ?? 0],
  ];
  const specs: ServiceSpec[] = [];
  for (const [kind, count] of counts) {
    for (let n = 1; n <= count; n++) {
      const name = processName(kind, n);
      const port = kind === 'gateway' || kind === 'dashboard' ? await freePort() : undefined;
      const gateways = specs.filter((spec) => spec.kind === 'gateway');
      const gateway = kind === 'dashboard' ? gateways[n - 1] : kind === 'webhooks' ? gateways[0] : undefined;
      const apiUrl = gateway && `http://127.0.0.1:${gateway.port}`;
      specs.push({ kind, name, port, apiUrl, healthPort: await freePort(), log: join(dir, `${name}.log`) });
    }
  }
  return specs;
}

type TestProcess = BankProcess & { kind: ServiceKind; awaitReady: () => Promise<void> };

function testProcess(spec: ServiceSpec, settings: BankSettings): TestProcess {
  let child: Child = startService(spec, settings);
  const health_url = `http://127.0.0.1:${spec.healthPort}/readyz`;
  const ready = () =>
    awaitReady({ url: health_url }, READY_MS, () =>
      child.running() ? undefined : `never answered: ${spec.name} died`,
    );
  return {
    kind: spec.kind,
    name: spec.name,
    get pid() {
      return child.pid;
    },
    health_url,
    log: spec.log,
    running: () => child.running(),
    kill: (signal) => void trySignal(child.pid, signal),
    stop: () => child.stop(STOP_MS),
    awaitReady: ready,
    async startWith(env) {
      await child.stop(0);
      child = startService(spec, { ...settings, env: { ...settings.env, ...env } });
    },
    async restart() {
      await child.stop(0);
      child = startService(spec, settings);
      await ready().catch((error: Error) => {
        throw new Error(`${error.message}\n${logTail(spec.log, 20)}`);
      });
    },
  };
}

/** Runs what pg_dump --inserts has written, without its commands for psql. */
async function restore(url: string, dump: string): Promise<void> {
  const pool = createPool(
    { url, application_name: 'test', schema: 'public', max: 1, statement_timeout_ms: 60_000 },
    silent,
  );
  try {
    await pool.query(dump.replaceAll(/^\\.*$/gm, ''));
  } finally {
    await pool.end();
  }
}

function migrationTarget(kind: ServiceWithSchema, settings: BankSettings): MigrationTarget {
  return { owner_url: settings.ownerUrl, role: roleName(settings, kind), role_password: settings.rolePasswords[kind] };
}

async function makeKey(settings: BankSettings): Promise<string> {
  const schema = 'accounts';
  const pool = createPool({ url: settings.ownerUrl, application_name: 'test', schema, max: 1 }, silent);
  try {
    const pepper = settings.apiKeyPepper;
    return await createBootstrapKey(pool, { pepper, environment: 'test', schema, now: new Date() });
  } finally {
    await pool.end();
  }
}

/**
 * Topics of events have few partitions, and the topic of replies only those up to the last one that a gateway reads,
 * because each costs the broker 15 ms of CPU and no test addresses others by number.
 */
export async function createTopics(
  settings: Pick<BankSettings, 'brokers' | 'topicPrefix' | 'env'>,
  gateways: number,
): Promise<void> {
  const config = topicsConfig.parse({
    KAFKA_BROKERS: settings.brokers,
    TOPIC_PREFIX: settings.topicPrefix,
    ...settings.env,
  });
  const read = Array.from({ length: gateways }, (_, i) =>
    replyPartition(processName('gateway', i + 1), replyPartitions),
  );
  const specs = (Object.keys(topics) as TopicName[]).map((name) => {
    const spec = topicSpec(name, config, 1);
    if (name === 'replies') return { ...spec, partitions: Math.max(...read) + 1 };
    return isEventTopic(name) ? { ...spec, partitions: Math.min(spec.partitions, 2) } : spec;
  });
  await ensureTopics(createTestKafka(settings), specs);
}

function createTestKafka({ brokers }: Pick<BankSettings, 'brokers'>): KafkaClient {
  return createKafka({ brokers: brokers.split(','), client_id: 'test' }, silent);
}

/** A broker that many banks have used would have no file descriptors left. */
async function removeTopics(settings: BankSettings): Promise<void> {
  const names = (Object.keys(topics) as TopicName[]).map((name) => topicName(settings.topicPrefix, name));
  await createTestKafka(settings).withAdmin((admin) => admin.deleteTopics({ topics: names, timeout: 10_000 }));
}
