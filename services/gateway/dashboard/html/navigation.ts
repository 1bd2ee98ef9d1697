import type { Scope } from '#libs/contracts/scopes.ts';

export interface Section {
  url: string;
  title: string;
  /** What it is for, in one sentence. */
  about: string;
  /** null: for everybody who is signed in. */
  scope: Scope | null;
}

/** The sections of the dashboard. */
const navigation: readonly Section[] = [
  { url: '/admin/ui', title: 'Home', about: 'Where you are.', scope: null },
  { url: '/admin/ui/clients', title: 'Clients', about: 'Find, open and change clients, with their accounts.', scope: 'clients:read' },
  { url: '/admin/ui/accounts', title: 'Accounts', about: 'Balances, transactions, entries, statements; freeze, unfreeze, activate, deactivate.', scope: 'accounts:read' },
  { url: '/admin/ui/books', title: 'Books', about: 'Trial balance per currency, Teller and Vault, the last check of every entry, postings over time.', scope: 'books:read' },
  { url: '/admin/ui/operations', title: 'Operations', about: 'Services, outboxes, dead letters, consumer lag.', scope: 'books:read' },
  { url: '/admin/ui/api-keys', title: 'API keys', about: 'Create, rotate and revoke the keys by which programs reach the bank.', scope: 'keys:manage' },
  { url: '/admin/ui/audit', title: 'Audit', about: 'Who did or was refused what, and when.', scope: 'audit:read' },
];

/** Those that a person with these scopes sees. */
export function sectionsOf(scopes: ReadonlySet<string>): readonly Section[] {
  return navigation.filter(({ scope }) => scope === null || scopes.has(scope));
}
