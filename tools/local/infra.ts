import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitAll } from './await-all.ts';
import type { Child } from './child.ts';
import { dockerAnswers, startKafka } from './kafka.ts';
import { haveJars, haveMaven, javaVersion } from './kafka-jars.ts';
import type { LocalDir } from './local-dir.ts';
import { openLocalDir } from './local-dir.ts';
import { postgresUrl, startPostgres } from './postgres.ts';

export const OWNER = 'core_banking';
const MIN_JAVA = 17;
const STOP_POSTGRES_MS = 10_000;
const STOP_KAFKA_MS = 15_000;

export type Infrastructure = {
  /** host:port of the Kafka broker for clients. */
  brokers: string;
  /** Superuser, database postgres. */
  superuserUrl: string;
  /** The role and database for the services' schemas. */
  ownerUrl: string;
  /** Stops Kafka, then Postgres, within a time limit. */
  stop: () => Promise<void>;
};

export type InfrastructureOptions = {
  /** Servers that the environment names, which are therefore not started. */
  kafka?: boolean;
  postgres?: boolean;
  /** false for tests: no fsync, and a broker that is economical for some minutes only. Default true. */
  durable?: boolean;
  /** Additional settings of Postgres. */
  postgresSettings?: Record<string, string>;
  /** Fixed ports; by default free ones, which are kept. */
  ports?: { kafka?: number; postgres?: number };
  /** Called around each step, to print its duration. */
  step?: Step;
  /** Keeps a server running; without it, a server that ends is not restarted. */
  keep?: (name: 'kafka' | 'postgres', start: () => Promise<Child>) => Promise<Running>;
};

export type Step = <T>(title: string, work: () => Promise<T>) => Promise<T>;
type Running = { stop: (timeoutMs: number) => Promise<void> };

/**
 * Returns how Kafka can be run on this machine. Throws an error of one line that names what is missing and the
 * alternatives.
 */
export function chooseKafkaWay(): 'java' | 'docker' {
  const java = javaVersion();
  const javaIsEnough = java !== undefined && java >= MIN_JAVA;
  if (javaIsEnough && (haveJars() || haveMaven())) return 'java';
  if (dockerAnswers()) return 'docker';
  const missing = javaIsEnough
    ? 'Maven (mvn) is missing'
    : java === undefined
      ? 'Java is missing'
      : `Java ${java} is too old`;
  throw new Error(
    `Kafka cannot be started: ${missing} and no Docker engine answers. ` +
      `Install Java ${MIN_JAVA}+ and Maven, or start Docker, or set KAFKA_BROKERS to an existing broker`,
  );
}

/**
 * Starts a real Kafka and a real Postgres concurrently in `local`. Resolves when both are ready. If one fails, it
 * rejects at once, and the other one is stopped.
 */
export async function startInfrastructure(
  local: LocalDir,
  options: InfrastructureOptions = {},
): Promise<Infrastructure> {
  const durable = options.durable ?? true;
  const step = options.step ?? ((_title, work) => work());
  const keep = options.keep ?? ((_name, start) => start());
  const way = options.kafka === false ? undefined : chooseKafkaWay();
  const kafkaPort = way && (await local.port('kafka', options.ports?.kafka));
  const postgresPort = options.postgres === false ? undefined : await local.port('postgres', options.ports?.postgres);
  const starting = [
    way && kafkaPort ? step(kafkaTitle(way), () => keepKafka(local, keep, way, kafkaPort, durable)) : undefined,
    postgresPort
      ? step('Postgres', () =>
          keep('postgres', () => postgresIn(local, postgresPort, durable, options.postgresSettings)),
        )
      : undefined,
  ] as const;
  const stop = async () => {
    const [kafka, postgres] = starting.map((server) => server?.catch(() => undefined));
    await (await kafka)?.stop(STOP_KAFKA_MS);
    await (await postgres)?.stop(STOP_POSTGRES_MS);
  };
  try {
    await awaitAll(starting);
  } catch (error) {
    // The other one may still be fetching jars, so it is stopped when it has started, and nobody waits for that.
    void stop();
    throw error;
  }
  const url = (user: string, secret: string, database: string) =>
    postgresUrl(postgresPort ?? 0, user, local.secret(secret), database);
  return {
    brokers: `127.0.0.1:${kafkaPort}`,
    superuserUrl: url('postgres', 'postgres_superuser', 'postgres'),
    ownerUrl: url(OWNER, 'postgres_owner', OWNER),
    stop,
  };
}

function kafkaTitle(way: 'java' | 'docker'): string {
  if (way === 'docker') return 'Kafka (Docker)';
  return haveJars() ? 'Kafka' : 'Kafka (first start: Maven fetches its jars)';
}

type Keep = NonNullable<InfrastructureOptions['keep']>;

async function keepKafka(
  local: LocalDir,
  keep: Keep,
  way: 'java' | 'docker',
  client: number,
  durable: boolean,
): Promise<Running> {
  const ports = { client, broker: await local.port('kafka_broker'), controller: await local.port('kafka_controller') };
  return keep('kafka', () =>
    startKafka({
      dir: join(local.path, 'kafka'),
      log: local.log('kafka'),
      ports,
      way,
      isLongLived: durable,
      onStart: local.recordProcess,
    }),
  );
}

function postgresIn(
  local: LocalDir,
  port: number,
  durable: boolean,
  settings: Record<string, string> | undefined,
): Promise<Child> {
  return startPostgres({
    dir: join(local.path, 'postgres'),
    log: local.log('postgres'),
    port,
    superuserPassword: local.secret('postgres_superuser'),
    owner: { name: OWNER, password: local.secret('postgres_owner') },
    durable,
    ...(settings && { settings }),
    onStart: local.recordProcess,
  });
}

/**
 * `node tools/local/infra.ts`: Kafka and Postgres alone, until Ctrl-C. LOCAL_DIR, KAFKA_PORT, and
 * POSTGRES_PORT set directory and ports; LOCAL_DIR/env.sh then sets KAFKA_BROKERS and DATABASE_URL
 * for a shell.
 */
async function main(): Promise<void> {
  const dir = process.env['LOCAL_DIR'] ?? '.local-infra';
  mkdirSync(dir, { recursive: true });
  const local = await openLocalDir(dir);
  const port = (name: string) => (process.env[name] === undefined ? undefined : Number(process.env[name]));
  const infra = await startInfrastructure(local, {
    ports: { kafka: port('KAFKA_PORT'), postgres: port('POSTGRES_PORT') },
  });
  const env = `export KAFKA_BROKERS=${infra.brokers} DATABASE_URL=${infra.superuserUrl}\n`;
  writeFileSync(join(local.path, 'env.sh'), env, { mode: 0o600 });
  process.stdout.write(env);
  const alive = setInterval(() => {}, 60_000);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      void infra.stop().then(() => {
        local.release();
        clearInterval(alive);
      });
    });
  }
}

if (import.meta.main) await main();
