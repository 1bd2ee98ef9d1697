import type { ApprovalAction } from '#libs/contracts/approvals.ts';
import { toMinor } from '#libs/contracts/money.ts';
import type { AccountStatus } from '#libs/contracts/resources.ts';
import type { Caller } from './caller.ts';

/** Decides which actions a second person must approve (contract: Four eyes). Pure. */

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

/** The part of a request that determines whether it needs an approval. */
export type Deed =
  | { kind: 'reversal' }
  | { kind: 'status_change'; from: AccountStatus; to: AccountStatus }
  | { kind: 'key'; scopes: readonly string[] }
  | { kind: 'posting'; posting: Posting }
  | { kind: 'erasure' }
  /** An unreadable posting may have any amount. */
  | { kind: 'redrive'; renewsDeadline: boolean; posting?: Posting | 'unreadable' };

/** Reports whether this caller's actions may need approval at all. */
export function isWatched(caller: Caller, { keys }: FourEyes): boolean {
  return keys || !isKey(caller);
}

/** Reports whether the caller may decide approvals: people only, unless keys are treated like people. */
export function mayDecide(caller: Caller, { keys }: FourEyes): boolean {
  return keys || caller.isStaff === true;
}

function isKey({ actor }: Caller): boolean {
  return actor.startsWith('key:');
}

/** Returns the action for which the request needs an approval, or undefined if it needs none. */
export function approvalNeeded(deed: Deed, caller: Caller, fourEyes: FourEyes): ApprovalAction | undefined {
  if (!isWatched(caller, fourEyes)) return undefined;
  return reasons(deed, fourEyes.limits).find((action) => fourEyes.actions.has(action));
}

function reasons(deed: Deed, limits: FourEyes['limits']): ApprovalAction[] {
  switch (deed.kind) {
    case 'reversal':
      return ['reverse'];
    case 'status_change':
      return deed.from === 'Frozen' && deed.to !== 'Frozen' ? ['unfreeze'] : [];
    case 'key':
      return deed.scopes.some(isWriting) ? ['create_key'] : [];
    case 'posting':
      return isAbove(deed.posting, limits) ? ['post_above'] : [];
    case 'erasure':
      return ['erase'];
    case 'redrive':
      return [
        ...(deed.renewsDeadline ? ['redrive' as const] : []),
        ...(mayBeLarge(deed.posting, limits) ? ['post_above' as const] : []),
      ];
  }
}

function isWriting(scope: string): boolean {
  return !scope.endsWith(':read');
}

function mayBeLarge(posting: Posting | 'unreadable' | undefined, limits: FourEyes['limits']): boolean {
  if (posting === 'unreadable') return limits.size > 0;
  return posting !== undefined && isAbove(posting, limits);
}

/** An amount with more decimal places than its currency exceeds no limit, because the posting will be refused. */
export function isAbove({ amount, currency }: Posting, limits: FourEyes['limits']): boolean {
  const limit = limits.get(currency);
  if (limit === undefined) return false;
  const [minor, most] = [toMinor(amount, currency), toMinor(limit, currency)];
  return minor === 'amount_too_large' || (typeof minor === 'bigint' && typeof most === 'bigint' && minor > most);
}

/** Reports whether the amount needs an approval in at least one currency. */
export function isAboveSome(amount: string, limits: FourEyes['limits']): boolean {
  return [...limits.keys()].some((currency) => isAbove({ amount, currency }, limits));
}
