import { setImmediate as otherRequests } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { type Batch, type BatchHead, batchSchema, buildBatch, type ItemResult } from '#libs/contracts/batches.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import type { Refusal, Violation } from '#libs/contracts/errors.ts';
import { formatId, isId, itemBits, withBucket } from '#libs/contracts/ids.ts';
import type { MessageResult } from '#libs/contracts/messages.ts';
import { pickNames } from '#libs/contracts/names.ts';
import type { Caller } from '../access/caller.ts';
import { rulesFor } from '../access/four-eyes.ts';
import { bodyLength } from '../http/body.ts';
import { quote, Refused, refuse, refuseViolations, unavailable } from '../http/errors.ts';
import type { Command, Origin } from '../messages/encode.ts';
import { outcomeUnknown, send } from './answer.ts';
import { checkNames, namesBy } from './commands.ts';
import type { FirstAcceptanceTimes } from './first-acceptance-times.ts';
import type { Outcome } from './forward.ts';
import { derivedBits, fingerprint } from './ids.ts';
import { parseFields, parseQuery } from './input.ts';
import type { Planners } from './plan.ts';
import { createPresenter } from './present.ts';
import { collect, readIdempotencyKey, requireCaller, toOrigin } from './request.ts';
import type { RouteDependencies } from './routes.ts';
import { hasOtherDay, refusedDay } from './with-value-date.ts';

type ItemPlanners = Pick<Planners, 'create_transaction' | 'create_transfer'>;
type Body = z.output<typeof endpoints.create_batch.body>;
type BodyItem = Body['items'][number];

/** An item as the command that it would be alone. */
export type ItemPlan = ReturnType<ItemPlanners[keyof ItemPlanners]>;

/** The time for looking whether items have outcomes. */
const lookMs = 500;

const { method, path } = endpoints.create_batch;
const present = createPresenter(batchSchema) as (batch: Batch, bound: string | undefined) => unknown;

/**
 * Handles a batch: publishes it as one message. Items become the commands that they would be if sent alone, with
 * ids derived from the batch id. Each stage of 1,000 items takes milliseconds, so other requests run between them.
 */
export function batchHandler(
  planners: ItemPlanners,
  deps: RouteDependencies & { acceptanceTimes: FirstAcceptanceTimes },
) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const acceptedAt = new Date(deps.now());
    const caller = requireCaller(request);
    await otherRequests();
    const { key, body } = deps.bodyMemoryLimit.timed(caller.actor, bodyLength(request), () => parse(request, caller));
    checkNames(caller, Boolean(body.external_id));
    await otherRequests();
    const origin = toOrigin(request, key, fingerprint({}, body));
    await otherRequests();
    const route = `${method} ${path}`;
    await execute({ request, body, bits: derivedBits(caller.actor, route, key), acceptedAt }, origin, reply);
  };

  async function execute(
    { request, body, bits, acceptedAt }: { request: FastifyRequest; body: Body; bits: string; acceptedAt: Date },
    origin: Origin,
    reply: FastifyReply,
  ): Promise<void> {
    const { caller } = origin;
    const batch_id = formatId('batch', withBucket(bits, payingAccount(body.items[0] as BodyItem)));
    // Their ids are not sent: the ledger derives those of the items from the batch id.
    const plans = body.items.map(({ transaction, transfer }): ItemPlan => {
      const input = { params: {}, caller, acceptedAt, bits };
      return transaction
        ? planners.create_transaction({ ...input, body: transaction })
        : planners.create_transfer({ ...input, body: transfer as NonNullable<typeof transfer> });
    });
    await otherRequests();
    const dates = body.items.map(({ transaction, transfer }) => transaction ?? transfer ?? {});
    const wrongDay = await refusedDay(dates, batch_id, acceptedAt, origin, deps.forwarder);
    if (wrongDay) throw new Refused(wrongDay.kind === 'refused' ? wrongDay.refusal : unavailable);
    // The ledger refuses a batch that would need an approval.
    const isDated = dates.some((body) => hasOtherDay(body, acceptedAt));
    const actions = isDated ? (['post_above', 'backdate'] as const) : (['post_above'] as const);
    const from = { ...origin, fourEyes: rulesFor(caller, actions, deps.fourEyes, acceptedAt) };
    const outcome = await deps.forwarder.command(toCommand(batch_id, body, plans, acceptedAt), from);
    await otherRequests();
    const refused = (index: number): void =>
      deps.auditRecords.destinationRefused(request, body.items[index]?.transfer?.to_account_id ?? '');
    const { results, isReplayed } = collectResults(outcome, { batch_id, mode: body.mode }, refused);
    if (isReplayed) reply.header('idempotent-replayed', 'true');
    const isDecided = results.length > 0;
    const at = isDecided ? acceptedAt : deps.acceptanceTimes.first(batch_id, acceptedAt);
    const head: BatchHead = {
      batch_id,
      mode: body.mode,
      actor: caller.actor,
      created_at: createdAt(results) ?? at.toISOString(),
      ...namesBy(caller, body),
    };
    const batch = buildBatch(
      head,
      plans.map((plan, index) => results[index] ?? pendingItem(plan, index, batch_id, at)),
    );
    await otherRequests();
    const shown = present(batch, caller.boundClientId);
    await otherRequests();
    reply.isPending = !isDecided && !(body.mode === 'independent' && (await hasOutcomes(batch_id, origin)));
    send(reply, endpoints.create_batch.success, shown);
  }

  /**
   * Reports whether items have outcomes although the reply, which tells all, is late: then a large batch, and no fault, is
   * the reason. They are not shown, because the key may be that of another batch, which only the reply would say.
   */
  async function hasOutcomes(batch_id: string, origin: Origin): Promise<boolean> {
    const from = { ...origin, answerBy: performance.now() + lookMs };
    const read = await deps.forwarder.query('get_batch', { batch_id }, batch_id, from);
    return read.kind === 'done' && read.data.results.some(({ status }) => status !== 'Pending');
  }
}

/** Checks the caller's scopes, then reports all violations at once. */
function parse(request: FastifyRequest, caller: Caller): { key: string; body: Body } {
  const wrong: Violation[] = [];
  const key = collect(wrong, () => readIdempotencyKey(request));
  if (key === undefined && wrong.length === 0)
    throw refuse('missing_idempotency_key', 'a batch needs an Idempotency-Key');
  checkScopes(request.body, caller);
  collect(wrong, () => parseQuery(endpoints.create_batch.query, request.query as Record<string, unknown>));
  const body = collect(wrong, () =>
    parseFields(endpoints.create_batch.body, request.body === undefined ? {} : request.body),
  );
  if (body) wrong.push(...unknownAccounts(body));
  if (wrong.length > 0 || key === undefined || body === undefined)
    throw refuseViolations(wrong.slice(0, maxViolations));
  return { key, body };
}

/** The maximum number of violations reported for a batch. */
const maxViolations = 1000;

function checkScopes(body: unknown, { scopes }: Caller): void {
  const given: unknown = Object(body).items;
  const has = (kind: string): boolean =>
    Array.isArray(given) && given.some((item) => Object.hasOwn(Object(item) as object, kind));
  for (const [kind, scope] of [
    ['transaction', 'transactions:write'],
    ['transfer', 'transfers:write'],
  ] as const) {
    if (has(kind) && !scopes.has(scope))
      throw refuse('insufficient_scope', `the scope ${scope} is required for a ${kind}`);
  }
}

/** Returns violations for malformed ids, which cannot exist, without asking a service. */
function unknownAccounts({ items }: Body): Violation[] {
  return items.flatMap(({ transaction, transfer }, index) => {
    const { account_id } = transaction ?? {};
    const { from_account_id, to_account_id } = transfer ?? {};
    const ids = Object.entries({ account_id, from_account_id, to_account_id });
    return ids.flatMap(([name, id]): Violation[] => {
      if (id === undefined || isId('account', id)) return [];
      const field = `items[${index}].${transaction ? 'transaction' : 'transfer'}.${name}`;
      return [{ field, code: 'account_not_found', message: `${field}: account ${quote(id)} not found` }];
    });
  });
}

function payingAccount({ transaction, transfer }: BodyItem): string {
  return transaction?.account_id ?? transfer?.from_account_id ?? '';
}

/** Returns the command of a batch, in the bucket of its first item. */
function toCommand(
  batch_id: string,
  { mode, ...names }: Body,
  plans: ItemPlan[],
  acceptedAt: Date,
): Command<'create_batch'> {
  const items = plans.map(({ data }) => {
    if ('transfer_id' in data) {
      const { transfer_id: _, ...transfer } = data;
      return { transfer };
    }
    const { transaction_id: _, ...transaction } = data;
    return { transaction };
  });
  const data = { batch_id, mode, items, ...pickNames(names) };
  return { name: 'create_batch', id: batch_id, key: plans[0]?.key ?? '', data, acceptedAt };
}

/** The time of acceptance of the request that was executed, which this one may repeat. */
function createdAt(results: readonly ItemResult[]): string | undefined {
  const [{ transaction, transfer } = {}] = results;
  return (transfer ?? transaction)?.created_at;
}

/**
 * Returns the results in the order of the items, or none if they are not known yet. Throws a refusal of the whole
 * batch, or service_unavailable if it was not sent.
 */
function collectResults(
  outcome: Outcome<MessageResult<'create_batch'>>,
  { batch_id, mode }: { batch_id: string; mode: Body['mode'] },
  destinationRefused: (index: number) => void,
): { results: ItemResult[]; isReplayed: boolean } {
  const pending = { results: [], isReplayed: false };
  if (outcome.kind === 'refused') {
    // The message was dead-lettered and needs an operator. The other items are decided, and GET returns them.
    if (mode === 'independent' && outcome.refusal.code === 'internal_error') return pending;
    throw refusedBatch(outcome, destinationRefused);
  }
  if (outcome.kind === 'failed') {
    if (outcome.stage === 'not_sent') throw new Refused(unavailable);
    if (outcome.stage !== 'no_reply') throw outcomeUnknown({ batch_id }, true);
    return pending;
  }
  const { results } = outcome.data;
  for (const { index, error } of results) if (error?.code === 'destination_refused') destinationRefused(index);
  return { results, isReplayed: outcome.replayed };
}

function refusedBatch(
  { refusal, replayed }: { refusal: Refusal; replayed: boolean },
  destinationRefused: (index: number) => void,
): Refused {
  for (const { field, code } of refusal.errors ?? [])
    if (code === 'destination_refused') destinationRefused(Number(/\d+/.exec(field)?.[0]));
  return new Refused(refusal, replayed ? { 'idempotent-replayed': 'true' } : undefined);
}

/** Returns an item as shown while its outcome is unknown. */
function pendingItem(plan: ItemPlan, index: number, batch_id: string, acceptedAt: Date): ItemResult {
  const bits = itemBits(batch_id, index);
  const [kind, id] =
    'transfer_id' in plan.data
      ? ['transfer', { transfer_id: formatId('transfer', bits) }]
      : ['transaction', { transaction_id: formatId('transaction', bits) }];
  return { index, status: 'Pending', [kind as string]: { ...plan.pending?.(acceptedAt), batch_id, ...(id as object) } };
}
