import type { Scope } from '#libs/contracts/scopes.ts';
import type { IconName } from './icons.ts';

export interface Section {
  url: string;
  /** The heading under which it is. */
  group?: 'Customers' | 'Money' | 'Control' | 'System';
  icon: IconName;
  title: string;
  /** Its purpose, in one sentence. */
  about: string;
  /** null: everybody who is signed in. If there are several, any of them is sufficient. */
  scope: Scope | readonly Scope[] | null;
  /** The source of the numbers beside the link. */
  count?: { url: string; id: string };
}

/** The scopes of people who can request something that needs an approval, decide about it, or audit it. */
const approvalScopes: readonly Scope[] = [
  'approvals:write',
  'audit:read',
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
  { url: '/admin/ui', title: 'Home', icon: 'home', about: 'Your day and today’s figures.', scope: null },
  {
    url: '/admin/ui/counter',
    title: 'Counter',
    icon: 'counter',
    about: 'Deposit, withdraw, transfer and repay loans, with a receipt.',
    scope: ['transactions:write', 'transfers:write'],
  },
  {
    url: '/admin/ui/clients',
    title: 'Clients',
    group: 'Customers',
    icon: 'clients',
    about: 'Find, create and change clients, with their accounts.',
    scope: 'clients:read',
  },
  {
    url: '/admin/ui/accounts',
    title: 'Accounts',
    group: 'Customers',
    icon: 'accounts',
    about: 'Balances, transactions, entries, statements; freeze, unfreeze, activate, deactivate.',
    scope: 'accounts:read',
  },
  {
    url: '/admin/ui/transactions',
    title: 'Transactions',
    group: 'Money',
    icon: 'transactions',
    about: 'Every posting of the bank, by day, type, amount, status and who entered it.',
    scope: 'transactions:read',
  },
  {
    url: '/admin/ui/books',
    title: 'Books',
    group: 'Money',
    icon: 'books',
    about:
      'Trial balance per currency, Teller and Vault, closed days, the last check of every entry, postings over time.',
    scope: 'books:read',
  },
  {
    url: '/admin/ui/tills',
    title: 'Tills',
    group: 'Money',
    icon: 'tills',
    about: 'What everybody at the counter counted, and the differences.',
    scope: 'books:read',
  },
  {
    url: '/admin/ui/approvals',
    title: 'Approvals',
    group: 'Control',
    icon: 'approvals',
    about: 'Requests that need a second person, and their outcome.',
    scope: approvalScopes,
    count: { url: '/admin/ui/approvals/count', id: 'waiting-approvals' },
  },
  {
    url: '/admin/ui/audit',
    title: 'Audit',
    group: 'Control',
    icon: 'audit',
    about: 'Who did what and when, and what was refused.',
    scope: 'audit:read',
  },
  {
    url: '/admin/ui/operations',
    title: 'Operations',
    group: 'System',
    icon: 'operations',
    about: 'Services, outboxes, dead letters, consumer lag.',
    scope: 'books:read',
  },
  {
    url: '/admin/ui/api-keys',
    title: 'API keys',
    group: 'System',
    icon: 'keys',
    about: 'Create, rotate and revoke the keys that programs use.',
    scope: 'keys:manage',
  },
  {
    url: '/admin/ui/webhooks',
    title: 'Webhooks',
    group: 'System',
    icon: 'webhooks',
    about: 'Receivers of events, the deliveries to them, and their responses.',
    scope: 'webhooks:manage',
  },
];

/** Reports whether a person with these scopes has one of those that are sufficient. */
export const hasAny = (scopes: ReadonlySet<string>, sufficient: Section['scope']): boolean =>
  sufficient === null || [sufficient].flat().some((scope) => scopes.has(scope));

/** Returns the sections for a person with these scopes. */
export const visibleSections = (scopes: ReadonlySet<string>): readonly Section[] =>
  navigation.filter(({ scope }) => hasAny(scopes, scope));

/** What people need most often, first. */
const mostUsed = [
  'Home',
  'Counter',
  'Clients',
  'Approvals',
  'Accounts',
  'Transactions',
  'Books',
  'Audit',
  'Operations',
];

/** Returns the four sections of the bar on a phone. */
export const barSections = (sections: readonly Section[]): readonly Section[] =>
  mostUsed.flatMap((wanted) => sections.find(({ title }) => title === wanted) ?? []).slice(0, 4);
