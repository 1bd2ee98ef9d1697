import { type ApprovalRequest, approvalLifetimeMs, maxWaitingApprovals } from '#libs/contracts/approvals.ts';
import type { MessageContext } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal } from '#libs/contracts/errors.ts';
import { bucketForKey, subjectsIn } from '#libs/contracts/ids.ts';
import { type MessageData, messages } from '#libs/contracts/messages.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { hasValidKey, isOneHand } from '../api-keys/key-store.ts';
import { begun, createEvent, done, type Moment, type Outcome, refused, type Step, type Writing } from '../outcome.ts';
import {
  type ApprovalRow,
  findEqual,
  insertApproval,
  lockApproval,
  lockedWaiting,
  setVerdict,
  statusAt,
  toApproval,
} from './store.ts';

/**
 * Stores requests that need a second person's approval, and decides them. Approving updates the row and starts a saga
 * with one step, the command itself, in one transaction. The step is sent until it gets a reply, under an id derived
 * from the approval's, so that a crash cannot execute the command twice or lose it.
 */

export function approvalNotFound(id: string): Refusal {
  return refusal('approval_not_found', `approval ${id} not found`);
}

/** The methods of requests that have the same result if they are carried out twice. */
const setsValues = new Set(['PUT', 'PATCH']);

export async function requestApproval({ client, context, now }: Writing, request: ApprovalRequest): Promise<Outcome> {
  const waiting = await lockedWaiting(client, context.actor, now);
  const { name, data } = request.command;
  // A request that could not be sent must not be offered for approval.
  const command = { ...request.command, data: messages[name].data.parse(data) as Record<string, unknown> };
  // A form that was sent twice, or a second tab. A posting may be meant twice, and has its Idempotency-Key.
  const equal =
    setsValues.has(request.request.method) && (await findEqual(client, context.actor, { ...request, command }, now));
  if (equal) return done(toApproval(equal, now), [], { ...auditDetails(equal), equal_to: equal.approval_id });
  if (waiting >= maxWaitingApprovals)
    return refused(
      refusal('rate_limited', `${maxWaitingApprovals} requests of this caller wait for an approval, and no more may`),
    );
  const expires_at = new Date(Date.parse(context.time) + approvalLifetimeMs).toISOString();
  const row = await insertApproval(client, {
    ...request,
    command,
    context,
    requested_by: context.actor,
    requested_at: context.time,
    expires_at,
  });
  const { approval_id, action, requested_at } = row;
  const { operation } = row.request;
  const event = { approval_id, ...auditFacts(row), requested_at, expires_at };
  return done(
    toApproval(row, now),
    [createEvent({ context, now }, 'corebanking.approval.requested.v1', approval_id, event)],
    { action, operation, ...told(row) },
  );
}

/** Approves a request, whose command is then sent, or rejects it. */
export function decideRequest(status: 'Approved' | 'Rejected') {
  return async (work: Writing, { approval_id, reason, scopes }: MessageData<'approve_request'>): Promise<Outcome> => {
    const row = await lockDecidable(work, approval_id, scopes);
    if ('kind' in row) return row;
    const { client, context, now } = work;
    const isVoid = status === 'Approved' && !(await isStillEntitled(client, row, now));
    const verdict = isVoid ? byRevocation : { status, decided_by: context.actor, reason };
    const decided = await setVerdict(client, approval_id, { ...verdict, decided_at: now });
    const event = decisionEvent(work, decided);
    return decided.status === 'Approved'
      ? begun(toStep(decided, work), [event])
      : done(toApproval(decided, now), [event], auditDetails(decided));
  };
}

/** The verdict of the bank itself, if the key that asked is no longer valid or lacks the scopes. */
export const byRevocation = { status: 'Rejected', decided_by: 'system', reason: 'asker_revoked' } as const;

/** Reports whether the key that asked could still do it. The token of a person is known only to their request. */
async function isStillEntitled(client: Queries, { requested_by, scopes }: ApprovalRow, now: string): Promise<boolean> {
  return !requested_by.startsWith('key:') || hasValidKey(client, requested_by.slice(4), scopes, now);
}

/** Returns the facts about an approval for its events and the audit. */
function auditFacts({ action, request: { operation }, requested_by }: ApprovalRow) {
  return { action, operation, requested_by };
}

/** The same for its audit records, with what was asked for, and the accounts and clients that the request names. */
export const auditDetails = (row: ApprovalRow) => ({ ...auditFacts(row), ...told(row) });

function told({ summary, request: { path, body } }: ApprovalRow) {
  const ids = subjectsIn(`${path} ${JSON.stringify(body)} ${summary}`);
  return { summary, ...(ids.length > 0 && { about: ids }) };
}

/** Locks the approval and returns it if this person may decide it now; otherwise returns the refusal. */
async function lockDecidable(
  { client, context, now }: Writing,
  id: string,
  scopes: readonly string[],
): Promise<ApprovalRow | Outcome> {
  const row = await lockApproval(client, id);
  if (!row || context.bound_client_id !== undefined) return refused(approvalNotFound(id));
  if (await isOneHand(client, row.requested_by, context.actor))
    return refused(
      refusal('own_approval', 'a second person must decide: nobody can approve or reject their own request'),
    );
  const lacking = row.scopes.filter((scope) => !scopes.includes(scope));
  if (lacking.length > 0)
    return refused(refusal('insufficient_scope', `the scope ${lacking.join(' ')} is required to decide about this`));
  const status = statusAt(row, now);
  if (status !== 'Waiting')
    return refused(
      refusal('approval_decided', `approval ${id} is already ${status}`, { details: { approval_id: id, status } }),
    );
  return row;
}

/**
 * Returns the approved command in the requester's name. The time of the approval is its time of acceptance and becomes
 * its created_at.
 */
function toStep({ approval_id, command, context: asked }: ApprovalRow, { context, now }: Moment): Step {
  const { name, id, key, bucket = bucketForKey(key), data } = command;
  const { request_id, actor, address, idempotency_key, fingerprint, staff, bound_client_id } = asked;
  // The scopes that let an approver decide do not say whose webhooks the requester may use.
  const { all_webhooks } = asked;
  const sent: Partial<MessageContext> = { address, idempotency_key, fingerprint, staff, bound_client_id, all_webhooks };
  const approved = {
    bucket,
    context: { ...sent, message_id: id, time: now, request_id, actor, approved_by: context.actor, approval_id },
  };
  return { step_id: approval_id, message: name, account_id: key, payload: data, context, detail: { approved } };
}

/** Returns the event for a decided or expired approval. */
export function decisionEvent(moment: Moment, row: ApprovalRow): OutboxEvent {
  const { approval_id, status, decided_by, decided_at, expires_at } = row;
  return createEvent(moment, 'corebanking.approval.decided.v1', approval_id, {
    approval_id,
    ...auditFacts(row),
    status: status as Exclude<ApprovalRow['status'], 'Waiting'>,
    decided_by,
    decided_at: decided_at ?? expires_at,
  });
}
