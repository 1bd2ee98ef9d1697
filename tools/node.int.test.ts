import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import packageJson from '../package.json' with { type: 'json' };

/** Tests what programs print that npm scripts run before `npm ci`, or with a Node that is too old. */
const root = join(import.meta.dirname, '..');
const clone = mkdtempSync(join(tmpdir(), 'core-banking-clone-'));
const scripts = ['start', 'bank', 'verify-books', 'example'] as const;

beforeAll(() => {
  for (const name of ['tools/node.mjs', 'tools/local/start.mjs', 'cli/bank.mjs', 'examples/notifier.ts'])
    cpSync(join(root, name), join(clone, name));
});
afterAll(() => rmSync(clone, { recursive: true }));

function run(script: (typeof scripts)[number], options: string[]) {
  const command = packageJson.scripts[script].replace(/\bnode\b/, `"${process.execPath}" ${options.join(' ')}`);
  const file = script === 'example' ? 'notifier.ts' : '';
  const { status, stdout, stderr } = spawnSync('bash', ['-c', `${command} ${file}`], { cwd: clone, encoding: 'utf8' });
  return { status, stdout, stderr };
}

describe.each(scripts)('npm run %s', (script) => {
  test('before npm ci, the error says so', () => {
    expect(run(script, [])).toEqual({
      status: 2,
      stdout: '',
      stderr: 'Cannot start: the packages are not installed. Run "npm ci" first.\n',
    });
  });

  test('on Node 20, the error says so', () => {
    const old = `Object.defineProperty(process, 'versions', { value: { node: '20.19.4' } })`;
    const { status, stderr } = run(script, ['--import', `"data:text/javascript,${encodeURIComponent(old)}"`]);
    expect(status).toBe(2);
    expect(stderr).toMatch(/^Cannot start: Node 20\.19\.4 is too old, 22\.22 or newer is needed\. .*\n$/);
  });
});
