import { randomUUID } from 'node:crypto';
import { events } from '#libs/contracts/events.ts';
import { auditId } from '#libs/contracts/ids.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { auditMessage } from '../audit.ts';
import { disable, keepFailingSince, type LockedWebhook, lockWebhook, writeAttempts } from './store.ts';
import { type Attempt, healthOf, type Verdict, verdictOf } from './verdict.ts';

export interface Finished {
  verdicts: Verdict[];
  disabled: 'gone' | 'failing' | undefined;
}

/** Records how attempts of one webhook ended, in order. Throws only on faults, with nothing done. */
export function finishAttempts(
  pool: Pool,
  webhookId: string,
  attempts: readonly Attempt[],
  now: string,
): Promise<Finished> {
  return transaction(pool, async (client) => {
    const webhook = await lockWebhook(client, webhookId);
    const ended = attempts.map((attempt) => ({ attempt, verdict: verdictOf(attempt, Math.random()) }));
    const verdicts = ended.map(({ verdict }) => verdict);
    // Running attempts are recorded even if the webhook was deleted or disabled meanwhile.
    await writeAttempts(client, webhookId, ended);
    if (webhook?.status !== 'Active') return { verdicts, disabled: undefined };
    const { failing_since, disabled } = healthOf(webhook.failing_since, attempts, now);
    if (failing_since !== webhook.failing_since) await keepFailingSince(client, webhookId, failing_since);
    if (disabled)
      await disableAndTell(client, webhookId, webhook, {
        reason: disabled,
        failing_since: failing_since ?? now,
        disabled_at: now,
      });
    return { verdicts, disabled };
  });
}

const type = 'corebanking.webhook.disabled.v1';

export async function disableAndTell(
  client: Queries,
  webhook_id: string,
  { client_id }: Pick<LockedWebhook, 'client_id'>,
  why: { reason: 'gone' | 'failing' | 'revoked'; failing_since: string | null; disabled_at: string },
): Promise<void> {
  await disable(client, webhook_id, why.disabled_at);
  const id = randomUUID();
  const record = {
    audit_id: auditId(id),
    created_at: why.disabled_at,
    actor: 'system',
    action: 'disable_webhook',
    resource_id: webhook_id,
    outcome: 'success',
    request_id: id,
    details: { reason: why.reason, failing_since: why.failing_since },
    address: null,
  };
  await writeOutbox(client, [
    {
      id,
      topic: events[type].topic,
      key: webhook_id,
      type,
      time: why.disabled_at,
      payload: JSON.stringify({ webhook_id, client_id, ...why }),
    },
    auditMessage(record),
  ]);
}
