import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PROJECT } from '../../tools/local/local-dir.ts';
import { notHere, options, say } from '../suites/options.ts';
import { startBank } from '../support/bank.ts';
import { fuzz, installSchemathesis } from './schemathesis.ts';

/**
 * The part of `npm run test:attacks` that `npm run test:all` does not run: requests that Schemathesis generates from the
 * OpenAPI document (`--cases N`, 20,000 by default). Without Python it is skipped.
 */
test('Schemathesis finds no operation that breaks its description, and no response is 5xx', async (context) => {
  const program = await installSchemathesis(join(PROJECT, '.local')).catch((error: Error) => error);
  if (program instanceof Error) return notHere(context, program.message);
  const dir = mkdtempSync(join(tmpdir(), 'core-banking-attacks-'));
  const bank = await startBank({ webhooks: 1 });
  try {
    const { cases, statuses, failed, output } = await fuzz(program, bank, dir, {
      cases: Number(options.cases ?? 20_000),
      seed: Number(options.seed ?? 1),
      say,
    });
    say(`${cases} cases`);
    if (failed.length > 0) {
      writeFileSync(join(dir, 'schemathesis.log'), output);
      say(`${output.slice(0, 20_000)}\nthe whole output is in ${dir}`);
    }
    expect(failed).toEqual([]);
    expect(Object.keys(statuses).filter((status) => status >= '500')).toEqual([]);
    rmSync(dir, { recursive: true });
  } finally {
    await bank.stop();
  }
});
