import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Check, notHere, run } from './check.ts';

/**
 * This takes minutes if nothing else runs. Go caches compiled code, so the work of an attempt that was stopped is not
 * lost.
 */
const scriptMs = 60 * 60_000;
const scripts = import.meta.dirname;

/**
 * Provides a running container engine, docker compose, and the base images: those of the machine if it has them,
 * otherwise installed or built ones. Stores their environment in the check, or returns the reason why they are not
 * available.
 */
export async function prepareEngine(
  check: Check,
  { cache, keep }: { cache: string; keep: boolean },
): Promise<string | undefined> {
  const dir = keep ? join(cache, 'engine') : join(check.dir, 'engine');
  let reason: string | undefined;
  const script = async (name: string, ...args: string[]): Promise<string[]> => {
    if (reason !== undefined) return [];
    const { code, stdout } = await run('bash', [join(scripts, name), ...args], {
      env: check.env,
      timeoutMs: scriptMs,
      codes: [0, notHere],
    });
    const lines = stdout
      .trim()
      .split('\n')
      .filter((line) => line !== '');
    if (code === notHere) reason = lines.at(-1) ?? `${name} gave no reason`;
    return lines;
  };
  const [host] = await script('engine.sh', 'start', dir);
  if (reason === undefined) check.env['DOCKER_HOST'] = host;
  if (!keep && reason === undefined && host === `unix://${dir}/docker.sock`) {
    check.onEnd(async () => {
      await run('bash', [join(scripts, 'engine.sh'), 'stop', dir]);
      rmSync(dir, { recursive: true, force: true });
    });
  }
  const [config] = await script('compose-plugin.sh', cache);
  if (reason === undefined) check.env['DOCKER_CONFIG'] = config;
  const built = await script('stand-ins.sh', check.dir);
  if (reason === undefined) check.standIns.push(...built);
  // A later pull or run of the official name must not use the stand-ins.
  if (!keep && built.length > 0)
    check.onEnd(async () => void (await run('docker', ['image', 'rm', '--force', ...built], { env: check.env })));
  if (reason === undefined) {
    const answer = await run('docker', ['version', '--format', 'Docker {{.Server.Version}}'], { env: check.env });
    const composeVersion = await run('docker', ['compose', 'version', '--short'], { env: check.env });
    await check.step(
      'engine and compose',
      async () => `${answer.stdout.trim()}, compose ${composeVersion.stdout.trim()}`,
    );
  }
  return reason;
}
