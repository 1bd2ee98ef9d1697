import { join } from 'node:path';
import { type Check, expect, notHere, type Part, run } from './check.ts';

const hourMs = 60 * 60_000;

/** Runs one of the scripts whose last line is "N passed, N failed". Rejects with all that it said where one failed. */
async function script(check: Check, title: string, name: string): Promise<void> {
  const args = [join(import.meta.dirname, name), join(check.cache, 'kubernetes')];
  const startedAt = performance.now();
  const { code, stdout } = await run('bash', args, { env: check.env, timeoutMs: hourMs, codes: [0, 1, notHere] });
  const last = stdout.trim().split('\n').at(-1) ?? '';
  if (code === notHere) return check.skip(title, last);
  await check.step(title, async () => {
    expect(code === 0, stdout);
    return `${last}, after ${((performance.now() - startedAt) / 1000).toFixed(0)} s`;
  });
}

/** The chart against a Kubernetes API server, on nodes that run nothing. */
export const kubernetes: Part = {
  name: 'kubernetes',
  needsEngine: false,
  run: (check) => script(check, 'the chart against an API server', 'kubernetes.sh'),
};

/** The chart on real nodes and pods, with callers while it is rolled out, scaled, drained and killed. */
export const pods: Part = {
  name: 'pods',
  needsEngine: true,
  run: (check) => script(check, 'the chart on pods', 'kubernetes-pods.sh'),
};
