import { randomBytes } from 'node:crypto';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { replySchema, replyType, source, toHeaders } from '#libs/contracts/envelope.ts';
import type { IdKind } from '#libs/contracts/ids.ts';
import { bucketForKey, formatId } from '#libs/contracts/ids.ts';
import type { MessageData, MessageName } from '#libs/contracts/messages.ts';
import { messages, messageType } from '#libs/contracts/messages.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { createPool, lookupPlans } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent } from '#libs/postgres/test/test-database.ts';
import { queriesLast } from '#libs/service/query-consumer.ts';
import { createReplies, type RepliesOptions } from '#libs/service/replies.ts';
import { signedForTest, testKeys } from '#libs/service/test/keys.ts';
import { createVerifier } from '#libs/service/verifications.ts';
import { useStarted } from '../../../tests/support/use-started.ts';
import { ofAudit } from '../audit/verify-audit.ts';
import type { ConsumerDeps } from '../consumers.ts';
import { accountsCommands, accountsQueries } from '../consumers.ts';
import { migrations, schema } from '../schema.ts';

/** For tests: accounts without Kafka. Messages are passed directly, and replies and dead letters are collected. */

export interface TestEvent extends Omit<OutboxEvent, 'payload'> {
  headers: Record<string, string>;
  payload: Record<string, unknown>;
}

export type Harness = Awaited<ReturnType<typeof startHarness>>;

export const useAccounts = (): Harness => useStarted(startHarness);

export function newId(kind: IdKind): string {
  return formatId(kind, randomBytes(16).toString('hex'));
}

const password = 'only-for-tests';
let offsets = 0n;

export async function startHarness() {
  const database = await createTestDatabase();
  const role = `${database.name}_accounts`;
  await migrate({ ...migrations, owner_url: database.url, role, role_password: password }, silent);
  const url = new URL(database.url);
  url.username = role;
  url.password = password;
  const newPool = (options: Record<string, string> = {}) =>
    createPool({ url: url.href, application_name: 'accounts-test', schema, max: 10, options }, silent);
  const pool = newPool();
  const commandPool = newPool(lookupPlans);
  const owner = createPool(
    { url: database.url, application_name: 'accounts-test-owner', schema, max: 2, statement_timeout_ms: 60_000 },
    silent,
  );
  const pools = [pool, commandPool, owner];
  return {
    pool,
    owner,
    ownerUrl: database.url,
    login: { role, role_password: password },
    /** Starts another process with its own connections, consumers, and replies. */
    process() {
      const own = newPool(lookupPlans);
      pools.push(own);
      return createProcess(pool, own);
    },
    ...createProcess(pool, commandPool),
    async stop() {
      await Promise.all(pools.map((each) => each.end()));
      await database.drop();
    },
  };
}

type Overrides = Partial<MessageContext>;

function createProcess(pool: Pool, commandPool: Pool) {
  const replies: { topic: string; partition: number; correlation_id: string; body: ReplyBody }[] = [];
  const deadLetters: { message: OutgoingMessage; code: string }[] = [];
  const clock: { now: Date | undefined } = { now: undefined };
  /** The content of the dead letter topics, by topic/partition/offset, and the redriven messages. */
  const kept = new Map<string, ReceivedMessage>();
  const redriven: OutgoingMessage[] = [];
  const publish = async (message: OutgoingMessage) => {
    const { topic, partition = -1, value, headers } = message;
    if (topic.endsWith('.dlq')) return void deadLetters.push({ message, code: headers['dlq-code'] ?? '' });
    replies.push({
      topic,
      partition,
      correlation_id: headers['correlation-id'] ?? '',
      body: replySchema.parse(JSON.parse(String(value))),
    });
  };
  const now = () => clock.now ?? new Date();
  const publisher = {
    publish,
    publishAll: async (messages: readonly OutgoingMessage[]) => void (await Promise.all(messages.map(publish))),
  };
  const repliesBy = (to: RepliesOptions['publisher']) =>
    createReplies({ publisher: to, source: source.accounts, logger: silent, now: () => now().getTime() });
  const deps: ConsumerDeps = {
    pool: commandPool,
    prefix: 'p.',
    keys: testKeys,
    logger: silent,
    concurrency: 6,
    replies: repliesBy(publisher),
    signForGateways: (text) => `signed: ${text}`,
    deadLetters: {
      read: async (topic, partition, offset) => kept.get(`${topic}/${partition}/${offset}`),
      publish: async (message) => void redriven.push(message),
    },
    retention: { years: 10, eventsDays: 400, outboxHours: 24 },
    auditVerifier: createVerifier(ofAudit, { pool, reads: pool, now: () => now().getTime(), logger: silent }),
    wakeRelay: () => undefined,
    now,
    observe: () => undefined,
  };
  const { handle: handleQueries } = accountsQueries({ ...deps, pool });
  const handleCommands = queriesLast(accountsCommands(deps).handle, handleQueries);
  const repliesTo = (correlationId: string) =>
    replies.filter((reply) => reply.correlation_id === correlationId).map((reply) => reply.body);

  /** Sends a message and returns its reply; undefined if there is none yet. */
  async function send<N extends MessageName>(
    name: N,
    data: MessageData<N>,
    overrides: Overrides = {},
  ): Promise<ReplyBody | undefined> {
    const message = messageFor(name, data, overrides);
    const isQuery = messages[name].kind === 'query';
    await (isQuery ? handleQueries : handleCommands)([message]);
    return repliesTo(message.headers['correlation-id'] ?? '')[0];
  }
  return {
    deps,
    repliesBy,
    clock,
    kept,
    redriven,
    replies,
    deadLetters,
    repliesTo,
    send,
    handleCommands,
    handleQueries,
  };
}

const keyFields = ['account_id', 'client_id', 'key_id', 'dead_letter_id'] as const;

/** Returns a message as the gateway would send it, with a new correlation id. */
export function messageFor<N extends MessageName>(
  name: N,
  data: MessageData<N>,
  overrides: Overrides = {},
): ReceivedMessage {
  const fields: Record<string, unknown> = data;
  const key = String(keyFields.map((field) => fields[field]).find((value) => value !== undefined) ?? '');
  const now = Date.now();
  const context: MessageContext = {
    message_id: `cmd_${randomBytes(16).toString('hex')}`,
    type: messageType(name),
    source: '/core-banking/gateway',
    time: new Date(now).toISOString(),
    subject: key,
    request_id: 'req-1',
    actor: 'key:key_tester',
    deadline: new Date(now + 30_000).toISOString(),
    reply_by: new Date(now + 5_000).toISOString(),
    correlation_id: randomBytes(8).toString('hex'),
    reply_topic: 'p.replies',
    reply_partition: 7,
    ...overrides,
  };
  return signedForTest(received(`p.${messages[name].topic}`, key, toHeaders(context), JSON.stringify(data)));
}

export function received(
  topic: string,
  key: string,
  headers: Record<string, string>,
  value: string | null,
): ReceivedMessage {
  return {
    topic,
    partition: commandPartition(bucketForKey(key)),
    offset: offsets++,
    key,
    value: value === null ? null : Buffer.from(value),
    headers,
    timestamp_ms: Date.now(),
  };
}

/** Returns the events of one key in the outbox, in order, without the states of the compacted topics. */
export async function readOutboxByKey(pool: Pool, key: string): Promise<TestEvent[]> {
  return (await readOutbox(pool))
    .filter((event) => event.key === key && !event.topic.endsWith('-masters'))
    .map(({ id, topic, type, time, headers = {}, partition, payload }) => ({
      id,
      topic,
      key,
      type,
      time,
      headers,
      ...(partition === undefined ? {} : { partition }),
      payload: JSON.parse(payload ?? 'null') as Record<string, unknown>,
    }));
}

/** Returns the ledger's reply to a step, as it arrives on accounts.commands. */
export function ledgerReply(stepId: string, accountId: string, body: ReplyBody): ReceivedMessage {
  return signedForTest(
    received('p.accounts.commands', accountId, { ce_type: replyType, ce_id: stepId }, JSON.stringify(body)),
  );
}

export const retail = {
  client_type: 'Retail' as const,
  first_name: 'Ada',
  last_name: 'Lovelace',
  email: 'ada@example.com',
  contact_number: '+254700000001',
  address: null,
  ussd_phone_number: null,
  ussd_status: 'inactive' as const,
};

export const corporate = {
  client_type: 'Corporate' as const,
  company_name: 'Analytical Engines',
  registration_number: 'AE-1',
  email: 'office@example.com',
  contact_number: '+254700000002',
  address: 'London',
};

/** Creates a client and returns its id. */
export async function newClient(
  harness: Harness,
  client: MessageData<'create_client'>['client'] = retail,
): Promise<string> {
  const client_id = newId('client');
  const reply = await harness.send('create_client', { client_id, client }, { message_id: client_id });
  if (!reply?.ok) throw new Error(`no client was created: ${JSON.stringify(reply)}`);
  return client_id;
}

/** Opens an account, with the ledger's replies simulated, and returns its id. */
export async function newAccount(
  harness: Harness,
  clientId: string,
  changes: Partial<MessageData<'open_account'>> = {},
): Promise<string> {
  const data = openAccountCommand(clientId, changes);
  await harness.send('open_account', data, { message_id: data.account_id });
  await harness.handleCommands([
    ledgerReply(data.account_id, data.account_id, {
      ok: true,
      data: { account_id: data.account_id, status: data.status, status_version: 1, balance: data.initial_deposit },
    }),
  ]);
  return data.account_id;
}

export function openAccountCommand(
  clientId: string,
  changes: Partial<MessageData<'open_account'>> = {},
): MessageData<'open_account'> {
  return {
    account_id: newId('account'),
    client_id: clientId,
    account_type: 'Savings',
    currency: 'USD',
    initial_deposit: '10',
    status: 'Active',
    ...changes,
  };
}
