import { type Refusal, refusal } from './errors.ts';

/**
 * All scopes (contract: permission) and the credentials that may have each. A credential bound to
 * one client acts for a customer, so it never has a scope that belongs to the bank.
 */
const holders = {
  'clients:read': 'anyone',
  'clients:write': 'anyone',
  'clients:erase': 'bank',
  'accounts:read': 'anyone',
  'accounts:write': 'anyone',
  'accounts:status': 'bank',
  'accounts:import': 'bank',
  'accounts:limits': 'bank',
  'transactions:read': 'anyone',
  'transactions:write': 'bank',
  'transactions:reverse': 'bank',
  'transfers:write': 'anyone',
  'holds:write': 'bank',
  'keys:manage': 'bank',
  'audit:read': 'bank',
  'books:read': 'bank',
  'ops:manage': 'bank',
  'approvals:write': 'bank',
  'webhooks:manage': 'anyone',
  'transactions:backdate': 'bank',
  'books:close': 'bank',
} as const satisfies Record<string, 'anyone' | 'bank'>;

export type Scope = keyof typeof holders;

export const scopes = Object.keys(holders) as [Scope, ...Scope[]];

/** The scopes that a bound credential cannot have. */
export const bankScopes: readonly Scope[] = scopes.filter((scope) => holders[scope] === 'bank');

/** Returns the refusal to rotate a key with these scopes for a caller who lacks some of them. */
export function rotationRefusal(ofKey: readonly string[], ofCaller: readonly string[]): Refusal | undefined {
  const lacking = ofKey.filter((scope) => !ofCaller.includes(scope));
  if (lacking.length === 0) return undefined;
  return refusal('insufficient_scope', `the key has scopes that the caller lacks: ${lacking.join(', ')}`);
}

/**
 * Returns the effective scopes of a credential. Unknown names are ignored, and a bound credential has none of the
 * bank's scopes.
 */
export function grantedScopes(named: readonly string[], boundClientId: string | undefined): ReadonlySet<Scope> {
  const own = boundClientId === undefined ? [] : bankScopes;
  return new Set(scopes.filter((scope) => named.includes(scope) && !own.includes(scope)));
}
