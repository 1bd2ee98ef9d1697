import type { Approval, ApprovalOutcome, ApprovalRequest, ApprovalStatus } from '#libs/contracts/approvals.ts';
import type { MessageContext } from '#libs/contracts/envelope.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { insertRows, rowById } from '#libs/postgres/rows.ts';
import { nameOf } from '../audit/staff-names.ts';

/** SQL of approvals. */

/** `status` is the stored one; a Waiting approval may have expired. */
export type ApprovalRow = Omit<Approval, 'outcome' | 'requested_by_name' | 'decided_by_name'> & {
  scopes: string[];
  command: ApprovalRequest['command'];
  /** The context of the request. */
  context: MessageContext;
  outcome: ApprovalOutcome | null;
  key_claimed_at: string | null;
};

/** A row that was read for a caller, with the display names of the people. */
export type NamedRow = ApprovalRow & { requested_by_name: string | null; decided_by_name: string | null };

/** The columns of a request. The others have defaults. */
const requested =
  'approval_id, action, summary, request, scopes, command, context, requested_by, requested_at, expires_at';

export const approvalColumns = `${requested},
  status, decided_by, decided_at, reason, outcome, key_claimed_at`;

export const namedColumns = `${approvalColumns},
  ${nameOf('approvals.requested_by')} as requested_by_name, ${nameOf('approvals.decided_by')} as decided_by_name`;

/**
 * Returns the status at the time `now`. Whether an approval has expired depends on the bank's clock, not on the runs of
 * the sweeper.
 */
export function statusAt(
  { status, expires_at }: Pick<ApprovalRow, 'status' | 'expires_at'>,
  now: string,
): ApprovalStatus {
  return status === 'Waiting' && expires_at <= now ? 'Expired' : status;
}

/** Converts a row to the approval that callers see at the time `now`. */
export function toApproval(row: ApprovalRow, now: string): Approval {
  const { scopes: _scopes, command: _command, context: _context, key_claimed_at: _claimed, outcome, ...approval } = row;
  return { ...approval, status: statusAt(row, now), ...(outcome === null ? {} : { outcome }) };
}

export type NewApproval = ApprovalRequest &
  Pick<ApprovalRow, 'context' | 'requested_by' | 'requested_at' | 'expires_at'>;

export async function insertApproval(client: Queries, row: NewApproval): Promise<ApprovalRow> {
  const inserted = await client.query<ApprovalRow>(
    `${insertRows('approvals', requested)} returning ${approvalColumns}`,
    [JSON.stringify([row])],
  );
  return theRow(inserted.rows, row.approval_id);
}

/**
 * Returns how many approvals of this caller are waiting. Concurrent requests of the caller wait for the end of this
 * transaction, so that they cannot exceed the maximum together.
 */
export async function lockedWaiting(client: Queries, actor: string, now: string): Promise<number> {
  await client.query("select pg_advisory_xact_lock(hashtextextended('approvals of ' || $1, 0))", [actor]);
  const { rows } = await client.query<{ waiting: number }>(
    `select count(*)::int as waiting from approvals where requested_by = $1 and status = 'Waiting' and expires_at > $2`,
    [actor, now],
  );
  return rows[0]?.waiting ?? 0;
}

/**
 * Returns the last approval that this caller has waiting for the resource, if it is for the same command: with the same
 * values and the same If-Match. An earlier one would be carried out before the requests between them.
 */
export async function findEqual(
  client: Queries,
  actor: string,
  { action, request, command }: Pick<ApprovalRequest, 'action' | 'request' | 'command'>,
  now: string,
): Promise<ApprovalRow | undefined> {
  const { rows } = await client.query<ApprovalRow>(
    `select ${approvalColumns} from (
       select * from approvals where requested_by = $1 and status = 'Waiting' and expires_at > $2
       and request ->> 'path' = $3 order by requested_at desc, approval_id desc limit 1) as last
     where action = $4 and request::jsonb = $5::jsonb and (command -> 'data')::jsonb = $6::jsonb`,
    [actor, now, request.path, action, JSON.stringify(request), JSON.stringify(command.data)],
  );
  return rows[0];
}

/** Returns the approval, also by the id of a request that was equal to one that was waiting, and got that one. */
export function findApproval(db: Queries, id: string): Promise<NamedRow | undefined> {
  return rowById(
    db,
    'approval',
    id,
    `select ${namedColumns} from approvals
     where approval_id = coalesce((select shown(reply, 'approval_id') from commands where command_id = $1), $1)`,
  );
}

/** Locks and returns the approval, so that it is decided once and the secret of its key is shown once. */
export function lockApproval(client: Queries, id: string): Promise<ApprovalRow | undefined> {
  return rowById(client, 'approval', id, `select ${approvalColumns} from approvals where approval_id = $1 for update`);
}

export type Verdict = Pick<ApprovalRow, 'status' | 'decided_by' | 'decided_at' | 'reason'>;

export async function setVerdict(client: Queries, id: string, verdict: Verdict): Promise<ApprovalRow> {
  const { status, decided_by, decided_at, reason } = verdict;
  const updated = await client.query<ApprovalRow>(
    `update approvals set status = $2, decided_by = $3, decided_at = $4, reason = $5
     where approval_id = $1 and status = 'Waiting' returning ${approvalColumns}`,
    [id, status, decided_by, decided_at, reason],
  );
  return theRow(updated.rows, id);
}

export async function setOutcome(client: Queries, id: string, outcome: ApprovalOutcome): Promise<ApprovalRow> {
  const updated = await client.query<ApprovalRow>(
    `update approvals set outcome = $2
     where approval_id = $1 and status = 'Approved' and outcome is null returning ${approvalColumns}`,
    [id, JSON.stringify(outcome)],
  );
  return theRow(updated.rows, id);
}

export async function setKeyClaimed(client: Queries, id: string, now: string): Promise<void> {
  await client.query('update approvals set key_claimed_at = $2 where approval_id = $1', [id, now]);
}

function theRow(rows: ApprovalRow[], id: string): ApprovalRow {
  const [row] = rows;
  if (!row) throw new TypeError(`approval ${id} is not in the state in which it was locked`);
  return row;
}
