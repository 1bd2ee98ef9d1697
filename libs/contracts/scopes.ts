/**
 * The permission list (contract: Authentication and permission), and to whom each permission may be given. A credential
 * bound to one client acts for a customer: what belongs to the bank is never among its scopes.
 */
const holders = {
  'clients:read': 'anyone',
  'clients:write': 'anyone',
  'clients:erase': 'bank',
  'accounts:read': 'anyone',
  'accounts:write': 'anyone',
  'accounts:status': 'bank',
  'accounts:import': 'bank',
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
} as const satisfies Record<string, 'anyone' | 'bank'>;

export type Scope = keyof typeof holders;

export const scopes = Object.keys(holders) as [Scope, ...Scope[]];

/** Those that a credential bound to one client cannot have. */
export const bankScopes: readonly Scope[] = scopes.filter((scope) => holders[scope] === 'bank');

/** What a credential may do: names that are no scope mean nothing, and a bound one has none of the bank's. */
export function grantedScopes(named: readonly string[], boundClientId: string | undefined): ReadonlySet<Scope> {
  const own = boundClientId === undefined ? [] : bankScopes;
  return new Set(scopes.filter((scope) => named.includes(scope) && !own.includes(scope)));
}
