import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { isKept, type Refusal, refusal, unknownRepeat } from '#libs/contracts/errors.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { auditOf } from '#libs/service/audit-record.ts';
import type { Request } from '#libs/service/query-consumer.ts';
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
  const handle = handlers[name as CommandName] as (work: Work, data: unknown) => Promise<Outcome>;
  return transaction(pool, async (client) => {
    const known = await claim(client, context);
    if (known.reply !== null) return repeat(context, known, known.reply);
    const unseen = refusedUnseen(context, surroundings.now);
    const { body, details = {} } = unseen ? refused(unseen) : await handle({ client, context, ...surroundings }, data);
    if (!body.ok && !isKept(body.refusal)) {
      await client.query('delete from commands where command_id = $1', [context.message_id]);
      return body;
    }
    await client.query('update commands set reply = $2 where command_id = $1', [context.message_id, body]);
    await writeOutbox(client, [auditMessage(auditOf(context, body, details, surroundings.now))]);
    return body;
  });
}

function refusedUnseen({ repeat_only, deadline }: MessageContext, now: string): Refusal | undefined {
  if (repeat_only !== undefined) return unknownRepeat;
  if (deadline === undefined || deadline >= now) return undefined;
  return refusal('deadline_exceeded', 'the command was received after its deadline and was not executed');
}

interface Known {
  fingerprint: string | null;
  correlation_id: string | null;
  /** null: the command is new. */
  reply: ReplyBody | null;
}

/**
 * Claims the command's id for this transaction, or returns the existing command. Waits for a concurrent
 * transaction that has claimed it.
 */
async function claim(client: Queries, { message_id, fingerprint, correlation_id }: MessageContext): Promise<Known> {
  const { rows } = await client.query<Known>(
    `insert into commands (command_id, fingerprint, correlation_id) values ($1, $2, $3)
     on conflict (command_id) do update set reply = commands.reply returning fingerprint, correlation_id, reply`,
    [message_id, fingerprint, correlation_id],
  );
  return rows[0] as Known;
}

function repeat({ fingerprint, correlation_id }: MessageContext, known: Known, reply: ReplyBody): ReplyBody {
  if (known.fingerprint !== (fingerprint ?? null))
    return refused(refusal('idempotency_key_reused', 'this Idempotency-Key was used with another request')).body;
  // The same request was delivered again; its caller gets the first reply, not a replayed one.
  return known.correlation_id === (correlation_id ?? null) ? reply : { ...reply, replayed: true };
}
