import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ConfigError, loadConfig } from '#libs/service/config.ts';
import { programs } from './configuration.ts';
import { pages } from './pages.ts';

test.each(Object.entries(pages))('docs/%s is up to date with the code (else: npm run generate)', (name, page) => {
  expect(readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')).toBe(page());
});

/** Returns the errors of loadConfig, by variable. */
function problems(schema: (typeof programs)[string], env: Record<string, string>): string[] {
  try {
    loadConfig(schema, { BANK_MODE: 'trial', ...env });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(':')[0] ?? '');
  }
}

test.each(Object.entries(programs))('%s reports all missing and all invalid variables together', (_program, schema) => {
  // An invalid mode is production, which has more requirements.
  const names = Object.keys(schema.shape).filter((name) => name !== 'BANK_MODE');
  const required = names.filter((name) => !schema.shape[name]?.safeParse(undefined).success);
  expect(problems(schema, {})).toEqual(required);
  const choosy = names.filter((name) => !schema.shape[name]?.safeParse('\u0000').success);
  expect(problems(schema, Object.fromEntries(names.map((name) => [name, '\u0000'])))).toEqual(choosy);
});
