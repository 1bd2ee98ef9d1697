import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runToEnd } from '../../tools/local/child.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';
import { type Check, expect, type Part, run } from './check.ts';

const buildMs = 60 * 60_000;
export const tag = 'core-banking:check';

type Inspected = {
  Size: number;
  Config: {
    User: string;
    Entrypoint: string[];
    Cmd: string[];
    Env: string[];
    StopSignal: string;
    Labels: Record<string, string>;
    Healthcheck?: { Test: string[] };
  };
};

/**
 * Tests the image: it is built with both builders and inspected, and each of its programs is started under the
 * strictest platform rules.
 */
export const image: Part = {
  name: 'image',
  needsEngine: true,
  planted: {
    defect: 'root as its user',
    foundBy: 'has labels, a user who is not root, a health check, and its command in exec form',
    says: /^runs as root$/,
  },
  async run(check) {
    const { version } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as { version: string };
    const docker = (args: string[], codes?: number[]) =>
      run('docker', args, { env: check.env, timeoutMs: buildMs, codes });
    check.onEnd(async () => void (await docker(['image', 'rm', '--force', tag])));
    await check.step('built by the classic builder', async () => {
      const args = ['build', '--quiet', '-f', 'deploy/Dockerfile', '-t', tag, '--build-arg', `VERSION=${version}`, '.'];
      await run('docker', args, { env: { ...check.env, DOCKER_BUILDKIT: '0' }, timeoutMs: buildMs });
    });
    if (check.selfTest)
      await runToEnd('docker', ['build', '-t', tag, '-'], {
        input: `FROM ${tag}\nUSER root\n`,
        env: { ...process.env, ...check.env, DOCKER_BUILDKIT: '0' },
        timeoutMs: buildMs,
      });
    const inspected = (JSON.parse((await docker(['image', 'inspect', tag])).stdout) as Inspected[])[0];
    expect(inspected !== undefined, 'the image is not there');
    await check.step('has labels, a user who is not root, a health check, and its command in exec form', async () => {
      const { User, Labels, Entrypoint, Cmd, StopSignal, Healthcheck, Env } = inspected.Config;
      expect(User !== '' && User !== 'root' && User !== '0', `runs as ${User}`);
      for (const label of ['title', 'description', 'version', 'revision', 'source', 'licenses'])
        expect(Boolean(Labels[`org.opencontainers.image.${label}`]), `has no label ${label}`);
      expect(Labels['org.opencontainers.image.version'] === version, 'the label says another version');
      expect(
        [...Entrypoint, ...Cmd].join(' ') === 'node gateway' && StopSignal === 'SIGTERM',
        `starts ${[...Entrypoint, ...Cmd].join(' ')}, stops by ${StopSignal}`,
      );
      expect(Healthcheck?.Test[0] === 'CMD', 'has no health check of its own');
      expect(Env.includes('BANK_MODE=production'), 'is not for production unless told otherwise');
      return `${(inspected.Size / 1e6).toFixed(0)} MB`;
    });
    await insideImage(check, docker);
  },
};

const programs = [
  'gateway',
  'ledger',
  'accounts',
  'webhooks',
  'dashboard',
  'topics',
  'migrate-ledger',
  'migrate-accounts',
  'migrate-webhooks',
  'api-key',
  'republish-keys',
  'accept-history',
  'resend-commands',
];
const managers = ['npm', 'npx', 'corepack', 'yarn', 'pnpm', 'apt', 'apt-get', 'dpkg', 'pip', 'curl', 'wget'];

async function insideImage(
  check: Check,
  docker: (args: string[], codes?: number[]) => ReturnType<typeof run>,
): Promise<void> {
  const confined = [
    'run',
    '--rm',
    '--read-only',
    '--network',
    'none',
    '--cap-drop',
    'ALL',
    '--security-opt',
    'no-new-privileges',
  ];
  const shell = async (script: string) =>
    (await docker([...confined, '--entrypoint', 'sh', tag, '-c', script])).stdout.trim();
  await check.step(
    'has no package manager, no apt lists, no file that gives rights, nothing that its user may write',
    async () => {
      const found = await shell(
        `for name in ${managers.join(' ')}; do command -v $name || true; done; ls -d /var/lib/apt /etc/apt /root/.npm 2> /dev/null || true`,
      );
      expect(found === '', `has ${found}`);
      const rights = await shell('find / -xdev -type f -perm /6000 2> /dev/null || true');
      expect(rights === '', `gives rights by ${rights}`);
      const writable = await shell('find /app -writable -not -type l 2> /dev/null | head -n 5; id -u');
      expect(writable === '1000', `its user may write ${writable}`);
    },
  );
  await check.step('has no tests and no tools for development', async () => {
    const found = await shell(
      "find /app -name '*.test.ts' -not -path '*/node_modules/*'; ls -d /app/node_modules/vitest /app/node_modules/typescript /app/node_modules/oidc-provider /app/tools/local 2> /dev/null || true",
    );
    expect(found === '', `has ${found}`);
  });
  await check.step(
    `each program starts in it, read-only and without rights, and says what it misses: ${programs.join(', ')}`,
    async () => {
      for (const program of programs) {
        const { stderr } = await docker([...confined, tag, program], [1]);
        expect(/is not valid:\n {2}[A-Z_]+: is missing/.test(stderr), `${program} says: ${stderr}`);
      }
    },
  );
}
