import type { Visit } from '../html/frame.ts';
import { accountsBy } from '../html/owners.ts';

/** Account numbers by ids. */
export type Numbers = ReadonlyMap<string, string>;

/** The numbers of these accounts, by which people know them, as far as the person may see them. */
export async function numbersOf(visit: Visit, accountIds: readonly (string | undefined)[]): Promise<Numbers> {
  const ids = accountIds.filter((id) => id !== undefined);
  return new Map([...(await accountsBy(visit, ids))].map(([id, { account_number }]) => [id, account_number]));
}
