import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { deadLettered, type Refusal, refusal } from '#libs/contracts/errors.ts';
import { notAuthentic } from '#libs/contracts/exchange.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import type { Replies } from './replies.ts';

/**
 * Records of dead-lettered commands, in a table of each service. Such a command is undecided until an operator redrives
 * or drops it. Its caller may know its id, which a query must therefore not report as unknown.
 */

/** Records a message before it is dead-lettered. The id of a forged message is not recorded. */
export function recording(replies: Replies, record: (message: ReceivedMessage) => Promise<unknown>): Replies {
  return {
    ...replies,
    async deadLetter(message, why) {
      if (why.code !== notAuthentic.code) await record(message);
      await replies.deadLetter(message, why);
    },
  };
}

/** Reports whether the id of a message may be that of what it creates. The ids of queries have another form. */
export function isGiven(id: string | undefined): id is string {
  return /_[0-9a-f]{32}$/.test(id ?? '');
}

/** Records in accounts and webhooks, whose ids are texts. */
export const recordIn =
  (pool: Pool) =>
  async ({ headers: { ce_id } }: ReceivedMessage): Promise<void> => {
    if (!isGiven(ce_id)) return;
    await pool.query('insert into dead_lettered_commands (command_id) values ($1) on conflict do nothing', [ce_id]);
  };

/**
 * Returns the replies to queries for these ids, of which accounts or webhooks has nothing: `notFound`, unless the command
 * with the id is undecided, because it was dead-lettered or its saga is in progress. A query behind the commands
 * (queriesLast) runs while no command of its bucket does, so it sees the outcome of each of them or its record.
 */
export async function repliesToUnknown(
  db: Queries,
  ids: readonly string[],
  notFound: (id: string) => Refusal,
): Promise<Map<string, ReplyBody>> {
  if (ids.length === 0) return new Map();
  const { rows } = await db.query<{ id: string; state: 'decided' | 'begun' | 'dead' | null }>(
    `select id, case when c.reply is not null then 'decided' when c.command_id is not null then 'begun'
       when d.command_id is not null then 'dead' end as state
     from unnest($1::text[]) as id
       left join commands c on c.command_id = id left join dead_lettered_commands d on d.command_id = id`,
    [ids],
  );
  return new Map(
    rows.map(({ id, state }): [string, ReplyBody] => {
      if (state === 'begun') return [id, refused(inProgress(id))];
      if (state === 'dead') return [id, refused(deadLettered(id))];
      const reply = refused(notFound(id));
      return [id, state === 'decided' ? reply : { ...reply, unseen: true }];
    }),
  );
}

export async function replyToUnknown(db: Queries, id: string, notFound: (id: string) => Refusal): Promise<ReplyBody> {
  return (await repliesToUnknown(db, [id], notFound)).get(id) as ReplyBody;
}

const inProgress = (id: string): Refusal =>
  refusal('service_unavailable', `the outcome of ${id} is not known yet: its command is being executed`);
