import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newWebhookSecret } from '#libs/contracts/webhook-secret.ts';
import { signedHeaders } from '#services/webhooks/deliveries/sign.ts';
import { freePort } from '../../tools/local/ports.ts';
import { eventually } from '../support/eventually.ts';

/** The receivers of docs/webhooks.md, each as a process that gets what the bank would send. */
const root = join(import.meta.dirname, '..', '..');
const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0;

const receivers: [file: string, command: string, runs: boolean][] = [
  ['receiver.ts', process.execPath, true],
  ['receiver.py', 'python3', hasPython],
];

it.each(receivers)('%s stands on the page as it is', (file) => {
  expect(readFileSync(join(root, 'docs/webhooks.md'), 'utf8')).toContain(
    readFileSync(join(root, 'examples/webhooks', file), 'utf8'),
  );
});

it.each(receivers.filter(([, , runs]) => runs))(
  '%s takes what is signed, by either secret, and knows a repeat',
  async (file, command) => {
    const [secret, other, port] = [newWebhookSecret(), newWebhookSecret(), await freePort()];
    const child = spawn(command, [join(root, 'examples/webhooks', file)], {
      env: { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port) },
    });
    let printed = '';
    child.stdout.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
    });
    const exited = once(child, 'exit');
    try {
      const event = {
        specversion: '1.0',
        id: '0195f0c2-a1b2-7c3d-8e4f-5a6b7c8d9e0f',
        type: 'corebanking.client.created.v1',
        data: { name: 'Ünïcode' },
      };
      const body = JSON.stringify(event);
      const now = Math.floor(Date.now() / 1000);
      const post = (headers: Record<string, string>, text = body) =>
        fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: text }).then(({ status }) => status);
      const signed = (...secrets: string[]) => signedHeaders(secrets, event.id, now, body);
      await eventually(async () => (await post(signed(secret))) === 204);
      expect(await post(signed(other, secret))).toBe(204);
      expect(await post(signed(other))).toBe(401);
      expect(await post(signed(secret), body.replace('client', 'account'))).toBe(401);
      expect(await post(signedHeaders([secret], event.id, now - 3600, body))).toBe(401);
      expect(printed.trim()).toBe(`${event.type} ${event.id}`);
    } finally {
      child.kill();
      await exited;
    }
  },
);
