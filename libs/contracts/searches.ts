import type { MessageName } from './messages.ts';

/** Rows that a search looks at for one page: the newest ones from where the page begins. */
export const searchedRows = 200_000;

/** Filters for which there is no index. */
const filters: { [N in MessageName]?: readonly string[] } = {
  list_transactions: ['transaction_type', 'currency', 'actor', 'min_amount', 'max_amount'],
  list_transfers: [],
};

export function isSearchable(name: MessageName): boolean {
  return filters[name] !== undefined;
}

/**
 * PURE: whether no index leads to the rows of a list, so that they are looked for among the newest
 * ones of everybody. A list of one client's accounts, of one account or of one transfer is confined
 * by an index, whatever else it is filtered by.
 */
export function isSearch(name: MessageName, data: Record<string, unknown>, boundClientId: string | undefined): boolean {
  const names = filters[name];
  if (!names || boundClientId !== undefined || data['account_id'] !== undefined || data['transfer_id'] !== undefined)
    return false;
  if (name === 'list_transfers') return data['external_id'] === undefined;
  return data['status'] === 'Completed' || names.some((filter) => data[filter] !== undefined);
}
