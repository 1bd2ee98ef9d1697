import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { isKept } from '#libs/contracts/errors.ts';
import { decodeRequest, type Reader } from '#libs/contracts/exchange.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { auditOf } from '#libs/service/audit-record.ts';
import { type CommandConsumerOptions, createCommandConsumer, type Item } from '#libs/service/command-consumer.ts';
import { outcomeOf } from '#libs/service/measures.ts';
import type { Request } from '#libs/service/query-consumer.ts';
import { type KnownCommand, refusedUnseen, replyToRepeat } from '#libs/service/repeats.ts';
import { auditMessage } from '../audit.ts';
import { handlers, type Outcome, refused, type Work } from './handlers.ts';

interface CommandDeps extends Reader, Pick<CommandConsumerOptions<Request>, 'replies' | 'logger'> {
  pool: Pool;
  addresses: Work['addresses'];
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  /** Called after the commit. The outcome is that of outcomeOf. */
  onExecuted(name: string, outcome: string): void;
}

/** Executes the commands waiting on webhooks.commands, each in its own transaction. */
export function webhooksCommands(deps: CommandDeps) {
  return createCommandConsumer<Request>({
    ...deps,
    decode: (message) => decodeRequest(message, (name) => Object.hasOwn(handlers, name), deps),
    nextGroups: (lanes) => lanes.map((lane) => lane.splice(0, 1)).filter((group) => group.length > 0),
    concurrency: 2,
    async execute(group) {
      const [{ content }] = group as [Item<Request>];
      const { address, context, name } = content;
      const body = await executeCommand(deps, content);
      return { answers: [{ address, body, context }], afterwards: () => deps.onExecuted(name, outcomeOf(body)) };
    },
  });
}

/**
 * Executes a command exactly once: its record, work, and audit record in one transaction. A repeat gets the
 * stored reply; a different request under the same id is refused. Throws only on faults, with nothing done.
 */
function executeCommand({ pool, addresses, ...deps }: CommandDeps, request: Request): Promise<ReplyBody> {
  const { name, context, data } = request;
  const now = new Date(deps.now()).toISOString();
  const { message_id: id, fingerprint, correlation_id } = context;
  const handle = handlers[name as keyof typeof handlers] as (work: Work, data: unknown) => Promise<Outcome>;
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
    const unseen = refusedUnseen(context, now);
    const { body, details = {} } = unseen ? refused(unseen) : await handle({ client, context, now, addresses }, data);
    if (!body.ok && !isKept(body.refusal)) {
      await client.query('delete from commands where command_id = $1', [id]);
      return body;
    }
    await client.query('update commands set reply = $2 where command_id = $1', [id, body]);
    await writeOutbox(client, [auditMessage(auditOf(context, body, details, now))]);
    return body;
  });
}
