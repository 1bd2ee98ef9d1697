import type { MessageName } from './messages.ts';
import { isPerson } from './staff-days.ts';

/** The number of rows that a search scans for one page, starting with the newest. */
export const searchedRows = 200_000;

/** Filters without an index. */
const filters: { [N in MessageName]?: readonly string[] } = {
  list_transactions: [
    'transaction_type',
    'currency',
    'actor',
    'request_id',
    'counterparty_account_id',
    'metadata',
    'min_amount',
    'max_amount',
    'effective_from',
    'effective_to',
  ],
  list_transfers: [],
};

export function isSearchable(name: MessageName): boolean {
  return filters[name] !== undefined;
}

/** Sums over all accounts, or over all that a person posted on a day. */
const sums = new Set<MessageName>([
  'list_balances',
  'get_trial_balance',
  'get_posting_statistics',
  'get_posting_totals',
  'get_cash_days',
  'get_staff_day',
]);

export const isSum = (name: MessageName): boolean => sums.has(name);

/**
 * Reports whether a query scans many rows: it is a sum, or a list without an index, which must scan the newest rows of
 * all accounts, or all batches. Lists of one client's accounts, one account, or one transfer use an index, whatever other
 * filters they have. Pure.
 */
export function isScan(name: MessageName, data: Record<string, unknown>, boundClientId: string | undefined): boolean {
  if (isSum(name)) return true;
  // Batches have an index by caller only for those of people.
  if (name === 'list_batches')
    return typeof data['actor'] === 'string' && !isPerson(data['actor']) && data['external_id'] === undefined;
  const names = filters[name];
  if (!names || boundClientId !== undefined || data['account_id'] !== undefined || data['transfer_id'] !== undefined)
    return false;
  if (name === 'list_transfers') return data['external_id'] === undefined;
  return data['status'] === 'Completed' || names.some((filter) => data[filter] !== undefined);
}
