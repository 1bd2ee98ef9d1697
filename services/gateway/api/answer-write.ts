import type { FastifyReply } from 'fastify';
import type { Endpoint } from '#libs/contracts/endpoints.ts';
import { Refused, unavailable } from '../http/errors.ts';
import type { Origin } from '../messages/encode.ts';
import { markVersion, outcomeUnknown, send } from './answer.ts';
import { approvalUrl, presentApproval } from './approvals.ts';
import type { FirstAcceptanceTimes } from './first-acceptance-times.ts';
import type { Outcome } from './forward.ts';
import type { Plan } from './plan.ts';
import { createPresenter } from './present.ts';
import type { Write, WriteOutcome } from './write.ts';

/** Returns how this endpoint answers the outcome of a write (contract: envelope, idempotency). */
export function answerWrite(endpoint: Endpoint, acceptanceTimes: FirstAcceptanceTimes) {
  const show = createPresenter(endpoint.result) ?? ((data: unknown) => data);
  const form = endpoint.shape === 'bare' ? ('bare' as const) : {};

  const success = async (
    reply: FastifyReply,
    { location, enrichResponse }: Plan,
    result: unknown,
    replayed: boolean,
    origin: Origin,
  ): Promise<void> => {
    const data = enrichResponse ? await enrichResponse(result, replayed, origin) : result;
    if (location !== undefined && endpoint.success === 201) reply.header('location', location);
    const { boundClientId } = origin.caller;
    send(reply, endpoint.success, show(markVersion(reply, endpoint, data, boundClientId), boundClientId), form);
  };

  /** The outcome of the approved request, or the approval while there is none. */
  const approved = async (
    reply: FastifyReply,
    { approval, plan, replayed }: Extract<WriteOutcome, { kind: 'approval' }>,
    origin: Origin,
  ): Promise<void> => {
    const { approval_id, outcome } = approval;
    if (outcome === undefined) {
      reply.header('location', approvalUrl(approval_id));
      const secret = plan.secret !== undefined && !replayed ? { secret: plan.secret } : {};
      send(reply, 202, { ...presentApproval(approval, origin.caller), ...secret });
      return;
    }
    if (outcome.status === 'success') return success(reply, plan, outcome.data, true, origin);
    const { status: _status, ...refusal } = outcome;
    throw new Refused(refusal);
  };

  /** The broker must have the command before a 202. */
  const unknown = (reply: FastifyReply, { plan, input, origin }: Write, stage: Failed['stage']): void => {
    if (stage === 'not_sent') throw new Refused(unavailable);
    const hasKey = origin.idempotencyKey !== undefined;
    if (stage !== 'no_reply' || !plan.pending || !endpoint.pending)
      throw outcomeUnknown(plan.resource, hasKey, plan.location);
    const { acceptedAt } = input;
    reply.isPending = true;
    reply.headers({ location: plan.location, 'retry-after': '1' });
    const pending = plan.pending(hasKey ? acceptanceTimes.first(plan.id, acceptedAt) : acceptedAt);
    send(reply, 202, show(pending, origin.caller.boundClientId), form);
  };

  return async (write: Write, outcome: WriteOutcome, reply: FastifyReply): Promise<void> => {
    const { plan, origin } = write;
    if (outcome.kind === 'failed') return unknown(reply, write, outcome.stage);
    if (outcome.replayed && origin.idempotencyKey !== undefined) reply.header('idempotent-replayed', 'true');
    if (outcome.kind === 'refused') throw new Refused(outcome.refusal);
    if (outcome.kind === 'approval') return approved(reply, outcome, origin);
    return success(reply, plan, outcome.data, outcome.replayed, origin);
  };
}

type Failed = Extract<Outcome, { kind: 'failed' }>;
