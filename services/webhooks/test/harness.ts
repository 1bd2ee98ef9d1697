import { randomBytes, randomUUID } from 'node:crypto';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { replySchema, source, toHeaders } from '#libs/contracts/envelope.ts';
import type { CloudEvent } from '#libs/contracts/event-feed.ts';
import type { EventData, EventType } from '#libs/contracts/events.ts';
import { events, schemaId } from '#libs/contracts/events.ts';
import { formatId, type IdKind } from '#libs/contracts/ids.ts';
import {
  type MessageData,
  type MessageName,
  type MessageResult,
  messages,
  messageType,
} from '#libs/contracts/messages.ts';
import { createSecretKeys, newWebhookSecret, type SecretKeys } from '#libs/contracts/webhook-secret.ts';
import type { Delivery, Webhook } from '#libs/contracts/webhooks.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import { createPool, lookupPlans, type Pool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent } from '#libs/postgres/test/test-database.ts';
import { createReplies } from '#libs/service/replies.ts';
import { signedForTest, testEventKeys, testKeys } from '#libs/service/test/keys.ts';
import { useStarted } from '../../../tests/support/use-started.ts';
import { allowedAddresses } from '../deliveries/addresses.ts';
import { createDeliverer } from '../deliveries/deliverer.ts';
import { createSender } from '../deliveries/send.ts';
import { takeEvents } from '../events/store-events.ts';
import { webhooksQueries } from '../queries/queries.ts';
import { migrations, schema } from '../schema.ts';
import { webhooksCommands } from '../webhooks/execute.ts';

/** For tests: webhooks without Kafka. Messages are passed to the handlers; replies and the outbox can be read. */

export type Harness = Awaited<ReturnType<typeof startHarness>>;

export const useWebhooks = (): Harness => useStarted(startHarness);

export const newId = (kind: IdKind): string => formatId(kind, randomBytes(16).toString('hex'));
const secretKeys = createSecretKeys(['a key for secrets of webhooks, of tests']);
export const retentionDays = 400;
/** Tests wait for locks that they hold themselves, however slow the machine is. */
const patient = {
  statement_timeout_ms: 60_000,
  lock_timeout_ms: 60_000,
  idle_in_transaction_session_timeout_ms: 60_000,
};
let offsets = 0n;

export async function startHarness() {
  const database = await createTestDatabase();
  const role = `${database.name}_webhooks`;
  const password = 'only-for-tests';
  await migrate({ ...migrations, owner_url: database.url, role, role_password: password }, silent);
  const url = new URL(database.url);
  url.username = role;
  url.password = password;
  const pools: Pool[] = [];
  const newPool = (of: string, max: number, options: Record<string, string> = {}) => {
    const pool = createPool({ url: of, application_name: 'webhooks-test', schema, max, options, ...patient }, silent);
    pools.push(pool);
    return pool;
  };
  const pool = newPool(url.href, 10);
  const feedPool = newPool(url.href, 2, lookupPlans);
  const owner = newPool(database.url, 3);
  const replies: { correlation_id: string; body: ReplyBody }[] = [];
  const publish = async ({ topic, headers, value }: OutgoingMessage) => {
    if (topic.endsWith('.dlq')) return;
    replies.push({
      correlation_id: headers['correlation-id'] ?? '',
      body: replySchema.parse(JSON.parse(String(value))),
    });
  };
  const publisher = {
    publish,
    publishAll: async (all: readonly OutgoingMessage[]) => void (await Promise.all(all.map(publish))),
  };
  const addresses = allowedAddresses(['127.0.0.0/8', '::1']);
  const clock: { now: Date | undefined } = { now: undefined };
  const deps = {
    pool,
    prefix: 'p.',
    keys: testKeys,
    logger: silent,
    addresses,
    retentionDays,
    replies: createReplies({ publisher, source: source.webhooks, logger: silent, now: Date.now }),
    now: () => (clock.now ?? new Date()).getTime(),
    onExecuted: () => deliverers.forEach((one) => one.wake()),
  };
  const { handle } = webhooksCommands(deps);
  const { handle: ask } = webhooksQueries(deps);
  const deliverers: ReturnType<typeof createDeliverer>[] = [];

  async function send<N extends MessageName>(
    name: N,
    data: MessageData<N>,
    overrides: Partial<MessageContext> = {},
  ): Promise<ReplyBody> {
    const message = messageFor(name, data, overrides);
    await (messages[name].kind === 'query' ? ask : handle)([message]);
    const reply = replies.findLast(({ correlation_id }) => correlation_id === message.headers['correlation-id']);
    if (!reply) throw new Error(`no reply to ${name}`);
    return reply.body;
  }
  /** Returns the data of a successful reply, which a gateway would accept. */
  async function done<N extends MessageName>(
    name: N,
    data: MessageData<N>,
    overrides: Partial<MessageContext> = {},
  ): Promise<MessageResult<N>> {
    const reply = await send(name, data, overrides);
    if (!reply.ok) throw new Error(`${name}: ${JSON.stringify(reply.refusal)}`);
    messages[name].result.parse(reply.data);
    return reply.data as MessageResult<N>;
  }
  return {
    pool,
    owner,
    clock,
    send,
    done,
    secretKeys,
    outbox: () => readOutbox(pool),
    /** Starts another process that delivers. */
    deliver(options: { concurrency?: number; timeoutMs?: number; secretKeys?: SecretKeys } = {}) {
      const sender = createSender(addresses, options.timeoutMs ?? 15_000);
      const own = newPool(url.href, 5);
      const deliverer = createDeliverer({
        pool: own,
        feedPool: newPool(url.href, 2, lookupPlans),
        sender,
        secretKeys: options.secretKeys ?? secretKeys,
        now: deps.now,
        mayDecide: () => true,
        concurrency: options.concurrency ?? 512,
        logger: silent,
        onRecorded: () => undefined,
      });
      deliverers.push(deliverer);
      deliverer.start();
      return deliverer;
    },
    /** Stores messages as if they came from Kafka. */
    async take(...messages: ReceivedMessage[]) {
      const taken = await takeEvents(feedPool, messages, testEventKeys, silent);
      deliverers.forEach((one) => one.wake());
      return taken;
    },
    /** A webhook with its secret. */
    async webhook(
      to: string,
      event_types = ['*'],
      overrides: Partial<MessageContext> = {},
    ): Promise<Webhook & { secret: string }> {
      const webhook_id = newId('webhook');
      const secret = newWebhookSecret();
      const data = {
        webhook_id,
        url: to,
        event_types,
        description: null,
        sealed_secret: secretKeys.seal(webhook_id, secret),
      };
      return { ...(await done('create_webhook', data, { message_id: webhook_id, ...overrides })), secret };
    },
    deliveries: async (webhook_id: string, status?: Delivery['status']): Promise<Delivery[]> =>
      (await done('list_deliveries', { webhook_id, limit: 500, order: 'asc', ...(status && { status }) })).items,
    events: async (
      data: Partial<MessageData<'list_events'>> = {},
      overrides: Partial<MessageContext> = {},
    ): Promise<{ items: CloudEvent[]; cursor: string; more: boolean }> =>
      done('list_events', { limit: 500, ...data }, overrides),
    /** Makes every delivery due that waits for its next attempt. */
    hurry: () =>
      owner.query(
        "update deliveries set next_attempt_at = clock_timestamp() where status = 'Pending' and next_attempt_at is not null",
      ),
    async stop() {
      await Promise.all(deliverers.map((one) => one.stop()));
      await Promise.all(pools.map((each) => each.end()));
      await database.drop();
    },
  };
}

function messageFor<N extends MessageName>(
  name: N,
  data: MessageData<N>,
  overrides: Partial<MessageContext>,
): ReceivedMessage {
  const now = Date.now();
  const key = String((data as { webhook_id?: string }).webhook_id ?? '');
  const context: MessageContext = {
    message_id: `cmd_${randomBytes(16).toString('hex')}`,
    type: messageType(name),
    source: source.gateway,
    time: new Date(now).toISOString(),
    subject: key,
    request_id: 'req-1',
    actor: 'key:key_tester',
    all_webhooks: 'true',
    deadline: new Date(now + 30_000).toISOString(),
    reply_by: new Date(now + 5_000).toISOString(),
    correlation_id: randomUUID(),
    reply_topic: 'p.replies',
    reply_partition: 7,
    ...overrides,
  };
  return signedForTest({
    topic: `p.${messages[name].topic}`,
    partition: 0,
    offset: offsets++,
    key,
    value: Buffer.from(JSON.stringify(data)),
    headers: toHeaders(context),
    timestamp_ms: now,
  });
}

/** An event as the relay publishes it. */
export function eventMessage<T extends EventType>(
  type: T,
  key: string,
  data: EventData<T>,
  overrides: { id?: string; time?: string } = {},
): ReceivedMessage {
  const headers = {
    ce_specversion: '1.0',
    ce_id: overrides.id ?? randomUUID(),
    ce_type: type,
    ce_source: source.ledger,
    ce_time: overrides.time ?? new Date().toISOString(),
    ce_subject: key,
    ce_dataschema: schemaId(type),
    'content-type': 'application/json',
  };
  const message = { key, value: Buffer.from(JSON.stringify(data)), headers };
  testEventKeys.sign(message);
  return { ...message, topic: events[type].topic, partition: 0, offset: offsets++, timestamp_ms: Date.now() };
}

const entry = (account_id: string, sequence: number) => ({
  entry_id: `ent_${account_id.slice(4)}-${sequence}`,
  operation_id: newId('operation'),
  transaction_id: newId('transaction'),
  account_id,
  sequence,
  direction: 'credit' as const,
  side: 'CR' as const,
  amount: '1.00',
  currency: 'USD',
  balance_after: '1.00',
  created_at: new Date().toISOString(),
});

/** A deposit to the account, or an incoming transfer. */
export function completed(
  account_id: string,
  sequence: number,
  others: string[] = [newId('account')],
  overrides: { id?: string; time?: string; transaction?: object } = {},
): ReceivedMessage {
  const transaction = {
    transaction_id: newId('transaction'),
    account_id,
    transaction_type: 'Deposit' as const,
    amount: '1.00',
    currency: 'USD',
    description: 'Cash',
    reference: null,
    status: 'Completed' as const,
    created_at: new Date().toISOString(),
    direction: 'credit' as const,
    ...overrides.transaction,
  };
  const data = {
    transaction,
    sequence,
    balance_after: '1.00',
    operation_id: newId('operation'),
    entries: [account_id, ...others].map((one) => entry(one, sequence)),
  };
  return eventMessage('corebanking.transaction.completed.v1', account_id, data, overrides);
}

export function opened(account_id: string, client_id: string): ReceivedMessage {
  const at = new Date().toISOString();
  return eventMessage('corebanking.account.opened.v1', account_id, {
    account: {
      account_id,
      client_id,
      account_number: 'SAV-1',
      account_type: 'Savings',
      currency: 'USD',
      status: 'Active',
      created_at: at,
      updated_at: at,
    },
  });
}
