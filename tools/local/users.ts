import { type Scope, scopes } from '#libs/contracts/scopes.ts';

/** A person who can sign in at the local identity provider. */
export type User = {
  user_name: string;
  name: string;
  /** The person's role, as shown on the sign-in page. */
  role: string;
  /** All scopes that an access token of the person can have. */
  scopes: readonly Scope[];
};

export const users: readonly User[] = [
  { user_name: 'admin', name: 'Alex Admin', role: 'administration: everything', scopes },
  {
    user_name: 'officer',
    name: 'Olivia Officer',
    role: 'back office: clients, accounts, transactions',
    scopes: [
      'clients:read',
      'clients:write',
      'accounts:read',
      'accounts:write',
      'accounts:status',
      'transactions:read',
      'transactions:write',
      'transactions:reverse',
      'transfers:write',
      'holds:write',
    ],
  },
  {
    user_name: 'manager',
    name: 'Mary Manager',
    role: 'management: approves what others ask for',
    scopes: [
      'clients:read',
      'accounts:read',
      'accounts:write',
      'accounts:status',
      'transactions:read',
      'transactions:write',
      'transactions:reverse',
      'transfers:write',
      'holds:write',
      'clients:erase',
      'keys:manage',
      'audit:read',
      'books:read',
      'ops:manage',
      'approvals:write',
      'accounts:limits',
      'transactions:backdate',
      'books:close',
    ],
  },
  {
    user_name: 'auditor',
    name: 'Aisha Auditor',
    role: 'audit: reads clients, accounts, books and the audit',
    scopes: ['clients:read', 'accounts:read', 'transactions:read', 'audit:read', 'books:read'],
  },
];

/** Returns the person with that user name, or undefined if there is none. */
export function userNamed(name: string | undefined): User | undefined {
  return users.find(({ user_name }) => user_name === name);
}
