import { spawnSync } from 'node:child_process';
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { PROJECT } from '../tools/local/local-dir.ts';
import { median } from './measure.ts';
import type { World } from './world.ts';

/** The machine and software of a run. */
export type Machine = Record<string, string>;

const syncs = 200;

/** Returns the median time to write 8 kB durably, in milliseconds. Every commit waits for this. */
function syncMs(dir: string): number {
  const file = join(dir, 'sync-probe');
  const page = Buffer.alloc(8192, 1);
  const descriptor = openSync(file, 'w');
  try {
    return median(
      Array.from({ length: syncs }, () => {
        const begun = performance.now();
        writeSync(descriptor, page, 0, page.length, 0);
        fdatasyncSync(descriptor);
        return performance.now() - begun;
      }),
    );
  } finally {
    closeSync(descriptor);
    rmSync(file, { force: true });
  }
}

export async function describeMachine(world: World): Promise<Machine> {
  const git = (...args: string[]) =>
    spawnSync('git', args, { cwd: PROJECT, encoding: 'utf8', timeout: 5000 }).stdout.trim();
  const show = (name: string) =>
    world.withPool(
      world.infra.superuserUrl,
      'public',
      async (pool) =>
        (await pool.query<{ value: string }>('select current_setting($1) as value', [name])).rows[0]?.value ?? '',
    );
  const settings = await Promise.all(
    ['fsync', 'synchronous_commit', 'shared_buffers', 'max_wal_size'].map(
      async (name) => `${name} ${await show(name)}`,
    ),
  );
  return {
    commit: `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain', '--untracked-files=no') === '' ? '' : ', changed'}`,
    processor: `${cpus()[0]?.model.trim()}, ${availableParallelism()} cores for everything, the load generator included; ${Math.round(totalmem() / 2 ** 30)} GiB`,
    'one durable 8 kB write': `${syncMs(world.local.path).toFixed(2)} ms (fdatasync, median of ${syncs})`,
    node: process.version,
    postgres: `${await show('server_version')}; ${settings.join(', ')}`,
    kafka: '4.1, one broker, acks=all of the one replica',
    bank: 'one gateway, one ledger, one accounts, default settings, log level info',
  };
}
