import { expect, it } from 'vitest';
import { transaction } from '#libs/postgres/transaction.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { readScrape } from '../../tests/support/metrics.ts';
import { feedAll } from './deliveries/feed.ts';
import { startFirst } from './deliveries/store.ts';
import { countWork, measureDeliveries } from './measure.ts';
import { completed, newId, opened, useWebhooks } from './test/harness.ts';

/** The values of metrics, with a real Postgres. */
const harness = useWebhooks();

/** A webhook with Pending deliveries that should have been attempted so many seconds ago. */
async function webhook(status: 'Active' | 'Paused' | 'Disabled', ...lateS: number[]): Promise<void> {
  const { webhook_id } = await harness.webhook('https://receiver.example/');
  for (const seconds of lateS) {
    const { event_id } = await harness.done('test_webhook', { webhook_id });
    await harness.owner.query(
      'update deliveries set next_attempt_at = clock_timestamp() - make_interval(secs => $1) where event_id = $2',
      [seconds, event_id],
    );
  }
  await harness.owner.query('update webhooks set status = $1 where webhook_id = $2', [status, webhook_id]);
}

it('gauges are about Pending deliveries of Active webhooks, the longest overdue one, webhooks by status, and this process', async () => {
  const metrics = createMetrics('webhooks');
  measureDeliveries(metrics, metrics, harness.pool, { underWay: () => 7 });
  const none = readScrape(await metrics.text());
  expect(none.value('corebanking_webhook_deliveries_pending')).toBe(0);
  expect(none.value('corebanking_webhook_late_seconds')).toBe(0);
  await webhook('Active', -60, 300);
  await webhook('Active', 100, 200);
  await webhook('Paused', 100_000);
  await webhook('Disabled');
  await webhook('Disabled');
  // A reading is reused for a second.
  const later = createMetrics('webhooks');
  measureDeliveries(later, later, harness.pool, { underWay: () => 7 });
  const { value } = readScrape(await later.text());
  expect(value('corebanking_webhook_deliveries_pending')).toBe(4);
  const lateS = value('corebanking_webhook_late_seconds') ?? 0;
  expect(lateS).toBeGreaterThanOrEqual(300);
  expect(lateS).toBeLessThan(100_000);
  expect(['Active', 'Paused', 'Disabled'].map((status) => value('corebanking_webhooks', { status }))).toEqual([
    2, 1, 2,
  ]);
  expect(value('corebanking_webhook_requests_under_way')).toBe(7);
});

it('the oldest undelivered event is that of a refused account that waits for a retry, or one that no feed has examined', async () => {
  const oldest = async () => {
    const metrics = createMetrics('webhooks');
    measureDeliveries(metrics, metrics, harness.pool, { underWay: () => 0 });
    return readScrape(await metrics.text()).value('corebanking_webhook_oldest_undelivered_seconds') ?? Number.NaN;
  };
  await harness.owner.query("update webhooks set status = 'Deleted'");
  const client = newId('client');
  const account = newId('account');
  await harness.take(opened(account, client));
  const agoS = (seconds: number) => ({ time: new Date(Date.now() - seconds * 1000).toISOString() });
  for (const overrides of [{}, { bound_client_id: client }]) {
    const { webhook_id } = await harness.webhook('https://receiver.example/', ['*'], overrides);
    expect(await oldest()).toBe(0);
    await harness.take(completed(account, 1, [], agoS(500)), completed(account, 2, [], agoS(100)));
    expect(await oldest()).toBeGreaterThanOrEqual(500);
    while (await feedAll(harness.pool));
    expect(await oldest()).toBeGreaterThanOrEqual(500);
    const deliver = () =>
      transaction(harness.owner, async (client) => {
        const { rows } = await client.query<{ ordinal: bigint }>(
          `update deliveries set status = 'Delivered', next_attempt_at = null
           where webhook_id = $1 and next_attempt_at is not null returning ordinal`,
          [webhook_id],
        );
        await startFirst(
          client,
          webhook_id,
          rows.map(({ ordinal }) => ordinal),
        );
      });
    // The next one has waited since it occurred, not since the one before it was delivered.
    await deliver();
    expect(await oldest()).toBeGreaterThanOrEqual(100);
    expect(await oldest()).toBeLessThan(500);
    await deliver();
    expect(await oldest()).toBe(0);
    // What a replay sends has waited since it was requested.
    await harness.done('replay_webhook', { webhook_id, from: agoS(600).time, to: agoS(0).time });
    while (await feedAll(harness.pool));
    expect(await oldest()).toBeGreaterThan(0);
    expect(await oldest()).toBeLessThan(100);
    await harness.owner.query("update webhooks set status = 'Paused' where status = 'Active'");
    expect(await oldest()).toBe(0);
  }
});

it('attempts are counted by outcome, with their durations, and deliveries when they have ended', async () => {
  const metrics = createMetrics('webhooks');
  const count = countWork(metrics);
  const attempt = { ordinal: '1', claim: 1, tries: 0, attempted_at: '', response_status: null, error: null };
  count.attempt({ ...attempt, status: 'Delivered', duration_ms: 250 });
  count.attempt({ ...attempt, status: 'Pending', delayMs: 5_000, duration_ms: 1_000 });
  count.attempt({ ...attempt, status: 'Failed', duration_ms: 2_000 });
  const { value } = readScrape(await metrics.text());
  const attempts = (what: string, outcome: string) =>
    value(`corebanking_webhook_attempt_duration_seconds_${what}`, { outcome });
  expect([attempts('count', 'delivered'), attempts('sum', 'delivered')]).toEqual([1, 0.25]);
  expect([attempts('count', 'failed'), attempts('sum', 'failed')]).toEqual([2, 3]);
  expect(
    ['Delivered', 'Pending', 'Failed'].map((status) => value('corebanking_webhook_deliveries_total', { status })),
  ).toEqual([1, undefined, 1]);
});
