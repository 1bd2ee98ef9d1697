import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RulesetDefinition, Spectral } from '@stoplight/spectral-core';
import { oas } from '@stoplight/spectral-rulesets';
import { expect, it } from 'vitest';
import { have } from '../support/programs.ts';

/** What other people's programs say of docs/openapi.json. Redocly's check is in tools/generate/openapi. */
const file = join(import.meta.dirname, '..', '..', 'docs', 'openapi.json');

it('Spectral reports no problems in the OpenAPI document', async () => {
  const spectral = new Spectral();
  spectral.setRuleset({ extends: [oas as RulesetDefinition] });
  const problems = await spectral.run(JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>);
  expect(problems.map(({ code, message, path }) => [code, message, path.join('.')])).toEqual([]);
}, 300_000);

it.runIf(have('Go'))(
  'kin-openapi, with which Go programs read it, takes the OpenAPI document and its examples',
  () => {
    const cwd = join(import.meta.dirname, 'openapi-go');
    const { status, stderr } = spawnSync('go', ['run', '.', file], { cwd, encoding: 'utf8' });
    expect(status, stderr).toBe(0);
  },
  300_000,
);
