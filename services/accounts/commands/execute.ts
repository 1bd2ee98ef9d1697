import { type MessageContext, type ReplyAddress, type ReplyBody, replyAddress } from '#libs/contracts/envelope.ts';
import { errorCodes, refusal } from '#libs/contracts/errors.ts';
import { type MessageName, messageOfType } from '#libs/contracts/messages.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { auditOf } from '#libs/service/audit-record.ts';
import { outcomeOf } from '#libs/service/measures.ts';
import { refusedUnseen, replyToRepeat } from '#libs/service/repeats.ts';
import type { Answer } from '#libs/service/replies.ts';
import { finishApproval } from '../approvals/finish.ts';
import { finishErasure } from '../erasure/erasure.ts';
import { mastersAfter } from '../masters.ts';
import type { Decided, Finished, Outcome } from '../outcome.ts';
import { refused } from '../outcome.ts';
import { finishOpenings } from '../sagas/opening.ts';
import { finishStatusChange } from '../sagas/status.ts';
import type { Surroundings } from './handlers.ts';
import { handle } from './handlers.ts';
import type { Effects, KnownCommand } from './inbox.ts';
import { addWaiter, claim, stepMessage, takeSteps, takeWaiters, writeEffects } from './inbox.ts';

export interface Executed {
  answers: Answer[];
  /** True if the outbox was written to, so that the relay must be woken. */
  wrote: boolean;
  /** Commands and their outcomes (outcomeOf in libs/service/measures.ts, or `begun`). */
  outcomes: { name: string; outcome: string }[];
}

export interface Command {
  context: MessageContext;
  data: unknown;
  address: ReplyAddress | undefined;
}

/**
 * Executes commands with the same name and distinct ids, each exactly once: the open transaction contains their records,
 * work, and events. A repeat gets the stored reply, or waits for the end of the saga that the first command
 * started. A different request under the same id is refused. Throws only on faults, after which the transaction must be
 * rolled back, and can be repeated.
 */
export async function executeCommands(
  client: Queries,
  name: MessageName,
  commands: readonly Command[],
  options: Surroundings,
): Promise<Executed> {
  const contexts = commands.map(({ context }) => context);
  const known = await claim(client, contexts);
  const answers: Answer[] = [];
  const fresh: Command[] = [];
  const repeated: Executed['outcomes'] = [];
  for (const command of commands) {
    const before = known.get(command.context.message_id);
    if (!before) fresh.push(command);
    else recordRepeat({ answers, outcomes: repeated }, name, command, await repeat(client, command, before));
  }
  const outcomes = await decide(client, name, fresh, options);
  const effects = noEffects();
  for (const [i, command] of fresh.entries()) {
    const outcome = outcomes[i] as Outcome;
    if (outcome.kind === 'begun') {
      effects.steps.push(outcome.step);
      effects.events.push(stepMessage(outcome.step, options.prefix), ...outcome.events);
    } else {
      addDecision(effects, command.context, outcome, options.now);
      reply(answers, command, outcome.body);
    }
  }
  effects.events.push(...(await mastersAfter(client, effects.events, options.now)));
  if (fresh.length > 0) await writeEffects(client, effects);
  const decided = outcomes.map((outcome) => ({
    name,
    outcome: outcome.kind === 'begun' ? 'begun' : outcomeOf(outcome.body),
  }));
  return { answers, wrote: hasWritten(effects), outcomes: [...repeated, ...decided] };
}

/**
 * Decides new commands. Only here, the deadline is checked: a command that was started in time is finished.
 */
async function decide(
  client: Queries,
  name: MessageName,
  fresh: Command[],
  surroundings: Surroundings,
): Promise<Outcome[]> {
  const refusals = fresh.map(({ context }) => refusedUnseen(context, surroundings.now));
  const inTime = fresh.filter((_command, i) => refusals[i] === undefined);
  const outcomes = inTime.length > 0 ? await handle(client, name, inTime, surroundings) : [];
  if (outcomes.length !== inTime.length)
    throw new TypeError(`${name} returned ${outcomes.length} outcomes for ${inTime.length} commands`);
  const decided = outcomes.values();
  return refusals.map((refusal) => (refusal ? refused(refusal) : (decided.next().value as Outcome)));
}

function noEffects(): Effects {
  return { kept: [], unkept: [], steps: [], events: [], audits: [] };
}

/** Reports whether the outbox was written to. */
function hasWritten({ events, audits }: Effects): boolean {
  return events.length + audits.length > 0;
}

function addDecision(
  effects: Effects,
  context: MessageContext,
  { body, kept, events, details }: Decided,
  now: string,
): void {
  const id = context.message_id;
  if (kept) {
    effects.kept.push({ id, body });
    effects.audits.push(auditOf(context, body, details, now));
  } else effects.unkept.push(id);
  effects.events.push(...events);
}

/** Returns the reply to a known command, or undefined if the end of its saga will reply. */
async function repeat(
  client: Queries,
  { context, address }: Command,
  known: KnownCommand,
): Promise<ReplyBody | undefined> {
  const repeated = replyToRepeat(context, known, known.reply);
  if (repeated) return repeated;
  // The saga's step contains the address of the first request, whose message was delivered again.
  const isFirst = address?.correlation_id === known.correlation_id;
  if (!address || isFirst || (await addWaiter(client, context.message_id, address))) return undefined;
  return {
    ok: false,
    refusal: refusal(
      'outcome_unknown',
      'too many requests are waiting for this one: repeat it later with the same Idempotency-Key',
    ),
  };
}

/** Adds the reply to a repeat (undefined if there is none yet) and its outcome. */
export function recordRepeat(
  { answers, outcomes }: Pick<Executed, 'answers' | 'outcomes'>,
  name: MessageName,
  command: Command,
  body: ReplyBody | undefined,
): void {
  const isReused = body?.ok === false && body.refusal.code === 'idempotency_key_reused';
  outcomes.push({ name, outcome: isReused ? 'idempotency_key_reused' : 'replayed' });
  reply(answers, command, body);
}

function reply(
  answers: Answer[],
  { address, context }: Pick<Command, 'address' | 'context'>,
  body: ReplyBody | undefined,
): void {
  if (address && body) answers.push({ address, body, context });
}

/**
 * Applies replies to their saga steps, each once, in the open transaction, and returns the replies to all waiting
 * callers. Replies come from the ledger and, for approved commands, also from accounts. A fault (5xx) decides
 * nothing: the step remains and is sent again.
 */
export async function applyLedgerReplies(
  client: Queries,
  replies: readonly { step_id: string; body: ReplyBody }[],
  { now }: Pick<Surroundings, 'now'>,
): Promise<Executed> {
  const decided = new Map(
    replies
      .filter(({ body }) => body.ok || errorCodes[body.refusal.code].status < 500)
      .map(({ step_id, body }) => [step_id, body]),
  );
  const taken = decided.size > 0 ? await takeSteps(client, [...decided.keys()].sort()) : [];
  const steps = new Map(taken.map((step) => [step.step_id, step]));
  const finished = [...decided].flatMap(([stepId, body]): Finished[] => {
    const step = steps.get(stepId);
    return step ? [{ step, body }] : [];
  });
  if (finished.length === 0) return { answers: [], wrote: false, outcomes: [] };
  const openings = finished.filter(({ step }) => step.message === 'open_ledger_account');
  const others = finished.filter(({ step }) => step.message !== 'open_ledger_account');
  const outcomes = openings.length > 0 ? await finishOpenings(client, openings, now) : [];
  for (const one of others) outcomes.push(await finish(client, one, now));
  return conclude(client, [...openings, ...others], outcomes, now);
}

function finish(client: Queries, finished: Finished, now: string): Promise<Decided> {
  const { message, detail } = finished.step;
  if (detail.approved !== undefined) return finishApproval(client, finished, now);
  return message === 'change_ledger_account_status'
    ? finishStatusChange(client, finished, now)
    : finishErasure(client, finished, now);
}

async function conclude(client: Queries, finished: Finished[], decided: Decided[], now: string): Promise<Executed> {
  const effects = noEffects();
  const answers: Answer[] = [];
  const replies = new Map<string, Omit<Answer, 'address'>>();
  const outcomes: Executed['outcomes'] = [];
  for (const [i, { step }] of finished.entries()) {
    const { context } = step;
    const decision = decided[i] as Decided;
    replies.set(context.message_id, { body: decision.body, context });
    reply(answers, { address: replyAddress(context), context }, decision.body);
    outcomes.push({ name: messageOfType(context.type) ?? context.type, outcome: outcomeOf(decision.body) });
    addDecision(effects, context, decision, now);
  }
  effects.events.push(...(await mastersAfter(client, effects.events, now)));
  await writeEffects(client, effects);
  for (const { command_id, ...address } of await takeWaiters(client, [...replies.keys()])) {
    const answer = replies.get(command_id);
    if (answer) answers.push({ ...answer, address, body: { ...answer.body, replayed: true } });
  }
  return { answers, wrote: hasWritten(effects), outcomes };
}
