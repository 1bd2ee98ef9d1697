import { type AuditActor, type AuditRecord, splitActors } from '#libs/contracts/audit.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { insertRows } from '#libs/postgres/rows.ts';
import { foldCase } from '#libs/service/folding.ts';

/** The display names with which people have signed in. They are never in the audit, which cannot be changed. */

/** Keeps the names of sign-ins in the open transaction, the latest of each person, and returns the records without them. */
export async function keepNames(
  client: Queries,
  given: readonly MessageData<'record_audit'>[],
): Promise<AuditRecord[]> {
  const latest = new Map<string, { actor: string; name: string; folded: string; signed_in_at: string }>();
  for (const { actor, actor_name: name, created_at: signed_in_at } of given)
    if (name !== undefined && (latest.get(actor)?.signed_in_at ?? '') <= signed_in_at)
      latest.set(actor, { actor, name, folded: lookOf(name), signed_in_at });
  if (latest.size > 0)
    await client.query(
      `${insertRows('staff_names', 'actor, name, folded, signed_in_at')} order by actor
       on conflict (actor) do update set name = excluded.name, folded = excluded.folded, signed_in_at = excluded.signed_in_at
       where staff_names.signed_in_at <= excluded.signed_in_at`,
      [JSON.stringify([...latest.values()])],
    );
  return given.map(({ actor_name: _, ...record }) => record);
}

const lookOf = (name: string): string => foldCase(name.normalize('NFKC')).replaceAll(/ +/g, ' ');

/** Names that look alike are told apart: people may choose theirs at the identity provider. */
const shownName = `n.name || case when exists (select from staff_names o where o.folded = n.folded and o.actor <> n.actor)
  then ' (' || substring(n.actor from '[|](.+)$') || ')' else '' end`;

/**
 * Returns the SQL of the display name of the actor in this column; null if it is not known. A name that another person
 * has, too, is followed by the subject.
 */
export const nameOf = (column: string): string => `(select ${shownName} from staff_names n where n.actor = ${column})`;

export async function listStaffNames(
  { pool }: { pool: Queries },
  { actors }: MessageData<'list_staff_names'>,
): Promise<ReplyBody> {
  const { rows } = await pool.query<AuditActor>(
    `select actor, ${shownName} as name from staff_names n where actor = any($1)
     union all select 'key:' || key_id, name from api_keys where key_id = any(select substring(a from '^key:(.*)$') from unnest($1::text[]) a)
     order by actor`,
    [splitActors(actors)],
  );
  return { ok: true, data: rows };
}
