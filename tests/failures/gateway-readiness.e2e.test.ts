import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Child } from '../../tools/local/child.ts';
import { type KafkaOptions, startKafka } from '../../tools/local/kafka.ts';
import { freePort } from '../../tools/local/ports.ts';
import { createTopics } from '../support/bank.ts';
import { newKey } from '../support/client.ts';
import { Proxy } from '../support/proxy.ts';
import { eventually, useBank } from '../support/world.ts';

/**
 * Tests what a load balancer and callers see of a gateway without the brokers or the database. It stays ready, because no
 * other gateway could do better, and says at once that nothing was executed. What it lacks itself makes it not ready.
 */
const dir = mkdtempSync(join(tmpdir(), 'core-banking-readiness-'));
const broker: KafkaOptions = {
  dir: join(dir, 'kafka'),
  log: join(dir, 'kafka.log'),
  ports: { client: await freePort(), broker: await freePort(), controller: await freePort() },
  way: 'java',
};
const sharedBrokers = process.env['KAFKA_BROKERS'];
let kafka: Child;
beforeAll(async () => {
  kafka = await startKafka(broker);
  process.env['KAFKA_BROKERS'] = `127.0.0.1:${broker.ports.client}`;
});
// Hooks after all tests run in reverse order, so the bank is stopped before its broker.
afterAll(async () => {
  process.env['KAFKA_BROKERS'] = sharedBrokers;
  await kafka?.stop(10_000);
  rmSync(dir, { recursive: true, force: true });
});
const world = useBank();
const { api } = world;

interface Readiness {
  status: number;
  checks: Record<string, { ok: boolean; reason?: string }>;
}

async function readiness(): Promise<Readiness> {
  const response = await fetch(world.bank.process('gateway').health_url);
  return { ...((await response.json()) as Pick<Readiness, 'checks'>), status: response.status };
}

async function deposit(account_id: string) {
  const begun = performance.now();
  const answer = await api.post(
    '/transactions',
    { account_id, transaction_type: 'Deposit', amount: 1 },
    { 'idempotency-key': newKey() },
  );
  return { ...answer, tookMs: performance.now() - begun };
}

/** Posts until each of five deposits in a row is answered with 503 and Retry-After, long before a reply would be given up (5 s). */
async function expectRefusedAtOnce(account_id: string): Promise<void> {
  const until = performance.now() + 60_000;
  for (let inRow = 0; inRow < 5; await sleep(20)) {
    expect(performance.now(), 'not answered at once').toBeLessThan(until);
    const { status, headers, tookMs } = await deposit(account_id);
    inRow = status === 503 && headers.get('retry-after') === '1' && tookMs < 2_000 ? inRow + 1 : 0;
  }
}

/** Runs `during` and returns the statuses of the probe meanwhile. */
async function watched(during: Promise<void>): Promise<Set<number>> {
  const seen = new Set<number>();
  const over = during.then(() => true);
  do seen.add((await readiness()).status);
  while (!(await Promise.race([over, sleep(100, false)])));
  return seen;
}

it('without the brokers it stays ready, names the reason, and answers 503 at once', async () => {
  const { account_id } = await api.newAccount();
  await kafka.stop(0);
  expect(await watched(expectRefusedAtOnce(account_id))).toEqual(new Set([200]));
  // Longer than a follower's patience.
  expect(await watched(sleep(12_000))).toEqual(new Set([200]));
  expect((await readiness()).checks).toMatchObject({
    requests: { ok: false, reason: 'publisher requests is not connected' },
    replies: { ok: false },
  });
  kafka = await startKafka(broker);
  await eventually(async () => (await deposit(account_id)).status === 201, 60_000);
}, 180_000);

it('without the database it stays ready and answers 503 at once', async () => {
  const { account_id } = await api.newAccount();
  const proxy = await new Proxy({ target: world.bank.database_url }).start();
  await world.bank.process('ledger').startWith({ DATABASE_URL: proxy.url });
  await eventually(async () => (await deposit(account_id)).status === 201, 60_000);
  await proxy.set({ kind: 'refuse' });
  const flood = Promise.all(Array.from({ length: 8 }, () => expectRefusedAtOnce(account_id)));
  expect(await watched(flood.then(() => undefined))).toEqual(new Set([200]));
  await proxy.heal();
  await eventually(async () => (await deposit(account_id)).status === 201, 60_000);
  await world.bank.process('ledger').restart();
  await proxy.stop();
}, 180_000);

it('after the loss of all topics it is not ready before it has the API keys that accounts counts', async () => {
  const { bank } = world;
  for (const { name } of bank.processes) await bank.process(name).stop();
  await kafka.stop(10_000);
  rmSync(broker.dir, { recursive: true });
  kafka = await startKafka(broker);
  await createTopics({ brokers: bank.kafka_brokers, topicPrefix: bank.topic_prefix }, 1);
  await bank.process('ledger').restart();
  await bank.process('gateway').startWith({});
  await eventually(() => readiness().then(() => true), 45_000);
  const reasons = new Set<string | undefined>();
  const statuses = new Set<number>();
  const until = performance.now() + 4_000;
  while (performance.now() < until) {
    const { status, checks } = await readiness();
    statuses.add(status);
    reasons.add(checks['api_keys']?.reason);
    expect(await api.get('/clients?limit=1').catch(() => 'refused')).toBe('refused');
    await sleep(100);
  }
  expect(statuses).toEqual(new Set([503]));
  expect(reasons).toEqual(new Set(['API keys have not been compared with what accounts counts']));
  await bank.process('accounts').restart();
  await eventually(async () => (await readiness()).status === 200, 45_000);
  expect((await api.get('/clients?limit=1')).status).toBe(200);
}, 180_000);
