import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const fixture = fileURLToPath(new URL('./test/run.fixture.ts', import.meta.url));

interface Outcome {
  code: number | null;
  out: string[];
  err: string;
  /** What the line of the start says. */
  mode: string | undefined;
}

/** Runs the fixture; `signals` are sent 50 ms apart once it has started. */
async function outcome(
  behaviour: string,
  signals: NodeJS.Signals[] = [],
  env: Record<string, string> = {},
): Promise<Outcome> {
  const child = spawn(process.execPath, [fixture, behaviour], {
    env: { ...process.env, LOG_LEVEL: 'info', ...env },
  });
  let out = '';
  let err = '';
  child.stderr.on('data', (data: Buffer) => (err += data.toString()));
  child.stdout.on('data', (data: Buffer) => {
    const had = out.includes('"started"');
    out += data.toString();
    if (!had && out.includes('"started"')) signals.forEach((signal, n) => setTimeout(() => child.kill(signal), n * 50));
  });
  const guard = setTimeout(() => child.kill('SIGKILL'), 30_000);
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  clearTimeout(guard);
  const messages = out
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => String((JSON.parse(line) as { msg: string }).msg));
  const mode = /"mode":"(\w+)","msg":"started"/.exec(out)?.[1];
  return { code, out: messages, err, mode };
}

describe.concurrent('run', { timeout: 40_000 }, () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('%s stops in reverse order and exits with 0', async (signal) => {
    const { code, out, err, mode } = await outcome('', [signal]);
    expect(mode).toBe('trial');
    expect(out).toEqual(['started', 'stopping', 'second stopped', 'first stopped', 'stopped']);
    expect([code, err]).toEqual([0, '']);
  });

  test('further signals do not interrupt the shutdown', async () => {
    const { code, out } = await outcome('slow', ['SIGINT', 'SIGTERM', 'SIGINT']);
    expect(out).toEqual(['started', 'stopping', 'second stopped', 'first stopped', 'stopped']);
    expect(code).toBe(0);
  });

  test('a component that fails to stop, or hangs, does not prevent the others from stopping', async () => {
    const failed = await outcome('stop-fails', ['SIGTERM']);
    expect(failed.out).toEqual(['started', 'stopping', 'a component did not stop cleanly', 'first stopped', 'stopped']);
    const hung = await outcome('hang', ['SIGTERM']);
    expect(hung.out).toEqual(['started', 'stopping', 'a component did not stop cleanly', 'first stopped', 'stopped']);
    expect([failed.code, hung.code]).toEqual([0, 0]);
  });

  test.each(['uncaught', 'unhandled'])(
    'an %s error is logged, everything is stopped, and the exit code is 1',
    async (behaviour) => {
      const { code, out } = await outcome(behaviour);
      expect(out).toEqual(['started', 'uncaught error, stopping', 'second stopped', 'first stopped', 'stopped']);
      expect(code).toBe(1);
    },
  );

  test('a failed start prints the reason, stops everything, and exits with 1', async () => {
    const { code, out, err } = await outcome('start-fails');
    expect(err).toBe('fixture cannot start: connect ECONNREFUSED 127.0.0.1:1\n');
    expect(out).toEqual(['second stopped', 'first stopped']);
    expect(code).toBe(1);
  });

  test('an invalid configuration is reported, including that of the process itself', async () => {
    const own = await outcome('bad-config');
    expect(own.err).toBe(
      'fixture cannot start: the configuration is not valid:\n  RATE: must be a whole number\n  OTHER: is missing\n',
    );
    const common = await outcome('', [], { LOG_LEVEL: 'loud' });
    expect(common.err).toContain('fixture cannot start: the configuration is not valid:\n  LOG_LEVEL: ');
    expect([own.code, common.code]).toEqual([1, 1]);
  });

  test.runIf(process.platform === 'linux')(
    'a full disk under the log neither ends the process nor delays its stop',
    async () => {
      const child = spawn(process.execPath, [fixture, 'logs'], {
        env: { ...process.env, LOG_LEVEL: 'info' },
        stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
      });
      const guard = setTimeout(() => child.kill('SIGKILL'), 15_000);
      const exit = once(child, 'exit');
      const running = new Promise<string>((resolve) => child.stderr?.once('data', (text) => resolve(String(text))));
      expect(await Promise.race([running, exit])).toBe('still running');
      child.kill('SIGTERM');
      expect(await exit).toEqual([0, null]);
      clearTimeout(guard);
    },
  );
});
