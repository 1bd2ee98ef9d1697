import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { MessageContext, ReplyAddress, ReplyBody } from '#libs/contracts/envelope.ts';
import { replySchema, source, toHeaders } from '#libs/contracts/envelope.ts';
import { bucketForKey } from '#libs/contracts/ids.ts';
import { messages, messageType } from '#libs/contracts/messages.ts';
import { commandPartition, topicName } from '#libs/contracts/topics.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import { outboxInsert, outboxValues } from '#libs/postgres/outbox/outbox.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { requireReplication, transaction } from '#libs/postgres/transaction.ts';
import type { KnownCommand as Known } from '#libs/service/repeats.ts';
import { auditEvent, auditInsert } from '../audit/audit.ts';
import type { Step } from '../outcome.ts';

/** SQL that makes commands exactly-once: their records, the addresses waiting for replies, and running steps. */

/** `reply` is undefined while the command's saga is running. */
export type KnownCommand = Known & { reply: ReplyBody | undefined };

const knownColumns = 'command_id, fingerprint, correlation_id, reply';
type KnownRow = Known & { command_id: string; reply: unknown };

function toKnownCommand({ command_id, fingerprint, correlation_id, reply }: KnownRow): [string, KnownCommand] {
  return [command_id, { fingerprint, correlation_id, reply: reply === null ? undefined : replySchema.parse(reply) }];
}

/**
 * Claims commands with distinct ids for this transaction, and returns the known ones; all others are new. Waits (at most
 * lock_timeout) for concurrent transactions that have claimed the same ids, and claims the commands that they roll back.
 * The known ones are locked, which prevents a saga from ending before addWaiter.
 */
export async function claim(client: Queries, commands: readonly MessageContext[]): Promise<Map<string, KnownCommand>> {
  // The order of ids prevents deadlocks between two batches with the same commands.
  const sorted = commands.toSorted((a, b) => (a.message_id < b.message_id ? -1 : 1));
  const { rows } = await client.query<KnownRow & { is_known: boolean }>({
    name: 'claim',
    // The update locks what is there, and tells it from what is new.
    text: `insert into commands as c (command_id, fingerprint, correlation_id) select * from unnest($1::text[], $2::text[], $3::text[])
       on conflict (command_id) do update set repeats = c.repeats + 1
       returning ${knownColumns}, repeats > 0 as is_known`,
    values: [
      sorted.map(({ message_id }) => message_id),
      sorted.map(({ fingerprint = null }) => fingerprint),
      sorted.map(({ correlation_id = null }) => correlation_id),
    ],
  });
  return new Map(rows.filter(({ is_known }) => is_known).map(toKnownCommand));
}

/**
 * Returns those of these commands whose reply is stored, and committed on the synchronous standby too. It never changes,
 * so nothing is locked.
 */
export function readDecided(pool: Pool, ids: string[]): Promise<Map<string, KnownCommand>> {
  return transaction(pool, async (client) => {
    const { rows } = await client.query<KnownRow>(
      `select ${knownColumns} from commands where command_id = any($1::text[]) and reply is not null`,
      [ids],
    );
    if (rows.length > 0) await requireReplication(client);
    return new Map(rows.map(toKnownCommand));
  });
}

/** The effects of decided commands, to be written together. */
export interface Effects {
  kept: { id: string; body: ReplyBody }[];
  /** Claims to release, because the refusal is not stored. */
  unkept: string[];
  steps: Step[];
  events: OutboxEvent[];
  audits: AuditRecord[];
}

const firstRetryS = 2;
const maxRetryS = 60;

const stepColumns = 'step_id, message, account_id, payload, context, detail';

// Replies are not elements of a JSON parameter, because the message of a refusal may contain NUL, which Postgres rejects
// there, but not in a text that becomes json as a whole.
const effectsStatement = `with kept as (
    update commands set reply = decided.reply::json from unnest($1::text[], $2::text[]) as decided (id, reply) where command_id = decided.id
  ), unkept as (
    delete from commands where command_id = any($3::text[])
  ), begun as (
    insert into saga_steps (${stepColumns}, next_attempt_at)
    select ${stepColumns}, clock_timestamp() + interval '${firstRetryS} seconds' from json_populate_recordset(null::saga_steps, $4)
  ), audited as (${auditInsert(5)}), ${outboxInsert(6)} select 1`;

/** Writes the effects with one statement. By then, the transaction must have locked the rows that order the events. */
export async function writeEffects(client: Queries, { kept, unkept, steps, events, audits }: Effects): Promise<void> {
  await client.query({
    name: 'write_effects',
    text: effectsStatement,
    values: [
      kept.map(({ id }) => id),
      kept.map(({ body }) => JSON.stringify(body)),
      unkept,
      JSON.stringify(steps),
      JSON.stringify(audits),
      ...outboxValues([...events, ...audits.map(auditEvent)]),
    ],
  });
}

/** The maximum number of repeats of a command that wait for its reply. */
const maxWaiters = 1000;

/**
 * Adds the reply address of a repeat of a running command, once per correlation id. Returns false if there are too many.
 */
export async function addWaiter(client: Queries, commandId: string, address: ReplyAddress): Promise<boolean> {
  const { rows } = await client.query<{ waits: boolean }>(
    `with added as (
       insert into waiting_replies (command_id, correlation_id, topic, "partition")
       select $1, $2, $3, $4 where (select count(*) from waiting_replies where command_id = $1) < $5
       on conflict do nothing returning true
     ) select exists (select from added) or exists (select from waiting_replies where command_id = $1 and correlation_id = $2) as waits`,
    [commandId, address.correlation_id, address.topic, address.partition, maxWaiters],
  );
  return rows[0]?.waits === true;
}

/**
 * Removes and returns the reply addresses of repeats of these commands. Called after writeEffects has stored their
 * replies, in a new statement that sees the last added address; none can be added afterwards.
 */
export async function takeWaiters(
  client: Queries,
  commandIds: string[],
): Promise<(ReplyAddress & { command_id: string })[]> {
  const taken = await client.query<ReplyAddress & { command_id: string }>({
    name: 'take_waiters',
    text: `delete from waiting_replies where command_id = any($1::text[]) returning command_id, correlation_id, topic, "partition"`,
    values: [commandIds],
  });
  return taken.rows;
}

/** Removes steps, to be finished in this transaction; finished ones are skipped. Waits for concurrent transactions. */
export async function takeSteps(client: Queries, stepIds: string[]): Promise<Step[]> {
  const taken = await client.query<Step>({
    name: 'take_steps',
    text: `delete from saga_steps where step_id = any($1::text[]) returning ${stepColumns}`,
    values: [stepIds],
  });
  return taken.rows;
}

/** Returns steps without a reply for 2 s, then 4, 8 … 60 s, each to one process only. */
export async function takeDueSteps(client: Queries, limit: number): Promise<Step[]> {
  const due = await client.query<Step>(
    `update saga_steps set attempts = attempts + 1,
       next_attempt_at = clock_timestamp() + make_interval(secs => least($3, $2 * power(2, least(attempts, 10))))
     where step_id in (select step_id from saga_steps where next_attempt_at <= clock_timestamp() order by next_attempt_at limit $1 for update skip locked)
     returning ${stepColumns}`,
    [limit, firstRetryS, maxRetryS],
  );
  return due.rows;
}

/**
 * Returns the step as a message: the same on every attempt, and without a deadline, because a started saga is
 * always finished.
 */
export function stepMessage(step: Step, prefix: string): OutboxEvent {
  const {
    step_id,
    account_id,
    context: { time, request_id, actor, traceparent, four_eyes },
    detail: { approved },
  } = step;
  const partition = commandPartition(approved?.bucket ?? bucketForKey(account_id));
  const type = messageType(step.message);
  const context = approved?.context ?? { message_id: step_id, time, request_id, actor, four_eyes };
  const headers = toHeaders({
    ...context,
    type,
    source: source.accounts,
    subject: account_id,
    traceparent,
    correlation_id: step_id,
    reply_topic: topicName(prefix, 'accounts.commands'),
    reply_partition: partition,
  });
  return {
    id: context.message_id,
    topic: messages[step.message].topic,
    key: account_id,
    type,
    time: context.time,
    headers,
    payload: JSON.stringify(step.payload),
    partition,
  };
}
