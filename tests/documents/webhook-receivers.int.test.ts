import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { newWebhookSecret } from '#libs/contracts/webhook-secret.ts';
import { signedHeaders } from '#services/webhooks/deliveries/send.ts';
import { freePort } from '../../tools/local/ports.ts';
import { eventually } from '../support/eventually.ts';
import { have } from '../support/programs.ts';

/**
 * Runs the receivers that docs/webhooks.md names as processes that receive requests as the bank would send
 * them. Those in TypeScript and Go use the reference libraries of Standard Webhooks.
 */
const root = join(import.meta.dirname, '..', '..');
const folder = join(root, 'examples/webhooks');
const built = mkdtempSync(join(tmpdir(), 'receivers-'));
afterAll(() => rmSync(built, { recursive: true }));

function run(command: string, args: string[], cwd = folder): void {
  const { status, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`);
}
const goBinary = join(built, 'receiver');

interface Receiver {
  file: string;
  start: [command: string, ...args: string[]];
  runs: boolean;
  build?(): void;
}
const receivers: Receiver[] = [
  { file: 'receiver.ts', start: [process.execPath, 'receiver.ts'], runs: true },
  { file: 'receiver.py', start: ['python3', 'receiver.py'], runs: have('Python') },
  { file: 'Receiver.java', start: ['java', 'Receiver.java'], runs: have('Java') },
  {
    file: 'go/receiver.go',
    start: [goBinary],
    runs: have('Go'),
    build: () => run('go', ['build', '-o', goBinary, '.'], join(folder, 'go')),
  },
];

it('the receiver without packages is printed unchanged on the page', () => {
  expect(readFileSync(join(root, 'docs/webhooks.md'), 'utf8')).toContain(
    readFileSync(join(folder, 'receiver.py'), 'utf8'),
  );
});

const event = {
  specversion: '1.0',
  id: '0195f0c2-a1b2-7c3d-8e4f-5a6b7c8d9e0f',
  type: 'corebanking.client.created.v1',
  data: { name: 'Ünïcode' },
};
const body = JSON.stringify(event);
const signed = (...secrets: string[]) => signedHeaders(secrets, event.id, Math.floor(Date.now() / 1000), body);

for (const { file, start, runs, build } of receivers)
  it.runIf(runs)(
    `${file} accepts signatures with either secret and recognizes a repeat`,
    async () => {
      build?.();
      const [secret, other, port] = [newWebhookSecret(), newWebhookSecret(), await freePort()];
      const [command, ...args] = start;
      const child = spawn(command, args, {
        cwd: folder,
        env: { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port) },
      });
      let printed = '';
      child.stdout.on('data', (chunk: Buffer) => {
        printed += chunk.toString();
      });
      const exited = once(child, 'exit');
      try {
        const post = (headers: Record<string, string>, text = body) =>
          fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: text }).then(({ status }) => status);
        await eventually(async () => (await post(signed(secret))) === 204, 60_000);
        expect(await post(signed(other, secret))).toBe(204);
        expect(await post(signed(other))).toBe(401);
        expect(await post(signed(secret), body.replace('client', 'account'))).toBe(401);
        expect(await post(signedHeaders([secret], event.id, Math.floor(Date.now() / 1000) - 3600, body))).toBe(401);
        await eventually(async () => printed.includes('\n'));
        const lines = printed.trim().split('\n');
        expect([lines.length, lines[0]?.includes(event.type), lines[0]?.includes(event.id)]).toEqual([1, true, true]);
      } finally {
        child.kill();
        await exited;
      }
    },
    300_000,
  );
