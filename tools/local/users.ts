import { type Scope, scopes } from '#libs/contracts/scopes.ts';

/** A person who can sign in at the identity provider of local development. */
export type User = {
  user_name: string;
  name: string;
  /** What the person does, as the sign-in page says it. */
  role: string;
  /** All that an access token of the person can carry. */
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
    ],
  },
  {
    user_name: 'auditor',
    name: 'Aisha Auditor',
    role: 'audit: reads clients, accounts, books and the audit',
    scopes: ['clients:read', 'accounts:read', 'transactions:read', 'audit:read', 'books:read'],
  },
];

/** The person of that user name; undefined for none. */
export function userNamed(name: string | undefined): User | undefined {
  return users.find(({ user_name }) => user_name === name);
}
