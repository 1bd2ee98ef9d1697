import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';

/** Tests that the links between documents lead somewhere. */
const root = join(import.meta.dirname, '..', '..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const documents = globSync('{*.md,{clients,deploy,docs,examples,libs}/**/*.md}', { cwd: root }).filter(
  (file) => !file.includes('node_modules'),
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
