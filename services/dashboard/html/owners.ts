import type { Account } from '#libs/contracts/accounts.ts';
import type { Client } from '#libs/contracts/clients.ts';
import { type Api, ApiRefused, inGroups, known } from '../api.ts';
import type { PageRequest } from './frame.ts';

/** Reads the owners of the rows of a list, because people know names and account numbers, not ids. */

/** The maximum number of ids in one request. */
const mostAtOnce = 100;

type Asker = Pick<PageRequest, 'api' | 'person'>;

/** Returns the clients of these rows by their ids if the person may read clients. */
export function readClients(asker: Asker, rows: Iterable<{ client_id: string }>): Promise<ReadonlyMap<string, Client>> {
  const ids = [...rows].map(({ client_id }) => client_id);
  return asker.person.scopes.has('clients:read')
    ? together<Client>(asker, ids, '/clients?client_ids=', ({ client_id }) => client_id)
    : Promise.resolve(new Map());
}

/** Returns accounts by their ids if the person may read accounts. */
export function accountsBy(asker: Asker, ids: readonly (string | undefined)[]): Promise<ReadonlyMap<string, Account>> {
  const known = ids.filter((id) => id !== undefined);
  return asker.person.scopes.has('accounts:read')
    ? together<Account>(asker, known, '/accounts?account_ids=', ({ account_id }) => account_id)
    : Promise.resolve(new Map());
}

/**
 * Returns the accounts and clients with these ids, and the owners of the accounts, as far as the person may read them. Other
 * ids are ignored.
 */
export async function readNamed(asker: Asker, ids: readonly (string | undefined)[]) {
  const accounts = await accountsBy(
    asker,
    ids.filter((id) => id?.startsWith('acc_')),
  );
  const named = ids.flatMap((id) => (id?.startsWith('cli_') ? [{ client_id: id }] : []));
  return { accounts, clients: await readClients(asker, [...accounts.values(), ...named]) };
}

async function together<Row>({ api }: Asker, ids: readonly string[], path: string, getId: (row: Row) => string) {
  const rows = await known(readTogether<Row>(api, ids, path));
  return new Map(rows?.map((row) => [getId(row), row]));
}

/** Reads the rows with these ids, many in each request. */
export function readTogether<Row>(api: Api, ids: readonly string[], path: string): Promise<Row[]> {
  return inGroups(ids, mostAtOnce, async (group) => {
    const { data } = await api.get<Row[]>(`${path}${group.join(',')}&limit=${mostAtOnce}`);
    return data;
  });
}

/** Returns the owner of the account if the person may read clients. The API records the read. */
export async function readHolder({ api, person }: PageRequest, { client_id }: Account): Promise<Client | undefined> {
  return person.scopes.has('clients:read') ? (await api.get<Client>(`/clients/${client_id}`)).data : undefined;
}

export async function readAccount({ api }: Pick<PageRequest, 'api'>, accountId: string): Promise<Account> {
  return (await api.get<Account>(`/accounts/${encodeURIComponent(accountId)}`)).data;
}

/** An account with its owner, if the person may read clients. */
export interface Owned {
  account: Account;
  owner: Client | undefined;
}

export async function readOwnedAccount(visit: PageRequest, accountId: string): Promise<Owned> {
  const account = await readAccount(visit, accountId);
  return { account, owner: await readHolder(visit, account) };
}

/** Returns the id of the account with this number, or undefined if there is none. */
export async function findAccountId(api: Api, number: string): Promise<string | undefined> {
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
  const id = await findAccountId(api, number);
  return id === undefined ? undefined : readAccount({ api }, id);
}

/** Account numbers by ids. */
export type Numbers = ReadonlyMap<string, string>;

/** The numbers of these accounts, by which people know them, as far as the person may see them. */
export async function readAccountNumbers(
  visit: PageRequest,
  accountIds: readonly (string | undefined)[],
): Promise<Numbers> {
  return new Map([...(await accountsBy(visit, accountIds))].map(([id, { account_number }]) => [id, account_number]));
}

/** Returns the accounts of at most 100 clients that match these filters, up to 100 for each client and 500 in all. */
export async function accountsOwnedBy(
  { api }: PageRequest,
  clientIds: readonly string[],
  filters: Record<string, string> = {},
): Promise<Account[]> {
  if (clientIds.length === 0) return [];
  const limit = String(Math.min(500, 100 * clientIds.length));
  const parameters = new URLSearchParams({ client_ids: clientIds.join(), ...filters, limit });
  return (await api.get<Account[]>(`/accounts?${parameters}`)).data;
}
