import type { Scope } from '#libs/contracts/scopes.ts';

export interface Section {
  url: string;
  title: string;
  /** Its purpose, in one sentence. */
  about: string;
  /** null: everybody who is signed in. If there are several, any of them is sufficient. */
  scope: Scope | readonly Scope[] | null;
  /** The source of the numbers beside the link. */
  count?: { url: string; id: string };
}

/** The scopes of people who can request something that needs an approval, or decide about it. */
const approvalScopes: readonly Scope[] = [
  'approvals:write',
  'transactions:reverse',
  'accounts:status',
  'keys:manage',
  'ops:manage',
  'transactions:write',
  'transfers:write',
  'holds:write',
  'accounts:write',
  'accounts:limits',
  'books:close',
];

/** The sections of the dashboard. */
const navigation: readonly Section[] = [
  { url: '/admin/ui', title: 'Home', about: 'Your day and today’s figures.', scope: null },
  {
    url: '/admin/ui/counter',
    title: 'Counter',
    about: 'Deposit, withdraw, transfer and repay loans, with a receipt.',
    scope: ['transactions:write', 'transfers:write'],
  },
  {
    url: '/admin/ui/clients',
    title: 'Clients',
    about: 'Find, create and change clients, with their accounts.',
    scope: 'clients:read',
  },
  {
    url: '/admin/ui/accounts',
    title: 'Accounts',
    about: 'Balances, transactions, entries, statements; freeze, unfreeze, activate, deactivate.',
    scope: 'accounts:read',
  },
  {
    url: '/admin/ui/transactions',
    title: 'Transactions',
    about: 'Every posting of the bank, by day, type, amount, status and who entered it.',
    scope: 'transactions:read',
  },
  {
    url: '/admin/ui/approvals',
    title: 'Approvals',
    about: 'Requests that need a second person, and their outcome.',
    scope: approvalScopes,
    count: { url: '/admin/ui/approvals/count', id: 'waiting-approvals' },
  },
  {
    url: '/admin/ui/books',
    title: 'Books',
    about:
      'Trial balance per currency, Teller and Vault, closed days, the last check of every entry, postings over time.',
    scope: 'books:read',
  },
  {
    url: '/admin/ui/operations',
    title: 'Operations',
    about: 'Services, outboxes, dead letters, consumer lag.',
    scope: 'books:read',
  },
  {
    url: '/admin/ui/api-keys',
    title: 'API keys',
    about: 'Create, rotate and revoke the keys that programs use.',
    scope: 'keys:manage',
  },
  {
    url: '/admin/ui/webhooks',
    title: 'Webhooks',
    about: 'Receivers of events, the deliveries to them, and their responses.',
    scope: 'webhooks:manage',
  },
  {
    url: '/admin/ui/audit',
    title: 'Audit',
    about: 'Who did what and when, and what was refused.',
    scope: 'audit:read',
  },
];

/** Reports whether a person with these scopes has one of those that are sufficient. */
export const hasAny = (scopes: ReadonlySet<string>, sufficient: Section['scope']): boolean =>
  sufficient === null || [sufficient].flat().some((scope) => scopes.has(scope));

/** Returns the sections for a person with these scopes. */
export const visibleSections = (scopes: ReadonlySet<string>): readonly Section[] =>
  navigation.filter(({ scope }) => hasAny(scopes, scope));
