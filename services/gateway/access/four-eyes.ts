import type { ApprovalAction } from '#libs/contracts/approvals.ts';
import { toMinor } from '#libs/contracts/money.ts';
import type { Caller } from './caller.ts';

/** Who needs a second person's approval, who may give it, and from which amount (contract: four-eyes). Pure. */

export interface FourEyes {
  actions: ReadonlySet<ApprovalAction>;
  /** API keys are treated like people: their actions may need approval, and they may approve. */
  keys: boolean;
  /** The largest amount per currency that needs no approval. */
  limits: ReadonlyMap<string, string>;
}

export interface Posting {
  amount: string;
  currency: string;
}

/** Reports whether this caller's actions may need approval at all. */
export function isWatched(caller: Pick<Caller, 'actor'>, { keys }: FourEyes): boolean {
  return keys || !isKey(caller);
}

/** Reports whether the caller may decide approvals: people only, unless keys are treated like people. */
export function mayDecide(caller: Caller, { keys }: FourEyes): boolean {
  return keys || caller.isStaff === true;
}

function isKey({ actor }: Pick<Caller, 'actor'>): boolean {
  return actor.startsWith('key:');
}

/** An amount with more decimal places than its currency exceeds no limit, because the posting will be refused. */
export function isAbove({ amount, currency }: Posting, limits: FourEyes['limits']): boolean {
  const limit = limits.get(currency);
  if (limit === undefined) return false;
  const [minor, most] = [toMinor(amount, currency), toMinor(limit, currency)];
  return minor === 'amount_too_large' || (typeof minor === 'bigint' && typeof most === 'bigint' && minor > most);
}

/** Reports whether this caller's posting needs an approval. */
export function needsApproval(posting: Posting, caller: Pick<Caller, 'actor'>, fourEyes: FourEyes): boolean {
  return fourEyes.actions.has('post_above') && isWatched(caller, fourEyes) && isAbove(posting, fourEyes.limits);
}

/** Reports whether the amount needs an approval in at least one currency. */
export function isAboveSome(amount: string, limits: FourEyes['limits']): boolean {
  return [...limits.keys()].some((currency) => isAbove({ amount, currency }, limits));
}
