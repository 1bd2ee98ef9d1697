/**
 * Finds names that people confuse: with different case, accents, or word order, or with one or two wrong
 * letters. Pure.
 */

const splitWords = (name: string): string[] =>
  name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');

/** Returns how many letters must be added, removed, or replaced. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + Number(a[i - 1] !== b[j - 1]));
    row = next;
  }
  return row[b.length] ?? 0;
}

const lettersPerMistake = 6;

export function areSimilar(one: string, other: string): boolean {
  const [a, b] = [one, other].map((name) => splitWords(name).sort().join(' ')) as [string, string];
  const allowed = Math.floor(Math.min(a.length, b.length) / lettersPerMistake);
  // Comparing a very long name with a short one would take long.
  return Math.abs(a.length - b.length) <= allowed && distance(a, b) <= allowed;
}

/** Returns the filter that finds similar names: the beginnings of their words. */
export const nameBeginnings = (name: string): string =>
  splitWords(name)
    .map((word) => [...word].slice(0, 2).join(''))
    .join(' ');
