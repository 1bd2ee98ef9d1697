/** The permission list (contract: Authentication and permission). */
export const scopes = [
  'clients:read',
  'clients:write',
  'accounts:read',
  'accounts:write',
  'accounts:status',
  'transactions:read',
  'transactions:write',
  'transactions:reverse',
  'transfers:write',
  'keys:manage',
  'audit:read',
  'ops:manage',
] as const;

export type Scope = (typeof scopes)[number];
