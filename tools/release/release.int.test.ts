import { execFileSync, spawnSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { type Envelope, isSignedBy, sha256 } from './provenance.ts';

/** Returns a PATH on which these programs are not. */
function pathWithout(...programs: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'core-banking-path-'));
  for (const from of (process.env['PATH'] ?? '').split(':').filter(existsSync))
    for (const name of readdirSync(from))
      if (!programs.includes(name) && !existsSync(join(folder, name)))
        symlinkSync(join(from, name), join(folder, name));
  return folder;
}

/**
 * Runs without a container engine and without the generators of other languages. release.test.ts checks the commands for the
 * image, and the test of the languages packs their clients.
 */
test('npm run release -- --dry-run creates everything but the image, signs it, and reports what is missing', () => {
  const { version } = packageJson;
  const root = join(import.meta.dirname, '../..');
  const folder = join(root, 'release', version);
  const taken = mkdtempSync(join(tmpdir(), 'core-banking-release-'));
  const key = join(taken, 'key.pem');
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(key, pair.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const said = execFileSync('npm', ['run', '--silent', 'release', '--', '--dry-run', '--key', key], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, DOCKER_HOST: 'tcp://127.0.0.1:9', PATH: pathWithout('java', 'mvn', 'go') },
  });
  for (const lacking of ['java: no java and mvn', 'python: no java', 'go: no go', 'csharp: no java and mvn'])
    expect(said).toContain(`not made: the client in ${lacking}\n`);
  expect(said).toContain('not made: the image for linux/amd64 and linux/arm64');
  const made = readdirSync(folder);
  expect(made.toSorted()).toEqual(
    [
      'SHA256SUMS',
      'SHA256SUMS.sig',
      `core-banking-${version}.tgz`,
      'core-banking-client-1.0.0-rc.tgz',
      'core-banking-consumer-1.0.0-rc.tgz',
      'core-banking.cdx.json',
      'notes.md',
      'openapi.json',
      'provenance.intoto.jsonl',
    ].toSorted(),
  );
  const read = (name: string) => readFileSync(join(folder, name));
  const sums = read('SHA256SUMS').toString();
  for (const name of made.filter((name) => !name.startsWith('SHA256SUMS')))
    expect(sums).toContain(`${sha256(read(name))}  ${name}\n`);
  const publicKey = createPublicKey(pair.publicKey.export({ type: 'spki', format: 'pem' }));
  const sealed = JSON.parse(read('provenance.intoto.jsonl').toString()) as Envelope;
  expect(isSignedBy(sealed, publicKey)).toBe(true);
  const statement = JSON.parse(Buffer.from(sealed.payload, 'base64').toString()) as { subject: { name: string }[] };
  expect(statement.subject.map(({ name }) => name)).toContain(`core-banking-${version}.tgz`);
  const chart = execFileSync('tar', ['-tzvf', join(folder, `core-banking-${version}.tgz`)], { encoding: 'utf8' });
  expect(chart).toMatch(/^-.* core-banking\/files\/alerts\.yaml$/m);
  expect(chart).not.toMatch(/ -> |core-banking\/ci\//);

  // These commands are those of docs/releases.md.
  cpSync(folder, taken, { recursive: true });
  writeFileSync(join(taken, 'release.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
  const command = /```sh\n(openssl .*)\n```/.exec(readFileSync(join(root, 'docs/releases.md'), 'utf8'))?.[1] ?? '';
  const checked = () => spawnSync('bash', ['-c', command], { cwd: taken }).status;
  expect(checked()).toBe(0);
  appendFileSync(join(taken, 'notes.md'), 'x');
  expect(checked()).not.toBe(0);
}, 300_000);
