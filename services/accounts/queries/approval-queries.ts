import type { Approval, ApprovalStatus } from '#libs/contracts/approvals.ts';
import { type MessageContext, type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { byTime, listed, readPage, Where } from '#libs/postgres/keyset.ts';
import { replyToUnknown } from '#libs/service/dead-lettered.ts';
import { findUnreadKey } from '../approvals/claim-key.ts';
import { approvalNotFound } from '../approvals/decide.ts';
import { findApproval, type NamedRow, namedColumns, toApproval } from '../approvals/store.ts';
import type { Read } from './queries.ts';

/** An approval is shown to its requester, to everyone who may decide it, and to auditors. */

/** A bound credential never decides. */
const mayDecide = ({ bound_client_id }: MessageContext, scopes: readonly string[]): boolean =>
  bound_client_id === undefined && scopes.includes('approvals:write');

/** A request may contain data of a client, which `audit:read` alone does not show. Auditors are people, and their reads are recorded. */
const mayAudit = ({ staff }: MessageContext, scopes: readonly string[]): boolean =>
  staff !== undefined && scopes.includes('audit:read') && scopes.includes('clients:read');

/**
 * A bound requester is the bank's customer, who does not learn which member of staff decided, and why. The names of
 * colleagues are for people.
 */
function shownTo({ bound_client_id, staff }: MessageContext, named: NamedRow, now: string): Approval {
  const { requested_by_name, decided_by_name, ...row } = named;
  const approval = toApproval(row, now);
  if (bound_client_id !== undefined) return { ...approval, decided_by: null, reason: null };
  if (staff === undefined) return approval;
  return {
    ...approval,
    ...(requested_by_name !== null && { requested_by_name }),
    ...(decided_by_name !== null && { decided_by_name }),
  };
}

export async function listApprovals(
  { pool, context, now }: Read,
  data: MessageData<'list_approvals'>,
): Promise<ReplyBody> {
  const { status, action, requested_by, scopes } = data;
  const where = new Where().equal({ action });
  // `others` are those that the caller can decide, also for auditors.
  if (!mayAudit(context, scopes) || requested_by === 'others') {
    const own = `requested_by = ${where.parameter(context.actor)}`;
    if (mayDecide(context, scopes)) where.add(`(${own} or scopes <@ ?::text[])`, scopes);
    else where.conditions.push(own);
  }
  if (requested_by !== undefined) where.add(`requested_by ${requested_by === 'me' ? '=' : '<>'} ?`, context.actor);
  if (status !== undefined) addStatus(where, status, now);
  const list = {
    ...byTime<NamedRow>('requested_at', 'approval_id'),
    item: (row: NamedRow) => shownTo(context, row, now),
    select: (conditions: Where, order: string, limit: string) =>
      `select ${namedColumns} from approvals where ${conditions} order by ${order} limit ${limit}`,
  };
  return listed(await readPage(pool, where, list, data));
}

/** Uses statusAt, so that an expired approval is Expired, whether or not that was recorded. */
function addStatus(where: Where, status: ApprovalStatus, now: string): void {
  if (status === 'Waiting') where.add(`status = 'Waiting' and expires_at > ?::timestamptz`, now);
  else if (status === 'Expired') {
    where.add(`(status = 'Expired' or (status = 'Waiting' and expires_at <= ?::timestamptz))`, now);
  } else where.equal({ status });
}

export async function getApproval(
  { pool, context, now }: Read,
  { approval_id, scopes }: MessageData<'get_approval'>,
): Promise<ReplyBody> {
  const row = await findApproval(pool, approval_id);
  if (!row) return replyToUnknown(pool, approval_id, approvalNotFound);
  const isOwn = row.requested_by === context.actor;
  if (!isOwn && context.bound_client_id !== undefined) return refused(approvalNotFound(approval_id));
  const lacking =
    isOwn || mayAudit(context, scopes)
      ? []
      : ['approvals:write', ...row.scopes].filter((scope) => !scopes.includes(scope));
  if (lacking.length > 0)
    return { ok: false, refusal: refusal('insufficient_scope', `the scope ${lacking.join(' ')} is required`) };
  return {
    ok: true,
    data: { approval: shownTo(context, row, now), has_unread_key: isOwn && findUnreadKey(row) !== undefined },
  };
}
