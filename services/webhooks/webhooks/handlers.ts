import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { isKept, type Refusal, refusal, violationsRefusal } from '#libs/contracts/errors.ts';
import type { MessageData, MessageName } from '#libs/contracts/messages.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import type { AllowedAddresses } from '#libs/service/addresses.ts';
import { disableAndTell } from '../deliveries/finish.ts';
import { deliveryNotFound, insertTest, readDelivery, redeliverNow } from './deliveries.ts';
import {
  type Changes,
  changeWebhook,
  closeFeed,
  deleteFeeds,
  insertWebhook,
  lockedCount,
  lockMadeBy,
  lockWebhook,
  openFeed,
  openReplay,
  type WebhookRow,
  webhookOf,
} from './store.ts';

/** What a handler gets, in the transaction that stores the command's record. */
export interface Work {
  client: Queries;
  context: MessageContext;
  /** ISO 8601 UTC */
  now: string;
  addresses: Pick<AllowedAddresses, 'wrongWith'>;
}

/** `details` are for the audit. A refusal has written nothing; `kept` says whether a repeat gets it again. */
export interface Outcome {
  body: ReplyBody;
  kept: boolean;
  details: Record<string, unknown>;
}

const maxPerCaller = 20;

const done = (data: unknown, details: Record<string, unknown> = {}): Outcome => ({
  body: { ok: true, data },
  kept: true,
  details,
});

export function refused(refusal: Refusal): Outcome {
  return { body: { ok: false, refusal }, kept: isKept(refusal), details: {} };
}

export function webhookNotFound(webhookId: string): Refusal {
  return refusal('webhook_not_found', `webhook ${webhookId} not found`);
}

/** A bound caller sees the webhooks of its client; for all other callers these do not exist. */
export function isVisible(
  { bound_client_id: bound }: MessageContext,
  { client_id }: Pick<WebhookRow, 'client_id'>,
): boolean {
  return bound === undefined || bound === client_id;
}

export const handlers = {
  create_webhook: createWebhook,
  update_webhook: updateWebhook,
  delete_webhook: deleteWebhook,
  rotate_webhook_secret: rotateSecret,
  test_webhook: testWebhook,
  redeliver,
  replay_webhook: replayWebhook,
  disable_webhooks: disableWebhooks,
} satisfies { [N in MessageName]?: (work: Work, data: MessageData<N>) => Promise<Outcome> };

export type CommandName = keyof typeof handlers;

const wrongUrl = (rule: string): Outcome =>
  refused(violationsRefusal([{ field: 'url', code: 'validation_failed', message: `url ${rule}` }]));

async function createWebhook(
  { client, context, addresses }: Work,
  data: MessageData<'create_webhook'>,
): Promise<Outcome> {
  const { webhook_id, url, event_types, description, sealed_secret: secret } = data;
  const wrong = addresses.wrongWith(url);
  if (wrong !== undefined) return wrongUrl(wrong);
  if ((await lockedCount(client, context.actor)) >= maxPerCaller)
    return refused(refusal('validation_failed', `a caller has at most ${maxPerCaller} webhooks`));
  const row = await insertWebhook(client, {
    webhook_id,
    url,
    event_types,
    description,
    secret,
    client_id: context.bound_client_id ?? null,
    created_by: context.actor,
    created_at: context.time,
  });
  await openFeed(client, webhook_id);
  return done(webhookOf(row), { host: new URL(url).host, event_types });
}

/** Runs with the webhook locked, if it belongs to the caller. */
async function withWebhook(
  { client, context }: Work,
  webhookId: string,
  change: (row: WebhookRow) => Promise<Outcome>,
): Promise<Outcome> {
  const row = await lockWebhook(client, webhookId);
  return row && isVisible(context, row) ? change(row) : refused(webhookNotFound(webhookId));
}

function updateWebhook(work: Work, { webhook_id, changes }: MessageData<'update_webhook'>): Promise<Outcome> {
  const { client, now, addresses } = work;
  return withWebhook(work, webhook_id, async ({ status: before }) => {
    const wrong = changes.url === undefined ? undefined : addresses.wrongWith(changes.url);
    if (wrong !== undefined) return wrongUrl(wrong);
    const { status = before } = changes;
    const isWoken = status === 'Active' && before !== 'Active';
    if (isWoken) await openFeed(client, webhook_id);
    if (status !== 'Active' && before === 'Active') await closeFeed(client, webhook_id);
    const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)) as Changes;
    const row = await changeWebhook(client, webhook_id, { ...given, ...(isWoken ? { failing_since: null } : {}) }, now);
    return done(webhookOf(row), { changed_fields: Object.keys(given), status });
  });
}

/** The sweeper deletes its deliveries, sent or not. */
function deleteWebhook(work: Work, { webhook_id }: MessageData<'delete_webhook'>): Promise<Outcome> {
  return withWebhook(work, webhook_id, async (row) => {
    await deleteFeeds(work.client, webhook_id);
    await changeWebhook(work.client, webhook_id, { status: 'Deleted' }, work.now);
    return done(webhookOf(row));
  });
}

function rotateSecret(
  work: Work,
  { webhook_id, sealed_secret, overlap_seconds }: MessageData<'rotate_webhook_secret'>,
): Promise<Outcome> {
  return withWebhook(work, webhook_id, async ({ secret }) => {
    const ends = new Date(Date.parse(work.now) + overlap_seconds * 1000).toISOString();
    const row = await changeWebhook(
      work.client,
      webhook_id,
      { secret: sealed_secret, previous_secret: secret, previous_secret_ends_at: ends },
      work.now,
    );
    return done(webhookOf(row), { old_secret_ends_at: ends });
  });
}

/** Only an Active webhook can be sent anything. */
function withActive(work: Work, webhookId: string, change: (row: WebhookRow) => Promise<Outcome>): Promise<Outcome> {
  return withWebhook(work, webhookId, async (row) =>
    row.status === 'Active'
      ? change(row)
      : refused(refusal('invalid_status_transition', `webhook ${webhookId} is ${row.status}: make it Active first`)),
  );
}

function testWebhook(work: Work, { webhook_id }: MessageData<'test_webhook'>): Promise<Outcome> {
  return withActive(work, webhook_id, async () => done(await insertTest(work.client, webhook_id, work.now)));
}

function redeliver(work: Work, { webhook_id, delivery_id }: MessageData<'redeliver'>): Promise<Outcome> {
  return withActive(work, webhook_id, async () => {
    const delivery = await readDelivery(work.client, webhook_id, delivery_id);
    if (!delivery) return refused(deliveryNotFound(delivery_id));
    if (!delivery.has_event)
      return refused(refusal('invalid_status_transition', `the event of delivery ${delivery_id} is no longer kept`));
    await redeliverNow(work.client, webhook_id, delivery_id);
    return done((await readDelivery(work.client, webhook_id, delivery_id))?.delivery, {
      delivery_id,
      status: delivery.delivery.status,
    });
  });
}

/** What revoked keys have made sends nothing more, until somebody makes it Active again. */
async function disableWebhooks(
  { client, now }: Work,
  { made_by, client_id }: MessageData<'disable_webhooks'>,
): Promise<Outcome> {
  const rows = await lockMadeBy(client, made_by, client_id);
  for (const row of rows)
    await disableAndTell(client, row.webhook_id, row, { reason: 'revoked', failing_since: null, disabled_at: now });
  const disabled = rows.map(({ webhook_id }) => webhook_id);
  return done({ disabled }, { disabled });
}

function replayWebhook(work: Work, { webhook_id, from, to }: MessageData<'replay_webhook'>): Promise<Outcome> {
  return withActive(work, webhook_id, async (row) => {
    const isOpened = await openReplay(work.client, webhook_id, from, to);
    return isOpened
      ? done(webhookOf(row), { from, to })
      : refused(
          refusal(
            'invalid_status_transition',
            `webhook ${webhook_id} has too many running replays: wait until one has finished`,
          ),
        );
  });
}
