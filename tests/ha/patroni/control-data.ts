import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Replaces pg_controldata for Patroni by reading the control file of PostgreSQL 18, because the npm package lacks that
 * program, and Debian's is of an older version. Called as `control-data.ts DATADIR`.
 */
const supportedVersion = 1800;
const states = [
  'starting up',
  'shut down',
  'shut down in recovery',
  'shutting down',
  'in crash recovery',
  'in archive recovery',
  'in production',
];

const file = readFileSync(join(process.argv.at(-1) ?? '', 'global', 'pg_control'));
const version = file.readUInt32LE(8);
if (version !== supportedVersion)
  throw new Error(`pg_control has version ${version}, and this program reads ${supportedVersion}`);
const lsn = (at: number): string =>
  `${file
    .readUInt32LE(at + 4)
    .toString(16)
    .toUpperCase()}/${file.readUInt32LE(at).toString(16).toUpperCase()}`;

const values = {
  'pg_control version number': version,
  'Database system identifier': file.readBigUInt64LE(0),
  'Database cluster state': states[file.readInt32LE(16)],
  'Latest checkpoint location': lsn(32),
  "Latest checkpoint's REDO location": lsn(40),
  "Latest checkpoint's TimeLineID": file.readUInt32LE(48),
  'Minimum recovery ending location': lsn(136),
  "Min recovery ending loc's timeline": file.readUInt32LE(144),
  'wal_log_hints setting': file.readUInt8(176) === 1 ? 'on' : 'off',
  'max_connections setting': file.readInt32LE(180),
  'max_worker_processes setting': file.readInt32LE(184),
  'max_wal_senders setting': file.readInt32LE(188),
  'max_prepared_xacts setting': file.readInt32LE(192),
  'max_locks_per_xact setting': file.readInt32LE(196),
  'Data page checksum version': 0,
};
for (const [name, value] of Object.entries(values)) process.stdout.write(`${`${name}:`.padEnd(38)}${value}\n`);
