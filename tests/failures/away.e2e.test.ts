import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { testMacSecrets } from '#libs/service/test/keys.ts';
import { newKeyPair, type ServiceKind } from '../../tools/local/bank.ts';
import { makeNode, type Node } from '../faults/processes.ts';
import { fastTime } from '../support/fast-time.ts';

/**
 * Tests processes that start while neither Kafka nor Postgres runs: none exits or becomes not alive, and each reports
 * what it waits for. Their clocks simulate two minutes, longer than any limit of liveness.
 */
const awayMs = 6_000;
const time = fastTime(20);
const dir = mkdtempSync(join(tmpdir(), 'core-banking-away-'));
mkdirSync(join(dir, 'log'));
const secret = 'a'.repeat(64);
const settings = {
  brokers: '127.0.0.1:1',
  topicPrefix: 'away.',
  ownerUrl: `postgres://core_banking:${secret}@127.0.0.1:1/core_banking`,
  rolePasswords: { ledger: secret, accounts: secret, webhooks: secret },
  issuer: 'http://127.0.0.1:9',
  apiKeyPepper: secret,
  webhookSecretKey: secret,
  signing: { mac: testMacSecrets, keyPair: newKeyPair() },
  env: {},
};
const nodes: Node[] = [];
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop()));
  rmSync(dir, { recursive: true, force: true });
});

interface Health {
  status: number;
  checks: Record<string, { ok: boolean; reason?: string }>;
}

async function health(node: Node, path: '/livez' | '/readyz'): Promise<Health> {
  const response = await fetch(new URL(path, node.healthUrl));
  return { ...((await response.json()) as Pick<Health, 'checks'>), status: response.status };
}

it.each<[ServiceKind, string[]]>([
  ['gateway', ['requests', 'replies', 'api_keys', 'clock']],
  ['ledger', ['database', 'clock', 'commands', 'batches', 'queries', 'replies']],
  ['accounts', ['database', 'clock', 'commands', 'queries', 'replies', 'events']],
  ['webhooks', ['database', 'clock', 'commands', 'queries', 'events', 'replies', 'outbox']],
])(
  '%s waits for Kafka and Postgres, alive but not ready',
  async (kind, lacking) => {
    const ended: string[] = [];
    const node = await makeNode(kind, kind, dir, settings, ended);
    nodes.push(node);
    node.start(time);
    await expect.poll(() => health(node, '/livez').catch(() => undefined), { timeout: 60_000 }).toBeDefined();
    node.signal('SIGWINCH');
    for (const until = performance.now() + awayMs; performance.now() < until; await sleep(200)) {
      const { status, checks } = await health(node, '/livez');
      expect([status, checks], kind).toEqual([200, expect.anything()]);
    }
    const { status, checks } = await health(node, '/readyz');
    expect(status).toBe(503);
    expect(Object.keys(checks).filter((name) => checks[name]?.ok === false)).toEqual(expect.arrayContaining(lacking));
    for (const name of lacking) expect(checks[name]?.reason, name).toMatch(/\w/);
    expect([ended, node.running()]).toEqual([[], true]);
  },
  120_000,
);
