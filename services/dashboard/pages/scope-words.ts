import { type Scope, scopes } from '#libs/contracts/scopes.ts';
import { type Html, html } from '#libs/service/html.ts';
import { toned } from '../html/show.ts';

/** What each scope allows, in a sentence and in groups, for API keys. Pure. */

const words: Record<Scope, readonly [group: 'Customers' | 'Money' | 'Administration', what: string]> = {
  'clients:read': ['Customers', 'See clients and notes.'],
  'clients:write': ['Customers', 'Create and change clients.'],
  'clients:erase': ['Customers', 'Erase the personal data of a client, for good.'],
  'accounts:read': ['Customers', 'See accounts, balances, and their history.'],
  'accounts:write': ['Customers', 'Open accounts.'],
  'accounts:status': ['Customers', 'Freeze, activate, and deactivate accounts.'],
  'accounts:limits': ['Customers', 'Set the limits of accounts.'],
  'accounts:import': ['Customers', 'Open accounts with numbers of another bank.'],
  'transactions:read': ['Money', 'See transactions, transfers, statements, and holds.'],
  'transactions:write': ['Money', 'Deposit and withdraw cash.'],
  'transfers:write': ['Money', 'Move money between accounts.'],
  'holds:write': ['Money', 'Hold money, and capture or release it.'],
  'transactions:reverse': ['Money', 'Reverse what was posted.'],
  'transactions:backdate': ['Money', 'Post with an earlier value date.'],
  'webhooks:manage': ['Administration', 'Create and change webhooks.'],
  'audit:read': ['Administration', 'See who did what.'],
  'books:read': ['Administration', 'See the books and operations, and check every entry.'],
  'books:close': ['Administration', 'Close days of the books.'],
  'approvals:write': ['Administration', 'Approve and reject requests.'],
  'ops:manage': ['Administration', 'Redrive and drop dead letters.'],
  'keys:manage': ['Administration', 'Create, rotate, and revoke API keys.'],
};

const movesMoney: ReadonlySet<Scope> = new Set<Scope>(['transactions:write', 'transfers:write', 'holds:write']);

/** What these do cannot be undone, or gives others power. */
const risky: ReadonlySet<Scope> = new Set<Scope>([
  'clients:erase',
  'accounts:limits',
  'accounts:import',
  'transactions:reverse',
  'transactions:backdate',
  'approvals:write',
  'keys:manage',
  'webhooks:manage',
  'ops:manage',
  'books:close',
]);

type Mark = 'moves money' | 'risk';
const markOf = (scope: Scope): Mark | undefined =>
  movesMoney.has(scope) ? 'moves money' : risky.has(scope) ? 'risk' : undefined;

export const scopeGroups: readonly (readonly [
  group: string,
  scopes: { scope: Scope; what: string; mark: Mark | undefined }[],
])[] = [...Map.groupBy(Object.keys(words) as Scope[], (scope) => words[scope][0])].map(
  ([group, own]) => [group, own.map((scope) => ({ scope, what: words[scope][1], mark: markOf(scope) }))] as const,
);

export const showMark = (mark: Mark | undefined): Html => html`${mark && html` ${toned('wait', 'warning', mark)}`}`;

/** What to mind about a key with these scopes. */
export const showMarks = (own: readonly unknown[]): Html => {
  const marks = Object.keys(words)
    .filter((scope) => own.includes(scope))
    .map((scope) => markOf(scope as Scope));
  return html`${[...new Set(marks)].map(showMark)}`;
};

/** The scopes of a key, each with what it allows. */
export const showScopes = (own: readonly string[]): Html =>
  html`${scopeGroups
    .flatMap(([, all]) => all)
    .filter(({ scope }) => own.includes(scope))
    .map(
      ({ scope, what, mark }) =>
        html`<div><code>${scope}</code>${showMark(mark)} <span class="quiet">${what}</span></div>`,
    )}`;

/** Usual choices, by the value of the parameter `preset`. */
export const scopePresets: Record<string, { title: string; scopes: readonly Scope[] }> = {
  read: { title: 'Read only', scopes: scopes.filter((scope) => /^(clients|accounts|transactions):read$/.test(scope)) },
  payments: { title: 'Payments', scopes: ['accounts:read', 'transactions:read', 'transfers:write'] },
  none: { title: 'None', scopes: [] },
};
