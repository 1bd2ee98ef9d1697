import { spawnSync } from 'node:child_process';
import { statfsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster, Server } from '../cluster.ts';
import { recovery } from '../probe.ts';
import { type Bench, type Row, Skipped } from '../row.ts';

/**
 * A full disk: the server's data is moved to a separate file system (tmpfs, which only root can mount), which is then
 * shrunk to the size of its content, and enlarged again. A server that stops during this time is restarted when there
 * is space again, as by a supervisor. Everything else must recover by itself.
 */
const roomy = '4g';
const sparePages = 4 * 4096;
const fullMs = 30_000;
const recoveryMs = 15_000;
const mounted = new Set<string>();

function run(command: string, ...args: string[]): string | undefined {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  return status === 0 ? undefined : (error?.message ?? stderr).trim();
}

/** Moves the data once. */
async function onOwnFileSystem(cluster: Cluster, server: Server, dir: string): Promise<void> {
  if (mounted.has(dir)) return;
  if (process.getuid?.() !== 0) throw new Skipped('only root can mount a file system');
  const trial = join(cluster.dir, 'trial');
  await mkdir(trial, { recursive: true });
  const refusal = run('mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', trial);
  if (refusal !== undefined) throw new Skipped(`a file system cannot be mounted here: ${refusal}`);
  run('umount', trial);
  await server.stop();
  const before = `${dir}.before`;
  await rename(dir, before);
  await mkdir(dir);
  const failure =
    run('mount', '-t', 'tmpfs', '-o', `size=${roomy}`, 'tmpfs', dir) ?? run('cp', '-a', `${before}/.`, dir);
  if (failure !== undefined) throw new Error(failure);
  mounted.add(dir);
  const unmount = () => {
    if (mounted.delete(dir)) run('umount', '-l', dir);
  };
  cluster.atEnd.push(unmount);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      unmount();
      process.exit(1);
    });
  }
  await rm(before, { recursive: true });
  await server.start();
}

function resize(dir: string, size: string | number): string | undefined {
  return run('mount', '-o', `remount,size=${size}`, dir);
}

/** Shrinks the file system to its content, repeatedly while the content grows. */
async function shrink(dir: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const failure = resize(dir, usedBytes(dir) + sparePages);
    if (failure === undefined) return;
    if (attempt === 50) throw new Error(failure);
    await sleep(20);
  }
}

function usedBytes(dir: string): number {
  const { blocks, bfree, bsize } = statfsSync(dir);
  return (blocks - bfree) * bsize;
}

interface Disk {
  server: Server;
  /** The path below the cluster's folder. */
  folder: string;
  /** Called while the disk is full: makes sure that the server is affected. */
  press?: () => Promise<unknown>;
}

async function diskFull(bench: Bench, { server, folder, press }: Disk): Promise<number> {
  const { cluster, duration, say } = bench;
  const dir = join(cluster.dir, folder);
  await onOwnFileSystem(cluster, server, dir);
  // Moving the data restarted the server. The row should show only the effect of the full disk.
  await recovery(bench, performance.now(), fullMs);
  await shrink(dir);
  await sleep(duration(fullMs) / 2);
  await press?.();
  await sleep(duration(fullMs) / 2);
  const failure = resize(dir, roomy);
  if (failure !== undefined) throw new Error(failure);
  const goneAt = performance.now();
  const halted = !server.running();
  if (halted) {
    cluster.unexpectedExits.splice(
      0,
      Infinity,
      ...cluster.unexpectedExits.filter((exit) => !exit.startsWith(`${server.name} ended`)),
    );
    await server.start();
  }
  say(`${server.name} ${halted ? 'had halted, and was started again when there was room' : 'kept running'}`);
  return goneAt;
}

const kafkaFull: Row = {
  name: 'disk-full-kafka',
  title: (lasts) => `Kafka's disk full for ${lasts(fullMs)}, then enlarged`,
  touches: ['kafka'],
  recoveryMs,
  inject: (bench) => diskFull(bench, { server: bench.cluster.broker, folder: 'kafka' }),
};

const postgresFull: Row = {
  name: 'disk-full-postgres',
  title: (lasts) => `Postgres' disk full for ${lasts(fullMs)} (first for its tables, then for its WAL), then enlarged`,
  touches: ['postgres'],
  recoveryMs,
  inject: (bench) =>
    diskFull(bench, {
      server: bench.cluster.postgres,
      folder: 'postgres',
      // Tables grow immediately, whereas the WAL still has space in its current segment.
      press: () => bench.pool.query('select pg_switch_wal()').catch(() => undefined),
    }),
};

export const disks: Row[] = [kafkaFull, postgresFull];
