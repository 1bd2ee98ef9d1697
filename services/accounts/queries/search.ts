import { maxHits, type SearchHit } from '#libs/contracts/administration.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { AccountMaster } from '#libs/contracts/resources.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import type { Read } from './queries.ts';
import { clientColumns } from '../clients/client-store.ts';
import { accountColumns } from '../sagas/account-store.ts';
import type { ClientRow } from '../clients/client-store.ts';

/** Searches for staff: each by an index of its own, at most `maxHits` rows. Callers bound to one client do not come so far. */

type Matched<Row> = Row & Pick<SearchHit, 'matched'>;

const name = "name_key(coalesce(company_name, first_name || ' ' || last_name))";
const lastName = "name_key(last_name || ' ' || first_name)";

/** The names that begin with $3: from it to the last code point behind it. */
const begins = (key: string, more = '') => `select 'name', ${clientColumns} from clients where ${key} ~>=~ name_key($3) and ${key} ~<=~ (name_key($3) || U&'\\+10FFFF') ${more} order by ${key} using ~<~ limit ${maxHits}`;

/** $1 as an id, $2 as a phone number, $3 as the beginning of a name. */
export const clientSearch = `(select 'id' as matched, ${clientColumns} from clients where client_id = $1)
  union all (select 'phone', ${clientColumns} from clients where ussd_phone_number = $2 order by created_at desc limit ${maxHits})
  union all (select 'phone', ${clientColumns} from clients where contact_number = $2 limit ${maxHits})
  union all (${begins(name)})
  union all (${begins(lastName, 'and last_name is not null')})`;

async function searchClients(pool: Pool, q: string): Promise<SearchHit[]> {
  const { rows } = await pool.query<Matched<ClientRow>>(clientSearch, [q, phoneOf(q), q]);
  const clients = new Map<string, SearchHit>();
  for (const row of rows) if (!clients.has(row.client_id)) clients.set(row.client_id, clientHit(row));
  return [...clients.values()].slice(0, maxHits);
}

/** E.164 with its plus, as numbers are kept; null for what is none. */
function phoneOf(q: string): string | null {
  const digits = q.replace(/[\s-]/g, '').replace(/^00/, '+').replace(/^\+/, '');
  return /^\d{7,15}$/.test(digits) ? `+${digits}` : null;
}

function clientHit({ client_id, client_type, company_name, first_name, last_name, contact_number, created_at, matched }: Matched<ClientRow>): SearchHit {
  return { kind: 'client', id: client_id, title: company_name ?? `${first_name} ${last_name}`, subtitle: `${client_type}, ${contact_number}`, matched, created_at };
}

async function searchAccounts(pool: Pool, q: string): Promise<SearchHit[]> {
  const { rows } = await pool.query<AccountMaster>(`select ${accountColumns} from accounts where (account_id = $1 or account_number = $2) and state = 'open' limit ${maxHits}`, [q, q.toUpperCase()]);
  return rows.map(({ account_id, account_number, account_type, currency, status, created_at }) => ({
    kind: 'account', id: account_id, title: account_number, subtitle: `${account_type}, ${currency}, ${status}`, matched: account_id === q ? 'id' : 'account_number', created_at,
  }));
}

async function searchAudit(pool: Pool, q: string): Promise<SearchHit[]> {
  const { rows } = await pool.query<{ audit_id: string; action: string; outcome: string; actor: string; created_at: string }>(
    `select audit_id, action, outcome, actor, created_at from audit where request_id = $1 order by created_at desc, audit_id desc limit ${maxHits}`,
    [q],
  );
  return rows.map(({ audit_id, action, outcome, actor, created_at }) => ({ kind: 'audit_record', id: audit_id, title: action, subtitle: `${outcome}, ${actor}`, matched: 'request_id', created_at }));
}

/** What accounts knows by that text, of these kinds. */
export async function searchRecords({ pool }: Read, { q, kinds }: MessageData<'search_records'>): Promise<ReplyBody> {
  const found = await Promise.all([
    kinds.includes('client') ? searchClients(pool, q) : [],
    kinds.includes('account') ? searchAccounts(pool, q) : [],
    kinds.includes('audit_record') ? searchAudit(pool, q) : [],
  ]);
  return { ok: true, data: found.flat() };
}
