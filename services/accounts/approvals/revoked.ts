import { auditId } from '#libs/contracts/ids.ts';
import type { MessageData, MessageResult } from '#libs/contracts/messages.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import { revokeApiKey } from '../api-keys/api-keys.ts';
import { writeAudit } from '../audit/audit.ts';
import type { Outcome, Work, Writing } from '../outcome.ts';
import { auditDetails, byRevocation, decisionEvent } from './decide.ts';
import { type ApprovalRow, approvalColumns } from './store.ts';

/** Revokes keys, and rejects what they have waiting. */
export async function revokeKeys(work: Work, data: MessageData<'revoke_api_key'>): Promise<Outcome> {
  const revoked = await revokeApiKey(work, data);
  if (revoked.kind !== 'decided' || !revoked.body.ok) return revoked;
  const { families } = revoked.body.data as MessageResult<'revoke_api_key'>;
  return { ...revoked, events: [...revoked.events, ...(await rejectWaitingRequests(work, families))] };
}

/** Rejects what keys of these families have waiting, with an audit record each, and returns the events. */
export async function rejectWaitingRequests(
  { client, context, now }: Writing,
  families: string[],
): Promise<OutboxEvent[]> {
  const { status, decided_by, reason } = byRevocation;
  const { rows } = await client.query<ApprovalRow>(
    `update approvals set status = $2, decided_by = $3, decided_at = $4, reason = $5
     where requested_by = any($1::text[]) and status = 'Waiting' and expires_at > $4 returning ${approvalColumns}`,
    [families.map((family) => `key:${family}`), status, decided_by, now, reason],
  );
  await writeAudit(
    client,
    rows.map((row) => ({
      audit_id: auditId(`revoked ${row.approval_id}`),
      created_at: now,
      actor: context.actor,
      action: 'reject_request',
      resource_id: row.approval_id,
      outcome: 'success',
      request_id: context.request_id,
      details: { ...auditDetails(row), reason },
      address: context.address ?? null,
    })),
  );
  return rows.map((row) => decisionEvent({ context, now }, row));
}
