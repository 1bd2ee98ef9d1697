import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { isKept } from '#libs/contracts/errors.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { auditOf } from '#libs/service/audit-record.ts';
import type { Request } from '#libs/service/query-consumer.ts';
import { type KnownCommand, refusedUnseen, replyToRepeat } from '#libs/service/repeats.ts';
import { auditMessage } from '../audit.ts';
import { type CommandName, handlers, type Outcome, refused, type Work } from './handlers.ts';

/**
 * Executes a command exactly once: its record, work, and audit record in one transaction. A repeat gets the
 * stored reply; a different request under the same id is refused. Throws only on faults, with nothing done.
 */
export function executeCommand(
  pool: Pool,
  { name, context, data }: Pick<Request, 'name' | 'context' | 'data'>,
  surroundings: Pick<Work, 'now' | 'addresses'>,
): Promise<ReplyBody> {
  const { message_id: id, fingerprint, correlation_id } = context;
  const handle = handlers[name as CommandName] as (work: Work, data: unknown) => Promise<Outcome>;
  return transaction(pool, async (client) => {
    // Waits for a concurrent transaction with the same id. The reply is null if the command is new.
    const { rows } = await client.query<KnownCommand & { reply: ReplyBody | null }>(
      `insert into commands (command_id, fingerprint, correlation_id) values ($1, $2, $3)
       on conflict (command_id) do update set reply = commands.reply returning fingerprint, correlation_id, reply`,
      [id, fingerprint, correlation_id],
    );
    const [known] = rows as [(typeof rows)[0]];
    const repeated = replyToRepeat(context, known, known.reply ?? undefined);
    if (repeated) return repeated;
    const unseen = refusedUnseen(context, surroundings.now);
    const { body, details = {} } = unseen ? refused(unseen) : await handle({ client, context, ...surroundings }, data);
    if (!body.ok && !isKept(body.refusal)) {
      await client.query('delete from commands where command_id = $1', [id]);
      return body;
    }
    await client.query('update commands set reply = $2 where command_id = $1', [id, body]);
    await writeOutbox(client, [auditMessage(auditOf(context, body, details, surroundings.now))]);
    return body;
  });
}
