import { approvalAction } from '#libs/contracts/approvals.ts';
import { type Endpoint, endpoints } from '#libs/contracts/endpoints.ts';
import { transactionType } from '#libs/contracts/transactions.ts';
import { amountText, transactionTitle } from '#libs/service/formats.ts';
import { actionWords } from './approval-words.ts';

/** What the audit calls actions, in words and in groups. Pure. */

const groups: Record<string, Record<string, string>> = {
  Clients: {
    create_client: 'Create a client',
    update_client: 'Change a client',
    add_client_note: 'Note on a client',
    erase_client: 'Erase a client',
  },
  Accounts: {
    open_account: 'Open an account',
    change_account_status: 'Freeze, activate, or deactivate',
    set_account_limits: 'Set limits',
    add_account_note: 'Note on an account',
  },
  Money: {
    create_transaction: 'Deposit or withdraw',
    create_transfer: 'Transfer',
    reverse_transaction: 'Reverse',
    create_batch: 'Send many payments',
    place_hold: 'Place a hold',
    capture_hold: 'Capture a hold',
    release_hold: 'Release a hold',
  },
  Approvals: {
    request_approval: 'Ask for an approval',
    approve_request: 'Approve',
    reject_request: 'Reject',
    expire_approval: 'Let a request expire',
    claim_approved_key: 'Read an approved API key',
  },
  'API keys and webhooks': {
    create_api_key: 'Create an API key',
    rotate_api_key: 'Rotate an API key',
    revoke_api_key: 'Revoke an API key',
    create_webhook: 'Create a webhook',
    update_webhook: 'Change a webhook',
    delete_webhook: 'Delete a webhook',
    disable_webhook: 'Disable a webhook',
    disable_webhooks: 'Disable webhooks',
    rotate_webhook_secret: 'Rotate the secret of a webhook',
    test_webhook: 'Send a test event',
    redeliver: 'Send an event again',
    replay_webhook: 'Send the events of a period again',
  },
  'Books and operations': {
    close_day: 'Close a day',
    verify_books: 'Check the books',
    verify_audit: 'Check the audit',
    redrive_dead_letter: 'Redrive a dead letter',
    drop_dead_letter: 'Drop a dead letter',
  },
  'Files and refused requests': {
    export: 'Download a file',
    authenticate: 'Send credentials',
    unknown_route: 'Open an address that does not exist',
    various: 'Several different actions',
  },
};

/** Reads whose summary says more than an auditor needs. */
const reads: Record<string, string> = {
  sign_in: 'Sign in',
  sign_out: 'Sign out',
  health: 'Ask for the version',
  search: 'Search',
  search_client_by_ussd: 'See a client by USSD phone',
  get_balance_by_number: 'See a balance by account number',
  get_account_balance: 'See a balance',
  get_timeline: 'See the timeline of a transaction',
  get_posting_statistics: 'See postings over time',
  get_posting_totals: 'See the postings of a period',
  get_operations: 'See operations',
  list_client_notes: 'See the notes on a client',
  list_account_notes: 'See the notes on an account',
  list_dead_letters: 'See dead letters',
  get_dead_letter: 'See the content of a dead letter',
  list_events: 'See events',
};

const inWords: Record<string, string> = Object.assign({}, ...Object.values(groups), reads);

/** Returns the action in words; `page:` and `form:` are those of the dashboard. */
export function actionText(action: string): string {
  const refused = /^(page|form):(.*)$/.exec(action);
  if (refused) return `${refused[1] === 'page' ? 'Open' : 'Send'} the page ${refused[2] || 'Home'}`;
  const summary = (endpoints as Record<string, Endpoint>)[action]?.summary.replace(/^(Get|List) /, 'See ');
  return inWords[action] ?? summary ?? action.replaceAll('_', ' ').replace(/^./, (first) => first.toUpperCase());
}

const signIns = ['sign_in', 'sign_out'];
const isRead = (name: string) => (endpoints as Record<string, Endpoint>)[name]?.method === 'GET';
/** Only reads that show data of customers are recorded, besides refused ones. */
const customers = new Set<unknown>(['clients:read', 'accounts:read', 'transactions:read']);
const isRecorded = (name: string) =>
  ['search', 'get_timeline', 'get_dead_letter'].includes(name) ||
  customers.has((endpoints as Record<string, Endpoint>)[name]?.scope);
const ungrouped = Object.keys(endpoints).filter((name) => inWords[name] === undefined || reads[name] !== undefined);
const named = (names: readonly string[]) =>
  names.map((name) => [name, actionText(name)] as const).toSorted(([, a], [, b]) => a.localeCompare(b));

type Group = readonly [title: string, actions: readonly (readonly [name: string, text: string])[]];

/** The actions that change something or were refused, by group. */
export const changeGroups: readonly Group[] = [
  ...Object.entries(groups).map(([title, actions]) => [title, Object.entries(actions)] as const),
  [
    'Others',
    named(ungrouped.filter((name) => !isRead(name) && ![...signIns, 'record_activity'].includes(name))),
  ] as const,
].filter(([, actions]) => actions.length > 0);

/** The other actions: those that only read, and sign-ins. */
export const readGroup: Group = [
  'Reads and sign-ins',
  named([...signIns, ...ungrouped.filter((name) => isRead(name) && isRecorded(name))]),
];

/** Details that only technicians need: how the request was sent. */
export const isTechnical = (name: string): boolean => technicalNames.has(name);
const technicalNames: ReadonlySet<string> = new Set([
  'command_id',
  'operation',
  'method',
  'path',
  'filters',
  'approval_id',
  'summary',
  'about',
  'account_id',
  'account_ids',
  'from_account_id',
  'to_account_id',
  'client_id',
]);

type Details = Readonly<Record<string, unknown>>;

const statusChange = (from: unknown, to: unknown): string | undefined =>
  to === 'Frozen'
    ? 'Freeze'
    : to === 'Inactive'
      ? 'Deactivate'
      : to === 'Active'
        ? from === 'Frozen'
          ? 'Unfreeze'
          : 'Activate'
        : undefined;

/** Returns what was done in words: of a posting, its type, of an account's status, which change. Pure. */
export function recordTitle(
  action: string,
  { transaction_type: type, from_status: from, to_status: to }: Details,
): string {
  if (action === 'change_account_status') return statusChange(from, to) ?? actionText(action);
  const { data: transaction_type } = transactionType.safeParse(type);
  if (transaction_type === undefined) return actionText(action);
  const title = transactionTitle({ transaction_type });
  return action === 'reverse_transaction'
    ? `Reversal of the ${title}`
    : action === 'create_transaction'
      ? title
      : actionText(action);
}

/**
 * Says in short what a record is about, beside its action: the amount, the change, the reason. `asked`: what an approval was asked
 * for, in words. Pure.
 */
export function recordText(details: Details, asked?: string): string {
  const text = (name: string) => (typeof details[name] === 'string' ? details[name] : undefined);
  const [from, to, amount] = [text('from_status'), text('to_status'), text('amount')];
  const action = approvalAction.safeParse(text('action'));
  return [
    asked ?? (action.success ? actionWords[action.data] : undefined),
    amount && amountText(amount, text('currency') ?? null),
    from && to && `${from} → ${to}`,
    text('reason')?.replaceAll('_', ' '),
    text('date'),
    text('account_type'),
    details['counted'] !== undefined ? `counted ${detailText(details['counted'])}` : undefined,
  ]
    .filter((part) => part !== undefined && part !== '')
    .join(', ');
}

/** Returns the value of a detail as text: amounts with their currency, lists, and what was before. Pure. */
export function detailText(value: unknown): string {
  if (Array.isArray(value)) return value.map(detailText).join(', ');
  if (typeof value !== 'object' || value === null) return value === null ? 'none' : String(value);
  const { amount, currency, ...others } = value as Details;
  const money = typeof amount === 'string' && typeof currency === 'string' ? [amountText(amount, currency)] : [];
  const rest = money.length > 0 ? others : (value as Details);
  return [
    ...money,
    ...Object.entries(rest).map(([name, one]) => `${name.replaceAll('_', ' ')} ${detailText(one)}`),
  ].join(' ');
}
