import { join } from 'node:path';
import { type Check, expect, lastLine, notHere, type Part, run } from './check.ts';

const partMs = 2 * 60 * 60_000;

/**
 * Runs a script whose last line is "N passed, N failed", as one step. It passes only if the script
 * reports at least one passed check and no failed one. A script that was killed, or ended before its
 * checks, prints no such line.
 */
export async function runScript(check: Check, title: string, file: string, timeoutMs = partMs): Promise<void> {
  const args = [file, join(check.cache, 'kubernetes'), ...(check.selfTest ? ['self-test'] : [])];
  const startedAt = performance.now();
  const answered = run('bash', args, { env: check.env, timeoutMs, codes: [0, 1, notHere] });
  const unavailable = await answered.then(
    ({ code, stdout }) => (code === notHere ? lastLine(stdout) : undefined),
    () => undefined,
  );
  if (unavailable !== undefined) return check.skip(title, unavailable || 'no reason was given');
  await check.step(title, async () => {
    const { code, stdout, stderr } = await answered;
    const last = lastLine(stdout);
    expect(
      code === 0 && /^[1-9]\d* passed, 0 failed$/.test(last),
      `ended with ${code}, without "N passed, 0 failed":\n${stdout}${stderr}`,
    );
    return `${last}, after ${((performance.now() - startedAt) / 1000).toFixed(0)} s`;
  });
}

const ofApiServer = 'the chart against an API server';
const ofPods = 'the chart on pods';
const ofTrial = 'a trial on pods';

/** Tests the chart with a Kubernetes API server and simulated nodes. */
export const kubernetes: Part = {
  name: 'kubernetes',
  needsEngine: false,
  planted: { defect: 'a misspelled probe in the chart', foundBy: ofApiServer, says: /unknown field .*readinesProbe/ },
  run: (check) => runScript(check, ofApiServer, join(import.meta.dirname, 'kubernetes.sh')),
};

/** Tests the chart on real nodes and pods, with callers during rollout, scaling, drain, and kills. */
export const pods: Part = {
  name: 'pods',
  needsEngine: true,
  planted: { defect: 'a deposit that is posted twice', foundBy: ofPods, says: /planted: .*"each_once":false/ },
  run: (check) => runScript(check, ofPods, join(import.meta.dirname, 'kubernetes-pods.sh')),
};

/** Follows docs/kubernetes.md, A trial, as it is written, on real pods: from an empty cluster to the first deposit. */
export const trial: Part = {
  name: 'trial',
  needsEngine: true,
  planted: { defect: 'a broker that advertises another name', foundBy: ofTrial, says: /kafka/ },
  run: (check) => runScript(check, ofTrial, join(import.meta.dirname, 'kubernetes-trial.sh')),
};
