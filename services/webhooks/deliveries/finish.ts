import { randomUUID } from 'node:crypto';
import { type MessageContext, source } from '#libs/contracts/envelope.ts';
import { type EventData, events } from '#libs/contracts/events.ts';
import type { Webhook } from '#libs/contracts/webhooks.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { sentTogether, transactionInTwoTrips } from '#libs/postgres/transaction.ts';
import { auditMessage } from '../audit.ts';
import { changePending, writeAttempts } from './store.ts';
import { type Attempt, judgeAttempt, judgeHealth } from './verdict.ts';

/**
 * Records how attempts of one webhook ended, in order. Throws only on faults, with nothing done. Until the
 * transaction ends, the lock of the webhook keeps others from changing which of its deliveries are Pending.
 */
export function finishAttempts(pool: Pool, webhook_id: string, attempts: readonly Attempt[], now: string) {
  return transactionInTwoTrips(pool, async (client) => {
    const { rows } = await client.query<Pick<Webhook, 'status' | 'client_id' | 'failing_since'>>(
      'select status, client_id, failing_since from webhooks where webhook_id = $1 for update',
      [webhook_id],
    );
    const ended = attempts.map((attempt) => ({ ...attempt, ...judgeAttempt(attempt, Math.random()) }));
    const [webhook] = rows;
    const active = webhook?.status === 'Active' ? webhook : undefined;
    const health = active && judgeHealth(active.failing_since, attempts, now);
    // Running attempts are recorded even if the webhook was deleted or disabled meanwhile.
    const written: Promise<unknown>[] = [writeAttempts(client, webhook_id, ended)];
    const { failing_since = null, disabled } = health ?? {};
    if (active && failing_since !== active.failing_since)
      written.push(
        client.query('update webhooks set failing_since = $2 where webhook_id = $1', [webhook_id, failing_since]),
      );
    if (active && disabled) {
      await sentTogether(written.splice(0));
      const { client_id } = active;
      await disableWebhook(client, { webhook_id, client_id, reason: disabled, failing_since, disabled_at: now });
    }
    return { last: written, result: () => ({ ended, disabled }) };
  });
}

const type = 'corebanking.webhook.disabled.v1';

/**
 * Disables a webhook: Pending deliveries become Failed, later events are left to a replay, and an event reports it.
 * Without a request, the bank does it by itself.
 */
export async function disableWebhook(
  client: Queries,
  event: EventData<typeof type>,
  request?: MessageContext,
): Promise<void> {
  const { webhook_id, reason, failing_since, disabled_at: time } = event;
  await client.query(
    `with disabled as (
       update webhooks set status = 'Disabled', updated_at = $2 where webhook_id = $1
     ) delete from feeds where webhook_id = $1`,
    [webhook_id, time],
  );
  const failed = "status = 'Failed', finished_at = clock_timestamp(), next_attempt_at = null";
  await changePending(client, webhook_id, failed);
  const id = randomUUID();
  const own = { message_id: id, type: 'disable_webhook', source: source.webhooks, time, subject: webhook_id };
  const context = { request_id: id, actor: '', ...request, ...own };
  const headers: Record<string, string> = request ? { 'request-id': request.request_id } : {};
  await writeOutbox(client, [
    { id, topic: events[type].topic, key: webhook_id, type, time, headers, payload: JSON.stringify(event) },
    auditMessage(context, { ok: true, data: null }, { reason, failing_since }, time),
  ]);
}
