import type { ApprovalAction } from '#libs/contracts/approvals.ts';
import { toMinor } from '#libs/contracts/money.ts';
import type { AccountStatus } from '#libs/contracts/resources.ts';
import type { Caller } from './caller.ts';

/** PURE: what a second person must approve (contract: Four eyes). */

export interface FourEyes {
  actions: ReadonlySet<ApprovalAction>;
  /** What API keys do counts as what people do, and they may approve. */
  keys: boolean;
  /** The largest amount of each currency that needs no approval. */
  limits: ReadonlyMap<string, string>;
}

export interface Posting {
  amount: string;
  currency: string;
}

/** What somebody is about to do, as far as it decides whether an approval is needed. */
export type Deed =
  | { kind: 'reversal' }
  | { kind: 'status_change'; from: AccountStatus; to: AccountStatus }
  | { kind: 'key'; scopes: readonly string[] }
  | { kind: 'posting'; posting: Posting }
  | { kind: 'erasure' }
  /** Of a posting that cannot be read nobody can say that it is small. */
  | { kind: 'redrive'; renewsDeadline: boolean; posting?: Posting | 'unreadable' };

/** Whether this caller's deeds may need an approval at all. */
export function isWatched(caller: Caller, { keys }: FourEyes): boolean {
  return keys || !isKey(caller);
}

/** People decide, in person; where keys count as people, so does everything else. */
export function mayDecide(caller: Caller, { keys }: FourEyes): boolean {
  return keys || caller.isStaff === true;
}

function isKey({ actor }: Caller): boolean {
  return actor.startsWith('key:');
}

/** Why the deed needs an approval; undefined where it needs none. */
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

/** An amount with more digits than its currency has is above nothing: it is refused by whoever would post it. */
export function isAbove({ amount, currency }: Posting, limits: FourEyes['limits']): boolean {
  const limit = limits.get(currency);
  if (limit === undefined) return false;
  const [minor, most] = [toMinor(amount, currency), toMinor(limit, currency)];
  return minor === 'amount_too_large' || (typeof minor === 'bigint' && typeof most === 'bigint' && minor > most);
}

/** Whether there is a currency in which this amount needs an approval. */
export function isAboveSome(amount: string, limits: FourEyes['limits']): boolean {
  return [...limits.keys()].some((currency) => isAbove({ amount, currency }, limits));
}
