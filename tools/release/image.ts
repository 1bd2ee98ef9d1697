import { join } from 'node:path';
import type { Artifact } from './provenance.ts';

export const platforms = ['linux/amd64', 'linux/arm64'];

/** Runs a program in the project's folder; rejects if it fails. */
export type Run = (command: string, args: string[]) => Promise<string>;

export interface Image {
  /** The files that were written. */
  file: string;
  platforms: string[];
  base: Artifact[];
}

interface Source {
  version: string;
  commit: string;
  /** The base image: the Dockerfile's NODE_IMAGE. */
  nodeImage: string;
}

/**
 * Writes the image to a file in `folder`: if a buildx builder has both platforms, as one OCI layout
 * with BuildKit's SBOM and provenance; otherwise from the engine, for its own platform. Undefined
 * if there is no engine.
 */
export async function buildImage(run: Run, folder: string, source: Source): Promise<Image | undefined> {
  const platform = await answer(run, ['version', '--format', '{{.Server.Os}}/{{.Server.Arch}}']);
  if (platform === undefined) return undefined;
  const builder = (await answer(run, ['buildx', 'inspect', '--bootstrap'])) ?? '';
  if (buildsAll(builder)) {
    const file = join(folder, `core-banking-${source.version}.oci.tar`);
    const attested = ['--platform', platforms.join(','), '--provenance=mode=max', '--sbom=true'];
    await run('docker', [
      'buildx',
      'build',
      ...attested,
      ...buildArgs(source),
      '--output',
      `type=oci,dest=${file}`,
      '.',
    ]);
    return { file, platforms, base: [] };
  }
  const tag = `core-banking:${source.version}`;
  await run('docker', ['build', '--quiet', ...buildArgs(source), '--tag', tag, '.']);
  const file = join(folder, `core-banking-${source.version}-${platform.replace('/', '-')}.docker.tar`);
  await run('docker', ['save', '--output', file, tag]);
  const id = await run('docker', ['image', 'inspect', '--format', '{{.Id}}', source.nodeImage]);
  return { file, platforms: [platform], base: [{ name: source.nodeImage, sha256: id.replace('sha256:', '') }] };
}

/** Reports whether the builder in this output of `docker buildx inspect` can attest and has both platforms. */
export function buildsAll(inspected: string): boolean {
  return (
    /^Driver:\s+(docker-container|kubernetes|remote)$/m.test(inspected) &&
    platforms.every((platform) => inspected.includes(platform))
  );
}

function buildArgs({ version, commit, nodeImage }: Source): string[] {
  const named = [`VERSION=${version}`, `REVISION=${commit}`, `NODE_IMAGE=${nodeImage}`];
  return ['--file', 'deploy/Dockerfile', '--target', 'production', ...named.flatMap((arg) => ['--build-arg', arg])];
}

async function answer(run: Run, args: string[]): Promise<string | undefined> {
  return run('docker', args).catch(() => undefined);
}

interface Component {
  type: string;
  name: string;
  version: string;
  purl: string;
}

/** Returns the Debian packages in an image, from its /var/lib/dpkg/status. */
export function debianPackages(status: string): Component[] {
  return status.split('\n\n').flatMap((entry) => {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(entry)?.[1] ?? '';
    const [name, version] = [field('Package'), field('Version')];
    if (name === '' || !field('Status').endsWith(' installed')) return [];
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${field('Architecture')}`;
    return [{ type: 'library', name, version, purl }];
  });
}

/** Returns the bill of materials of the image: the project's packages, Node, and Debian's packages. */
export async function imageBill(run: Run, version: string, bill: { components: object[] }): Promise<object> {
  const inImage = (program: string, ...args: string[]) =>
    run('docker', ['run', '--rm', '--network', 'none', '--entrypoint', program, `core-banking:${version}`, ...args]);
  const node = (await inImage('node', '--version')).replace('v', '');
  const system = debianPackages(await inImage('cat', '/var/lib/dpkg/status'));
  const runtime = { type: 'application', name: 'node', version: node, purl: `pkg:generic/node@${node}` };
  return { ...bill, components: [...bill.components, runtime, ...system] };
}
