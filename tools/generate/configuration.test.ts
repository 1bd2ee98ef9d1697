import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test('at most 55 settings', () => {
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
  const names = new Set([...page.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name));
  expect(names.size).toBeGreaterThan(40);
  expect(names.size).toBeLessThanOrEqual(55);
});
