import { expect, it } from 'vitest';
import { readRules, readTags, readTexts, type Texts, untested } from '../../tools/generate/contract-rules.ts';

/**
 * Tests that each rule of docs/contract has a test, and that what code and documents cite as `contract: …` is a rule or
 * a page. tools/generate/pages.test.ts tests that docs/contract/rules.md has these rules and tests.
 */
const texts = readTexts(
  '*.{md,yml}',
  '{bench,cli,clients,deploy,docs,examples,libs,services,tests,tools}/**/*.{ts,mjs,py,sql,md,yaml}',
);
const here = 'tests/documents/contract.test.ts';

const withoutTests = Object.keys(untested);

/** Everything that is wrong with the rules, their tests, and what cites them. */
function findings(all: Texts): string[] {
  const rules = readRules(all);
  const ids = rules.map(({ id }) => id);
  const found = [
    ...ids.filter((id, i) => ids.indexOf(id) < i).map((id) => `${id} is two rules`),
    ...rules.filter(({ id, page }) => !new RegExp(`^${page}-\\d+$`).test(id)).map(({ id }) => `${id} is no name`),
  ];
  const tags = Object.entries(all).flatMap(([file, text]) => (file.endsWith('.test.ts') ? readTags(file, text) : []));
  for (const { file, title, rules: named } of tags)
    if (title === undefined) found.push(`${file}: ${named.join(', ')} is not in the first line of a test`);
  const tested = new Set(tags.flatMap(({ rules: named }) => named));
  for (const { id, isPlanned } of rules) {
    const isListed = withoutTests.includes(id);
    if (!tested.has(id) && !isListed && !isPlanned) found.push(`${id} has no test`);
    if (tested.has(id) && (isListed || isPlanned))
      found.push(`${id} has a test, so it is neither planned nor untested`);
    if (isListed && isPlanned) found.push(`${id} is planned, so it needs no reason`);
  }
  const known = new Set([...ids, ...rules.map(({ page }) => page)]);
  found.push(...withoutTests.filter((id) => !known.has(id)).map((id) => `${id} is untested, but no rule`));
  for (const [file, text] of Object.entries(all)) {
    if (file === here) continue;
    const cited = [...text.matchAll(/^ *\/\/ contract: (.+)$/gm), ...text.matchAll(/\(contract:(\s[^)]*)\)/g)];
    // A citation in parentheses may continue in the next line of its comment.
    const names = cited.flatMap(([, list = '']) =>
      list
        .replace(/\n *(\*|\/\/|--|#)/g, '')
        .trim()
        .split(/,\s+/),
    );
    for (const name of names) if (!known.has(name)) found.push(`${file} cites ${name}, which is no rule and no page`);
    if (/\b(interface|contract)\.md\b/.test(text))
      found.push(`${file} names a document that is not in this repository`);
  }
  return found;
}

it('each rule has a test, and each citation names a rule or a page', () => {
  expect(findings(texts)).toEqual([]);
});

it('requirements of ASVS are named in the first lines of tests, by their numbers', () => {
  const tags = Object.entries(texts).flatMap(([file, text]) =>
    file.endsWith('.test.ts') && file !== here ? readTags(file, text, 'asvs') : [],
  );
  const written = Object.entries(texts).flatMap(([file, text]) =>
    file.endsWith('.test.ts') && file !== here ? [...text.matchAll(/^ *\/\/ asvs:/gm)] : [],
  );
  expect(tags.length).toBeGreaterThan(30);
  expect(written).toHaveLength(tags.length);
  const wrong = tags.filter(
    ({ title, rules }) => title === undefined || rules.some((id) => !/^([1-9]|1[0-7])\.\d{1,2}\.\d{1,2}$/.test(id)),
  );
  expect(wrong).toEqual([]);
  const planted = `${'test'}('a', () => {\n  // contract: lists-2\n  // asvs: 1.2.3\n`;
  expect(readTags('x', planted, 'asvs')).toEqual([{ rules: ['1.2.3'], file: 'x', title: 'a' }]);
});

it('every page is in README.md', () => {
  const pages = Object.keys(texts).flatMap((path) => /^docs\/contract\/([a-z-]+)\.md$/.exec(path)?.[1] ?? []);
  expect(new Set(readRules(texts).map(({ page }) => page))).toEqual(new Set(pages.filter((page) => page !== 'rules')));
});

const page = 'docs/contract/lists.md';
const test = 'tests/contract/lists.e2e.test.ts';
const code = 'libs/postgres/keyset.ts';
it.each([
  ['a rule without a test', page, '', '- **lists-99** New.\n', 'lists-99 has no test'],
  ['a rule twice', page, '', '- **lists-7** Again.\n', 'lists-7 is two rules'],
  ['a rule of another page', page, '**lists-7**', '**money-99**', 'money-99 is no name'],
  ['a rule that is gone', page, '**lists-2**', '**lists-98**', `${test} cites lists-2, which is no rule and no page`],
  ['a planned rule with a test', page, '**lists-2**', '**lists-2** *(planned)*', /^lists-2 has a test/],
  ['a test that is gone', test, '// contract: lists-3', '', 'lists-3 has no test'],
  [
    'a comment outside a test',
    test,
    '// contract: lists-3',
    '\n// contract: lists-3',
    /lists-3 is not in the first line/,
  ],
  ['a citation of no rule', code, '(contract: lists', '(contract: lists-97', /cites lists-97/],
  ['a citation over two lines', code, '(contract: lists', '(contract:\n * pages', /cites pages/],
  ['a document outside', code, '(contract: lists', '(interface.md', /names a document that is not/],
])('finds %s', (_, file, before, after, finding) => {
  expect(texts[file]).toContain(before);
  const planted = { ...texts, [file]: (texts[file] ?? '').replace(before, after) };
  expect(findings(planted)).toContainEqual(typeof finding === 'string' ? finding : expect.stringMatching(finding));
});
