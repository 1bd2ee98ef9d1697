import type { StartedTestContainer } from 'testcontainers';
import { GenericContainer, Wait } from 'testcontainers';
import { runToEnd } from '../../tools/local/child.ts';
import { containerSettings, KAFKA_IMAGE } from '../../tools/local/kafka.ts';
import { freePort } from '../../tools/local/ports.ts';
import { initdbLocale, postgresUrl } from '../../tools/local/postgres.ts';

const POSTGRES_IMAGE = 'postgres:18';
const RYUK_IMAGE = 'testcontainers/ryuk:0.14.0';
const ANSWER_MS = 2000;
const PULL_MS = 120_000;
const PASSWORD = 'test';

export type Containers = { brokers: string; databaseUrl: string; stop: () => Promise<void> };

/**
 * Starts the given servers in containers, or returns a short reason why that is not possible. Returns quickly if there
 * is no engine.
 */
export async function startContainers(wanted: { kafka: boolean; postgres: boolean }): Promise<Containers | string> {
  const engine = await docker(['version', '--format', '{{.Server.Version}}'], ANSWER_MS);
  if (engine.code !== 0) return 'no container engine answers';
  const images = [...(wanted.kafka ? [KAFKA_IMAGE] : []), ...(wanted.postgres ? [POSTGRES_IMAGE] : [])];
  for (const image of images) {
    if (!(await haveImage(image))) return `the image ${image} is not there and cannot be pulled`;
  }
  // Ryuk removes the containers of a killed run; if its image is not available, the tests must work
  // without it.
  if (!(await haveImage(RYUK_IMAGE))) process.env['TESTCONTAINERS_RYUK_DISABLED'] = 'true';
  const kafkaPort = await freePort();
  const started = await Promise.allSettled([
    wanted.kafka ? startKafkaContainer(kafkaPort) : undefined,
    wanted.postgres ? startPostgresContainer() : undefined,
  ]);
  const [kafka, postgres] = started.map((result) => (result.status === 'fulfilled' ? result.value : undefined));
  const stop = async () => {
    await Promise.all([kafka?.stop(), postgres?.stop()]);
  };
  const failure = started.find((result) => result.status === 'rejected');
  if (failure !== undefined) {
    await stop();
    return `starting them failed: ${(failure.reason as Error).message.split('\n')[0]}`;
  }
  return {
    // The broker's advertised name must be the one that clients use first.
    brokers: `127.0.0.1:${kafkaPort}`,
    databaseUrl: postgresUrl(postgres?.getMappedPort(5432) ?? 0, 'postgres', PASSWORD, 'postgres', postgres?.getHost()),
    stop,
  };
}

async function docker(args: string[], timeoutMs: number): Promise<{ code: number | null }> {
  return runToEnd('docker', args, { timeoutMs });
}

async function haveImage(image: string): Promise<boolean> {
  if ((await docker(['image', 'inspect', image], ANSWER_MS * 5)).code === 0) return true;
  return (await docker(['pull', '-q', image], PULL_MS)).code === 0;
}

/** The broker advertises its port outside the container, so that port is chosen first. */
async function startKafkaContainer(port: number): Promise<StartedTestContainer> {
  return new GenericContainer(KAFKA_IMAGE)
    .withEnvironment(containerSettings(port, 'NqvJKkXxT6CHtCNuxbJN5Q'))
    .withExposedPorts({ container: port, host: port })
    .withWaitStrategy(Wait.forLogMessage('Kafka Server started'))
    .withStartupTimeout(PULL_MS)
    .start();
}

async function startPostgresContainer(): Promise<StartedTestContainer> {
  return (
    new GenericContainer(POSTGRES_IMAGE)
      .withEnvironment({ POSTGRES_PASSWORD: PASSWORD, POSTGRES_INITDB_ARGS: initdbLocale.join(' ') })
      .withCommand(['postgres', '-c', 'fsync=off', '-c', 'max_connections=300'])
      .withExposedPorts(5432)
      // The image starts the server twice, first for its initialization.
      .withWaitStrategy(Wait.forLogMessage('database system is ready to accept connections', 2))
      .withStartupTimeout(PULL_MS)
      .start()
  );
}
