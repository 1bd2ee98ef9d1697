import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** Tests that the contributor guide names files and lines that are there. */
const root = join(import.meta.dirname, '..', '..');

it('each row that the contributor guide says to write next to is in its file', () => {
  const guide = readFileSync(join(root, 'docs/guides/contributor.md'), 'utf8');
  const rows = [...guide.matchAll(/^- `([^`]+)`:[\s\S]*?\(next to\s(`[\s\S]+?`)\)$/gm)];
  const wrong = rows.flatMap(([, file = '', places = '']) => {
    const path = join(root, file);
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    return [...places.matchAll(/`([^`]+)`/g)].flatMap(([, place = '']) =>
      text.includes(place) ? [] : [`${file}: ${place}`],
    );
  });
  expect(wrong).toEqual([]);
  expect(rows.length).toBe(16);
});
