import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** One word for one thing: what pages and printed statements must not say, and what they say instead. */
const root = join(import.meta.dirname, '..', '..');
const instead: readonly (readonly [not: RegExp, but: string])[] = [
  [/\b(?:Paid|Money) (?:in|out)\b/, 'In, Out'],
  [/\bBooked\b/, 'Posted'],
  [/\b(?:Begin again|Change or cancel)</, 'Change'],
  [/\bLeave it<|\bAnother customer\b/, 'Leave, Next customer'],
  [/\(UTC\)|\bUTC, to the/, "times of the bank's zone"],
  [/\bto before \$/, 'until'],
  [/\bopen another client\b/, 'create another client'],
  [/\bSome entries\b/, 'how many entries'],
  [/\bMust be unique\b/, 'what the field is for'],
];
const sources = [
  ...globSync('services/dashboard/{html,pages}/**/*.{ts,js}', { cwd: root }),
  'services/gateway/api/printed-statement.ts',
].filter((file) => !file.endsWith('.test.ts'));

function wrongWords(file: string, text: string): string[] {
  return text
    .split('\n')
    .flatMap((line, i) =>
      instead
        .filter(([not]) => not.test(line))
        .map(([not, but]) => `${file}:${i + 1}: ${not.exec(line)?.[0]}; write: ${but}`),
    );
}

it('pages use one word for one thing', () => {
  expect(sources.length).toBeGreaterThan(50);
  expect(sources.flatMap((file) => wrongWords(file, readFileSync(join(root, file), 'utf8')))).toEqual([]);
  expect(wrongWords('x', '<th>Paid in</th>\n<th>Booked</th>\n`Start of the hour (UTC)`')).toHaveLength(3);
});
