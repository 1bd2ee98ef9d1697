/**
 * `npm run release`: writes everything that belongs to a version to release/<version>: image, chart, clients, the
 * OpenAPI document, bills of materials, notes, a provenance, and the checksums of all of them, signed if --key names a
 * private key (PEM: ECDSA P-256, Ed25519, or RSA). The commit must be clean and have the tag v<version>, and NODE_IMAGE
 * must name the base image by digest. With --dry-run any commit and base image are accepted, and the files that this
 * machine cannot build are skipped and reported.
 */
import { createPrivateKey } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runToEnd } from '../local/child.ts';
import { PROJECT } from '../local/local-dir.ts';
import { packClients } from './clients.ts';
import { buildImage, imageBill, platforms } from './image.ts';
import { releaseNotes } from './notes.ts';
import { envelope, provenance, sha256, signed } from './provenance.ts';

const stepMs = 30 * 60_000;
const { values: options } = parseArgs({
  options: { 'dry-run': { type: 'boolean', default: false }, key: { type: 'string' } },
});
const nodeImage = process.env['NODE_IMAGE'] ?? 'node:24-bookworm-slim';
const missing: string[] = [];

async function run(command: string, args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runToEnd(command, args, { cwd: PROJECT, timeoutMs: stepMs });
  if (code !== 0)
    throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${(stdout + stderr).slice(-2000)}`);
  return stdout.trim();
}
const read = (file: string) => readFileSync(join(PROJECT, file), 'utf8');
const say = (line: string) => void process.stdout.write(`${line}\n`);

async function release(): Promise<void> {
  if (!options['dry-run'] && !/@sha256:[0-9a-f]{64}$/.test(nodeImage))
    throw new Error(
      'NODE_IMAGE must name the base image by digest (…@sha256:…), because a tag can name another image later',
    );
  const startedOn = new Date();
  const { version } = JSON.parse(read('package.json')) as { version: string };
  const key = options.key === undefined ? undefined : createPrivateKey(readFileSync(options.key));
  const commit = await run('git', ['rev-parse', 'HEAD']);
  const dirty = (await run('git', ['status', '--porcelain'])) !== '';
  if (!options['dry-run']) {
    const tags = (await run('git', ['tag', '--points-at', 'HEAD'])).split('\n');
    if (dirty || !tags.includes(`v${version}`))
      throw new Error(`this is not the unchanged commit of the tag v${version}`);
    if (/^## .*unreleased/m.test(read('CHANGELOG.md')))
      throw new Error('CHANGELOG.md does not say when it was released');
  }
  const folder = join(PROJECT, 'release', version);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const write = (name: string, content: string) => writeFileSync(join(folder, name), content);

  write('notes.md', releaseNotes(version, read('CHANGELOG.md'), read('docs/releases.md')));
  await packChart(folder, version);
  for (const client of ['clients/typescript', 'clients/consumer'])
    await run('npm', ['pack', `./${client}`, '--silent', '--pack-destination', folder]);
  missing.push(...(await packClients(run, folder, version)));
  write('openapi.json', read('docs/openapi.json'));
  const bill = await run(process.execPath, ['tools/sbom.ts']);
  write('core-banking.cdx.json', bill);

  const image = await buildImage(run, folder, { version, commit, nodeImage });
  const lacking = platforms.filter((platform) => !image?.platforms.includes(platform));
  if (lacking.length > 0)
    missing.push(`the image for ${lacking.join(' and ')}: no buildx with a builder for it, or no engine at all`);
  if (image?.base.length === 1)
    write(
      'image.cdx.json',
      JSON.stringify(await imageBill(run, version, JSON.parse(bill) as { components: object[] })),
    );

  const artifacts = readdirSync(folder)
    .toSorted()
    .map((name) => ({ name, sha256: sha256(readFileSync(join(folder, name))) }));
  const origin = { version, commit, dirty, lock: sha256(read('package-lock.json')), images: image?.base ?? [] };
  const statement = provenance(artifacts, { ...origin, startedOn, finishedOn: new Date() });
  const attested = JSON.stringify(envelope(statement, key));
  write('provenance.intoto.jsonl', `${attested}\n`);
  const sums = [...artifacts, { name: 'provenance.intoto.jsonl', sha256: sha256(`${attested}\n`) }]
    .map(({ name, sha256: sum }) => `${sum}  ${name}\n`)
    .join('');
  write('SHA256SUMS', sums);
  if (key === undefined) missing.push('signatures: --key names no key');
  else write('SHA256SUMS.sig', signed(Buffer.from(sums), key));

  say(sums.trimEnd());
  for (const what of missing) say(`not made: ${what}`);
  if (!options['dry-run'] && missing.length > 0) throw new Error('a release must be complete');
  say(`release/${version}`);
}

/** Packs linked files as files. The result has the same bytes for the same commit. */
async function packChart(folder: string, version: string): Promise<void> {
  const [file, time] = [join(folder, `core-banking-${version}.tgz`), await run('git', ['log', '-1', '--format=%ct'])];
  const constant = ['--sort=name', `--mtime=@${time}`, '--owner=0', '--group=0', '--numeric-owner', '--mode=go+r-w'];
  const helm = join(PROJECT, 'deploy/helm');
  const tar = ['tar', '-ch', ...constant, '--exclude=core-banking/ci', '-C', helm, 'core-banking'];
  await run('sh', ['-c', '"$@" | gzip -9n > "$0"', file, ...tar]);
}

await release().catch((error: unknown) => {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
});
