import { type MessageContext, type ReplyAddress, type ReplyBody, replyAddress } from '#libs/contracts/envelope.ts';
import { errorCodes, refusal } from '#libs/contracts/errors.ts';
import { type MessageData, messageOfType } from '#libs/contracts/messages.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { buildAuditRecord } from '#libs/service/audit-record.ts';
import { outcomeLabel } from '#libs/service/measures.ts';
import type { Request } from '#libs/service/query-consumer.ts';
import { refusedUnseen, replyToRepeat } from '#libs/service/repeats.ts';
import type { Answer } from '#libs/service/replies.ts';
import { publishAgain } from '../api-keys/api-keys.ts';
import { recordUse } from '../api-keys/key-store.ts';
import { finishApproval } from '../approvals/finish.ts';
import { recordAudits } from '../audit/audit.ts';
import { keepNames } from '../audit/staff-names.ts';
import { insertDeadLetters } from '../dead-letters/dead-letter-store.ts';
import { finishErasure } from '../erasure/erasure.ts';
import { type Decided, type Finished, type Outcome, refused } from '../outcome.ts';
import { finishOpenings } from '../sagas/opening.ts';
import { finishStatusChange } from '../sagas/status.ts';
import { snapshotsAfter } from '../snapshot-events.ts';
import type { Decoded } from './decode.ts';
import { handle, type Surroundings } from './handlers.ts';
import {
  addWaiter,
  claim,
  type Effects,
  type KnownCommand,
  stepMessage,
  takeSteps,
  takeWaiters,
  writeEffects,
} from './inbox.ts';

/** What follows the commit. */
export interface Executed {
  answers: Answer[];
  /** Commands and their outcomes (outcomeLabel in libs/service/measures.ts, or `begun`). */
  outcomes: { name: string; outcome: string }[];
  /** True if the outbox was written to, so that the relay must be woken. */
  wrote: boolean;
}

const nothing = (): Executed => ({ answers: [], outcomes: [], wrote: false });

/**
 * Executes a group of messages of one kind (groups.ts) in the open transaction. Throws only on faults, after which the
 * transaction must be rolled back, and can be repeated.
 */
export async function execute(client: Queries, group: readonly Decoded[], around: Surroundings): Promise<Executed> {
  const letters = group.flatMap((content) => (content.kind === 'dead_letter' ? [content.row] : []));
  if (letters.length > 0) await insertDeadLetters(client, letters);
  const replies = group.filter((content) => content.kind === 'ledger_reply');
  if (replies.length > 0) return applyReplies(client, replies, around);
  const requests = group.filter((content) => content.kind === 'request');
  const [first] = requests;
  if (!first) return nothing();
  if (first.name === 'record_audit') {
    const records = await keepNames(
      client,
      requests.map(({ data }) => data as MessageData<'record_audit'>),
    );
    return { ...nothing(), wrote: await recordAudits(client, records) };
  }
  if (first.name === 'republish_api_keys') return { ...nothing(), wrote: (await publishAgain(client, around.now)) > 0 };
  if (first.name !== 'record_api_key_use') return executeCommands(client, requests, around);
  const { key_id, used_at } = first.data as MessageData<'record_api_key_use'>;
  await recordUse(client, key_id, used_at);
  return nothing();
}

/**
 * Executes commands with one name and distinct ids, each exactly once: the transaction contains their records, work, and
 * events. A repeat gets the stored reply, or waits for the end of the saga that the first command started.
 */
async function executeCommands(client: Queries, commands: Request[], around: Surroundings): Promise<Executed> {
  const known = await claim(
    client,
    commands.map(({ context }) => context),
  );
  const repeats = nothing();
  for (const command of commands) {
    const before = known.get(command.context.message_id);
    if (before) recordRepeat(repeats, command, before, await waitForSaga(client, command, before));
  }
  const fresh = commands.filter(({ context }) => !known.has(context.message_id));
  if (fresh.length === 0) return repeats;
  // Only here the deadline is checked: a command that was started in time is finished.
  const refusals = fresh.map(({ context }) => refusedUnseen(context, around.now));
  const inTime = fresh.filter((_command, i) => refusals[i] === undefined);
  const decided = (inTime.length > 0 ? await handle(client, inTime, around) : []).values();
  const outcomes = refusals.map((unseen) => (unseen ? refused(unseen) : (decided.next().value as Outcome)));
  const { answers, ...executed } = await write(client, fresh, outcomes, around);
  return {
    ...executed,
    answers: [...repeats.answers, ...answers],
    outcomes: [...repeats.outcomes, ...executed.outcomes],
  };
}

/**
 * Adds the address of a repeat to those that get the reply at the end of the saga. Returns a refusal if too many are
 * waiting.
 */
async function waitForSaga(
  client: Queries,
  { context, address }: Request,
  known: KnownCommand,
): Promise<ReplyBody | undefined> {
  if (!address || replyToRepeat(context, known, known.reply)) return undefined;
  // The saga's step contains the address of the first request, whose message was delivered again.
  if (address.correlation_id === known.correlation_id) return undefined;
  if (await addWaiter(client, context.message_id, address)) return undefined;
  const message = 'too many requests are waiting for this one: repeat it later with the same Idempotency-Key';
  return { ok: false, refusal: refusal('outcome_unknown', message) };
}

/** Adds the outcome of a repeat, and its reply if there is one yet. A different request under the same id is refused. */
export function recordRepeat(
  { answers, outcomes }: Pick<Executed, 'answers' | 'outcomes'>,
  { name, context, address }: Request,
  known: KnownCommand,
  otherwise?: ReplyBody,
): void {
  const body = replyToRepeat(context, known, known.reply) ?? otherwise;
  const isReused = body?.ok === false && body.refusal.code === 'idempotency_key_reused';
  outcomes.push({ name, outcome: isReused ? 'idempotency_key_reused' : 'replayed' });
  if (address && body) answers.push({ address, body, context });
}

/**
 * Applies replies to their saga steps, each once, and replies to all waiting callers. Replies come from the ledger and,
 * for approved commands, also from accounts. A fault (5xx) decides nothing: the step remains and is sent again.
 */
async function applyReplies(
  client: Queries,
  replies: readonly { step_id: string; body: ReplyBody }[],
  around: Surroundings,
): Promise<Executed> {
  const decided = new Map<string, ReplyBody>();
  for (const { step_id, body } of replies)
    if (!decided.has(step_id) && (body.ok || errorCodes[body.refusal.code].status < 500)) decided.set(step_id, body);
  const taken = decided.size > 0 ? await takeSteps(client, [...decided.keys()].sort()) : [];
  if (taken.length === 0) return nothing();
  const steps = new Map(taken.map((step) => [step.step_id, step]));
  const finished = [...decided].flatMap(([stepId, body]): Finished[] => {
    const step = steps.get(stepId);
    return step ? [{ step, body }] : [];
  });
  const openings = finished.filter(({ step }) => step.message === 'open_ledger_account');
  const others = finished.filter(({ step }) => step.message !== 'open_ledger_account');
  const outcomes = openings.length > 0 ? await finishOpenings(client, openings, around.now) : [];
  for (const one of others) outcomes.push(await finish(client, one, around.now));
  const ended = [...openings, ...others].map(({ step: { context } }) => ({ context, address: replyAddress(context) }));
  const executed = await write(client, ended, outcomes, around);
  const byId = new Map(ended.map(({ context }, i) => [context.message_id, { context, body: outcomes[i]?.body }]));
  for (const { command_id, ...address } of await takeWaiters(client, [...byId.keys()])) {
    const { context, body } = byId.get(command_id) ?? {};
    if (body) executed.answers.push({ context, address, body: { ...body, replayed: true } });
  }
  return executed;
}

function finish(client: Queries, finished: Finished, now: string): Promise<Decided> {
  const { message, detail } = finished.step;
  if (detail.approved !== undefined) return finishApproval(client, finished, now);
  return message === 'change_ledger_account_status'
    ? finishStatusChange(client, finished, now)
    : finishErasure(client, finished, now);
}

/** Writes the outcomes of these commands, with their events, states, and audit records, and returns the replies. */
async function write(
  client: Queries,
  commands: readonly { context: MessageContext; address: ReplyAddress | undefined }[],
  decided: readonly Outcome[],
  { now, prefix }: Surroundings,
): Promise<Executed> {
  const effects: Effects = { kept: [], unkept: [], steps: [], events: [], audits: [] };
  const answers: Answer[] = [];
  const outcomes: Executed['outcomes'] = [];
  for (const [i, { context, address }] of commands.entries()) {
    const [id, name] = [context.message_id, messageOfType(context.type) ?? context.type];
    const outcome = decided[i];
    if (!outcome) throw new TypeError(`no outcome of ${name} ${id}`);
    if (outcome.kind === 'begun') {
      effects.steps.push(outcome.step);
      effects.events.push(stepMessage(outcome.step, prefix));
      outcomes.push({ name, outcome: 'begun' });
    } else {
      const { body, kept, details } = outcome;
      if (kept) {
        effects.kept.push({ id, body });
        effects.audits.push(buildAuditRecord(context, body, details, now));
      } else effects.unkept.push(id);
      if (address) answers.push({ address, body, context });
      outcomes.push({ name, outcome: outcomeLabel(body) });
    }
    effects.events.push(...outcome.events);
  }
  effects.events.push(...(await snapshotsAfter(client, effects.events, now)));
  await writeEffects(client, effects);
  return { answers, outcomes, wrote: effects.events.length + effects.audits.length > 0 };
}
