import { isPerson } from '#libs/contracts/staff-days.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { sentTogether } from '#libs/postgres/transaction.ts';
import type { SingleCommand } from '../domain/decision.ts';
import { noTills, type TillState, type Tills } from '../domain/tills.ts';
import { type TillRow, tillColumns, toTill, uuids } from '../rows.ts';
import { cashOf, readCash } from '../till-cash.ts';

/** SQL of tills for writing. It is not executed for a batch in which no person posts cash. */

const mayMoveCash = ({ name, context }: SingleCommand): boolean =>
  context.batch_id === undefined &&
  (name === 'create_transaction' ||
    name === 'capture_hold' ||
    name === 'reverse_transaction' ||
    name === 'open_ledger_account');
const isOfTill = ({ name }: SingleCommand): boolean => name === 'open_till' || name === 'close_till';

/**
 * Locks and returns the open tills of the persons who post cash, and those that the commands close, with what they have taken.
 * Postings share the lock of their till, and a closing takes it alone: it waits until the postings that are in the till are
 * committed, and those decided later find no open till. The locks are acquired in order and after those of all accounts, so
 * that writers cannot deadlock.
 */
export async function lockTills(client: Queries, commands: SingleCommand[]): Promise<Tills> {
  const tills = noTills();
  const persons = commands.filter((one) => isPerson(one.context.actor) && (mayMoveCash(one) || isOfTill(one)));
  if (persons.length === 0) return tills;
  const actors = [...new Set(persons.map(({ context }) => context.actor))];
  const closed = persons.flatMap(({ name, data }) => (name === 'close_till' ? [data.till_id] : []));
  const isAlone = persons.some(isOfTill);
  const [, { rows }, sums] = await sentTogether([
    // Postings that share the lock of a row overtake a closing that waits for it (in Postgres 15, for good); here it has its turn.
    client.query({
      name: isAlone ? 'queue_alone_for_tills' : 'queue_for_tills',
      text: `select pg_advisory_xact_lock${isAlone ? '' : '_shared'}(key) from (
        select hashtextextended('till of ' || actor, 0) as key
        from (select unnest($1::text[]) union select actor from tills where till_id = any($2::uuid[])) as of_till (actor) order by key) as keys`,
      values: [actors, uuids(closed)],
    }),
    client.query<TillRow>({
      name: isAlone ? 'lock_tills' : 'share_tills',
      text: `select ${tillColumns} from tills where actor = any($1::text[]) and closed_at is null or till_id = any($2::uuid[])
        order by actor, till_id for ${isAlone ? 'update' : 'share'}`,
      values: [actors, uuids(closed)],
    }),
    readCash(client, closed),
  ]);
  for (const row of rows) {
    const till = toTill(row);
    const state: TillState = { till, cash: cashOf(till, sums), isNew: false };
    if (till.closed_at === null) tills.open.set(till.actor, state);
    tills.named.set(till.till_id, state);
  }
  return tills;
}

/** Writes closings before tills that are new, because a person has one that is open. Those that were opened and closed are closed. */
export async function writeTills(client: Queries, { changed, postings }: Tills): Promise<void> {
  const all = [...changed].map(({ till, isNew }) => ({ ...till, isNew }));
  const [added, ended] = [all.filter(({ isNew }) => isNew), all.filter(({ isNew }) => !isNew)];
  const json = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row));
  await Promise.all([
    ended.length > 0 &&
      client.query(
        `update tills t set closed_at = c.closed_at, balances = c.balances::json, reason = c.reason, closed_by = c.closed_by
         from unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::text[]) as c (till_id, closed_at, balances, reason, closed_by) where t.till_id = c.till_id`,
        [
          uuids(ended.map(({ till_id }) => till_id)),
          ended.map(({ closed_at }) => closed_at),
          json(ended.map(({ balances }) => balances)),
          ended.map(({ reason }) => reason),
          ended.map(({ closed_by }) => closed_by),
        ],
      ),
    added.length > 0 &&
      client.query(
        `insert into tills (${tillColumns})
         select o.till_id, o.actor, o.opened_at, o.opening::json, o.closed_at, o.balances::json, o.reason, o.closed_by
         from unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::text[]) as o (${tillColumns})
         order by o.actor, o.closed_at`,
        [
          uuids(added.map(({ till_id }) => till_id)),
          added.map(({ actor }) => actor),
          added.map(({ opened_at }) => opened_at),
          json(added.map(({ opening }) => opening)),
          added.map(({ closed_at }) => closed_at),
          json(added.map(({ balances }) => balances)),
          added.map(({ reason }) => reason),
          added.map(({ closed_by }) => closed_by),
        ],
      ),
    postings.length > 0 &&
      client.query({
        name: 'write_till_postings',
        text: 'insert into till_postings (till_id, transaction_id, currency, direction, amount_minor) select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::int8[])',
        values: [
          uuids(postings.map(({ till_id }) => till_id)),
          uuids(postings.map(({ transaction_id }) => transaction_id)),
          postings.map(({ currency }) => currency),
          postings.map(({ direction }) => direction),
          postings.map(({ amount_minor }) => amount_minor),
        ],
      }),
  ]);
}
