import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

/**
 * Tests exact versions, a lock file with checksums, a bill of materials, and that the repository contains no secrets.
 */
const root = join(import.meta.dirname, '..', '..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
type Dependencies = Record<string, string>;
const { version, dependencies, devDependencies, optionalDependencies } = JSON.parse(read('package.json')) as {
  version: string;
  dependencies: Dependencies;
  devDependencies: Dependencies;
  optionalDependencies: Dependencies;
};
const lock = JSON.parse(read('package-lock.json')) as {
  lockfileVersion: number;
  packages: Record<
    string,
    { version?: string; integrity?: string; resolved?: string; link?: boolean } & Record<string, unknown>
  >;
};

describe('versions', () => {
  test('every dependency has one exact version, the same as in the lock file', () => {
    const wanted = { ...dependencies, ...devDependencies, ...optionalDependencies };
    const inexact = Object.entries(wanted).filter(([, range]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(range));
    expect(inexact).toEqual([]);
    const otherwise = Object.entries(wanted).filter(
      ([dependency, exact]) => lock.packages[`node_modules/${dependency}`]?.version !== exact,
    );
    expect(otherwise).toEqual([]);
    expect(lock.packages['']).toMatchObject({ dependencies, devDependencies, optionalDependencies });
  });

  test('the lock file has a checksum for every package and no download URLs', () => {
    // asvs: 15.2.4
    const packages = Object.entries(lock.packages).filter(([path, { link }]) => path !== '' && link !== true);
    expect(
      packages
        .filter(([path, { integrity }]) => path.startsWith('node_modules/') && !integrity?.startsWith('sha512-'))
        .map(([path]) => path),
    ).toEqual([]);
    expect(packages.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([]);
  });
});

test('npm run sbom prints a CycloneDX bill of exactly the production dependencies', () => {
  const bill = JSON.parse(
    execFileSync('npm', ['run', '--silent', 'sbom'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      timeout: 110_000,
    }),
  ) as {
    bomFormat: string;
    metadata: { component: { version: string } };
    components: { name: string; version: string; purl: string }[];
  };
  expect([bill.bomFormat, bill.metadata.component.version]).toEqual(['CycloneDX', version]);
  const listed = new Map(bill.components.map((component) => [component.name, component]));
  for (const [dependency, exact] of Object.entries(dependencies))
    expect(listed.get(dependency)).toMatchObject({ version: exact, purl: expect.stringContaining('pkg:npm/') });
  // Type declarations are included because some production packages list them as peers. fastify
  // itself uses ajv, with which tests check schemas.
  const broughtByOthers = (dependency: string) =>
    dependency.startsWith('@types/') || ['ajv', 'ajv-formats', 'yaml'].includes(dependency);
  expect(
    Object.keys({ ...devDependencies, ...optionalDependencies }).filter(
      (dependency) => listed.has(dependency) && !broughtByOthers(dependency),
    ),
  ).toEqual([]);
}, 120_000);

/** Common forms of secrets. gitleaks scans the history completely. */
const forms: Record<string, RegExp> = {
  'a private key': /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s*\n[A-Za-z0-9+/=\s]{100,}/,
  'an API key of ours': /\bcbk_(?:live|test)_[0-9a-f]{32}_[A-Za-z0-9_-]{40,}/,
  'a JWT': /\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{40,}/,
  'a token of a well-known service':
    /\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|xox[abprs]-[A-Za-z0-9-]{20,}|sk_live_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{36}|AIza[A-Za-z0-9_-]{35})\b/,
  'a password in a URL': /\b(?:postgres(?:ql)?|https?|amqp|redis):\/\/[^\s:@/'"`${}<>]+:[A-Za-z0-9+/_-]{24,}@/,
};

test('no file of the repository contains a secret', () => {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .filter((file) => file !== '' && file !== 'package-lock.json');
  expect(files.length).toBeGreaterThan(100);
  const found = files.flatMap((file) => {
    let text = '';
    try {
      text = read(file);
    } catch {
      // The file was listed, but has been deleted since.
    }
    return Object.entries(forms).flatMap(([what, form]) => (form.test(text) ? [`${file} holds ${what}`] : []));
  });
  expect(found).toEqual([]);
});
