import type { Account } from '#libs/contracts/resources.ts';
import type { Api } from '../api.ts';
import { ApiRefused } from '../api.ts';

/** Returns the id of the account with this number, or undefined if there is none. */
export async function accountIdOf(api: Api, number: string): Promise<string | undefined> {
  try {
    const path = `/accounts/number/${encodeURIComponent(number)}/balance`;
    return (await api.get<{ account_id: string }>(path)).data.account_id;
  } catch (error) {
    if (!(error instanceof ApiRefused) || error.status !== 404) throw error;
    return undefined;
  }
}

/** Returns the account with this number, or undefined if there is none. */
export async function accountByNumber(api: Api, number: string): Promise<Account | undefined> {
  const id = await accountIdOf(api, number);
  return id === undefined ? undefined : (await api.get<Account>(`/accounts/${id}`)).data;
}
