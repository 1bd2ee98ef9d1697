import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type Part, run, runPart, type Setting } from './check.ts';
import { runScript } from './kubernetes.ts';

/** Tests that only a part that passes its checks has passed. vitest ends the ones that hang. */
const dir = mkdtempSync(join(tmpdir(), 'check-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const part = (work: Part['run']): Part => ({
  name: 'a part',
  needsEngine: false,
  planted: { defect: 'a defect', foundBy: 'a step', says: /7 too much/ },
  run: work,
});
/** The variables of this test's own vitest are not for the one that it starts. */
const outside = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST')));
/** `npm run check:deploy` */
const command = join(import.meta.dirname, '../../tests/suites/run.ts');
const good = part(async (check) => void (await check.step('a step', async () => 'done')));

/** Runs a part, and returns why it was not possible. */
function outcome(one: Part, more: Partial<Setting> = {}): Promise<string[]> {
  const setting = { say: () => undefined, dir, cache: dir, env: {}, standIns: [], selfTest: false };
  return runPart(one, { ...setting, signal: new AbortController().signal, onEnd: () => undefined, ...more });
}

function script(text: string, limitMs = 30_000): Part {
  const file = join(dir, `${Math.random()}.sh`);
  writeFileSync(file, `${text}\n`);
  return part((check) => runScript(check, 'a script', file, limitMs));
}

test('a part whose steps pass has passed', async () => {
  expect(await outcome(good)).toEqual([]);
});

test.each<[string, Part['run']]>([
  ['fails in a step', async (check) => check.step('a step', () => Promise.reject(new Error('no')))],
  ['rejects between its steps', () => Promise.reject(new Error('the API server is gone'))],
  [
    'throws before it waits for anything',
    () => {
      throw new Error('no');
    },
  ],
  ['has no step', async () => undefined],
])('a part that %s has failed', async (_what, work) => {
  await expect(outcome(part(work))).rejects.toThrow(/no|gone|checked nothing/);
});

test('after the time limit of a part no step begins, and none passes', async () => {
  const limit = new AbortController();
  const late = part(async (check) => check.step('a step', async () => limit.abort(new Error('out of time'))));
  await expect(outcome(late, { signal: limit.signal })).rejects.toThrow('out of time');
  await expect(outcome(good, { signal: limit.signal })).rejects.toThrow('out of time');
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
  await expect(outcome(script(text, 1_000))).rejects.toThrow(/ended with|was killed/);
});

test("a script's exit code decides: passed, or not possible here", async () => {
  expect(await outcome(script('echo "2 passed, 0 failed"'))).toEqual([]);
  expect(await outcome(script('echo "there is no Go"; exit 3'))).toEqual(['a script: there is no Go']);
});

describe('--self-test', () => {
  const finds = (title: string, why: string) =>
    part(async (check) => check.step(title, () => Promise.reject(new Error(why))));
  test('a part that finds the planted defect passes', async () => {
    expect(await outcome(finds('a step', 'the balance is 7 too much'), { selfTest: true })).toEqual([]);
  });
  test.each([
    ['finds nothing', good],
    ['fails elsewhere', finds('another step', 'the balance is 7 too much')],
    ['fails for another reason', finds('a step', 'the API server is gone')],
    ['rejects', part(() => Promise.reject(new Error('no')))],
  ])('a part fails that %s', async (_what, bad) => {
    await expect(outcome(bad, { selfTest: true })).rejects.toThrow('did not find the planted defect');
  });
});

test('after its time limit a program is killed with its child processes, and may clean up first', async () => {
  const file = join(dir, 'cleared-up');
  await expect(
    run('bash', ['-c', `trap 'touch ${file}' EXIT; sleep 61.5 & sleep 60`], { timeoutMs: 3_000 }),
  ).rejects.toThrow('was killed after 3 s');
  expect(spawnSync('test', ['-e', file]).status).toBe(0);
  expect(spawnSync('pgrep', ['-fx', 'sleep 61.5']).status).toBe(1);
});

test('a run that is ended by a signal has failed, and ends the scripts of its part', async () => {
  // The part needs Go for its tools. This fake `go` hangs.
  writeFileSync(join(dir, 'go'), `#!/bin/sh\ntouch ${join(dir, 'started')}\nexec sleep 62.5\n`, { mode: 0o755 });
  const env = { ...outside, XDG_CACHE_HOME: dir, PATH: `${dir}:${process.env['PATH']}` };
  const child = spawn(process.execPath, [command, 'deploy', '--only', 'kubernetes'], { env });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await expect.poll(() => existsSync(join(dir, 'started')), { timeout: 60_000 }).toBe(true);
  child.kill('SIGTERM');
  const [code] = (await once(child, 'close')) as [number];
  expect([code, said]).toEqual([1, expect.stringMatching(/ended by SIGTERM\n[^]*0 passed, 1 failed\n$/)]);
  expect(spawnSync('pgrep', ['-fx', 'sleep 62.5']).status).toBe(1);
}, 90_000);

test('the exit code reports an unknown part', () => {
  const { status, stdout } = spawnSync(process.execPath, [command, 'deploy', '--only', 'nothing'], {
    encoding: 'utf8',
    env: outside,
  });
  expect([status, stdout]).toEqual([1, expect.stringMatching(/there is no nothing[^]*0 passed, 1 failed\n$/)]);
});
