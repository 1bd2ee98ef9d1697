import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { postgresUrl } from '../../../tools/local/postgres.ts';

/**
 * Creates a standby's data folder by copying the primary's, as one of Patroni's create_replica_methods, because the npm
 * package lacks pg_basebackup, and both folders are on this machine. The copy is made between pg_backup_start and
 * pg_backup_stop, so that the WAL repairs changes that are made during the copy. Called with Patroni's arguments
 * --datadir and --connstring.
 */
const { values } = parseArgs({
  // Patroni passes further arguments, which are not used here.
  strict: false,
  options: {
    members: { type: 'string' },
    password: { type: 'string' },
    datadir: { type: 'string' },
    connstring: { type: 'string' },
  },
});
const { datadir: target = '', connstring = '', members = '{}', password = '' } = values as Record<string, string>;
/** Data folders by port. */
const folders = JSON.parse(members) as Record<string, string>;
/** Files of the running server that a copy must not contain. */
const left = new Set([
  'postmaster.pid',
  'postmaster.opts',
  'standby.signal',
  'recovery.signal',
  'patroni.dynamic.json',
  'pg_wal',
]);
const emptied = new Set([
  'pg_replslot',
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
]);

const port = connstring.startsWith('postgres')
  ? new URL(connstring).port
  : (/port='?(\d+)/.exec(connstring)?.[1] ?? '');
const source = folders[port];
if (source === undefined) throw new Error(`no server is known behind ${connstring}`);

const url = postgresUrl(Number(port), 'postgres', password, 'postgres');
const pool = createPool(
  { url, application_name: 'copy', schema: 'public', max: 1, statement_timeout_ms: 120_000 },
  silent,
);
// A backup must begin and end in one session.
const client = await pool.connect();
await client.query("select pg_backup_start('patroni', true)");
rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true, mode: 0o700 });
for (const name of readdirSync(source).filter((one) => !left.has(one)))
  copy(join(source, name), join(target, name), emptied.has(name));
const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
writeFileSync(join(target, 'backup_label'), rows[0]?.labelfile ?? '');
copy(join(source, 'pg_wal'), join(target, 'pg_wal'), false);
client.release();
await pool.end();

/** Files that are deleted during the copy belong to dropped tables. */
function copy(from: string, to: string, isEmptied: boolean): void {
  if (isEmptied) return void mkdirSync(to, { mode: 0o700 });
  try {
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    copy(from, to, isEmptied);
  }
}
