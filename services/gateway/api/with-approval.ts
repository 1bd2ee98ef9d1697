import { hash } from 'node:crypto';
import {
  type ApprovableCommand,
  type ApprovalAction,
  approvalAction,
  type WaitingPosting,
  waitingPosting,
} from '#libs/contracts/approvals.ts';
import { formatId } from '#libs/contracts/ids.ts';
import { type MessageData, messages } from '#libs/contracts/messages.ts';
import { type FourEyes, rulesFor } from '../access/four-eyes.ts';
import { Refused, unavailable } from '../http/errors.ts';
import { outcomeUnknown } from './answer.ts';
import { approvable, isApprovable } from './approvable.ts';
import { approvalUrl, findApproval } from './approvals.ts';
import type { Forwarder } from './forward.ts';
import type { Plan } from './plan.ts';
import { type Dated, hasOtherDay } from './with-value-date.ts';
import type { Send, Write, WriteOutcome } from './write.ts';

/**
 * Four eyes: sends the command with the rules under which it needs an approval. If its service answers that it needs
 * one, nothing was executed, and the approval is requested instead.
 */
export function withApproval({ fourEyes, forwarder }: { fourEyes: FourEyes; forwarder: Forwarder }, next: Send): Send {
  return async (write) => {
    const { plan, origin, input } = write;
    if (!isApprovable(plan.name)) return next(write);
    const { action } = approvable[plan.name];
    const actions: ApprovalAction[] = hasOtherDay(input.body as Dated, input.acceptedAt)
      ? [action, 'backdate']
      : [action];
    const outcome = await next({
      ...write,
      origin: { ...origin, fourEyes: rulesFor(origin.caller, actions, fourEyes, input.acceptedAt) },
    });
    if (outcome.kind !== 'refused' || outcome.refusal.code !== 'approval_required') return outcome;
    // Of several actions, the service says which one the command is.
    const decided = approvalAction.catch(action).parse(outcome.refusal.details?.['action']);
    const { data: posting } = waitingPosting.safeParse(outcome.refusal.details);
    return requestApproval(write, plan.name, { action: decided, posting }, forwarder);
  };
}

/**
 * accounts keeps its refusal under the id of the command, so the approved command needs another one, derived from that of
 * the approval. The ledger keeps it beside the command, whose id then makes sure that it is executed once.
 */
function approvedPlan({ plan, input: { bits }, planAs }: Write): Plan {
  const isOfLedger = messages[plan.name].topic.startsWith('ledger.');
  return isOfLedger ? plan : planAs(hash('sha256', `approved ${bits}`, 'hex').slice(0, 32));
}

/** Requests the approval. A repeat with the same Idempotency-Key gets the approval of the first request. */
async function requestApproval(
  write: Write,
  name: ApprovableCommand,
  { action, posting }: { action: ApprovalAction; posting: WaitingPosting | undefined },
  forwarder: Forwarder,
): Promise<WriteOutcome> {
  const { endpoint, origin } = write;
  const { params, body, bits, acceptedAt } = write.input;
  const plan = approvedPlan(write);
  const approval_id = formatId('approval', bits);
  const { scopes, summary } = approvable[name];
  const { effective_date } = body as Dated;
  const facts = plan.data as MessageData<ApprovableCommand> as never;
  const data = {
    approval_id,
    action,
    summary: summary(facts, posting) + (effective_date == null ? '' : `, with the value date ${effective_date}`),
    scopes: [...scopes(facts), ...(action === 'backdate' ? (['transactions:backdate'] as const) : [])],
    request: {
      operation: name,
      method: endpoint.method,
      path: endpoint.path.replace(/:(\w+)/g, (_, parameter: string) => params[parameter] ?? ''),
      body: body as Record<string, unknown>,
    },
    command: { name, id: plan.id, key: plan.key, bucket: plan.bucket, data: plan.data },
  };
  const outcome = await forwarder.command(
    { name: 'request_approval' as const, id: approval_id, key: approval_id, data, acceptedAt },
    origin,
  );
  if (outcome.kind === 'refused') throw new Refused(outcome.refusal);
  if (outcome.kind === 'failed')
    throw outcome.stage === 'not_sent'
      ? new Refused(unavailable)
      : outcomeUnknown({ approval_id }, origin.idempotencyKey !== undefined, approvalUrl(approval_id));
  if (!outcome.replayed) return { kind: 'approval', approval: outcome.data, plan, replayed: false };
  const { approval } = await findApproval(outcome.data.approval_id, origin, forwarder);
  return { kind: 'approval', approval, plan, replayed: true };
}
