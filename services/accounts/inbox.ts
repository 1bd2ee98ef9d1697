import { messages, messageType } from '#libs/contracts/messages.ts';
import { bucketOf } from '#libs/contracts/ids.ts';
import { replySchema, source, toHeaders } from '#libs/contracts/envelope.ts';
import type { ReplyAddress, ReplyBody } from '#libs/contracts/envelope.ts';
import { commandPartition, topicName } from '#libs/contracts/topics.ts';
import type { OutboxEvent } from '#libs/postgres/outbox.ts';
import type { PoolClient } from '#libs/postgres/pool.ts';
import type { Step } from './outcome.ts';

/** SQL of what makes commands exactly-once: their records, who waits for their replies, and steps under way. */

/** A command that was taken before. */
export interface KnownCommand {
  fingerprint: string | null;
  /** Undefined while its saga is under way. */
  reply: ReplyBody | undefined;
}

/**
 * Claims the command for this transaction: undefined when it is new. Waits for a rival that has just claimed the same id
 * (at most lock_timeout), and claims it after all when that one is undone.
 */
export async function claim(client: PoolClient, commandId: string, fingerprint: string | undefined): Promise<KnownCommand | undefined> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const inserted = await client.query('insert into commands (command_id, fingerprint) values ($1, $2) on conflict (command_id) do nothing', [
      commandId,
      fingerprint ?? null,
    ]);
    if (inserted.rowCount === 1) return undefined;
    // A statement of its own sees what the rival committed. The lock keeps a saga from ending between this and addWaiter.
    const found = await client.query<{ fingerprint: string | null; reply: unknown }>(
      'select fingerprint, reply from commands where command_id = $1 for update',
      [commandId],
    );
    const row = found.rows[0];
    if (row) return { fingerprint: row.fingerprint, reply: row.reply === null ? undefined : replySchema.parse(row.reply) };
  }
  throw new Error(`command ${commandId} comes and goes`);
}

/** Keeps the reply, so that every repeat gets it. */
export async function keepReply(client: PoolClient, commandId: string, body: ReplyBody): Promise<void> {
  await client.query('update commands set reply = $2 where command_id = $1', [commandId, JSON.stringify(body)]);
}

export async function forgetCommand(client: PoolClient, commandId: string): Promise<void> {
  await client.query('delete from commands where command_id = $1', [commandId]);
}

/** How many replies one command may owe. */
const maxWaiters = 1000;

/** Notes where the saga's reply goes, once per correlation id. False when too many wait already. */
export async function addWaiter(client: PoolClient, commandId: string, address: ReplyAddress, replayed: boolean): Promise<boolean> {
  const added = await client.query(
    `insert into waiting_replies (command_id, correlation_id, topic, "partition", replayed)
     select $1, $2, $3, $4, $5 where (select count(*) from waiting_replies where command_id = $1) < $6
     on conflict do nothing returning 1`,
    [commandId, address.correlation_id, address.topic, address.partition, replayed, maxWaiters],
  );
  if (added.rowCount === 1) return true;
  const there = await client.query('select from waiting_replies where command_id = $1 and correlation_id = $2', [commandId, address.correlation_id]);
  return there.rowCount === 1;
}

export interface Waiter extends ReplyAddress {
  replayed: boolean;
}

/** Everyone who waits for the command; whoever comes later finds the kept reply. */
export async function takeWaiters(client: PoolClient, commandId: string): Promise<Waiter[]> {
  const taken = await client.query<Waiter>('delete from waiting_replies where command_id = $1 returning topic, "partition", correlation_id, replayed', [commandId]);
  return taken.rows;
}

const firstRetryS = 2;
const maxRetryS = 60;

export async function insertStep(client: PoolClient, step: Step): Promise<void> {
  await client.query(
    `insert into saga_steps (step_id, message, account_id, payload, context, detail, next_attempt_at)
     values ($1, $2, $3, $4, $5, $6, clock_timestamp() + make_interval(secs => $7))`,
    [step.step_id, step.message, step.account_id, JSON.stringify(step.payload), JSON.stringify(step.context), JSON.stringify(step.detail), firstRetryS],
  );
}

const stepColumns = 'step_id, message, account_id, payload, context, detail';

/** Takes the step out, to be finished in this transaction; undefined when it is finished already. Waits for a rival. */
export async function takeStep(client: PoolClient, stepId: string): Promise<Step | undefined> {
  const taken = await client.query<Step>(`delete from saga_steps where step_id = $1 returning ${stepColumns}`, [stepId]);
  return taken.rows[0];
}

/** Steps without an answer for 2 s, then 4, 8 … 60 s; each is given to one process only. */
export async function takeDueSteps(client: PoolClient, limit: number): Promise<Step[]> {
  const due = await client.query<Step>(
    `update saga_steps set attempts = attempts + 1,
       next_attempt_at = clock_timestamp() + make_interval(secs => least($3, $2 * power(2, least(attempts, 10))))
     where step_id in (select step_id from saga_steps where next_attempt_at <= clock_timestamp() order by next_attempt_at limit $1 for update skip locked)
     returning ${stepColumns}`,
    [limit, firstRetryS, maxRetryS],
  );
  return due.rows;
}

/** The step as a message to the ledger: the same on every attempt, without a deadline, since a begun saga is finished. */
export function stepMessage(step: Step, prefix: string): OutboxEvent {
  const { step_id, account_id, context } = step;
  const partition = commandPartition(bucketOf(account_id));
  const type = messageType(step.message);
  const headers = toHeaders({
    message_id: step_id,
    type,
    source: source.accounts,
    time: context.time,
    subject: account_id,
    request_id: context.request_id,
    actor: context.actor,
    traceparent: context.traceparent,
    correlation_id: step_id,
    reply_topic: topicName(prefix, 'accounts.commands'),
    reply_partition: partition,
  });
  return { id: step_id, topic: messages[step.message].topic, key: account_id, type, time: context.time, headers, payload: JSON.stringify(step.payload), partition };
}
