import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Child } from '../../tools/local/child.ts';
import { freePort } from '../../tools/local/ports.ts';
import { type PostgresOptions, postgresUrl, startPostgres } from '../../tools/local/postgres.ts';
import { createAuthority } from '../support/certificates.ts';
import { type Answer, newKey, type RestClient, type RestTransaction, retail } from '../support/client.ts';
import { countMessages } from '../support/kafka.ts';
import { eventually, together, useBank } from '../support/world.ts';

/**
 * Tests unusual database faults. In each, commands wait, both services are not ready, nothing becomes a dead letter,
 * and no caller gets a 500. After the fault, each command has been executed once.
 */
const count = 10;
const dir = mkdtempSync(join(tmpdir(), 'core-banking-faults-'));
const authority = createAuthority(dir);
const good = authority.sign('good', ['IP:127.0.0.1']);
const server: PostgresOptions = {
  dir: join(dir, 'postgres'),
  log: join(dir, 'postgres.log'),
  port: await freePort(),
  superuserPassword: randomBytes(16).toString('hex'),
  owner: { name: 'core_banking', password: randomBytes(16).toString('hex') },
  durable: false,
  settings: { ssl: 'on', ssl_cert_file: join(dir, 'server.pem'), ssl_key_file: join(dir, 'server.key') },
};
let postgres: Child;

function present({ cert, key }: { cert: string; key: string }): void {
  copyFileSync(cert, join(dir, 'server.pem'));
  copyFileSync(key, join(dir, 'server.key'));
}

const sharedServer = process.env['DATABASE_URL'];
beforeAll(async () => {
  present(good);
  postgres = await startPostgres(server);
  const url = postgresUrl(server.port, 'postgres', server.superuserPassword, 'postgres');
  process.env['DATABASE_URL'] = `${url}?sslmode=verify-full&sslrootcert=${encodeURIComponent(authority.ca)}`;
});
// Hooks after all tests run in reverse order, so the bank is stopped before its server.
afterAll(async () => {
  process.env['DATABASE_URL'] = sharedServer;
  await postgres?.stop(10_000);
  rmSync(dir, { recursive: true, force: true });
});
const world = useBank();
const { api } = world;

const services = ['ledger', 'accounts'] as const;
const readRole = async (service: string) =>
  (await world.sql<{ role: string }>('select current_database() || $1 as role', [`_${service}`]))[0]?.role;

/** Ends the services' connections, so that they must connect again. */
async function disconnect(): Promise<void> {
  await world.sql(
    "select pg_terminate_backend(pid) from pg_stat_activity where usename in (current_database() || '_ledger', current_database() || '_accounts')",
  );
}

async function restartServer(prepare: () => void): Promise<void> {
  await postgres.stop(10_000);
  prepare();
  postgres = await startPostgres(server);
}

async function presentAtServer(files: { cert: string; key: string }): Promise<void> {
  present(files);
  await world.sql('select pg_reload_conf()');
  await disconnect();
}

/** The process cannot open more files than this limit. */
function limitOpenFiles(limit: string): void {
  for (const service of services)
    execFileSync('prlimit', ['--pid', String(world.bank.process(service).pid), `--nofile=${limit}:`]);
}

/** A schema as before the last migration: the migration is not recorded, and a column does not have its name yet. */
const migrations: Record<string, { name: string; checksum: string } | undefined> = {};
async function turnBackSchema(): Promise<void> {
  for (const service of services) {
    await world.bank.process(service).stop();
    const [last] = await world.sql<{ name: string; checksum: string }>(
      `delete from ${service}.migrations where id = (select max(id) from ${service}.migrations) returning name, checksum`,
    );
    migrations[service] = last;
  }
  await renameColumns('description', 'purpose', 'email', 'mail');
  for (const service of services) await world.bank.process(service).startWith({});
}
async function migrateSchema(): Promise<void> {
  await renameColumns('purpose', 'description', 'mail', 'email');
  for (const service of services)
    await world.sql(`insert into ${service}.migrations (name, checksum) values ($1, $2)`, [
      migrations[service]?.name,
      migrations[service]?.checksum,
    ]);
}

async function renameColumns(
  ofTransactions: string,
  becomes: string,
  ofClients: string,
  turnsInto: string,
): Promise<void> {
  await world.sql(`alter table ledger.transactions rename column ${ofTransactions} to ${becomes}`);
  await world.sql(`alter table accounts.clients rename column ${ofClients} to ${turnsInto}`);
}

async function grants(verb: 'grant' | 'revoke', preposition: 'to' | 'from'): Promise<void> {
  await world.sql(`${verb} insert on ledger.transactions ${preposition} ${await readRole('ledger')}`);
  await world.sql(`${verb} insert on accounts.commands ${preposition} ${await readRole('accounts')}`);
}

async function constrain(change: string): Promise<void> {
  for (const table of ['ledger.transactions', 'accounts.clients']) await world.sql(`alter table ${table} ${change}`);
}

const stranger = createAuthority(dir, 'stranger').sign('server', ['IP:127.0.0.1']);
const expired = authority.sign('expired', ['IP:127.0.0.1'], -1);
const signal = join(server.dir, 'standby.signal');

const faults: [string, () => Promise<void>, () => Promise<void>][] = [
  [
    'a server in recovery',
    () => restartServer(() => writeFileSync(signal, '')),
    () => restartServer(() => rmSync(signal)),
  ],
  ['a certificate of an unknown authority', () => presentAtServer(stranger), () => presentAtServer(good)],
  ['a certificate that has expired', () => presentAtServer(expired), () => presentAtServer(good)],
  [
    'a renamed column',
    () => renameColumns('description', 'purpose', 'email', 'mail'),
    () => renameColumns('purpose', 'description', 'mail', 'email'),
  ],
  ['a right that has been revoked', () => grants('revoke', 'from'), () => grants('grant', 'to')],
  [
    'no more file descriptors',
    async () => (limitOpenFiles('3'), await disconnect()),
    async () => limitOpenFiles('1024'),
  ],
  ['a schema older than the service', turnBackSchema, migrateSchema],
  [
    'a constraint of a newer schema',
    () => constrain('add constraint newer check (false) not valid'),
    () => constrain('drop constraint newer'),
  ],
];

const isReady = async (service: string) =>
  (await fetch(world.bank.process(service).health_url, { signal: AbortSignal.timeout(3000) })).status === 200;

const deposit = (key: string, account_id: string) =>
  api.once(key, '/transactions', { account_id, transaction_type: 'Deposit', amount: 1 });
const newClient = (key: string) => api.once(key, '/clients', retail());

async function expectNoDeadLetters(): Promise<void> {
  for (const service of services)
    expect(await countMessages(world.bank, `${service}.commands.dlq`), `dead letters of ${service}`).toBe(0n);
}

/** Repeats a request until it succeeds. */
function repeatUntilDone(send: () => Promise<Answer>): Promise<Answer> {
  return eventually(async () => {
    const answer = await send();
    expect([201, 202, 503, 504], answer.text).toContain(answer.status);
    return answer.status === 201 && answer;
  }, 45_000);
}

describe('While the database has', () => {
  it.each(faults)(
    '%s: commands wait, are not dead-lettered, and are executed once when it is over',
    async (_name, begin, end) => {
      const { account_id } = await api.newAccount();
      const keys = Array.from({ length: count }, newKey);
      await begin();
      try {
        const deposits = together(count, (i) => deposit(keys[i] ?? '', account_id));
        const clients = together(count, (i) => newClient(keys[i] ?? ''));
        for (const service of services) await eventually(async () => !(await isReady(service).catch(() => false)));
        for (const answer of [...(await deposits), ...(await clients)])
          expect([202, 503, 504], answer.text).toContain(answer.status);
        for (const service of services) expect(await isReady(service).catch(() => false)).toBe(false);
      } finally {
        await end();
      }
      const posted = await together(count, (i) => repeatUntilDone(() => deposit(keys[i] ?? '', account_id)));
      const created = await together(count, (i) => repeatUntilDone(() => newClient(keys[i] ?? '')));
      expect(posted.map(({ body }) => (body as RestTransaction).status)).toEqual(Array(count).fill('Completed'));
      expect(new Set(created.map((answer) => answer.data<RestClient>().client_id)).size).toBe(count);
      expect(await api.balance(account_id)).toBe(count);
      expect((await api.get(`/transactions?account_id=${account_id}`)).list()).toHaveLength(count);
      await eventually(async () => (await isReady('ledger')) && (await isReady('accounts')));
      await expectNoDeadLetters();
    },
    120_000,
  );
});

it('a prepared statement whose result type has changed is prepared again on another connection', async () => {
  const { account_id } = await api.newAccount();
  const keys = Array.from({ length: count }, newKey);
  await api.transact(account_id, 'Deposit', 1);
  await world.sql('alter table ledger.accounts alter column status_version type smallint');
  const posted = await together(count, (i) => repeatUntilDone(() => deposit(keys[i] ?? '', account_id)));
  expect(posted).toHaveLength(count);
  // Each connection of the reads, too, fails once.
  expect(await eventually(() => api.balance(account_id))).toBe(count + 1);
  await world.sql('alter table ledger.accounts alter column status_version type int');
  await api.transact(account_id, 'Deposit', 1);
  await expectNoDeadLetters();
});
