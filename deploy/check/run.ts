/**
 * `npm run check:deploy`: what is delivered for operations, run for real on this machine, and cleared away after it. What the
 * machine lacks is installed or built where that can be (as root, from packages), else skipped with its reason; with CI_STRICT=1
 * a skip is a failure. `--only image,compose` names parts, `--keep` leaves the engine, its images and the caches for the next run.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { alertRules } from './alerts.ts';
import type { Check, Part } from './check.ts';
import { compose } from './compose.ts';
import { prepareEngine } from './engine.ts';
import { image } from './image.ts';
import { kubernetes, pods } from './kubernetes.ts';
import { restore } from './restore.ts';
import { testcontainers } from './testcontainers.ts';

const parts: Part[] = [image, compose, testcontainers, alertRules, restore, kubernetes, pods];
const strict = process.env['CI_STRICT'] === '1';
const say = (line: string) => void process.stdout.write(`${line}\n`);

const { values: options } = parseArgs({ options: { only: { type: 'string' }, keep: { type: 'boolean', default: false } } });
const wanted = options.only?.split(',');
const unknown = wanted?.filter((name) => !parts.some((part) => part.name === name)) ?? [];

const counts = { passed: 0, failed: 0, skipped: 0 };
const undos: (() => Promise<void>)[] = [];

async function undoAll(): Promise<void> {
  for (let undo = undos.pop(); undo !== undefined; undo = undos.pop()) {
    await undo().catch((error: unknown) => {
      counts.failed += 1;
      say(`  ✗ could not clear up: ${(error as Error).message}`);
    });
  }
}

function createCheck(dir: string, cache: string): Check {
  return {
    env: {},
    standIns: [],
    dir,
    cache,
    async step(title, work) {
      const startedAt = performance.now();
      const line = (mark: string, rest = '') => say(`  ${mark} ${title}${rest} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
      try {
        const result = await work();
        counts.passed += 1;
        line('✓', typeof result === 'string' && result !== '' ? `: ${result}` : '');
        return result;
      } catch (error) {
        counts.failed += 1;
        line('✗');
        throw error;
      }
    },
    skip(title, reason) {
      counts[strict ? 'failed' : 'skipped'] += 1;
      say(`  ${strict ? '✗' : '-'} ${title}: skipped, ${reason}`);
    },
    onEnd: (undo) => void undos.push(undo),
  };
}

async function main(): Promise<void> {
  if (unknown.length > 0) throw new Error(`there is no part ${unknown.join(', ')}; there are ${parts.map(({ name }) => name).join(', ')}`);
  const chosen = parts.filter(({ name }) => wanted?.includes(name) ?? true);
  const dir = mkdtempSync(join(tmpdir(), 'core-banking-check-'));
  const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'core-banking');
  mkdirSync(cache, { recursive: true });
  undos.push(async () => rmSync(dir, { recursive: true, force: true }));
  const check = createCheck(dir, cache);
  let reason: string | undefined = 'nothing asked for it';
  if (chosen.some(({ needsEngine }) => needsEngine)) {
    say('\nengine');
    reason = await prepareEngine(check, { cache, keep: options.keep });
  }
  for (const part of chosen) {
    say(`\n${part.name}`);
    if (part.needsEngine && reason !== undefined) check.skip('all of it', reason);
    // The step that failed is counted already.
    else await part.run(check).catch((error: unknown) => say(`    ${(error as Error).message.replaceAll('\n', '\n    ')}`));
  }
  if (check.standIns.length > 0) say(`\nStand-ins, built here under the official names, which cannot be pulled: ${check.standIns.join(', ')}. What the official images do otherwise was not seen.`);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void undoAll().finally(() => process.exit(1)));
await main().catch((error: unknown) => {
  counts.failed += 1;
  say((error as Error).message);
});
await undoAll();
say(`${counts.passed} passed, ${counts.failed} failed${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''}`);
process.exitCode = counts.failed === 0 ? 0 : 1;
