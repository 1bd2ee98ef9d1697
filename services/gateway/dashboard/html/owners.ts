import type { Account, Client } from '#libs/contracts/resources.ts';
import { ApiRefused } from '../api.ts';
import type { Visit } from './frame.ts';

/** Reads the owners of the rows of a list, because people know names and account numbers, not ids. */

/** The maximum number of ids in one request. */
const mostAtOnce = 100;

type Asker = Pick<Visit, 'api' | 'person'>;

/** Returns the clients of these rows by their ids if the person may read clients. */
export function clientsOf(asker: Asker, rows: Iterable<{ client_id: string }>): Promise<ReadonlyMap<string, Client>> {
  const ids = [...rows].map(({ client_id }) => client_id);
  return asker.person.scopes.has('clients:read')
    ? together<Client>(asker, ids, '/clients?client_ids=', ({ client_id }) => client_id)
    : Promise.resolve(new Map());
}

/** Returns accounts by their ids if the person may read accounts. */
export function accountsBy(asker: Asker, ids: readonly string[]): Promise<ReadonlyMap<string, Account>> {
  return asker.person.scopes.has('accounts:read')
    ? together<Account>(asker, ids, '/accounts?account_ids=', ({ account_id }) => account_id)
    : Promise.resolve(new Map());
}

async function together<Row>(
  { api }: Asker,
  ids: readonly string[],
  path: string,
  idOf: (row: Row) => string,
): Promise<ReadonlyMap<string, Row>> {
  const wanted = [...new Set(ids)];
  const pages = Array.from({ length: Math.ceil(wanted.length / mostAtOnce) }, (_, page) =>
    wanted.slice(page * mostAtOnce, (page + 1) * mostAtOnce),
  );
  try {
    const found = await Promise.all(
      pages.map((page) => api.get<Row[]>(`${path}${page.join(',')}&limit=${mostAtOnce}`)),
    );
    return new Map(found.flatMap(({ data }) => data.map((row) => [idOf(row), row] as const)));
  } catch (error) {
    // The list is shown without them.
    if (error instanceof ApiRefused) return new Map();
    throw error;
  }
}
