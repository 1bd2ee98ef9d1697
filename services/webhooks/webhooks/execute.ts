import { type MessageContext, type ReplyAddress, type ReplyBody, replySchema } from '#libs/contracts/envelope.ts';
import { refusal, unknownRepeat } from '#libs/contracts/errors.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { auditOf } from '#libs/service/audit-record.ts';
import { outcomeOf } from '#libs/service/measures.ts';
import { auditMessage } from '../audit.ts';
import { type CommandName, handlers, type Outcome, refused, type Work } from './handlers.ts';

export interface Command {
  name: CommandName;
  context: MessageContext;
  data: unknown;
  address: ReplyAddress | undefined;
}

export interface Executed {
  body: ReplyBody;
  /** As returned by outcomeOf. */
  outcome: string;
}

/**
 * Executes a command exactly once: its record, work, and audit record in one transaction. A repeat gets the
 * stored reply; a different request under the same id is refused. Throws only on faults, with nothing done.
 */
export function executeCommand(
  pool: Pool,
  command: Command,
  surroundings: Pick<Work, 'now' | 'addresses'>,
): Promise<Executed> {
  const { context } = command;
  return transaction(pool, async (client) => {
    const known = await claim(client, context);
    if (known) return answered(repeat(context, known));
    const { body, kept, details } = await decide(command, { client, context, ...surroundings });
    if (!kept) await client.query('delete from commands where command_id = $1', [context.message_id]);
    else {
      await client.query('update commands set reply = $2::json where command_id = $1', [
        context.message_id,
        JSON.stringify(body),
      ]);
      await writeOutbox(client, [auditMessage(auditOf(context, body, details, surroundings.now))]);
    }
    return answered(body);
  });
}

const answered = (body: ReplyBody): Executed => ({ body, outcome: outcomeOf(body) });

async function decide({ name, context, data }: Command, work: Work): Promise<Outcome> {
  if (context.repeat_only !== undefined) return refused(unknownRepeat);
  const isLate = context.deadline !== undefined && context.deadline < work.now;
  if (isLate)
    return refused(refusal('deadline_exceeded', 'the command was received after its deadline and was not executed'));
  return (handlers[name] as (work: Work, data: unknown) => Promise<Outcome>)(work, data);
}

interface Known {
  fingerprint: string | null;
  correlation_id: string | null;
  reply: unknown;
}

/**
 * Claims the command's id for this transaction, or returns the existing command. Waits for a concurrent
 * transaction that has claimed it.
 */
async function claim(
  client: Queries,
  { message_id: id, fingerprint, correlation_id }: MessageContext,
): Promise<Known | undefined> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const claimed = await client.query(
      'insert into commands (command_id, fingerprint, correlation_id) values ($1, $2, $3) on conflict do nothing',
      [id, fingerprint ?? null, correlation_id ?? null],
    );
    if (claimed.rowCount === 1) return undefined;
    const { rows } = await client.query<Known>(
      'select fingerprint, correlation_id, reply from commands where command_id = $1',
      [id],
    );
    if (rows[0]) return rows[0];
  }
  throw new Error(`command ${id} comes and goes`);
}

function repeat({ fingerprint, correlation_id }: MessageContext, known: Known): ReplyBody {
  if (known.fingerprint !== (fingerprint ?? null))
    return {
      ok: false,
      refusal: refusal('idempotency_key_reused', 'this Idempotency-Key was used with another request'),
    };
  const reply = replySchema.parse(known.reply);
  // The same request was delivered again; its caller gets the first reply, not a replayed one.
  return correlation_id === (known.correlation_id ?? undefined) ? reply : { ...reply, replayed: true };
}
