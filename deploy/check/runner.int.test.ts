import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { type Part, run } from './check.ts';
import { runScript } from './kubernetes.ts';
import { createRunner, type Run } from './runner.ts';

/**
 * Tests that only a part that passes its checks has passed: parts that hang, end early, check nothing, or report
 * success wrongly have failed.
 */
const dir = mkdtempSync(join(tmpdir(), 'check-runner-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const part = (work: Part['run'], more: Partial<Part> = {}): Part => ({
  name: 'a part',
  needsEngine: false,
  planted: { defect: 'a defect', foundBy: 'a step', says: /7 too much/ },
  run: work,
  ...more,
});
const good = part(async (check) => void (await check.step('a step', async () => 'done')));

async function outcome(
  parts: Part[],
  more: Partial<Run> = {},
): Promise<{ code: number; last: string; lines: string[] }> {
  const lines: string[] = [];
  const runner = createRunner({
    say: (line) => void lines.push(line),
    dir,
    cache: dir,
    strict: false,
    selfTest: false,
    prepareEngine: async () => undefined,
    ...more,
  });
  await runner.runParts(parts);
  const code = await runner.end();
  return { code, last: lines.at(-1) ?? '', lines };
}

function script(text: string, limitMs = 30_000): Part {
  const file = join(dir, `${Math.random()}.sh`);
  writeFileSync(file, `${text}\n`);
  return part((check) => runScript(check, 'a script', file, limitMs));
}

const passes = { code: 0, last: '1 passed, 0 failed' };
const fails = { code: 1, last: '0 passed, 1 failed' };

test('a part whose steps pass has passed', async () => {
  expect(await outcome([good])).toMatchObject(passes);
});

test.each<[string, Part]>([
  ['fails in a step', part(async (check) => check.step('a step', () => Promise.reject(new Error('no'))))],
  ['rejects between its steps', part(() => Promise.reject(new Error('the API server is gone')))],
  [
    'throws before it waits for anything',
    part(() => {
      throw new Error('no');
    }),
  ],
  ['has no step', part(async () => undefined)],
  ['hangs', part(() => new Promise(() => undefined), { limitMs: 50 })],
  ['hangs in a step', part((check) => check.step('a step', () => new Promise<void>(() => undefined)), { limitMs: 50 })],
])('a part that %s has failed, once', async (_what, bad) => {
  expect(await outcome([bad])).toMatchObject(fails);
});

test('a part that rejects after a passed step has failed, and the following parts run', async () => {
  const dies = part(async (check) => {
    await check.step('a step', async () => undefined);
    throw new Error('the API server is gone');
  });
  expect(await outcome([dies, good])).toMatchObject({ code: 1, last: '2 passed, 1 failed' });
});

test('steps after the time limit of a part are not counted', async () => {
  const late = part(
    async (check) => {
      await sleep(100);
      await check.step('a step', async () => undefined);
    },
    { limitMs: 30 },
  );
  const { lines } = await outcome([late, part(async (check) => check.step('waits for the other', () => sleep(150)))]);
  expect(lines.at(-1)).toBe('1 passed, 1 failed');
});

test.each([
  ['that is killed at its time limit', 'sleep 60; echo "1 passed, 0 failed"'],
  ['whose children outlive it', 'sleep 60 & echo "3 passed, 0 failed"; wait'],
  ['that dies', 'kill -9 $$'],
  ['that prints nothing', 'exit 0'],
  ['that checked nothing', 'echo "0 passed, 0 failed"'],
  ['that ends well before its last line', 'echo "  ✓ one thing"; exit 0'],
  ['that says that something failed, and ends well', 'echo "5 passed, 1 failed"'],
  ['that is not there', 'exec /nowhere/at/all'],
])('a script %s has failed', async (_what, text) => {
  expect(await outcome([script(text, 1_000)])).toMatchObject(fails);
});

test("a script's exit code decides: passed, or skipped if it is not possible here, which is a failure under CI_STRICT=1", async () => {
  expect(await outcome([script('echo "2 passed, 0 failed"')])).toMatchObject(passes);
  const without = script('echo "there is no Go"; exit 3');
  expect(await outcome([without, good])).toMatchObject({ code: 0, last: '1 passed, 0 failed, 1 skipped' });
  expect(await outcome([without, good], { strict: true })).toMatchObject({ code: 1, last: '1 passed, 1 failed' });
});

test('a run fails if everything was skipped or no part ran', async () => {
  expect((await outcome([part(async (check) => check.skip('all', 'no engine'))])).code).toBe(1);
  expect(await outcome([])).toMatchObject(fails);
});

test('an engine that fails to start is a failure; parts that need it are skipped, others run', async () => {
  const needs = part(good.run, { needsEngine: true });
  expect(
    await outcome([needs, good], { prepareEngine: () => Promise.reject(new Error('dockerd died')) }),
  ).toMatchObject({ code: 1, last: '1 passed, 1 failed, 1 skipped' });
});

test('a failing clean-up is a failure', async () => {
  const untidy = part(async (check) => {
    check.onEnd(() => Promise.reject(new Error('still there')));
    await check.step('a step', async () => undefined);
  });
  expect(await outcome([untidy])).toMatchObject({ code: 1, last: '1 passed, 1 failed' });
});

test('a part is cleaned up before the next one begins, in reverse order', async () => {
  const seen: string[] = [];
  const named = (name: string) =>
    part(async (check) => {
      for (const n of [1, 2]) check.onEnd(async () => void seen.push(`${name}: clean-up ${n}`));
      await check.step(name, async () => void seen.push(name));
    });
  await outcome([named('a'), named('b')]);
  expect(seen).toEqual(['a', 'a: clean-up 2', 'a: clean-up 1', 'b', 'b: clean-up 2', 'b: clean-up 1']);
});

describe('--self-test', () => {
  const finds = (title: string, why: string) =>
    part(async (check) => check.step(title, () => Promise.reject(new Error(why))));
  test('a part that finds the planted defect passes', async () => {
    expect(await outcome([finds('a step', 'the balance is 7 too much')], { selfTest: true })).toMatchObject(passes);
  });
  test.each([
    ['finds nothing', good],
    ['fails elsewhere', finds('another step', 'the balance is 7 too much')],
    ['fails for another reason', finds('a step', 'the API server is gone')],
    ['rejects', part(() => Promise.reject(new Error('no')))],
    ['hangs', part(() => new Promise(() => undefined), { limitMs: 50 })],
  ])('a part fails that %s', async (_what, bad) => {
    expect(await outcome([bad], { selfTest: true })).toMatchObject(fails);
  });
});

test('after its time limit a program is killed with its child processes, and may clean up first', async () => {
  const file = join(dir, 'cleared-up');
  const began = performance.now();
  await expect(
    run('bash', ['-c', `trap 'touch ${file}' EXIT; sleep 61.5 & sleep 60`], { timeoutMs: 3_000 }),
  ).rejects.toThrow('was killed after 3 s');
  expect(performance.now() - began).toBeLessThan(30_000);
  expect(spawnSync('test', ['-e', file]).status).toBe(0);
  expect(spawnSync('pgrep', ['-fx', 'sleep 61.5']).status).toBe(1);
});

test('a run that is ended by a signal has failed, and ends the scripts of its part', async () => {
  // The part needs Go for its tools. This fake `go` hangs.
  writeFileSync(join(dir, 'go'), `#!/bin/sh\ntouch ${join(dir, 'started')}\nexec sleep 62.5\n`, { mode: 0o755 });
  const env = { ...process.env, XDG_CACHE_HOME: dir, PATH: `${dir}:${process.env['PATH']}` };
  const child = spawn(process.execPath, [join(import.meta.dirname, 'run.ts'), '--only', 'kubernetes'], { env });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await expect.poll(() => existsSync(join(dir, 'started')), { timeout: 60_000 }).toBe(true);
  child.kill('SIGTERM');
  const [code] = (await once(child, 'close')) as [number];
  expect([code, said]).toEqual([1, expect.stringMatching(/ended by SIGTERM\n\d+ passed, [1-9]\d* failed/)]);
  expect(spawnSync('pgrep', ['-fx', 'sleep 62.5']).status).toBe(1);
}, 90_000);

test('the exit code reports an unknown part', () => {
  const { status, stderr } = spawnSync(process.execPath, [join(import.meta.dirname, 'run.ts'), '--only', 'nothing'], {
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([1, expect.stringContaining('there is no part nothing')]);
});
