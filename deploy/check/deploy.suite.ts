/**
 * `npm run check:deploy`: tests the delivered files for operations by using them on this machine, and cleans up
 * afterwards. Missing tools are installed or built if possible (as root, from packages). Otherwise the check is skipped
 * with the reason; with CI_STRICT=1 a skip is a failure. --only selects parts, --self-test plants a defect in each part,
 * which its check must find, and --keep leaves the engine, its images, and the caches for the next run.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, type TestContext, test } from 'vitest';
import { chosen, notHere, options, say } from '../../tests/suites/options.ts';
import { alertRules } from './alerts.ts';
import { type Part, runPart, type Setting } from './check.ts';
import { compose } from './compose.ts';
import { prepareEngine } from './engine.ts';
import { image } from './image.ts';
import { keycloak } from './keycloak.ts';
import { kubernetes, pods, trial } from './kubernetes.ts';
import { outages } from './outages.ts';
import { restore } from './restore.ts';
import { scaling } from './scaling.ts';
import { testcontainers } from './testcontainers.ts';
import { traces } from './traces.ts';

const parts = chosen([
  image,
  compose,
  testcontainers,
  alertRules,
  traces,
  keycloak,
  scaling,
  outages,
  restore,
  kubernetes,
  trial,
  pods,
]);
const partLimitMs = 2 * 60 * 60_000;
const undoLimitMs = 5 * 60_000;

const dir = mkdtempSync(join(tmpdir(), 'core-banking-check-'));
const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'core-banking');
mkdirSync(cache, { recursive: true });
const shared = { say, dir, cache, env: {}, standIns: [] as string[], selfTest: options['self-test'] === true };
const toSetting = (context: TestContext): Setting => ({
  ...shared,
  signal: context.signal,
  onEnd: (undo) => context.onTestFinished(undo, undoLimitMs),
});
const stopEngine: (() => Promise<void>)[] = [];
let withoutEngine: string | undefined = 'the engine could not be prepared';

const engine: Part = {
  name: 'engine',
  needsEngine: false,
  planted: { defect: 'nothing', foundBy: '', says: /^/ },
  async run(check) {
    withoutEngine = await prepareEngine(check, { cache, keep: options.keep === true });
    if (withoutEngine !== undefined) check.skip('engine', withoutEngine);
  },
};

async function testPart(part: Part, context: TestContext, setting: Setting): Promise<void> {
  if (part.needsEngine && withoutEngine !== undefined) notHere(context, withoutEngine);
  const reasons = await runPart(part, setting);
  if (reasons.length > 0) notHere(context, reasons.join('; '));
}

if (parts.some(({ needsEngine }) => needsEngine))
  test('engine', (context) =>
    testPart(engine, context, {
      ...toSetting(context),
      selfTest: false,
      // It is there for all parts.
      onEnd: (undo) => void stopEngine.push(undo),
    }));

for (const part of parts)
  test(part.name, { timeout: part.limitMs ?? partLimitMs }, (context) => testPart(part, context, toSetting(context)));

afterAll(async () => {
  for (const stop of stopEngine.toReversed()) await stop();
  rmSync(dir, { recursive: true, force: true });
  if (shared.standIns.length > 0)
    say(
      `\nStand-ins, built here under the official names, which cannot be pulled: ${shared.standIns.join(', ')}. What the official images do otherwise was not seen.`,
    );
}, undoLimitMs);
