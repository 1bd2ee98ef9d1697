import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventsRetentionDays } from '#libs/contracts/topics.ts';
import type { Child, ProcessRecord } from './child.ts';
import { runToEnd, startChild } from './child.ts';
import { ensureJars, javaEnvironment } from './kafka-jars.ts';
import { awaitLogLine, logSize } from './log-file.ts';

export const KAFKA_IMAGE = 'apache/kafka:4.1.0';
const CONTAINER_DATA = '/var/lib/kafka/data';
const HEAP = ['-Xms256m', '-Xmx512m', '-XX:+UseSerialGC'];
/** The optimizing compiler takes 40 % of the CPU time of a broker that runs for minutes, and pays off later. */
const QUICK = '-XX:TieredStopAtLevel=1';
const STARTED = 'Kafka Server started';
/**
 * The folder of the data in the broker's folder, which is its working directory: log.dirs is a list separated by commas, so
 * the path to them could not contain one.
 */
const DATA = 'data';

export type KafkaOptions = {
  /** Folder of the broker's data and settings, created at the first start. */
  dir: string;
  log: string;
  /** Ports on 127.0.0.1: for clients, for the broker itself, and for the controller. */
  ports: { client: number; broker: number; controller: number };
  way: 'java' | 'docker';
  /** Time limit of a start, a minute by default. With java only. */
  startTimeoutMs?: number;
  /**
   * Additional listeners, each advertised with another port (a proxy's): for fault tests, with java
   * only.
   */
  listeners?: { name: string; port: number; advertisedPort: number }[];
  /**
   * Additional settings of the broker, and users with their passwords for SCRAM-SHA-512; with java
   * only.
   */
  settings?: Record<string, string>;
  users?: Record<string, string>;
  /**
   * The cluster id with which its folder is formatted, if several brokers form a cluster; and
   * additional JVM flags. With java only.
   */
  clusterId?: string;
  javaFlags?: readonly string[];
  /** true for a broker that runs longer than a test: its JVM optimizes it. With java only. */
  isLongLived?: boolean;
  onStart?: (record: ProcessRecord) => void;
};

/**
 * Starts Apache Kafka (one broker that is its own controller). Resolves when it is ready. Throws an error with the end
 * of its log.
 */
export async function startKafka(options: KafkaOptions): Promise<Child> {
  await mkdir(options.dir, { recursive: true });
  // Messages contain everybody's data. A folder of an earlier version was readable by all.
  await chmod(options.dir, 0o700);
  return options.way === 'java' ? startWithJava(options) : startWithDocker(options);
}

/** Settings of every broker that we configure, however it is run. */
function brokerSettings(): Record<string, string | number> {
  return {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'inter.broker.listener.name': 'BROKER',
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'CLIENT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'auto.create.topics.enable': 'false',
    // Allow short session timeouts, because a killed consumer stalls its partitions for that time.
    'group.min.session.timeout.ms': 1000,
    // The offsets are kept for as long as topics retain events, so that a group can be stopped for that time without
    // losing its position.
    'offsets.retention.minutes': eventsRetentionDays * 24 * 60,
    'group.initial.rebalance.delay.ms': 0,
    // After kill -9 the controller accepts the broker again only when its session has ended, which
    // takes 9 s by default.
    'broker.session.timeout.ms': 3000,
    'broker.heartbeat.interval.ms': 500,
    'offsets.topic.num.partitions': 8,
    'offsets.topic.replication.factor': 1,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 4,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    // Replies and dead letters may be larger than client messages.
    'message.max.bytes': 4_194_304,
    'replica.fetch.max.bytes': 4_194_304,
    'log.cleaner.dedupe.buffer.size': 33_554_432,
    'num.network.threads': 3,
    'num.io.threads': 4,
  };
}

async function startWithJava(options: KafkaOptions): Promise<Child> {
  const classPath = join(await ensureJars(), '*');
  const { client, broker, controller } = options.ports;
  const data = join(options.dir, DATA);
  const more = options.listeners ?? [];
  const common = brokerSettings();
  const own = [`CLIENT://127.0.0.1:${client}`, `BROKER://127.0.0.1:${broker}`];
  const settings = {
    ...common,
    'log.dirs': DATA,
    listeners: [
      ...own,
      `CONTROLLER://127.0.0.1:${controller}`,
      ...more.map(({ name, port }) => `${name}://127.0.0.1:${port}`),
    ].join(','),
    'advertised.listeners': [
      ...own,
      ...more.map(({ name, advertisedPort }) => `${name}://127.0.0.1:${advertisedPort}`),
    ].join(','),
    'listener.security.protocol.map': [
      common['listener.security.protocol.map'],
      ...more.map(({ name }) => `${name}:PLAINTEXT`),
    ].join(','),
    'controller.quorum.voters': `1@127.0.0.1:${controller}`,
    ...options.settings,
  };
  const properties = join(options.dir, 'server.properties');
  await writeFile(properties, propertiesText(settings));
  if (!existsSync(data)) await format(options, data, classPath, settings);
  const offset = logSize(options.log);
  // A list of URLs, separated by commas.
  const logging = pathToFileURL(join(import.meta.dirname, 'kafka-log4j2.xml')).href.replaceAll(',', '%2C');
  const child = startChild({
    name: 'kafka',
    command: 'java',
    args: [
      ...HEAP,
      ...(options.isLongLived ? [] : [QUICK]),
      ...(options.javaFlags ?? []),
      `-Dlog4j2.configurationFile=${logging}`,
      '-cp',
      classPath,
      'kafka.Kafka',
      properties,
    ],
    cwd: options.dir,
    env: javaEnvironment(),
    log: options.log,
    marker: properties,
    onStart: options.onStart,
  });
  await awaitLogLine(child, options.log, offset, STARTED, options.startTimeoutMs ?? 180_000);
  return child;
}

/** Returns a file of Java properties, which Java reads as Latin-1. */
function propertiesText(values: Record<string, string | number>): string {
  const escaped = (value: string | number) =>
    String(value)
      .replaceAll('\\', '\\\\')
      .replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .replace(/^ /, '\\ ');
  return Object.entries(values)
    .map(([name, value]) => `${name}=${escaped(value)}\n`)
    .join('');
}

/**
 * KRaft needs a formatted folder. It is prepared next to its final place, so that a killed process leaves no incomplete
 * folder.
 */
async function format(
  { dir, users = {}, clusterId = newClusterId() }: KafkaOptions,
  data: string,
  classPath: string,
  settings: Record<string, string | number>,
): Promise<void> {
  const fresh = `${DATA}.new`;
  await rm(join(dir, fresh), { recursive: true, force: true });
  const properties = join(dir, 'format.properties');
  await writeFile(properties, propertiesText({ ...settings, 'log.dirs': fresh }));
  const args = [
    QUICK,
    '-XX:+UseSerialGC',
    '-cp',
    classPath,
    'kafka.tools.StorageTool',
    'format',
    // The id and its option are one argument, because an id may begin with a dash.
    `--cluster-id=${clusterId}`,
    '-c',
    properties,
    ...Object.entries(users).flatMap(([name, password]) => [
      '--add-scram',
      `SCRAM-SHA-512=[name=${name},password=${password}]`,
    ]),
  ];
  const { code, stderr } = await runToEnd('java', args, { cwd: dir, env: javaEnvironment(), timeoutMs: 180_000 });
  await rm(properties, { force: true });
  if (code !== 0) throw new Error(`Kafka could not format ${data}: ${stderr.trim().split('\n').pop()}`);
  await rename(join(dir, fresh), data);
}

/** Starts the same broker from its official image, for machines without Java. The data stays in `dir`. */
async function startWithDocker(options: KafkaOptions): Promise<Child> {
  const { client } = options.ports;
  const data = join(options.dir, 'data');
  await mkdir(data, { recursive: true });
  await chmod(data, 0o777); // the image's own user writes here
  const name = containerName(options.dir);
  spawnSync('docker', ['rm', '-f', name], { stdio: 'ignore', timeout: 30_000 });
  const clusterId = createHash('md5').update(name).digest('base64url');
  const environment = { ...containerSettings(client, clusterId), KAFKA_LOG_DIRS: `${CONTAINER_DATA}/log` };
  const offset = logSize(options.log);
  const child = startChild({
    name: 'kafka',
    command: 'docker',
    args: [
      ...['run', '--rm', '--name', name, '-v', `${data}:${CONTAINER_DATA}`, '-p', `127.0.0.1:${client}:${client}`],
      ...Object.entries(environment).flatMap(([key, value]) => ['-e', `${key}=${value}`]),
      KAFKA_IMAGE,
    ],
    log: options.log,
    marker: name,
    onStart: options.onStart,
  });
  // The first start pulls the image.
  await awaitLogLine(child, options.log, offset, STARTED, 5 * 60_000);
  return { ...child, stop: (timeoutMs) => stopContainer(child, name, timeoutMs) };
}

export function newClusterId(): string {
  return randomBytes(16).toString('base64url');
}

/** Returns the environment of the official image for a broker that clients outside reach at 127.0.0.1:`port`. */
export function containerSettings(port: number, clusterId: string): Record<string, string> {
  const settings = {
    ...brokerSettings(),
    listeners: `CLIENT://0.0.0.0:${port},BROKER://127.0.0.1:9094,CONTROLLER://127.0.0.1:9093`,
    'advertised.listeners': `CLIENT://127.0.0.1:${port},BROKER://127.0.0.1:9094`,
    'controller.quorum.voters': '1@127.0.0.1:9093',
  };
  const variables = Object.entries(settings).map(([key, value]) => [
    `KAFKA_${key.toUpperCase().replaceAll('.', '_')}`,
    String(value),
  ]);
  return { ...Object.fromEntries(variables), KAFKA_HEAP_OPTS: HEAP.join(' '), CLUSTER_ID: clusterId };
}

function containerName(dir: string): string {
  return `core-banking-kafka-${createHash('sha256').update(dir).digest('hex').slice(0, 12)}`;
}

async function stopContainer(child: Child, name: string, timeoutMs: number): Promise<void> {
  await child.stop(timeoutMs);
  spawnSync('docker', ['rm', '-f', name], { stdio: 'ignore', timeout: 30_000 });
}

/** Reports whether a container engine responds within two seconds. */
export function dockerAnswers(): boolean {
  return (
    spawnSync('docker', ['version', '--format', '{{.Server.Version}}'], { stdio: 'ignore', timeout: 2000 }).status === 0
  );
}
