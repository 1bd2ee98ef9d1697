import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { pages } from './pages.ts';

test.each(Object.entries(pages))('docs/%s is what the code says (else: npm run generate)', (name, page) => {
  expect(readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')).toBe(page());
});
