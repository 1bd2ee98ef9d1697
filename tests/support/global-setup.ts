import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startIdentityProvider } from '../../tools/local/bank.ts';
import { startInfrastructure } from '../../tools/local/infra.ts';
import { openLocalDir } from '../../tools/local/local-dir.ts';
import { freePort } from '../../tools/local/ports.ts';
import { awaitReady } from '../../tools/local/ready.ts';
import { serveSharedBank } from './bank.ts';
import { bundlePrograms } from './bundle.ts';
import { startContainers } from './containers.ts';

/** Two projects of one run share the servers. The first starts them, and the last one stops them. */
type Shared = { users: number; started: Promise<() => Promise<void>> };
const key = Symbol.for('core-banking.test-servers');
const registry = globalThis as { [key]?: Shared };

/**
 * Provides tests with a real Kafka and a real Postgres in KAFKA_BROKERS and DATABASE_URL (a
 * superuser's), and with an identity provider in TEST_ISSUER, TEST_CLIENT_SECRET, and
 * TEST_USER_PASSWORD, which redirects people to this machine and to TEST_PUBLIC_URL, and with the
 * bank of useSharedBank at TEST_SHARED_BANK. The servers are those in the environment, else
 * containers if an engine responds and has or can pull the images, else the programs that `npm
 * start` uses, Postgres from the folder TEST_POSTGRES_BIN if it is given (npm run test:postgres15). Prints its choice; fails if none is possible.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const shared = (registry[key] ??= { users: 0, started: start() });
  shared.users += 1;
  await shared.started;
  return async () => {
    shared.users -= 1;
    if (shared.users > 0) return;
    delete registry[key];
    await (await shared.started)();
  };
}

async function start(): Promise<() => Promise<void>> {
  const dir = mkdtempSync(join(tmpdir(), 'core-banking-test-'));
  const stops: (() => Promise<void>)[] = [async () => rmSync(dir, { recursive: true, force: true, maxRetries: 5 })];
  const stopAll = async () => {
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop();
  };
  try {
    const startedAt = Date.now();
    const way = await startServers(join(dir, 'servers'), stops);
    console.log(`Test servers: ${way} (${((Date.now() - startedAt) / 1000).toFixed(1)} s)`);
    await startIssuer(dir, stops);
    process.env['TEST_PROGRAMS'] = await bundlePrograms();
    process.env['TEST_SHARED_BANK'] = await serveSharedBank(stops);
    return stopAll;
  } catch (error) {
    await stopAll();
    throw error;
  }
}

async function startServers(dir: string, stops: (() => Promise<void>)[]): Promise<string> {
  const wanted = { kafka: !process.env['KAFKA_BROKERS'], postgres: !process.env['DATABASE_URL'] };
  if (!wanted.kafka && !wanted.postgres) return 'those named by KAFKA_BROKERS and DATABASE_URL';
  const containers = process.env['TEST_POSTGRES_BIN'] ? 'TEST_POSTGRES_BIN is set' : await startContainers(wanted);
  if (typeof containers !== 'string') {
    stops.push(containers.stop);
    if (wanted.kafka) process.env['KAFKA_BROKERS'] = containers.brokers;
    if (wanted.postgres) process.env['DATABASE_URL'] = containers.databaseUrl;
    return 'containers';
  }
  mkdirSync(dir);
  const local = await openLocalDir(dir);
  const infra = await startInfrastructure(local, { ...wanted, durable: false });
  stops.push(infra.stop);
  if (wanted.kafka) process.env['KAFKA_BROKERS'] = infra.brokers;
  if (wanted.postgres) process.env['DATABASE_URL'] = infra.superuserUrl;
  return `processes of this machine (no containers: ${containers})`;
}

async function startIssuer(dir: string, stops: (() => Promise<void>)[]): Promise<void> {
  const port = await freePort();
  const [clientSecret, userPassword] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  const log = join(dir, 'identity-provider.log');
  // This is the address of a gateway behind TLS. It is not a loopback address, because those are for plain http.
  const publicUrl = `https://bank.localhost:${await freePort()}`;
  const provider = startIdentityProvider({
    port,
    keysFile: join(dir, 'keys.json'),
    clientSecret,
    userPassword,
    log,
    publicUrls: [publicUrl],
  });
  stops.push(() => provider.stop(2000));
  const issuer = `http://127.0.0.1:${port}`;
  await awaitReady({ url: `${issuer}/jwks` }, 20_000, () => (provider.running() ? undefined : `died, see ${log}`));
  process.env['TEST_ISSUER'] = issuer;
  process.env['TEST_CLIENT_SECRET'] = clientSecret;
  process.env['TEST_USER_PASSWORD'] = userPassword;
  process.env['TEST_PUBLIC_URL'] = publicUrl;
}
