import { isUtf8 } from 'node:buffer';
import type { AuditActor, AuditRecord } from '#libs/contracts/audit.ts';
import type { DeadLetterContent } from '#libs/contracts/dead-letters.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { invalidField, refusal } from '#libs/contracts/errors.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { byTime, listTable } from '#libs/postgres/keyset.ts';
import { outboxStats } from '#libs/postgres/outbox/relay-read.ts';
import { readLastVerification } from '#libs/service/verifications.ts';
import { auditColumns } from '../audit/audit.ts';
import { nameOf } from '../audit/staff-names.ts';
import type { DeadLetterRow } from '../dead-letters/dead-letter-store.ts';
import {
  countOpenDeadLetters,
  deadLetterColumns,
  findDeadLetter,
  toDeadLetter,
} from '../dead-letters/dead-letter-store.ts';
import { deadLetterNotFound, readDeadLetter } from '../dead-letters/dead-letters.ts';
import type { Read } from './queries.ts';

/** What changes nothing. */
const readActions = Object.entries(endpoints).flatMap(([name, { method }]) =>
  method === 'GET' || name === 'sign_in' || name === 'sign_out' ? [`'${name}'`] : [],
);

/** Reads the audit and the dead letters for staff. Queries of callers bound to a client are refused before. */

export async function listAudit({ pool }: Read, data: MessageData<'list_audit'>): Promise<ReplyBody> {
  const { actor, action, resource_id, subject, outcome, request_id, reads, from, to } = data;
  const accounts = subject?.startsWith('cli_') ? await accountsOf(pool, subject) : [];
  if (accounts.length > maxAccounts)
    return refused(
      invalidField('subject', `must be a client with at most ${maxAccounts} accounts, or one of the accounts`),
    );
  const subjects = subject && [subject, ...accounts];
  const source = {
    from: 'audit',
    columns: auditColumns,
    ...(reads === 'without' && { fixed: `action not in (${readActions.join(', ')})` }),
    filters: { actor, action, resource_id, outcome, request_id },
    more: [['audit_subjects(resource_id, details) && ?::text[]', subjects]] as [string, string[] | undefined][],
    range: { column: 'created_at', from, to },
    ...byTime<AuditRecord>('created_at', 'audit_id'),
    item: (row: AuditRecord) => row,
  };
  return listTable(pool, source, data);
}

/** The most accounts of a client that the audit is searched for at once. */
const maxAccounts = 100;

/** Read before, so that the planner knows how many there are: at most one more than can be searched for. */
async function accountsOf(pool: Read['pool'], client_id: string): Promise<string[]> {
  const { rows } = await pool.query<{ account_id: string }>(
    // Each state has its own index.
    `select account_id from accounts where client_id = $1 and (state = 'open' or state <> 'open') limit ${maxAccounts + 1}`,
    [client_id],
  );
  return rows.map(({ account_id }) => account_id);
}

/**
 * Each actor is one step in an index, so the number of records does not matter. That of actors is limited; a person whose
 * complete subject was given is looked up besides, at every issuer of the others, and so are a complete actor and the people with display names.
 */
const actorsQuery = `with recursive steps as (
    (select actor from audit order by actor desc limit 1)
    union all
    select (select a.actor from audit a where a.actor < s.actor order by a.actor desc limit 1) from steps s where s.actor is not null
  ), seen as (select actor from steps where actor is not null limit 2000
  ), given as (
    select distinct split_part(actor, '|', 1) || '|' || $1 as actor from seen where actor like 'jwt:%' union select $1
    union select actor from staff_names where $2 and position(lower($1) in lower(name)) > 0
  ), actors as (
    select actor from seen union select actor from given g where exists (select from audit a where a.actor = g.actor)
  ), named as (
    select actor, subject, coalesce(k.name, case when $2 then ${nameOf('actors.actor')} end, subject, actor) as name
    from actors cross join substring(actor from '^jwt:[^|]*[|](.+)$') as subject
    left join api_keys k on k.key_id = substring(actor from '^key:(.+)$')
  )
  select actor, name from named
  where $1 is null or position(lower($1) in lower(name)) > 0 or position(lower($1) in lower(subject)) > 0 or actor = $1 order by lower(name), actor limit 100`;

/** The display names of people are for people: a program gets their subjects. */
export async function listAuditActors(
  { pool, context }: Read,
  { q }: MessageData<'list_audit_actors'>,
): Promise<ReplyBody> {
  const { rows } = await pool.query<AuditActor>(actorsQuery, [q ?? null, context.staff !== undefined]);
  return { ok: true, data: rows };
}

export async function listDeadLetters({ pool }: Read, data: MessageData<'list_dead_letters'>): Promise<ReplyBody> {
  const { topic, state, from, to } = data;
  const source = {
    from: 'dead_letters',
    columns: deadLetterColumns,
    filters: { topic, state },
    range: { column: 'dead_at', from, to },
    ...byTime<DeadLetterRow>('dead_at', 'dead_letter_id'),
    item: toDeadLetter,
  };
  return listTable(pool, source, data);
}

/**
 * Returns a dead letter, with headers and value if the topic still contains them; 503 if the broker does not respond.
 */
export async function getDeadLetter(
  { pool, prefix, deadLetters }: Read,
  { dead_letter_id }: MessageData<'get_dead_letter'>,
): Promise<ReplyBody> {
  const row = await findDeadLetter(pool, dead_letter_id);
  if (!row) return { ok: false, refusal: deadLetterNotFound(dead_letter_id) };
  try {
    const message = await readDeadLetter(row, prefix, deadLetters);
    const { headers, truncated } = shownHeaders(message?.headers ?? {});
    const value = shownValue(message?.value ?? null);
    const content: DeadLetterContent = {
      ...toDeadLetter(row),
      available: message !== undefined,
      headers,
      ...value,
      truncated: truncated || value.truncated,
    };
    return { ok: true, data: content };
  } catch {
    return {
      ok: false,
      refusal: refusal('service_unavailable', 'the broker cannot be reached; the request can be repeated'),
    };
  }
}

export async function getOperations({ pool }: Read): Promise<ReplyBody> {
  const [outbox, dead_letters_open, last_audit_check] = await Promise.all([
    outboxStats(pool),
    countOpenDeadLetters(pool),
    readLastVerification(pool),
  ]);
  return { ok: true, data: { outbox, dead_letters_open, last_audit_check } };
}

const shownBytes = 64 * 1024;
const shownHeaderChars = 4096;

/**
 * Returns the value as text if it is UTF-8, otherwise in base64, truncated to 64 KiB but never within a
 * character. Pure.
 */
export function shownValue(value: Buffer | null): Pick<DeadLetterContent, 'value' | 'encoding' | 'truncated'> {
  if (value === null) return { value: null, encoding: null, truncated: false };
  const encoding = isUtf8(value) ? ('utf-8' as const) : ('base64' as const);
  const truncated = value.length > shownBytes;
  let end = Math.min(value.length, shownBytes);
  // The bytes of a character after the first one are 10xxxxxx.
  while (encoding === 'utf-8' && truncated && ((value[end] ?? 0) & 0xc0) === 0x80) end--;
  return { value: value.subarray(0, end).toString(encoding), encoding, truncated };
}

function shownHeaders(headers: Record<string, string>): { headers: Record<string, string>; truncated: boolean } {
  const entries = Object.entries(headers);
  const shown = entries
    .slice(0, 100)
    .map(([name, value]) => [name.slice(0, shownHeaderChars), value.slice(0, shownHeaderChars).toWellFormed()]);
  const truncated =
    entries.length > 100 || entries.some(([name, value]) => Math.max(name.length, value.length) > shownHeaderChars);
  return { headers: Object.fromEntries(shown), truncated };
}
