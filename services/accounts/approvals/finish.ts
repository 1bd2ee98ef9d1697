import type { ApprovalOutcome } from '#libs/contracts/approvals.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { type Decided, done, type Finished } from '../outcome.ts';
import { auditDetails } from './decide.ts';
import { setOutcome, toApproval } from './store.ts';

/** Handles the reply to an approved command: stores its outcome in the approval and replies to the approver. */
export async function finishApproval(client: Queries, { step, body }: Finished, now: string): Promise<Decided> {
  const row = await setOutcome(client, step.step_id, toOutcome(body));
  const outcome = body.ok ? 'success' : body.refusal.code;
  return done(toApproval(row, now), [], { ...auditDetails(row), command_id: row.command.id, outcome });
}

function toOutcome(body: ReplyBody): ApprovalOutcome {
  return body.ok
    ? { status: 'success', data: body.data as Record<string, unknown> }
    : { status: 'error', ...body.refusal };
}
