import { rulesIn } from '#libs/contracts/approvals.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import type { Command } from '../domain/decision.ts';
import { type Posted, postedKey } from '../domain/four-eyes.ts';

/** SQL of the sums that people have posted without approval. */

/**
 * Locks and returns the sums of the people whose postings count, so that concurrent postings of one person cannot exceed
 * a limit together. The locks are acquired in order and after those of all accounts, so that writers cannot deadlock.
 */
export async function lockPosted(client: Queries, commands: Command[]): Promise<Map<string, Posted>> {
  const counted = commands.filter(({ context }) => rulesIn(context)?.actions.includes('post_above'));
  if (counted.length === 0) return new Map();
  const actors = [...new Set(counted.map(({ context }) => context.actor))];
  const [, { rows }] = await Promise.all([
    client.query({
      name: 'lock_persons',
      text: `select pg_advisory_xact_lock(key) from (
          select distinct hashtextextended('posted by ' || actor, 0) as key from unnest($1::text[]) as actor order by key
        ) k`,
      values: [actors],
    }),
    client.query<{ actor: string; currency: string; day: string; amount_minor: string }>({
      name: 'read_posted',
      text: 'select actor, currency, day::text, amount_minor::text from posted_without_approval where actor = any($1::text[])',
      values: [actors],
    }),
  ]);
  return new Map(
    rows.map(({ actor, currency, day, amount_minor }) => [
      postedKey(actor, currency),
      { day, minor: BigInt(amount_minor) },
    ]),
  );
}

export async function writePosted(client: Queries, posted: ReadonlyMap<string, Posted>): Promise<void> {
  const changed = [...posted].filter(([, { isNew }]) => isNew);
  if (changed.length === 0) return;
  await client.query({
    name: 'write_posted',
    text: `insert into posted_without_approval (actor, currency, day, amount_minor)
      select * from unnest($1::text[], $2::text[], $3::date[], $4::int8[])
      on conflict (actor, currency) do update set day = excluded.day, amount_minor = excluded.amount_minor`,
    values: [
      changed.map(([key]) => key.slice(0, -4)),
      changed.map(([key]) => key.slice(-3)),
      changed.map(([, { day }]) => day),
      changed.map(([, { minor }]) => minor.toString()),
    ],
  });
}
