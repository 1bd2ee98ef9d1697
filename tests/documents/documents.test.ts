import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { postgresVersions } from '#libs/postgres/version.ts';
import { pages } from '../../tools/generate/pages.ts';
import { firstRequests } from '../../tools/local/connection.ts';

/** Tests that the links between documents lead somewhere, and that the documents stay as short as they are. */
const root = join(import.meta.dirname, '..', '..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const documents = globSync('{*.md,{clients,deploy,docs,examples,libs}/**/*.md}', { cwd: root }).filter(
  (file) => !/node_modules|\/build\//.test(file),
);

/** The anchors of headings, as GitHub forms them. */
function listAnchors(text: string): string[] {
  return [...text.replace(/```[\s\S]*?```/g, '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function brokenLinks(file: string, text: string): string[] {
  const links = [...text.replace(/```[\s\S]*?```|`[^`\n]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g)].map(
    ([, link = '']) => link,
  );
  return links
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? file : join(dirname(file), path);
      if (!existsSync(join(root, target))) return true;
      if (anchor === undefined) return false;
      return (
        statSync(join(root, target)).isDirectory() || !listAnchors(path === '' ? text : read(target)).includes(anchor)
      );
    })
    .map((link) => `${file}: ${link}`);
}

it('every link leads to a file and a heading that exist', () => {
  expect(documents.length).toBeGreaterThan(50);
  expect(documents.flatMap((file) => brokenLinks(file, read(file)))).toEqual([]);
  expect(brokenLinks('README.md', '[a](docs/nowhere.md) [b](docs/events.md#nowhere) [c](#nowhere)')).toHaveLength(3);
});

/** Pages that programs write: `npm run generate` and `npm run bench -- --write-docs`. */
const generated = new Set([...Object.keys(pages), 'performance/results.md'].map((name) => join('docs', name)));
const mostWords = 45_000;
const mostLines = 40;
const mostColumns = 120;

const words = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length;

function tooLong(file: string, text: string): string[] {
  const lines = text.trimEnd().split('\n');
  return [
    ...(lines.length > mostLines ? [`${file} has ${lines.length} lines`] : []),
    ...lines.flatMap((line, i) => ([...line].length > mostColumns ? [`${file}:${i + 1} is too long`] : [])),
  ];
}

it(`docs has at most ${mostWords} words that somebody has written`, () => {
  const written = documents.filter((file) => file.startsWith('docs/') && !generated.has(file));
  expect(written.length).toBeGreaterThan(50);
  expect(written.reduce((sum, file) => sum + words(read(file)), 0)).toBeLessThanOrEqual(mostWords);
  expect(words('| two\n  words, ')).toBe(3);
});

it(`a decision has at most ${mostLines} lines of ${mostColumns} columns`, () => {
  const decisions = documents.filter((file) => /^docs\/decisions\/\d/.test(file));
  expect(decisions.length).toBeGreaterThan(30);
  expect(decisions.flatMap((file) => tooLong(file, read(file)))).toEqual([]);
  expect(tooLong('x', `${'a\n'.repeat(41)}`)).toEqual(['x has 41 lines']);
  expect(tooLong('x', `a\n${'é'.repeat(121)}\n`)).toEqual(['x:2 is too long']);
});

it('the requests of README.md are those that npm start prints', () => {
  expect(read('README.md')).toContain(`\`\`\`sh\n${firstRequests}\`\`\`\n`);
});

it('README.md names the version of PostgreSQL that the migrations need', () => {
  expect(read('README.md')).toContain(
    `PostgreSQL ${postgresVersions.oldest} to ${postgresVersions.newest} and Kafka 4`,
  );
});
