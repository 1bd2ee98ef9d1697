import { spawnSync } from 'node:child_process';
import { generateKeyPairSync, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { buildImage, buildsAll, debianPackages } from './image.ts';
import { findSection, releaseNotes } from './notes.ts';
import { envelope, isSignedBy, provenance, sha256, signed } from './provenance.ts';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

describe('notes', () => {
  test('are the section of the version, even if its heading contains more', () => {
    const document = '# A\n\n## [1.2.0] - unreleased\n\n### Added\n\n- x\n\n## 1.1.0\n\ny\n';
    expect(findSection(document, '1.2.0')).toBe('### Added\n\n- x');
    expect(findSection(document, '1.1.0')).toBe('y');
    expect(findSection(document, '1.2')).toBeUndefined();
    expect(() => releaseNotes('1.1.0', document, '# B')).toThrow('how to upgrade to 1.1.0');
    expect(() => releaseNotes('2.0.0', document, document)).toThrow('no section for 2.0.0');
  });

  test('exist for this version', () => {
    const { version } = packageJson;
    expect(releaseNotes(version, read('CHANGELOG.md'), read('docs/releases.md'))).toMatch(
      /## Upgrading\n\n\w[^]*## Changes\n\n/,
    );
  });

  test('every version in the changelog has upgrade instructions', () => {
    const versions = [...read('CHANGELOG.md').matchAll(/^## \[(.*?)\]/gm)].map(([, version]) => version ?? '');
    expect(versions.length).toBeGreaterThan(1);
    expect(versions.filter((version) => !findSection(read('docs/releases.md'), version))).toEqual([]);
  });
});

describe('signatures', () => {
  const origin = {
    version: '1.0.0',
    commit: 'c0ffee',
    dirty: false,
    lock: sha256('lock'),
    images: [{ name: 'node:24', sha256: 'ab' }],
    startedOn: new Date(0),
    finishedOn: new Date(1),
  };
  const artifact = { name: 'a.tgz', sha256: sha256('a') };

  test('the provenance names each file and its sources', () => {
    expect(provenance([artifact], origin)).toMatchObject({
      subject: [{ name: 'a.tgz', digest: { sha256: artifact.sha256 } }],
      predicate: {
        buildDefinition: {
          resolvedDependencies: [
            { digest: { gitCommit: 'c0ffee' } },
            { uri: 'file:package-lock.json' },
            { uri: 'docker:node:24', digest: { sha256: 'ab' } },
          ],
        },
      },
    });
  });

  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  test.each([
    ['ECDSA over P-256', ec],
    ['Ed25519', generateKeyPairSync('ed25519')],
  ])('verify only with the key and for the signed text: %s', (_name, { privateKey, publicKey }) => {
    const sealed = envelope(provenance([artifact], origin), privateKey);
    expect(isSignedBy(sealed, publicKey)).toBe(true);
    const changed = Buffer.from(JSON.stringify(provenance([{ ...artifact, sha256: sha256('b') }], origin)));
    expect(isSignedBy({ ...sealed, payload: changed.toString('base64') }, publicKey)).toBe(false);
    expect(isSignedBy(envelope({}, undefined), publicKey)).toBe(false);
  });

  test('of another key are not accepted', () => {
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expect(isSignedBy(envelope({}, ec.privateKey), other.publicKey)).toBe(false);
    const sig = signed(Buffer.from('sums'), ec.privateKey);
    expect(verify('sha256', Buffer.from('sums'), ec.publicKey, Buffer.from(sig, 'base64'))).toBe(true);
  });
});

describe('image', () => {
  const all = 'Driver:        docker-container\nPlatforms: linux/amd64, linux/arm64\n';
  test('is built for both platforms if a builder has both and can attest', () => {
    expect(buildsAll(all)).toBe(true);
    expect(buildsAll(all.replace('docker-container', 'docker'))).toBe(false);
    expect(buildsAll(all.replace(', linux/arm64', ''))).toBe(false);
  });

  test("is one file for both platforms with SBOM and provenance, otherwise the engine's, and none without an engine", async () => {
    const asked: string[] = [];
    const engine = (inspected: string | undefined) => async (_command: string, args: string[]) => {
      asked.push(args.join(' '));
      if (args[0] === 'version') return 'linux/amd64';
      if (args[1] !== 'inspect') return '';
      if (args[0] === 'image') return 'sha256:ab';
      if (inspected === undefined) throw new Error('no buildx');
      return inspected;
    };
    const source = { version: '1.0.0', commit: 'c0ffee', nodeImage: 'node@sha256:cd' };
    expect(await buildImage(engine(all), 'out', source)).toMatchObject({ platforms: ['linux/amd64', 'linux/arm64'] });
    expect(asked.at(-1)).toMatch(
      /--platform linux\/amd64,linux\/arm64 --provenance=mode=max --sbom=true .*NODE_IMAGE=node@sha256:cd .*dest=out\/core-banking-1.0.0.oci.tar/,
    );
    expect(await buildImage(engine(undefined), 'out', source)).toMatchObject({
      file: 'out/core-banking-1.0.0-linux-amd64.docker.tar',
      platforms: ['linux/amd64'],
      base: [{ name: 'node@sha256:cd', sha256: 'ab' }],
    });
    const none = () => Promise.reject(new Error('no engine'));
    expect(await buildImage(none, 'out', source)).toBeUndefined();
  });

  test.each([undefined, 'node:24-bookworm-slim', 'node@sha256:cd'])(
    'of a release needs a base image by digest: %s',
    (given) => {
      const { NODE_IMAGE: _, ...env } = process.env;
      const { status, stderr } = spawnSync(process.execPath, ['tools/release/run.ts'], {
        cwd: new URL('../..', import.meta.url),
        env: { ...env, ...(given !== undefined && { NODE_IMAGE: given }) },
        encoding: 'utf8',
      });
      expect([status, stderr]).toEqual([1, expect.stringContaining('NODE_IMAGE must name the base image by digest')]);
    },
  );

  test('the Debian packages are the installed ones', () => {
    const status =
      'Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.36-9+deb12u10\n\nPackage: gone\nStatus: deinstall ok config-files\nArchitecture: all\nVersion: 1\n';
    expect(debianPackages(status)).toEqual([
      {
        type: 'library',
        name: 'libc6',
        version: '2.36-9+deb12u10',
        purl: 'pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64',
      },
    ]);
  });
});
