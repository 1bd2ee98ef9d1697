import { numberPrefixes } from '#libs/contracts/accounts.ts';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { emailParameter } from '#libs/contracts/emails.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { bareNumber, phone } from '#libs/contracts/phones.ts';
import { maxHits, type SearchHit } from '#libs/contracts/search.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { foldCase } from '#libs/service/folding.ts';
import { type ClientRow, clientColumns, clientFilters } from '../clients/client-store.ts';
import { nameKey, nameQuery } from '../clients/folded.ts';
import { type AccountRow, accountColumns } from '../sagas/account-store.ts';
import type { Read } from './queries.ts';

/**
 * Searches for staff. Each has its own index and returns at most `maxHits` rows. Searches of callers bound to a client
 * are refused before.
 */

type Matched<Row> = Row & Pick<SearchHit, 'matched'>;

/** Names that begin with $5: the range from it to the last code point after it. */
const begins = (column: string) =>
  `select 'name', ${clientColumns} from clients where ${column} >= $5 and ${column} <= $5 || U&'\\+10FFFF' order by ${column} limit ${maxHits}`;

/** Numbers that end with $4, which is reversed. */
const ends = (column: string) =>
  `select 'phone', ${clientColumns} from clients where reverse(${column}) ~>=~ $4 and reverse(${column}) ~<~ ($4 || ':') limit ${maxHits}`;

/**
 * $1: an id. $2: a phone number. $3: external_ids. $4: the end of a phone number. $5: the beginning of a name. $6: an
 * e-mail address. $7: a registration number.
 */
export const clientSearch = `(select 'id' as matched, ${clientColumns} from clients where client_id = $1)
  union all (select 'external_id', ${clientColumns} from clients where external_id = any($3))
  union all (select 'phone', ${clientColumns} from clients where ussd_phone_number = $2 order by created_at desc limit ${maxHits})
  union all (select 'phone', ${clientColumns} from clients where contact_number = $2 limit ${maxHits})
  union all (select 'email', ${clientColumns} from clients where ${clientFilters.email.replace('?', '$6')} limit ${maxHits})
  union all (select 'registration_number', ${clientColumns} from clients where ${clientFilters.registration_number.replace('?', '$7')} limit ${maxHits})
  union all (${ends('contact_number')})
  union all (${ends('ussd_phone_number')})
  union all (${begins('folded_name')})
  union all (${begins('folded_last_name')})`;

/**
 * Searches for words anywhere in a name. It runs only if the other searches have found too few clients. Without the limit in
 * its plan, it takes the index: it would otherwise read all clients in the hope of finding some early.
 */
export const wordSearch = `with found as materialized (select 'name' as matched, ${clientColumns} from clients where ${clientFilters.q.replace('?', '$1')})
  select * from found limit ${maxHits}`;

/**
 * Returns the parameters of `clientSearch` for a text as it was entered, and as a phone number `atHome`. An external_id
 * alone may begin or end with blanks.
 */
export function clientSearchFor(given: string, atHome = given): unknown[] {
  const q = given.trim();
  const { whole, end } = parsePhone(q, atHome);
  const email = emailParameter.safeParse(q).data ?? q;
  return [q, whole, [given, q], end, nameKey(q), foldCase(email), foldCase(q)];
}

async function searchClients(pool: Pool, given: string, atHome?: string): Promise<SearchHit[]> {
  const { rows } = await pool.query<Matched<ClientRow>>(clientSearch, clientSearchFor(given, atHome));
  const clients = new Map<string, SearchHit>();
  const add = (row: Matched<ClientRow>) => {
    if (!clients.has(row.client_id)) clients.set(row.client_id, clientHit(row));
  };
  rows.forEach(add);
  if (clients.size < maxHits && !isPhone(given))
    (await pool.query<Matched<ClientRow>>(wordSearch, [nameQuery(given)])).rows.forEach(add);
  return [...clients.values()].slice(0, maxHits);
}

/** A shorter ending would match too many numbers. */
const shortestEnd = 7;

/** Reports whether the text is a whole telephone number, which is no word of a name. Pure. */
const isPhone = (given: string): boolean => (bareNumber(given.trim())?.length ?? 0) >= shortestEnd;

/**
 * Returns a phone number as numbers are stored, and the ending of a number without country code, reversed: 0712 345 678
 * also matches +254712345678. null if the text is not a phone number. Pure.
 */
function parsePhone(q: string, atHome: string): { whole: string | null; end: string | null } {
  const digits = bareNumber(q);
  if (digits === undefined) return { whole: null, end: null };
  const whole = digits.startsWith('+') ? digits : `+${digits}`;
  const end = digits.replace(/^0+/, '');
  return {
    whole: phone.safeParse(atHome).data ?? phone.safeParse(whole).data ?? whole,
    end: !digits.startsWith('+') && end.length >= shortestEnd ? [...end].reverse().join('') : null,
  };
}

function clientHit(row: Matched<ClientRow>): SearchHit {
  const { client_id: id, matched, created_at } = row;
  const title = row.company_name ?? `${row.first_name} ${row.last_name}`;
  const subtitle = `${row.client_type}, ${row.contact_number}`;
  return { kind: 'client', id, title, subtitle, matched, created_at };
}

/** Returns the account numbers that the text may mean: in any case, or as digits only. Pure. */
function parseAccountNumbers(q: string): string[] {
  const digits = q.replace(/[\s-]/g, '');
  const all = Object.values(numberPrefixes);
  const [, prefix, rest] = /^([a-z]{3})(\d+)$/i.exec(digits) ?? [];
  return [
    q.toUpperCase(),
    ...(/^\d{4,}$/.test(digits) ? all.map((each) => `${each}-${digits}`) : []),
    ...(prefix !== undefined ? [`${prefix.toUpperCase()}-${rest}`] : []),
  ];
}

/** $1: an id. $2: account numbers. $3: external_ids. */
export const accountSearch = `select ${accountColumns} from accounts
  where (account_id = $1 or account_number = any($2) or external_id = any($3)) and state = 'open' limit ${maxHits}`;

async function searchAccounts(pool: Pool, given: string): Promise<SearchHit[]> {
  const q = given.trim();
  const numbers = parseAccountNumbers(q);
  const { rows } = await pool.query<AccountRow>(accountSearch, [q, numbers, [given, q]]);
  return rows.map(({ account_id, account_number, account_type, currency, status, created_at }) => ({
    kind: 'account',
    id: account_id,
    title: account_number,
    subtitle: `${account_type}, ${currency}, ${status}`,
    matched: account_id === q ? 'id' : numbers.includes(account_number) ? 'account_number' : 'external_id',
    created_at,
  }));
}

async function searchAudit(pool: Pool, q: string): Promise<SearchHit[]> {
  const { rows } = await pool.query<Pick<AuditRecord, 'audit_id' | 'action' | 'outcome' | 'actor' | 'created_at'>>(
    `select audit_id, action, outcome, actor, created_at from audit where request_id = $1 order by created_at desc, audit_id desc limit ${maxHits}`,
    [q.trim()],
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

/** Returns the hits of accounts for that text, of these kinds. */
export async function searchRecords(
  { pool }: Read,
  { q, phone: atHome, kinds }: MessageData<'search_records'>,
): Promise<ReplyBody> {
  const found = await Promise.all([
    kinds.includes('client') ? searchClients(pool, q, atHome) : [],
    kinds.includes('account') ? searchAccounts(pool, q) : [],
    kinds.includes('audit_record') ? searchAudit(pool, q) : [],
  ]);
  return { ok: true, data: found.flat() };
}
