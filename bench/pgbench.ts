import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { runToEnd } from '../tools/local/child.ts';
import { accountCount } from './contenders/posting.ts';
import type { World } from './world.ts';

const clients = 8;
const threads = 2;

/** Returns undefined if pgbench can be run, otherwise instructions. */
export function pgbenchMissing(): string | undefined {
  const { status } = spawnSync('pgbench', ['--version'], { timeout: 5000 });
  return status === 0
    ? undefined
    : 'pgbench is not installed: it comes with PostgreSQL (Debian: postgresql-contrib or postgresql-client, macOS: brew install libpq)';
}

/** Returns the transfers per second of the pgbench script, with or without a relay that empties its outbox. */
export async function pgbench(world: World, seconds: number, relayed: boolean): Promise<number> {
  const databaseUrl = await world.contenderDatabase('pgbench');
  await world.withPool(databaseUrl, 'public', (pool) => pool.query('truncate outbox'));
  const relay = relayed
    ? await world.startProcess('pgbench-relay', join(import.meta.dirname, 'contenders', 'relay.ts'), {
        DATABASE_URL: databaseUrl,
      })
    : undefined;
  try {
    const script = join(import.meta.dirname, 'contenders', 'transfer.pgbench.sql');
    return await runPgbench(databaseUrl, script, { accounts: accountCount }, seconds);
  } finally {
    await relay?.stop(5000);
  }
}

/** Returns the transactions per second of a script with these variables. */
export async function runPgbench(
  databaseUrl: string,
  script: string,
  variables: Record<string, number>,
  seconds: number,
  connections = clients,
): Promise<number> {
  const defined = Object.entries(variables).flatMap(([name, value]) => ['-D', `${name}=${value}`]);
  const load = ['-c', String(connections), '-j', String(threads), '-T', String(Math.ceil(seconds))];
  const args = ['-n', '-M', 'prepared', ...load, ...defined, '-f', script, databaseUrl];
  const { code, stdout, stderr } = await runToEnd('pgbench', args, { timeoutMs: seconds * 1000 + 30_000 });
  const perSecond = Number(/^tps = ([\d.]+)/m.exec(stdout)?.[1]);
  if (code !== 0 || !(perSecond > 0))
    throw new Error(
      `pgbench failed (${code ?? 'timeout'}): ${(stderr || stdout).trim().split('\n').slice(-3).join(' | ')}`,
    );
  return perSecond;
}
