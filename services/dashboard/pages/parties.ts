import { clientName } from '#libs/contracts/clients.ts';
import type { PageRequest } from '../html/frame.ts';
import { accountsBy, readClients } from '../html/owners.ts';

/** The accounts and customers of postings, for files that people read. */

interface Party {
  account_number: string;
  /** Empty if the person may not see it. */
  customer: string;
}

export type WithParties<Row> = Row & { own?: Party | undefined; other?: Party | undefined };

/**
 * Returns a function that adds both accounts to the rows of a page, as far as the person may see them. Each account of a
 * file is read once.
 */
export function addParties<Row extends { account_id: string; counterparty_account_id?: string | undefined }>(
  visit: PageRequest,
): (rows: readonly Row[]) => Promise<WithParties<Row>[]> {
  const parties = new Map<string, Party>();
  return async (rows) => {
    const ids = rows.flatMap((row) => [row.account_id, row.counterparty_account_id]);
    const accounts = await accountsBy(
      visit,
      ids.filter((id) => id !== undefined && !parties.has(id)),
    );
    const clients = await readClients(visit, accounts.values());
    for (const [id, { account_number, client_id }] of accounts) {
      const client = clients.get(client_id);
      parties.set(id, { account_number, customer: client ? clientName(client) : '' });
    }
    return rows.map((row) => ({
      ...row,
      own: parties.get(row.account_id),
      other: parties.get(row.counterparty_account_id ?? ''),
    }));
  };
}
