import {
  appendFileSync,
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MacKeys } from '#libs/contracts/mac.ts';
import { acceptance, History, OlderHistoryError } from '#libs/postgres/outbox/history.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import { Relay, type RelayOptions } from '#libs/postgres/outbox/relay.ts';
import { event } from '#libs/postgres/outbox/test/relay-harness.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import type { Child } from '../../tools/local/child.ts';
import { freePort } from '../../tools/local/ports.ts';
import { startPostgres } from '../../tools/local/postgres.ts';
import { eventually } from '../support/eventually.ts';

const root = mkdtempSync(join(tmpdir(), 'core-banking-history-'));
const dir = join(root, 'data');
const port = await freePort();
const url = (user: string) => `postgres://${user}:secret@127.0.0.1:${port}/bank`;
let server: Child;

/** The topic, which survives the database. */
const positions: string[] = [];
const keys = new MacKeys({ ledger: ['the keys of the ledgers'] });
const newHistory = () =>
  new History({ topic: 'position', source: 's', readLast: async () => positions.slice(-1000), keys, logger: silent });

/** The part of a ledger's process that checks the history, with only the rights of a service. */
interface Process {
  pool: Pool;
  relay: Relay;
  history: History;
  write(n: number): Promise<void>;
  stop(): Promise<void>;
}

function startProcess(): Process {
  const history = newHistory();
  const pool = createPool(
    { url: url('service'), application_name: 'ledger', schema: 'public', verify: (client) => history.verify(client) },
    silent,
  );
  const publishAll: RelayOptions['publisher']['publishAll'] = async (messages) => {
    for (const { topic, value } of messages) if (topic === 'position') positions.push(value ?? '');
  };
  const relay = new Relay({
    pool,
    publisher: { publishAll },
    schema: 'public',
    topicName: (name) => name,
    source: 's',
    logger: silent,
    history,
  });
  relay.start();
  return {
    pool,
    relay,
    history,
    async write(n) {
      await transaction(pool, (client) => writeOutbox(client, [event(n)]));
      relay.wake();
    },
    stop: () => relay.stop().finally(() => pool.end()),
  };
}

async function start(): Promise<void> {
  const owner = { name: 'bank', password: 'secret' };
  server = await startPostgres({
    dir,
    log: join(root, 'log'),
    port,
    superuserPassword: 'secret',
    owner,
    durable: false,
  });
}

/** Stops the server, replaces its data directory, and starts it again. */
async function startWith(source: string): Promise<void> {
  await server.stop(10_000);
  rmSync(dir, { recursive: true });
  cpSync(source, dir, { recursive: true });
  chmodSync(dir, 0o700);
  await start();
}

async function keepAs(name: string): Promise<string> {
  await server.stop(10_000);
  cpSync(dir, join(root, name), { recursive: true });
  await start();
  return join(root, name);
}

/** Resolves when everything that was committed is published and recorded in the topic. */
async function published({ pool, relay }: Process): Promise<void> {
  await eventually(async () => {
    const { rows } = await pool.query<{ last: bigint }>('select max(batch_id) as last from outbox_batches');
    return positions.at(-1)?.includes(`"${rows[0]?.last}"`) === true && (await relay.stats()).rows === 0;
  }, 15_000);
}

beforeAll(async () => {
  mkdirSync(root, { recursive: true });
  writeFileSync(join(root, 'log'), '');
  await start();
  const owner = createPool({ url: url('bank'), application_name: 'owner', schema: 'public' }, silent);
  await owner.query(
    readFileSync(join(import.meta.dirname, '..', '..', 'libs', 'postgres', 'outbox', 'outbox.sql'), 'utf8'),
  );
  await owner.query(`create role service login password 'secret'`);
  await owner.query(
    'grant select, insert, update, delete on all tables in schema public to service; grant usage on all sequences in schema public to service',
  );
  await owner.end();
});
afterAll(async () => {
  await server?.stop(10_000);
  rmSync(root, { recursive: true, force: true });
});

test('a restart and a promotion are accepted; every connection to an older history is rejected until the right one is restored', async () => {
  const ledger = startProcess();
  await ledger.write(1);
  await published(ledger);
  const older = await keepAs('older');
  // After the restart, nothing is missing.
  await eventually(
    () =>
      ledger.write(2).then(
        () => true,
        () => false,
      ),
    15_000,
  );
  await published(ledger);

  // The copy has all commits and starts its own timeline when it recovers, like a promoted standby.
  const complete = await keepAs('complete');
  await eventually(
    () =>
      ledger.write(3).then(
        () => true,
        () => false,
      ),
    15_000,
  );
  await published(ledger);
  const promoted = await keepAs('promoted');
  appendFileSync(join(promoted, 'postgresql.auto.conf'), "restore_command = 'false'\n");
  writeFileSync(join(promoted, 'recovery.signal'), '');
  await startWith(promoted);
  await eventually(
    () =>
      ledger.write(4).then(
        () => true,
        () => false,
      ),
    15_000,
  );
  const { rows } = await ledger.pool.query<{ timeline: number }>(
    'select timeline_id as timeline from pg_control_checkpoint()',
  );
  expect(rows[0]?.timeline).toBeGreaterThan(1);
  await published(ledger);
  expect(ledger.history.health()).toEqual({ ok: true });
  const right = await keepAs('right');
  const newest = positions.at(-1);

  // Older copies lack published batches: neither running nor new processes write.
  for (const copy of [older, complete]) {
    await startWith(copy);
    await expect(ledger.write(5)).rejects.toThrow();
    await eventually(() => !ledger.history.health().ok, 15_000);
    await expect(ledger.write(5)).rejects.toThrow(OlderHistoryError);
    expect(ledger.history.health().reason).toMatch(
      /^the database has an older history: batch \d+ .*docs\/operations\.md/,
    );
    const fresh = startProcess();
    await expect(fresh.write(5)).rejects.toThrow(OlderHistoryError);
    await fresh.stop();
    expect(positions.at(-1)).toBe(newest);
  }

  // If a process writes anyway, it gives the same numbers to other batches. This is detected, too.
  const careless = createPool({ url: url('service'), application_name: 'careless', schema: 'public' }, silent);
  for (let n = 0; n < 60; n += 1) await transaction(careless, (client) => writeOutbox(client, [event(n)]));
  await careless.end();
  const fresh = startProcess();
  await expect(fresh.write(5)).rejects.toThrow(OlderHistoryError);
  await fresh.stop();

  await startWith(right);
  await eventually(
    () =>
      ledger.write(5).then(
        () => true,
        () => false,
      ),
    15_000,
  );
  await eventually(async () => ledger.history.health().ok && (await ledger.relay.stats()).rows === 0, 15_000);
  await ledger.stop();
}, 180_000);

/** What a broker user without the keys can write: anything, and what the ledger has written before. */
function forgeries(): string[] {
  const position = { batch_id: '1000000', created_at: '2999-01-02T03:04:05.678Z' };
  const mac: Record<string, string> = {};
  const strangers = new MacKeys({ ledger: ['other keys'] });
  strangers.sign('ledger', { headers: mac, value: JSON.stringify(position) });
  const { mac: known } = JSON.parse(positions.at(-1) ?? '{}') as { mac: string };
  return [
    'no JSON',
    'null',
    JSON.stringify(position),
    JSON.stringify({ ...position, ...mac }),
    JSON.stringify({ ...position, mac: known }),
    JSON.stringify({ accepted_at: '2999-01-01T00:00:00.000Z', mac: known }),
    acceptance('2999-01-01T00:00:00.000Z', strangers),
  ];
}

test('records without the MAC of the ledger neither stop a ledger nor hide the position before them', async () => {
  for (const forged of forgeries()) {
    positions.push(forged);
    const fresh = startProcess();
    await fresh.write(6);
    expect(fresh.history.health()).toEqual({ ok: true });
    await published(fresh);
    await fresh.stop();
  }
  const older = await keepAs('before the last posting');
  const ledger = startProcess();
  await eventually(
    () =>
      ledger.write(7).then(
        () => true,
        () => false,
      ),
    15_000,
  );
  await published(ledger);
  await ledger.stop();
  const first = positions.find((value) => value.includes('"mac"')) as string;
  const newest = positions.at(-1) as string;
  // A position that was valid once has a valid MAC when it is written again.
  positions.push(...forgeries(), first, acceptance('2000-01-01T00:00:00.000Z', keys));
  await startWith(older);
  const fresh = startProcess();
  await expect(fresh.write(8)).rejects.toThrow(OlderHistoryError);
  await fresh.stop();
  expect(positions).toContain(newest);

  // The program of docs/operations.md, Restore.
  positions.push(acceptance(new Date().toISOString(), keys), first, newest);
  const restored = startProcess();
  await restored.write(9);
  expect(restored.history.health()).toEqual({ ok: true });
  await published(restored);
  await restored.stop();
}, 120_000);
