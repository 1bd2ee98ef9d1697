import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test, vi } from 'vitest';
import { processIdentity, startChild } from './child.ts';
import { supervise } from './supervisor.ts';

const dir = mkdtempSync(join(tmpdir(), 'supervisor-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const child = (command: string, ...args: string[]) =>
  startChild({ name: 'it', command, args, log: join(dir, 'log'), marker: command });

test('a killed process is restarted within a second, with a new pid', async () => {
  const onRestart = vi.fn();
  const it = await supervise('it', async () => child('sleep', '63'), { onRestart, report: () => {} });
  const durations: number[] = [];
  for (let death = 1; death <= 4; death++) {
    const before = it.pid();
    const killedAt = performance.now();
    process.kill(before, 'SIGKILL');
    await vi.waitUntil(() => it.pid() !== before, { interval: 10, timeout: 15_000 });
    durations.push(performance.now() - killedAt);
    expect(onRestart).toHaveBeenCalledTimes(death);
    expect(it.deaths()).toBe(death);
  }
  // A busy machine may delay some of them.
  expect(Math.min(...durations)).toBeLessThan(1000);
  const last = it.pid();
  await it.stop(1000);
  expect(processIdentity(last)).toBeUndefined();
});

test('a process that ends repeatedly is restarted less and less often, and not at all after stop', async () => {
  let starts = 0;
  const start = async () => {
    starts += 1;
    return child('false');
  };
  const it = await supervise('it', start, { report: () => {} });
  await sleep(1000);
  await vi.waitUntil(() => starts > 2, 20_000);
  await it.stop(1000);
  const before = starts;
  expect(before).toBeLessThan(8);
  await sleep(1000);
  expect(starts).toBe(before);
});

test('a restart that fails is retried', async () => {
  let starts = 0;
  const start = async () => {
    starts += 1;
    if (starts === 2) throw new Error('not now');
    return child('sleep', starts === 1 ? '0.05' : '64');
  };
  const report = vi.fn();
  const it = await supervise('it', start, { report });
  await vi.waitUntil(() => starts === 3, 15_000);
  expect(report).toHaveBeenCalledWith('it could not be started: not now');
  await it.stop(1000);
});

test('a program that ignores the request to stop is killed after the timeout', async () => {
  const stubborn = child('sh', '-c', 'trap "" TERM; echo up; while :; do sleep 0.1; done');
  await vi.waitUntil(() => readFileSync(join(dir, 'log'), 'utf8').includes('up'), 15_000);
  await stubborn.stop(400);
  expect(await stubborn.exited).toBe('signal SIGKILL');
});
