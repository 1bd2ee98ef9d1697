import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createKafka } from '#libs/kafka/client.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { testKeys } from '#libs/service/test/keys.ts';
import { verifyBooks } from '#services/ledger/verify/verify-books.ts';
import { verifyEvents } from '#services/ledger/verify/verify-events.ts';
import type { Cluster } from '../../tests/faults/cluster.ts';
import { startCluster } from '../../tests/faults/cluster.ts';
import { createRandom } from '../../tests/faults/random.ts';
import { Api, type RestAccount } from '../../tests/support/client.ts';
import { acceptHistory } from '../recovery/accept-history.ts';
import { resendCommands } from '../recovery/resend-commands.ts';
import type { Check, Part } from './check.ts';
import { expect } from './check.ts';

/** The responses that callers received, by account. They must match the accounts after the restore. */
type Told = Map<string, { account_number: string; balance: number; status: string; entries: string }>;

/**
 * Follows docs/operations.md, Restore, literally: a base backup and the archived WAL, a disaster, a
 * restore to a moment before it, whose older history is accepted explicitly, and the commands since
 * then sent again from Kafka.
 */
export const restore: Part = {
  name: 'restore',
  needsEngine: false,
  planted: {
    defect: 'commands that are not sent again',
    foundBy: 'all responses that callers received hold again',
    says: /accounts differ/,
  },
  async run(check) {
    const cluster = await check.step('start a bank whose Postgres archives its WAL', () => openBank(check));
    const [api] = cluster.gateways.map(
      ({ baseUrl }) =>
        new Api(
          () => baseUrl,
          () => ({ 'x-api-key': cluster.apiKey }),
        ),
    ) as [Api];
    const data = join(cluster.dir, 'postgres');
    await work(api, 20);
    await check.step('take a base backup under load', () =>
      Promise.all([backUp(cluster, data), work(api, 20)]).then(() => undefined),
    );
    await work(api, 20);
    const moment = await withPool(
      cluster,
      async (pool) =>
        (
          await pool.query<{ now: string }>(
            "select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') as now",
          )
        ).rows[0]?.now ?? '',
    );
    await sleep(1_100);
    const told = await check.step('commit operations that the restored database will not have', async () => {
      await work(api, 40);
      await withPool(cluster, (pool) =>
        until(
          async () =>
            (
              await pool.query(
                'select from ledger.outbox_batches where published_at is null union all select from accounts.outbox_batches where published_at is null union all select from accounts.saga_steps',
              )
            ).rowCount === 0,
        ),
      );
      return readTold(api);
    });
    await check.step('stop all processes and restore Postgres to the moment before those operations', async () => {
      await Promise.all(cluster.nodes.map((node) => node.stop()));
      await withPool(cluster, (pool) => pool.query('select pg_switch_wal()'));
      await cluster.postgres.stop();
      renameSync(data, `${data}.lost`);
      spawnSync('cp', ['-a', `${data}.backup`, data], { stdio: 'ignore' });
      appendFileSync(
        join(data, 'postgresql.auto.conf'),
        `restore_command = 'cp "${archive(cluster)}/%f" "%p"'\nrecovery_target_time = '${moment}+00'\nrecovery_target_action = 'promote'\n`,
      );
      writeFileSync(join(data, 'recovery.signal'), '');
      ownedAs(`${data}.lost`, data);
      await cluster.postgres.start();
      await withPool(cluster, (pool) =>
        until(
          async () =>
            (await pool.query<{ back: boolean }>('select not pg_is_in_recovery() as back')).rows[0]?.back === true,
        ),
      );
    });
    const kafka = createKafka({ brokers: [cluster.brokers], client_id: 'restore' }, silent);
    await check.step('a ledger refuses the older history; after everything is stopped, it is accepted', async () => {
      const ledger = cluster.node('ledger');
      ledger.start();
      await until(async () => (await (await fetch(ledger.healthUrl)).text()).includes('older history'));
      await ledger.stop();
      await acceptHistory(kafka, { prefix: cluster.topicPrefix, logger: silent });
    });
    await check.step('the books balance, and verify-books reports the events without entries', async () => {
      const lacking = await withPool(cluster, async (pool) => {
        expect((await verifyBooks(pool)).length === 0, 'the restored books do not balance');
        return verifyEvents(pool, kafka, cluster.topicPrefix, silent);
      });
      expect(lacking.length > 0, 'nothing is missing: the restore went too far');
      return `${lacking.length} rules about events are broken, as they must be`;
    });
    await check.step('with one ledger and accounts running, the later commands are sent again', async () => {
      for (const name of ['ledger', 'accounts']) cluster.node(name).start();
      await Promise.all(['ledger', 'accounts'].map((name) => cluster.node(name).ready()));
      if (check.selfTest) return 'none sent: planted';
      const { sent, succeeded } = await resendCommands(kafka, {
        prefix: cluster.topicPrefix,
        from: new Date(Date.parse(`${moment}Z`) - 60_000),
        keys: testKeys,
        logger: silent,
      });
      return `${sent} commands, of which ${succeeded} had been a success`;
    });
    await check.step('all responses that callers received hold again', async () => {
      await cluster.restore();
      const now = await readTold(api);
      const different = [...told].filter(([id, before]) => JSON.stringify(before) !== JSON.stringify(now.get(id)));
      expect(
        different.length === 0 && now.size === told.size,
        `${different.length} of ${told.size} accounts differ, ${now.size} there: ${JSON.stringify(different.slice(0, 3).map(([id, before]) => [id, before, now.get(id)]))}`,
      );
      const findings = await withPool(cluster, (pool) => verifyBooks(pool));
      expect(findings.length === 0, JSON.stringify(findings));
      return `${told.size} accounts with number, balance, status and every entry`;
    });
  },
};

const archive = (cluster: Cluster): string => join(cluster.dir, 'archive');

async function openBank(check: Check): Promise<Cluster> {
  const cluster = await startCluster(join(check.dir, 'restore'), createRandom('restore'));
  check.onEnd(() => cluster.stop());
  mkdirSync(archive(cluster), { recursive: true });
  ownedAs(join(cluster.dir, 'postgres'), archive(cluster));
  appendFileSync(
    join(cluster.dir, 'postgres', 'postgresql.auto.conf'),
    `wal_level = replica\narchive_mode = on\narchive_command = 'cp "%p" "${archive(cluster)}/%f"'\n`,
  );
  await cluster.postgres.stop();
  await cluster.postgres.start();
  await cluster.restore();
  return cluster;
}

/** Postgres does not run as root, so it runs as another user. */
function ownedAs(reference: string, path: string): void {
  spawnSync('chown', ['-R', `--reference=${reference}`, path], { stdio: 'ignore' });
}

async function withPool<T>(cluster: Cluster, use: (pool: Pool) => Promise<T>): Promise<T> {
  const pool = createPool({ url: cluster.databaseUrl, application_name: 'check', schema: 'ledger', max: 2 }, silent);
  try {
    return await use(pool);
  } finally {
    await pool.end();
  }
}

/**
 * Copies the files between start and stop, as pg_basebackup does, and writes the label that stop
 * returns.
 */
async function backUp(cluster: Cluster, data: string): Promise<void> {
  await withPool(cluster, async (pool) => {
    const client = await pool.connect();
    await client.query("select pg_backup_start('check', true)");
    const { status } = spawnSync('cp', ['-a', data, `${data}.backup`], { stdio: 'ignore' });
    // Exit code 1: a file was removed during the copy. The WAL repairs this.
    expect(status === 0 || status === 1, 'the files could not be copied');
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop()');
    client.release();
    writeFileSync(join(`${data}.backup`, 'backup_label'), rows[0]?.labelfile ?? '');
    for (const own of ['postmaster.pid', 'postmaster.opts', 'pg_wal'])
      rmSync(join(`${data}.backup`, own), { recursive: true, force: true });
    mkdirSync(join(`${data}.backup`, 'pg_wal', 'archive_status'), { recursive: true });
  });
}

const accountsOf = new WeakMap<Api, string[]>();

/** Makes openings, deposits, withdrawals that fail, transfers, and freezes: `count` rounds, each with its response. */
async function work(api: Api, count: number): Promise<void> {
  const ids = accountsOf.get(api) ?? [];
  accountsOf.set(api, ids);
  for (let i = 0; i < count; i++) {
    if (i % 10 === 0) ids.push((await api.newAccount({ initial_deposit: 100 })).account_id);
    const [from = '', to = ''] = [ids.at(-1), ids[i % ids.length]];
    await Promise.all([
      api.transact(from, 'Deposit', 10 + i),
      api.post('/transactions', { account_id: from, transaction_type: 'Withdrawal', amount: 1_000_000 }),
    ]);
    if (from !== to) await api.transfer(from, to, 5);
    if (i % 10 === 7) {
      await api.setStatus(from, 'Frozen', 'fraud');
      await api.post('/transactions', { account_id: from, transaction_type: 'Deposit', amount: 1 });
      await api.setStatus(from, 'Active');
    }
  }
}

/** Returns entries without their posting time, which is a new one after the restore. */
async function readTold(api: Api): Promise<Told> {
  const told: Told = new Map();
  for (const account of await api.all<RestAccount>('/accounts?limit=100')) {
    const entries = (await api.entries(account.account_id)).map(
      ({ created_at: _at, ...entry }: { created_at?: string } & Record<string, unknown>) => JSON.stringify(entry),
    );
    told.set(account.account_id, {
      account_number: account.account_number,
      balance: account.balance,
      status: account.status,
      entries: entries.toSorted().join('\n'),
    });
  }
  return told;
}

async function until(check: () => Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await check().catch(() => false))) {
    if (performance.now() > deadline) throw new Error('not so in time');
    await sleep(200);
  }
}
