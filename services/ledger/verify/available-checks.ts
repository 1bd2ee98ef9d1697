import { maxHoldLifetimeMs } from '#libs/contracts/holds.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Pool } from '#libs/postgres/pool.ts';
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

/** Returns what was held at the times of these messages, whose keys are accounts. */
export async function readHeld(messages: readonly ReceivedMessage[], pool: Pool): Promise<Held[]> {
  const { rows } = await pool.query<Held>(
    `select coalesce(sum(h.amount_minor - h.captured_minor)
          filter (where h.status = 'Active' and h.updated_at < p.at and h.expires_at > p.at + ${apart}
            and (h.updated_at > h.created_at or h.created_at < p.at - interval '1 minute')
            and id_key(h.hold_id) not in (select id_key(command_id) from dead_lettered_commands)), 0)::int8 as least,
        coalesce(sum(h.amount_minor), 0)::int8 as most
      from unnest($1::uuid[], $2::timestamptz[]) with ordinality p (account_id, at, n)
        left join holds h on h.account_id = p.account_id and h.created_at < p.at + ${apart}
          and h.created_at > p.at - make_interval(secs => $3) and (h.status = 'Active' or h.updated_at >= p.at)
      group by p.n order by p.n`,
    [
      uuids(messages.map(({ key }) => key ?? '')),
      messages.map(({ headers: { ce_time = '' } }) => (Number.isNaN(Date.parse(ce_time)) ? null : ce_time)),
      (2 * maxHoldLifetimeMs) / 1000,
    ],
  );
  return rows;
}

/** Reports whether this can have been available. Money in events has all decimal places of its currency. */
export function canBeAvailable(available: string, balance: string, { least, most }: Held): boolean {
  const held = toMinor(balance) - toMinor(available);
  return held >= least && held <= most;
}

const toMinor = (money: string): bigint => BigInt(money.replace('.', ''));
