import type { Approval } from '#libs/contracts/approvals.ts';
import { listScopes } from '../access/caller.ts';
import { type FourEyes, mayDecide } from '../access/four-eyes.ts';
import { refuse } from '../http/errors.ts';
import type { Origin } from '../messages/encode.ts';
import { presentApproval } from './approvals.ts';
import { awaitClosing, withClosing } from './closings.ts';
import type { Forwarder } from './forward.ts';
import { type Input, type Planners, planFor } from './plan.ts';

/** Approves and rejects. accounts decides; the gateway sends it the caller and the caller's scopes. */
export function approvalPlanners({ forwarder, fourEyes }: { forwarder: Forwarder; fourEyes: FourEyes }) {
  const verdict = (input: Input<{ reason?: string | null | undefined }>) => {
    const { body, caller } = input;
    const plan = planFor('approval_id', input, (approval_id) => {
      return { approval_id, reason: body.reason ?? null, scopes: listScopes(caller) };
    });
    if (!mayDecide(caller, fourEyes))
      throw refuse('insufficient_scope', 'only a person decides about approvals, with a token of their own');
    return {
      ...plan,
      enrichResponse: async (approval: unknown, _: boolean, origin: Origin) =>
        presentApproval(await withClosing(approval as Approval, origin, forwarder, awaitClosing), caller),
    };
  };
  return {
    approve_request(input) {
      const plan = verdict(input);
      const { approval_id, scopes } = plan.data;
      return {
        ...plan,
        // The reply contains the outcome of the approved command. The decision on the approval itself may be known
        // earlier.
        async fallbackRead(origin) {
          const found = await forwarder.query('get_approval', { approval_id, scopes }, approval_id, origin);
          if (found.kind !== 'done') return undefined;
          const { approval } = found.data;
          return approval.decided_by === input.caller.actor && approval.status === 'Approved'
            ? { kind: 'done', data: approval, replayed: false }
            : undefined;
        },
      };
    },
    reject_request: verdict,
  } satisfies Partial<Planners>;
}
