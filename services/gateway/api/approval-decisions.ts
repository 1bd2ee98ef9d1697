import type { z } from 'zod';
import type { Approval, approvalBodies } from '#libs/contracts/approvals.ts';
import type { FourEyes } from '../access/four-eyes.ts';
import { mayDecide } from '../access/four-eyes.ts';
import { refuse } from '../http/errors.ts';
import { presentApproval, scopesOf } from './approvals.ts';
import type { Forwarder } from './forward.ts';
import type { Input, Plan } from './plan.ts';
import { pathId } from './unknown-ids.ts';

/** Approves and rejects. accounts decides; the gateway sends it the caller and the caller's scopes. */
export function approvalPlanners({ forwarder, fourEyes }: { forwarder: Forwarder; fourEyes: FourEyes }) {
  const common = ({ params, body, bits, caller }: Input<{ reason?: string | null | undefined }>) => {
    const approval_id = pathId('approval_id', params);
    if (!mayDecide(caller, fourEyes))
      throw refuse('insufficient_scope', 'only a person decides about approvals, with a token of their own');
    const scopes = scopesOf(caller);
    const finish = async (approval: unknown): Promise<unknown> => presentApproval(approval as Approval);
    return {
      id: `cmd_${bits}`,
      key: approval_id,
      data: { approval_id, reason: body.reason ?? null, scopes },
      resource: { approval_id },
      finish,
    };
  };
  return {
    approve_request(input: Input<z.output<typeof approvalBodies.approve>>): Plan<'approve_request'> {
      const planned = common(input);
      const { approval_id, scopes } = planned.data;
      return {
        ...planned,
        name: 'approve_request',
        // The reply contains the outcome of the approved command. The decision on the approval itself may be known
        // earlier.
        async otherwise(origin) {
          const found = await forwarder.query('get_approval', { approval_id, scopes }, approval_id, origin);
          if (found.kind !== 'done') return undefined;
          const { approval } = found.data as { approval: Approval };
          return approval.decided_by === input.caller.actor && approval.status === 'Approved'
            ? { kind: 'done', data: approval, replayed: false }
            : undefined;
        },
      };
    },
    reject_request(input: Input<z.output<typeof approvalBodies.reject>>): Plan<'reject_request'> {
      return { ...common(input), name: 'reject_request' };
    },
  };
}
