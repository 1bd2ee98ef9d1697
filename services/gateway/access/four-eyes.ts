import { type ApprovalAction, type ApprovalRules, approvalActions } from '#libs/contracts/approvals.ts';
import { dayIn } from '#libs/service/days.ts';
import { isNoLimit } from '#libs/service/production.ts';
import type { Caller } from './caller.ts';

/** Whose actions may need a second person's approval, and who may give it (contract: four-eyes). Pure. */

export interface FourEyes {
  actions: ReadonlySet<ApprovalAction>;
  /** Why other actions need no approval. */
  offReason?: string | undefined;
  /** API keys are treated like people: their actions may need approval, and they may approve. */
  keys: boolean;
  /** The largest amount per currency that needs no approval. */
  limits: ReadonlyMap<string, string>;
  /** The bank's time zone, in which the day of a person begins. */
  timeZone: string;
}

/**
 * Returns the rules under which a command of this caller needs an approval if it is one of these actions, as the header
 * `four-eyes`; undefined if it needs none. The service that executes the command decides, because only it knows the sums
 * and states.
 */
export function rulesFor(
  caller: Pick<Caller, 'actor'>,
  possible: readonly ApprovalAction[],
  { actions, keys, limits, timeZone }: FourEyes,
  at: Date,
): string | undefined {
  const named = possible.filter((action) => actions.has(action));
  if (named.length === 0 || (!keys && caller.actor.startsWith('key:'))) return undefined;
  const day = dayIn(timeZone, at);
  return JSON.stringify({ actions: named, limits: Object.fromEntries(limits), day } satisfies ApprovalRules);
}

/** Reports whether the caller may decide approvals: people only, unless keys are treated like people. */
export function mayDecide(caller: Caller, { keys }: FourEyes): boolean {
  return keys || caller.isStaff === true;
}

/** Returns the actions that one person may do alone, and why. */
export function switchedOff({ actions, limits, offReason }: Pick<FourEyes, 'actions' | 'limits' | 'offReason'>) {
  const hasNoLimit = [...limits].some(([currency, amount]) => isNoLimit(`${currency}:${amount}`));
  const isOff = (action: ApprovalAction) => !actions.has(action) || (action === 'post_above' && hasNoLimit);
  return { off: approvalActions.filter(isOff), reason: offReason ?? null };
}
