import { maxHits, type SearchHit } from '#libs/contracts/administration.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { numberPrefixes } from '#libs/contracts/resources.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import type { ClientRow } from '../clients/client-store.ts';
import { clientColumns } from '../clients/client-store.ts';
import type { AccountRow } from '../sagas/account-store.ts';
import { accountColumns } from '../sagas/account-store.ts';
import { clientFilters } from './client-filters.ts';
import type { Read } from './queries.ts';

/**
 * Searches for staff: each by an index of its own, at most `maxHits` rows. Callers bound to one
 * client do not come so far.
 */

type Matched<Row> = Row & Pick<SearchHit, 'matched'>;

const name = "name_key(coalesce(company_name, first_name || ' ' || last_name))";
const lastName = "name_key(last_name || ' ' || first_name)";

/** The names that begin with $3: from it to the last code point behind it. */
const begins = (key: string, more = '') =>
  `select 'name', ${clientColumns} from clients where ${key} ~>=~ name_key($3) and ${key} ~<=~ (name_key($3) || U&'\\+10FFFF') ${more} order by ${key} using ~<~ limit ${maxHits}`;

/** The numbers that end with $4, which is written backwards. */
const ends = (column: string) =>
  `select 'phone', ${clientColumns} from clients where reverse(${column}) ~>=~ $4 and reverse(${column}) ~<~ ($4 || ':') limit ${maxHits}`;

/**
 * $1 as an id, $2 as a phone number, $3 as an e-mail address, a registration number and the
 * beginning of a name, $4 as the end of a phone number.
 */
export const clientSearch = `(select 'id' as matched, ${clientColumns} from clients where client_id = $1)
  union all (select 'phone', ${clientColumns} from clients where ussd_phone_number = $2 order by created_at desc limit ${maxHits})
  union all (select 'phone', ${clientColumns} from clients where contact_number = $2 limit ${maxHits})
  union all (select 'email', ${clientColumns} from clients where ${clientFilters.email.replace('?', '$3')} limit ${maxHits})
  union all (select 'registration_number', ${clientColumns} from clients where ${clientFilters.registration_number.replace('?', '$3')} limit ${maxHits})
  union all (${ends('contact_number')})
  union all (${ends('ussd_phone_number')})
  union all (${begins(name)})
  union all (${begins(lastName, 'and last_name is not null')})`;

/** Words anywhere in a name: where so many have them, the others have filled the answer already. */
const wordSearch = `select 'name' as matched, ${clientColumns} from clients where ${clientFilters.q.replace('?', '$1')} limit ${maxHits}`;

async function searchClients(pool: Pool, q: string): Promise<SearchHit[]> {
  const { whole, end } = phoneOf(q);
  const { rows } = await pool.query<Matched<ClientRow>>(clientSearch, [q, whole, q, end]);
  const clients = new Map<string, SearchHit>();
  const add = (row: Matched<ClientRow>) => {
    if (!clients.has(row.client_id)) clients.set(row.client_id, clientHit(row));
  };
  rows.forEach(add);
  if (clients.size < maxHits) (await pool.query<Matched<ClientRow>>(wordSearch, [q])).rows.forEach(add);
  return [...clients.values()].slice(0, maxHits);
}

/** Shorter ends would be those of too many. */
const shortestEnd = 7;

/**
 * PURE: E.164 with its plus, as numbers are kept, and backwards what a number ends with that was
 * given without its country's code: 0712 345 678 is +254712345678 too. null for what is none.
 */
function phoneOf(q: string): { whole: string | null; end: string | null } {
  const digits = q.replace(/[\s()./-]/g, '').replace(/^00/, '+');
  const isNational = /^\d+$/.test(digits);
  if (!/^\+?\d{7,15}$/.test(digits)) return { whole: null, end: null };
  const end = digits.replace(/^0+/, '');
  return {
    whole: `+${digits.replace('+', '')}`,
    end: isNational && end.length >= shortestEnd ? [...end].reverse().join('') : null,
  };
}

function clientHit({
  client_id,
  client_type,
  company_name,
  first_name,
  last_name,
  contact_number,
  created_at,
  matched,
}: Matched<ClientRow>): SearchHit {
  return {
    kind: 'client',
    id: client_id,
    title: company_name ?? `${first_name} ${last_name}`,
    subtitle: `${client_type}, ${contact_number}`,
    matched,
    created_at,
  };
}

/** PURE: what an account's number can be that was given like this: in any case, or its digits alone. */
function numbersOf(q: string): string[] {
  const digits = q.replace(/[\s-]/g, '');
  const all = Object.values(numberPrefixes);
  const [, prefix, rest] = /^([a-z]{3})(\d+)$/i.exec(digits) ?? [];
  return [
    q.toUpperCase(),
    ...(/^\d{4,}$/.test(digits) ? all.map((each) => `${each}-${digits}`) : []),
    ...(prefix !== undefined ? [`${prefix.toUpperCase()}-${rest}`] : []),
  ];
}

async function searchAccounts(pool: Pool, q: string): Promise<SearchHit[]> {
  const { rows } = await pool.query<AccountRow>(
    `select ${accountColumns} from accounts where (account_id = $1 or account_number = any($2)) and state = 'open' limit ${maxHits}`,
    [q, numbersOf(q)],
  );
  return rows.map(({ account_id, account_number, account_type, currency, status, created_at }) => ({
    kind: 'account',
    id: account_id,
    title: account_number,
    subtitle: `${account_type}, ${currency}, ${status}`,
    matched: account_id === q ? 'id' : 'account_number',
    created_at,
  }));
}

async function searchAudit(pool: Pool, q: string): Promise<SearchHit[]> {
  const { rows } = await pool.query<{
    audit_id: string;
    action: string;
    outcome: string;
    actor: string;
    created_at: string;
  }>(
    `select audit_id, action, outcome, actor, created_at from audit where request_id = $1 order by created_at desc, audit_id desc limit ${maxHits}`,
    [q],
  );
  return rows.map(({ audit_id, action, outcome, actor, created_at }) => ({
    kind: 'audit_record',
    id: audit_id,
    title: action,
    subtitle: `${outcome}, ${actor}`,
    matched: 'request_id',
    created_at,
  }));
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
