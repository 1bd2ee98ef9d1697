/**
 * `npm run check:deploy`: tests the delivered files for operations by using them on this machine, and cleans up
 * afterwards. Missing tools are installed or built if possible (as root, from packages). Otherwise the check is skipped
 * with the reason; with CI_STRICT=1 a skip is a failure. `--help` lists parts and options.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { stopAllChildren } from '../../tools/local/child.ts';
import { prepareEngine } from './engine.ts';
import { parts } from './parts.ts';
import { createRunner } from './runner.ts';

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    keep: { type: 'boolean', default: false },
    'self-test': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (options.help) {
  console.log(`npm run check:deploy [-- OPTIONS]
  --only A,B   these parts alone, of ${parts.map(({ name }) => name).join(', ')}
  --keep       leave the engine, its images and the caches for the next run
  --self-test  plant a defect in each part, which its check must find
CI_STRICT=1 counts what this machine cannot run as failed.`);
  process.exit(0);
}
const wanted = options.only?.split(',');
const unknown = wanted?.filter((name) => !parts.some((part) => part.name === name)) ?? [];
if (unknown.length > 0) {
  console.error(`there is no part ${unknown.join(', ')}; there are ${parts.map(({ name }) => name).join(', ')}`);
  process.exit(1);
}

const dir = mkdtempSync(join(tmpdir(), 'core-banking-check-'));
const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'core-banking');
mkdirSync(cache, { recursive: true });
const runner = createRunner({
  say: (line) => void process.stdout.write(`${line}\n`),
  dir,
  cache,
  strict: process.env['CI_STRICT'] === '1',
  selfTest: options['self-test'],
  prepareEngine: (check) => prepareEngine(check, { cache, keep: options.keep }),
});
runner.onEnd(async () => rmSync(dir, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    runner.onEnd(() => Promise.reject(new Error(`ended by ${signal}`)));
    void stopAllChildren(30_000)
      .then(() => runner.end())
      .finally(() => process.exit(1));
  });
await runner.runParts(parts.filter(({ name }) => wanted?.includes(name) ?? true));
const code = await runner.end();
// A part that exceeded its time limit may still keep the process running. The process exits only after the last lines
// were written to a pipe.
process.stdout.write('', () => process.exit(code));
