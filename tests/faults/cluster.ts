import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { testMacSecrets } from '#libs/service/test/keys.ts';
import { type BankSettings, createTopics, makeApiKey, migrateService, newKeyPair } from '../../tools/local/bank.ts';
import { trySignal } from '../../tools/local/child.ts';
import { chooseKafkaWay } from '../../tools/local/infra.ts';
import { startKafka } from '../../tools/local/kafka.ts';
import { logTail } from '../../tools/local/log-file.ts';
import { freePort } from '../../tools/local/ports.ts';
import { postgresUrl, startPostgres } from '../../tools/local/postgres.ts';
import { Proxy } from '../support/proxy.ts';
import { staffEnv } from '../support/staff.ts';
import { listPids, makeNode, makeServer, type Node, type Server } from './processes.ts';
import type { Random } from './random.ts';

export type { Node, Server } from './processes.ts';

/**
 * The processes of one bank under test. Every Kafka and Postgres connection of a service goes
 * through its own proxy.
 */
export interface Cluster {
  dir: string;
  /**
   * gateway, gateway-2, ledger, ledger-2, accounts; ledger-3, accounts-2, webhooks, and webhooks-2
   * exist but are not started.
   */
  nodes: Node[];
  node(name: string): Node;
  gateways: Node[];
  broker: Server;
  postgres: Server;
  /** Every link by its name, such as `ledger>kafka` or `accounts>postgres`. */
  links: Map<string, Proxy>;
  apiKey: string;
  /** For the checker, without proxies. */
  brokers: string;
  databaseUrl: string;
  topicPrefix: string;
  /** The settings of one node, for rows that start their own process. */
  nodeSettings(node: string): BankSettings;
  /** Processes that ended by themselves. */
  unexpectedExits: string[];
  /** Commands were sent again after a restore, so events have copies with other posting times. */
  isRestored: boolean;
  /** Clean-ups of rows, which run after everything has stopped. */
  atEnd: (() => void)[];
  /**
   * After a row that did not complete: starts and unfreezes all processes, restores all links, and stops spare
   * processes.
   */
  restore(): Promise<void>;
  stop(): Promise<void>;
}

const names = [
  ['gateway', 'gateway'],
  ['gateway', 'gateway-2'],
  ['ledger', 'ledger'],
  ['ledger', 'ledger-2'],
  ['ledger', 'ledger-3'],
  ['accounts', 'accounts'],
  ['accounts', 'accounts-2'],
  ['webhooks', 'webhooks'],
  ['webhooks', 'webhooks-2'],
] as const;
/** This is also enough on a busy machine. */
const startMs = 240_000;
/** Processes that a row may start for a while. */
const spares: string[] = ['ledger-3', 'accounts-2', 'webhooks', 'webhooks-2'];
const owner = 'core_banking';
/** This only applies to people, because the load uses an API key. */
const fourEyes = { FOUR_EYES: 'post_above', FOUR_EYES_LIMITS: 'USD:1000' };

/** The broker and the database of the services, consisting of any number of processes. */
export interface Servers {
  broker: Server;
  postgres: Server;
  /** The addresses without proxies. */
  brokers: string;
  databasePort: number;
  /** The addresses for this node. */
  nodeBrokers(node: string): string;
  nodeDatabasePort(node: string): number;
  /** Appended to the services' database URLs: TLS parameters. */
  databaseSettings?: string;
  /** The folder of the bank's version at the start; default: this one. */
  project?: string;
  /** Additional environment of all processes. */
  env?: Record<string, string>;
  /** Restores its own links and processes. */
  thaw?(): Promise<void>;
}

/** The processes of which it consists. */
export interface ServersContext {
  dir: string;
  superuserPassword: string;
  owner: { name: string; password: string };
  unexpectedExits: string[];
  /** A link that is started and stopped with the cluster. */
  link(name: string, port: number, target: number, host?: string): Promise<Proxy>;
}

/** Creates one broker, with a separate proxy for every node. */
async function oneBroker({
  dir,
  unexpectedExits,
  link,
}: ServersContext): Promise<Pick<Servers, 'broker' | 'brokers' | 'nodeBrokers'>> {
  const listeners = await Promise.all(
    names.map(async ([, name]) => {
      const port = await freePort();
      return {
        name: `CLIENT_${name.toUpperCase().replace('-', '_')}`,
        node: name,
        port,
        advertisedPort: (await link(`${name}>kafka`, await freePort(), port)).port,
      };
    }),
  );
  const ports = { client: await freePort(), broker: await freePort(), controller: await freePort() };
  const start = (_: number, log: string) =>
    startKafka({ dir: join(dir, 'kafka'), log, ports, way: 'java', listeners, startTimeoutMs: startMs });
  return {
    broker: makeServer('kafka', join(dir, 'log', 'kafka.log'), ports.client, unexpectedExits, start),
    brokers: `127.0.0.1:${ports.client}`,
    nodeBrokers: (name) => `127.0.0.1:${listeners.find(({ node }) => node === name)?.advertisedPort ?? unknown(name)}`,
  };
}

/** Creates one database, with a separate proxy for every node. */
async function oneDatabase({
  dir,
  superuserPassword,
  owner: ownRole,
  unexpectedExits,
  link,
}: ServersContext): Promise<Pick<Servers, 'postgres' | 'databasePort' | 'nodeDatabasePort'>> {
  const start = (port: number, log: string) =>
    startPostgres({ dir: join(dir, 'postgres'), log, port, superuserPassword, owner: ownRole, durable: true });
  const postgres = makeServer('postgres', join(dir, 'log', 'postgres.log'), await freePort(), unexpectedExits, start);
  const links = new Map<string, Proxy>();
  for (const [kind, name] of names)
    if (kind !== 'gateway') links.set(name, await link(`${name}>postgres`, await freePort(), postgres.port));
  return { postgres, databasePort: postgres.port, nodeDatabasePort: (name) => links.get(name)?.port ?? postgres.port };
}

export const oneOfEach = async (context: ServersContext): Promise<Servers> => ({
  ...(await oneBroker(context)),
  ...(await oneDatabase(context)),
});

/** Starts servers and services in `dir`. Resolves when all are ready. Throws an error with the ends of the logs. */
export async function startCluster(
  dir: string,
  random: Random,
  startServers: (context: ServersContext) => Promise<Servers> = oneOfEach,
): Promise<Cluster> {
  if (chooseKafkaWay() !== 'java')
    throw new Error('the fault campaign needs Java 17 with Maven: it kills and freezes the broker as a process');
  mkdirSync(join(dir, 'log'), { recursive: true });
  // The broker is started often and runs for minutes, so the second-tier compiler would not pay off.
  process.env['JAVA_TOOL_OPTIONS'] ??= '-XX:TieredStopAtLevel=1';
  const unexpectedExits: string[] = [];
  const atEnd: (() => void)[] = [];
  const links = new Map<string, Proxy>();
  const link = async (name: string, port: number, target: number, host?: string) => {
    const made = new Proxy({ name, port, target: `127.0.0.1:${target}`, random: random.fork(name).next, host });
    links.set(name, made);
    await made.start();
    return made;
  };
  const secrets = {
    superuser: secret(),
    owner: secret(),
    ledger: secret(),
    accounts: secret(),
    webhooks: secret(),
    sealing: secret(),
    pepper: secret(),
  };
  const servers = await startServers({
    dir,
    superuserPassword: secrets.superuser,
    owner: { name: owner, password: secrets.owner },
    unexpectedExits,
    link,
  });
  const { broker, postgres } = servers;
  const settings: BankSettings = {
    brokers: servers.brokers,
    topicPrefix: 'faults.',
    ownerUrl: postgresUrl(servers.databasePort, owner, secrets.owner, owner) + (servers.databaseSettings ?? ''),
    rolePasswords: { ledger: secrets.ledger, accounts: secrets.accounts, webhooks: secrets.webhooks },
    issuer: 'http://127.0.0.1:9',
    apiKeyPepper: secrets.pepper,
    webhookSecretKey: secrets.sealing,
    signing: { mac: testMacSecrets, keyPair: newKeyPair() },
    env: {
      // The entrance, which takes a moment to notice that a gateway stops.
      TRUST_PROXY: 'loopback',
      // Both ways of sharing commands are tested, which of them by the seed.
      SPREAD_COMMANDS: String(random.pick([true, false])),
      ...staffEnv,
      ...fourEyes,
      ...servers.env,
    },
    project: servers.project,
  };
  const nodeSettings = (name: string): BankSettings => ({
    ...settings,
    brokers: servers.nodeBrokers(name),
    ownerUrl:
      postgresUrl(servers.nodeDatabasePort(name), owner, secrets.owner, owner) + (servers.databaseSettings ?? ''),
  });
  const nodes: Node[] = [];
  const thaw = async (): Promise<void> => {
    await Promise.all([...links.values()].map((one) => one.heal()));
    await servers.thaw?.();
    for (const process of [...nodes, broker, postgres])
      for (const pid of process.running() ? listPids(process) : []) trySignal(pid, 'SIGCONT');
  };
  const restore = async (): Promise<void> => {
    await thaw();
    await Promise.all([broker, postgres].filter((server) => !server.running()).map((server) => server.start()));
    await Promise.all(nodes.filter(({ name }) => spares.includes(name)).map((node) => node.stop()));
    const own = nodes.filter(({ name }) => !spares.includes(name));
    for (const node of own) if (!node.running()) node.start();
    await Promise.all(own.map((node) => node.ready()));
  };
  const stop = async (): Promise<void> => {
    await thaw();
    await Promise.all(nodes.filter(({ kind }) => kind === 'gateway').map((node) => node.stop()));
    await Promise.all(nodes.map((node) => node.stop()));
    await Promise.all([broker.stop(), postgres.stop()]);
    await Promise.all([...links.values()].map((one) => one.stop()));
    for (const undo of atEnd.splice(0)) undo();
  };
  try {
    await Promise.all([broker.start(), postgres.start()]);
    // On a busy machine, a new broker may need more time than two calls wait.
    const topics = () => createTopics({ ...settings, brokers: servers.nodeBrokers('ledger') });
    await Promise.all([
      migrateService('ledger', settings),
      migrateService('accounts', settings),
      topics().catch(topics).catch(topics),
    ]);
    for (const [kind, name] of names) nodes.push(await makeNode(kind, name, dir, nodeSettings(name), unexpectedExits));
    const started = nodes.filter(({ name }) => !spares.includes(name));
    for (const node of started) node.start();
    const [apiKey] = await Promise.all([makeApiKey(settings), ...started.map((node) => node.ready(startMs))]);
    const node = (name: string) => nodes.find((one) => one.name === name) ?? unknown(name);
    return {
      dir,
      nodes,
      node,
      broker,
      postgres,
      links,
      apiKey,
      nodeSettings,
      unexpectedExits,
      isRestored: false,
      atEnd,
      restore,
      stop,
      gateways: nodes.filter(({ kind }) => kind === 'gateway'),
      brokers: settings.brokers,
      databaseUrl: postgresUrl(servers.databasePort, 'postgres', secrets.superuser, owner),
      topicPrefix: settings.topicPrefix,
    };
  } catch (error) {
    const tails = [broker, postgres, ...nodes].map(({ name, log }) => `--- ${name}\n${logTail(log, 20)}`).join('\n');
    await stop();
    throw new Error(`the cluster did not start: ${(error as Error).message}\n${tails}`, { cause: error });
  }
}

function secret(): string {
  return randomBytes(32).toString('hex');
}

function unknown(name: string): never {
  throw new Error(`the cluster has no node ${name}`);
}
