import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterAll, expect, test } from 'vitest';
import { createKafka } from '#libs/kafka/client.ts';
import { ensureTopics, partitionCounts } from '#libs/kafka/topics.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { startInfrastructure } from './infra.ts';
import { openLocalDir } from './local-dir.ts';

const logger = pino({ level: 'silent' });
const dir = mkdtempSync(join(tmpdir(), 'core-banking-infra-'));
afterAll(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));

async function sql(url: string, text: string): Promise<Record<string, unknown>[]> {
  const pool = createPool({ url, application_name: 'infra-test', schema: 'public', max: 1 }, logger);
  try {
    return (await pool.query<Record<string, unknown>>(text)).rows;
  } finally {
    await pool.end();
  }
}

test('data survives kill -9 of both servers, and a second start ends leftover processes', async () => {
  const first = await openLocalDir(dir);
  const before = await startInfrastructure(first);
  await sql(before.ownerUrl, 'create table public.kept (n int)');
  await sql(before.ownerUrl, 'insert into public.kept values (7)');
  const kafka = createKafka({ brokers: [before.brokers], client_id: 'infra-test' }, logger);
  await ensureTopics(kafka, [{ name: 'kept', partitions: 3, replication_factor: 1, config: {} }]);

  // The state is as after kill -9 of everything: the lock and the process list exist; Postgres does not run, and Kafka
  // still runs.
  const processes = JSON.parse(readFileSync(join(dir, 'processes.json'), 'utf8')) as { name: string; pid: number }[];
  expect(processes.map(({ name }) => name).sort()).toEqual(['kafka', 'postgres']);
  process.kill(processes.find(({ name }) => name === 'postgres')!.pid, 'SIGKILL');
  writeFileSync(
    join(dir, 'lock'),
    JSON.stringify({ name: 'launcher', pid: process.pid, identity: 'gone', marker: '' }),
  );
  // PostgreSQL's own lock file now names a process that is not PostgreSQL, because the pid was
  // reused.
  const pidFile = join(dir, 'postgres', 'postmaster.pid');
  writeFileSync(pidFile, readFileSync(pidFile, 'utf8').replace(/^\d+/, String(process.ppid)));

  const second = await openLocalDir(dir);
  expect(second.cleared).toContain('kafka');
  const after = await startInfrastructure(second);
  expect(after).toMatchObject({ brokers: before.brokers, ownerUrl: before.ownerUrl });
  expect(await sql(after.ownerUrl, 'select n from public.kept')).toEqual([{ n: 7 }]);
  expect(await partitionCounts(kafka, ['kept'])).toEqual(new Map([['kept', 3]]));

  await after.stop();
  second.release();
  await expect(sql(after.ownerUrl, 'select 1')).rejects.toThrow();
});
