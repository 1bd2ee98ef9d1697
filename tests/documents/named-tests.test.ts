import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** Tests that the tests and files named in docs/security (by their path or its end) exist. */
const root = join(import.meta.dirname, '..', '..');
const files = globSync('{cli,clients,deploy,docs,libs,services,tests,tools}/**', { cwd: root }).map(
  (file) => `/${file}`,
);

/** Names such as `tests/attacks/tokens`, `access/issuers`, and `csv.test.ts`. A folder means all tests in it. */
const named = /(?<![\w/:.`<@-])(?:[\w-]+(?:\/[\w-]+)+(?:\.[\w-]+)*|[\w-]+(?:\.[\w-]+)*\.ts)/g;

it.each(['asvs', 'threat-model'])('docs/security/%s.md names existing tests and files', (name) => {
  const text = readFileSync(join(root, 'docs', 'security', `${name}.md`), 'utf8');
  const names = [...text.matchAll(/^- [\s\S]*?(?=\n- |\n\n)/gm)].flatMap(([one]) =>
    (one.match(named) ?? []).map((file) => `/${file}`),
  );
  expect(names.length).toBeGreaterThan(20);
  const isTest = (file: string) => file.endsWith('.test.ts');
  const isThere = (one: string) =>
    files.some(
      (file) => (isTest(file) && (file.includes(`${one}.`) || file.includes(`${one}/`))) || file.endsWith(one),
    );
  expect(names.filter((one) => !isThere(one))).toEqual([]);
});
