import { auditId } from '#libs/contracts/ids.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { requireSameTime } from '#libs/service/clock.ts';
import { writeAudit } from '../audit/audit.ts';
import { auditDetails, decisionEvent } from './decide.ts';
import { type ApprovalRow, approvalColumns } from './store.ts';

const perSweep = 200;
const due = `status = 'Waiting' and expires_at <= clock_timestamp()`;

/**
 * Records approvals that expired, with event and audit record, and returns their number. Several processes can do this
 * concurrently. Rejects, and nothing has expired, if the database's clock may be wrong.
 */
export async function expireApprovals(pool: Pool): Promise<number> {
  if ((await pool.query({ name: 'due_approvals', text: `select from approvals where ${due} limit 1` })).rowCount === 0)
    return 0;
  return transaction(pool, async (client) => {
    const { rows } = await client.query<ApprovalRow & { now: string }>(
      `update approvals set status = 'Expired'
       where approval_id in (
         select approval_id from approvals where ${due} order by expires_at limit $1 for update skip locked)
       returning ${approvalColumns}, clock_timestamp() as now`,
      [perSweep],
    );
    if (rows[0]) requireSameTime(rows[0].now);
    await writeOutbox(
      client,
      rows.map((row) => decisionEvent({ context: { ...row.context, traceparent: undefined }, now: row.now }, row)),
    );
    await writeAudit(
      client,
      rows.map((row) => ({
        audit_id: auditId(`expired ${row.approval_id}`),
        created_at: row.now,
        actor: 'system',
        action: 'expire_approval',
        resource_id: row.approval_id,
        outcome: 'success',
        request_id: row.context.request_id,
        details: auditDetails(row),
        address: null,
      })),
    );
    return rows.length;
  });
}
