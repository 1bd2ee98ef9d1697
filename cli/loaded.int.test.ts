import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** Tests which packages a command loads, because loading takes most of the time of a short one. */
const list = `import { registerHooks } from 'node:module';
const loaded = new Set();
registerHooks({ load: (url, context, next) => { loaded.add(/node_modules.((@[^/]+.)?[^/]+)/.exec(url)?.[1]); return next(url, context); } });
process.on('exit', () => console.error(JSON.stringify([...loaded].filter(Boolean).sort())));`;

function packagesOf(parameters: string[]): string[] {
  const { stderr } = spawnSync(
    process.execPath,
    [
      '--import',
      `data:text/javascript,${encodeURIComponent(list)}`,
      join(import.meta.dirname, 'bank.mjs'),
      ...parameters,
    ],
    { env: { ...process.env, BANK_URL: 'http://127.0.0.1:9', BANK_API_KEY: 'x', BANK_TOKEN: '' }, encoding: 'utf8' },
  );
  return JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '') as string[];
}

test.each([
  [['--help'], ['commander']],
  [['env'], ['commander', 'ipaddr.js', 'zod']],
  [
    ['balance', 'SAV-1', '--at', '2026-01-01'],
    ['commander', 'ipaddr.js', 'zod'],
  ],
  [
    ['deposit', 'SAV-1', '1'],
    ['commander', 'ipaddr.js', 'zod'],
  ],
  [
    ['tail', '--help'],
    ['commander', 'ipaddr.js', 'zod'],
  ],
])('bank %s loads only what it needs', (parameters, packages) => {
  expect(packagesOf(parameters)).toEqual(packages);
});
