import type { MessageContext, ReplyAddress, ReplyBody } from '#libs/contracts/envelope.ts';
import { errorCodes, refusal } from '#libs/contracts/errors.ts';
import type { MessageData, MessageName } from '#libs/contracts/messages.ts';
import { writeOutbox } from '#libs/postgres/outbox.ts';
import type { Pool, PoolClient } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { commandHandlers } from './handlers.ts';
import type { CommandName } from './handlers.ts';
import { addWaiter, claim, forgetCommand, insertStep, keepReply, stepMessage, takeStep, takeWaiters } from './inbox.ts';
import type { KnownCommand } from './inbox.ts';
import { finishOpening } from './opening.ts';
import { refused } from './outcome.ts';
import type { Outcome, Work } from './outcome.ts';
import { finishStatusChange } from './status.ts';

/** A reply that may be sent, because what it says is committed. */
export interface Answer {
  address: ReplyAddress;
  body: ReplyBody;
}

export interface Executed {
  answers: Answer[];
  /** Whether the outbox was written to: wake the relay. */
  wrote: boolean;
}

interface Command {
  name: CommandName;
  context: MessageContext;
  data: unknown;
  address: ReplyAddress | undefined;
}

export interface ExecuteOptions {
  pool: Pool;
  prefix: string;
  /** ISO 8601 UTC */
  now: string;
}

/** Rolls back what led to a refusal that is not kept. */
class Unkept extends Error {
  readonly body: ReplyBody;
  constructor(body: ReplyBody) {
    super('not kept');
    this.body = body;
  }
}

/**
 * Executes a command exactly once, in one transaction: its record, its work and its events. A repeat gets the kept reply,
 * or waits for the saga that the first one began; another request under the same id is refused. Throws on faults only,
 * with nothing done: try again.
 */
export async function executeCommand(command: Command, options: ExecuteOptions): Promise<Executed> {
  try {
    return await transaction(options.pool, (client) => decide(client, command, options));
  } catch (error) {
    if (!(error instanceof Unkept)) throw error;
    return { answers: answer(command.address, error.body), wrote: false };
  }
}

async function decide(client: PoolClient, command: Command, { now, prefix }: ExecuteOptions): Promise<Executed> {
  const { context, address } = command;
  const known = await claim(client, context.message_id, context.fingerprint);
  if (known) return { answers: answer(address, await repeat(client, command, known)), wrote: false };
  const outcome = await firstOutcome({ client, context, now }, command);
  if (outcome.kind === 'begun') {
    if (address) await addWaiter(client, context.message_id, address, false);
    await insertStep(client, outcome.step);
    await writeOutbox(client, [stepMessage(outcome.step, prefix)]);
    return { answers: [], wrote: true };
  }
  if (!outcome.kept) throw new Unkept(outcome.body);
  await keepReply(client, context.message_id, outcome.body);
  await writeOutbox(client, outcome.events);
  return { answers: answer(address, outcome.body), wrote: outcome.events.length > 0 };
}

/** The deadline is checked here only: what has begun in time is finished. */
async function firstOutcome(work: Work, { name, data, context }: Command): Promise<Outcome> {
  if (context.deadline !== undefined && context.deadline < work.now) {
    return refused(refusal('deadline_exceeded', 'the command came after its deadline and was not executed'));
  }
  const handler = commandHandlers[name] as (work: Work, data: MessageData<MessageName>) => Promise<Outcome>;
  return handler(work, data as MessageData<MessageName>);
}

/** What a known command is answered with; undefined where the saga's end will answer. */
async function repeat(client: PoolClient, { context, address }: Command, known: KnownCommand): Promise<ReplyBody | undefined> {
  if (known.fingerprint !== (context.fingerprint ?? null)) {
    return { ok: false, refusal: refusal('idempotency_key_reused', 'this Idempotency-Key was used with another request') };
  }
  if (known.reply) return { ...known.reply, replayed: true };
  if (!address || (await addWaiter(client, context.message_id, address, true))) return undefined;
  return { ok: false, refusal: refusal('outcome_unknown', 'too many requests wait for this one: repeat it later with the same Idempotency-Key') };
}

function answer(address: ReplyAddress | undefined, body: ReplyBody | undefined): Answer[] {
  return address && body ? [{ address, body }] : [];
}

/**
 * Applies the ledger's reply to a step, once, and returns the replies to everyone who waits. A fault of the ledger (5xx)
 * decides nothing: the step stays, to be sent again.
 */
export async function applyLedgerReply(stepId: string, body: ReplyBody, { pool, now }: ExecuteOptions): Promise<Executed> {
  if (!body.ok && errorCodes[body.refusal.code].status >= 500) return { answers: [], wrote: false };
  return transaction(pool, async (client) => {
    const step = await takeStep(client, stepId);
    if (!step) return { answers: [], wrote: false };
    const work: Work = { client, context: step.context, now };
    const finish = step.message === 'open_ledger_account' ? finishOpening : finishStatusChange;
    const outcome = await finish(work, step, body);
    return conclude(work, outcome);
  });
}

async function conclude({ client, context }: Work, outcome: Outcome): Promise<Executed> {
  if (outcome.kind === 'begun') throw new TypeError('a saga of accounts has one step');
  const commandId = context.message_id;
  if (outcome.kept) await keepReply(client, commandId, outcome.body);
  else await forgetCommand(client, commandId);
  const waiters = await takeWaiters(client, commandId);
  await writeOutbox(client, outcome.events);
  const answers = waiters.map(({ replayed, ...address }) => ({ address, body: replayed ? { ...outcome.body, replayed } : outcome.body }));
  return { answers, wrote: outcome.events.length > 0 };
}
