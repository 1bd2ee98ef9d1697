import type { Logger } from 'pino';
import { phone } from '#libs/contracts/phones.ts';
import type { Queries } from '#libs/postgres/pool.ts';

interface Row {
  client_id: string;
  contact_number: string;
  ussd_phone_number: string | null;
  ussd_status: 'active' | 'inactive';
}

const pageSize = 10_000;
const enough = 1000;

/**
 * Returns the clients whose stored phone number has not the form that its numbering plan gives it (numbers stored by
 * an older version, or a plan that has changed), and the pairs of clients who have one telephone active under two
 * forms. It ends with the page that has the thousandth, so memory does not grow with the number of clients.
 */
export async function findStrayPhones(database: Queries): Promise<{ strays: string[]; pairs: [string, string][] }> {
  const strays: string[] = [];
  const active = new Map<string, string>();
  const pairs: [string, string][] = [];
  const form = (stored: string) => phone.safeParse(stored).data;
  for (let after = ''; strays.length < enough; ) {
    const { rows } = await database.query<Row>(
      `select client_id, contact_number, ussd_phone_number, ussd_status from clients
       where client_id > $1 and erased_at is null order by client_id limit ${pageSize}`,
      [after],
    );
    for (const { client_id, contact_number, ussd_phone_number, ussd_status } of rows) {
      const ussd = ussd_phone_number === null ? null : form(ussd_phone_number);
      if (form(contact_number) === contact_number && ussd === ussd_phone_number) continue;
      strays.push(client_id);
      if (ussd_status !== 'active' || !ussd || ussd === ussd_phone_number) continue;
      const other = active.get(ussd);
      if (other === undefined) active.set(ussd, client_id);
      else pairs.push([client_id, other]);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageSize) break;
    after = last.client_id;
  }
  const { rows: holders } = await database.query<Row>(
    "select client_id, ussd_phone_number from clients where ussd_status = 'active' and ussd_phone_number = any($1::text[])",
    [[...active.keys()]],
  );
  for (const { client_id, ussd_phone_number } of holders)
    pairs.push([active.get(ussd_phone_number ?? '') ?? '', client_id]);
  return { strays, pairs };
}

/** Names what `findStrayPhones` finds in the log of the migration. Staff correct it: a PATCH stores the right form. */
export async function warnOfStrayPhones(database: Queries, logger: Logger): Promise<void> {
  const { strays, pairs } = await findStrayPhones(database);
  if (strays.length > 0)
    logger.warn(
      { clients: strays },
      'phone numbers are not in the form of their numbering plan: send each again with PATCH /clients/:client_id',
    );
  if (pairs.length > 0)
    logger.warn(
      { pairs },
      'two clients have the same telephone active, typed in two ways: set it inactive for one of them',
    );
}
