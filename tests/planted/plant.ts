import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runToEnd } from '../../tools/local/child.ts';
import type { PlantedBug } from './bugs.ts';

export const root = join(import.meta.dirname, '..', '..');

/** Copies the files of this checkout that git tracks or would track, and its packages. */
export function copyCheckout(): string {
  const copy = mkdtempSync(join(tmpdir(), 'core-banking-planted-'));
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  for (const file of new Set(files.split('\0').filter((name) => name !== ''))) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    // Symbolic links are copied as links, because the chart contains some, also to a folder.
    cpSync(join(root, file), join(copy, file), { force: true, recursive: true, verbatimSymlinks: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

type Bug = Pick<PlantedBug, 'name' | 'edits'>;
type Texts = Map<string, string>;

/** Returns the files with the bug, by name. Throws if a text does not occur exactly once. */
export function withBug(dir: string, { name, edits }: Bug): { originals: Texts; texts: Texts } {
  const originals = new Map(edits.map(({ file }) => [file, readFileSync(join(dir, file), 'utf8')]));
  const texts = new Map(originals);
  for (const { file, find, replace } of edits) {
    const parts = (texts.get(file) ?? '').split(find);
    if (parts.length !== 2) throw new Error(`${name}: ${file} has ${parts.length - 1} times: ${find}`);
    texts.set(file, parts.join(replace));
  }
  return { originals, texts };
}

const typeCheckMs = 600_000;

/**
 * Returns the type errors of a copy with planted bugs. With one, tests fail because a name does not exist, not because
 * they find the bug. Unused names are allowed.
 */
export async function typeErrors(copy: string): Promise<string[]> {
  const tsc = join(copy, 'node_modules', '.bin', 'tsc');
  const { code, stdout, stderr } = await runToEnd(
    tsc,
    ['--noEmit', '--incremental', 'false', '--noUnusedLocals', 'false', '--noUnusedParameters', 'false'],
    { cwd: copy, timeoutMs: typeCheckMs },
  );
  const errors = stdout.split('\n').filter((line) => line.includes('error TS'));
  return code === 0 || errors.length > 0 ? errors : [`tsc ended with ${code}: ${stderr}`];
}

/** Plants the bug. Returns a function that removes it. */
export function plant(copy: string, bug: Bug): () => void {
  const { originals, texts } = withBug(copy, bug);
  const write = (contents: Texts) => contents.forEach((text, file) => writeFileSync(join(copy, file), text));
  write(texts);
  return () => write(originals);
}
