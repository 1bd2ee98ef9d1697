import { execFile } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createKafka } from '#libs/kafka/client.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { testKeys } from '#libs/service/test/keys.ts';
import { acceptHistory } from '../../deploy/recovery/accept-history.ts';
import { type Resent, resendCommands } from '../../deploy/recovery/resend-commands.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';
import { findPrograms } from '../../tools/local/postgres.ts';
import { eventually } from '../support/eventually.ts';
import type { Cluster } from './cluster.ts';

/** The steps of docs/operations.md, Restore, for a cluster of the fault campaign. */

const patienceMs = 120_000;
/** Long enough for Postgres to archive a segment. */
const archivedMs = 2_000;
/** Commands from before the moment, which the database has, are sent too. */
const earlierMs = 60_000;

const archive = (cluster: Cluster): string => join(cluster.dir, 'archive');
const dataFolder = (cluster: Cluster): string => join(cluster.dir, 'postgres');

export async function withPool<T>(cluster: Cluster, schema: string, use: (pool: Pool) => Promise<T>): Promise<T> {
  const pool = createPool({ url: cluster.databaseUrl, application_name: 'check', schema, max: 2 }, silent);
  try {
    return await use(pool);
  } finally {
    await pool.end();
  }
}

/** The links of the cluster are in this process, so it must not wait. */
const execute = promisify(execFile);

/** Postgres does not run as root, so its files belong to another user. */
async function ownedAs(reference: string, path: string): Promise<void> {
  await execute('chown', ['-R', `--reference=${reference}`, path]);
}

/** Restarts Postgres so that it archives its WAL. */
export async function archiveWal(cluster: Cluster): Promise<void> {
  mkdirSync(archive(cluster), { recursive: true });
  await ownedAs(dataFolder(cluster), archive(cluster));
  appendFileSync(
    join(dataFolder(cluster), 'postgresql.auto.conf'),
    `wal_level = replica\narchive_mode = on\narchive_command = 'cp "%p" "${archive(cluster)}/%f"'\n`,
  );
  await cluster.postgres.stop();
  await cluster.postgres.start();
}

/**
 * Copies the files between start and stop, as pg_basebackup does, and writes the label that stop
 * returns.
 */
export async function backUp(cluster: Cluster): Promise<void> {
  const backup = `${dataFolder(cluster)}.backup`;
  await withPool(cluster, 'ledger', async (pool) => {
    const client = await pool.connect();
    await client.query("select pg_backup_start('check', true)");
    await execute('cp', ['-a', dataFolder(cluster), backup]).catch((error: { code?: number }) => {
      // A file was removed during the copy. The WAL repairs this.
      if (error.code !== 1) throw error;
    });
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop()');
    client.release();
    writeFileSync(join(backup, 'backup_label'), rows[0]?.labelfile ?? '');
    for (const own of ['postmaster.pid', 'postmaster.opts', 'pg_wal'])
      rmSync(join(backup, own), { recursive: true, force: true });
    mkdirSync(join(backup, 'pg_wal', 'archive_status'), { recursive: true });
  });
}

/** Returns the time of the database, in the form of recovery_target_time and in UTC. */
export async function databaseTime(cluster: Cluster): Promise<string> {
  const { rows } = await withPool(cluster, 'ledger', (pool) =>
    pool.query<{ now: string }>(
      "select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00' as now",
    ),
  );
  return rows[0]?.now ?? '';
}

/** Restores the base backup and the archived WAL beside the bank, as operators do every month. */
export async function tryRestore(cluster: Cluster): Promise<string> {
  await withPool(cluster, 'ledger', (pool) => pool.query('select pg_switch_wal()'));
  await sleep(archivedMs);
  const url = new URL(cluster.databaseUrl);
  const { stdout } = await execute(
    join(PROJECT, 'deploy/recovery/try-restore.sh'),
    [`${dataFolder(cluster)}.backup`, archive(cluster)],
    {
      env: {
        ...process.env,
        PG_BIN: dirname((await findPrograms()).postgres),
        OWNER: url.username,
        DATABASE: url.pathname.slice(1),
      },
    },
  );
  return stdout.trim().split('\n').at(-1) ?? '';
}

/** Stops all services and replaces the database with that of the moment, from the base backup and the archive. */
export async function restoreTo(cluster: Cluster, moment: string): Promise<void> {
  const data = dataFolder(cluster);
  cluster.isRestored = true;
  await Promise.all(cluster.gateways.map((node) => node.stop()));
  await Promise.all(cluster.nodes.map((node) => node.stop()));
  await withPool(cluster, 'ledger', (pool) => pool.query('select pg_switch_wal()'));
  await cluster.postgres.stop();
  // The directory itself stays, because an earlier row may have mounted a file system there.
  await execute('find', [data, '-mindepth', '1', '-delete']);
  await execute('cp', ['-a', `${data}.backup/.`, data]);
  appendFileSync(
    join(data, 'postgresql.auto.conf'),
    `restore_command = 'cp "${archive(cluster)}/%f" "%p"'\nrecovery_target_time = '${moment}'\nrecovery_target_action = 'promote'\n`,
  );
  writeFileSync(join(data, 'recovery.signal'), '');
  await ownedAs(data, data);
  await cluster.postgres.start();
  await eventually(
    () =>
      withPool(cluster, 'ledger', async (pool) => {
        const { rows } = await pool.query<{ back: boolean }>('select not pg_is_in_recovery() as back');
        return rows[0]?.back === true;
      }),
    patienceMs,
  );
}

const createClusterKafka = (cluster: Cluster) =>
  createKafka({ brokers: cluster.brokers.split(','), client_id: 'restore' }, silent);

/** Starts a ledger, which refuses the restored database, stops it, and accepts the database. */
export async function acceptDatabase(cluster: Cluster): Promise<void> {
  const ledger = cluster.node('ledger');
  ledger.start();
  await eventually(async () => (await (await fetch(ledger.healthUrl)).text()).includes('older history'), patienceMs);
  await ledger.stop();
  await acceptHistory(createClusterKafka(cluster), { prefix: cluster.topicPrefix, keys: testKeys, logger: silent });
}

/** Starts one ledger and accounts, and sends the commands since the moment again. */
export async function resend(cluster: Cluster, moment: string): Promise<Resent> {
  for (const name of ['ledger', 'accounts']) cluster.node(name).start();
  await Promise.all(['ledger', 'accounts'].map((name) => cluster.node(name).ready()));
  return withPool(cluster, 'ledger', (ledger) =>
    withPool(cluster, 'accounts', (accounts) =>
      resendCommands(createClusterKafka(cluster), {
        prefix: cluster.topicPrefix,
        from: new Date(Date.parse(moment.replace(' ', 'T').replace('+00', 'Z')) - earlierMs),
        keys: testKeys,
        ledger,
        accounts,
        logger: silent,
      }),
    ),
  );
}
