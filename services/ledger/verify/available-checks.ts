import { maxHoldLifetimeMs } from '#libs/contracts/holds.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { isTime } from '#libs/postgres/keyset.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { uuids } from '../rows.ts';

/**
 * What was held of an account when an event was decided, in minor units. The books keep only the current state of a hold, and
 * not when it was placed but when its command was accepted. So it is known exactly if no hold of that time changed since, or
 * was placed in the minute before.
 */
export interface Held {
  least: bigint;
  most: bigint;
}

/** A command is accepted by the clock of a gateway, and decided by that of the database. */
const apart = "interval '10 seconds'";

/**
 * Returns what was held at the times of these messages, in their order. Nothing was held on what is no account, or at what is
 * no time: a message may be forged.
 */
export async function readHeld(messages: readonly ReceivedMessage[], pool: Pool): Promise<Held[]> {
  if (messages.length === 0) return [];
  const text = `select coalesce(sum(h.amount_minor - h.captured_minor)
          filter (where h.status = 'Active' and h.updated_at < p.at and h.expires_at > p.at + ${apart}
            and (h.updated_at > h.created_at or h.created_at < p.at - interval '1 minute')
            and id_key(h.hold_id) not in (select id_key(command_id) from dead_lettered_commands)), 0)::int8 as least,
        coalesce(sum(h.amount_minor), 0)::int8 as most
      from unnest($1::uuid[], $2::timestamptz[]) with ordinality p (account_id, at, n)
        left join holds h on h.account_id = p.account_id and h.created_at < p.at + ${apart}
          and h.created_at > p.at - make_interval(secs => $3) and (h.status = 'Active' or h.updated_at >= p.at)
      group by p.n order by p.n`;
  const accounts = messages.map(({ key }) => (key !== null && isId('account', key) ? key : null));
  const times = messages.map(({ headers: { ce_time = '' } }) =>
    isTime(ce_time) && Date.parse(ce_time) > 0 ? new Date(ce_time).toISOString() : null,
  );
  const values = [uuids(accounts), times, (2 * maxHoldLifetimeMs) / 1000];
  const read = async (client: Queries) => {
    await client.query('set local statement_timeout = 0');
    return client.query<Held>({ text, values, query_timeout: 3_600_000 });
  };
  return (await transaction(pool, read, 'read only snapshot')).rows;
}

/** Reports whether this can have been available. Money in events has all decimal places of its currency. */
export function canBeAvailable(available: string, balance: string, { least, most }: Held): boolean {
  const held = toMinor(balance) - toMinor(available);
  return held >= least && held <= most;
}

const toMinor = (money: string): bigint => BigInt(money.replace('.', ''));
