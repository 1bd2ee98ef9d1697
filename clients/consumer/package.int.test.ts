import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

/** Tests the package as other projects get it: packed, installed in an empty folder, and used as its README shows. */
const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'core-banking-consumer-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (command: string, args: string[], cwd: string) =>
  execFileSync(command, args, { cwd, encoding: 'utf8', timeout: 90_000 });
const json = (file: string) =>
  JSON.parse(readFileSync(join(root, file), 'utf8')) as {
    dependencies: Record<string, string>;
    peerDependencies: Record<string, string>;
  };

/** Packing compiles into the package's own folder, and the test of releases packs at the same time. */
function copyOfSources(): string {
  const copy = join(folder, 'sources');
  const isBuilt = (path: string) => /node_modules|[/]dist$/.test(path.slice(root.length));
  for (const part of ['clients/consumer', 'libs', 'package.json', 'tsconfig.json'])
    cpSync(join(root, part), join(copy, part), { recursive: true, filter: (path) => !isBuilt(path) });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return join(copy, 'clients/consumer');
}

it('has the dependency versions with which the project itself is tested', () => {
  const { dependencies, peerDependencies } = json('clients/consumer/package.json');
  const own = json('package.json').dependencies;
  expect({ ...dependencies, ...peerDependencies }).toEqual({
    'idn-hostname': own['idn-hostname'],
    'libphonenumber-js': own['libphonenumber-js'],
    zod: own['zod'],
    kafkajs: `^${own['kafkajs']}`,
  });
});

it('is packed, installed without a registry, and loaded, and its README compiles against its types', () => {
  const tarball =
    run('npm', ['pack', '--silent', '--pack-destination', folder], copyOfSources()).trim().split('\n').at(-1) ?? '';
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "private": true }');
  const installed = ['idn-hostname', 'kafkajs', 'libphonenumber-js', 'punycode', 'zod'].map((name) =>
    join(root, 'node_modules', name),
  );
  run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--silent', tarball, ...installed], folder);
  const exported = run(
    process.execPath,
    ['--input-type=module', '-e', "console.log(Object.keys(await import('@core-banking/consumer')).join())"],
    folder,
  );
  expect(exported.trim()).toBe(
    'DeadLetter,InvalidEventError,ReconciliationError,accountPositions,createConsumer,prometheusText,reconcile',
  );

  const readme = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code ?? '');
  expect(blocks).toHaveLength(3);
  blocks.forEach((code, i) => writeFileSync(join(folder, `readme-${i}.ts`), code));
  mkdirSync(join(folder, 'node_modules/@types'));
  for (const name of ['@types/node', '@types/pg', 'pg-types', 'pg-protocol', 'undici-types'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      include: ['readme-*.ts'],
      compilerOptions: { strict: true, noEmit: true, target: 'es2022', module: 'nodenext', types: ['node'] },
    }),
  );
  expect(run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', '.'], folder)).toBe('');
}, 120_000);
