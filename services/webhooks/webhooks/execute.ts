import { randomBytes, randomUUID } from 'node:crypto';
import { type ReplyBody, source } from '#libs/contracts/envelope.ts';
import { isKept } from '#libs/contracts/errors.ts';
import { decodeRequest, type Reader } from '#libs/contracts/exchange.ts';
import { formatId } from '#libs/contracts/ids.ts';
import { type MessageData, messageType } from '#libs/contracts/messages.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { rehearse, requireReplication, transaction } from '#libs/postgres/transaction.ts';
import { type CommandConsumerOptions, createCommandConsumer, type Item } from '#libs/service/command-consumer.ts';
import { recordIn, recording } from '#libs/service/dead-lettered.ts';
import { outcomeLabel } from '#libs/service/measures.ts';
import type { Request } from '#libs/service/query-consumer.ts';
import { type KnownCommand, refusedUnseen, replyToRepeat } from '#libs/service/repeats.ts';
import { auditMessage } from '../audit.ts';
import { handlers, refused, type Work } from './handlers.ts';

interface CommandDeps extends Reader, Pick<CommandConsumerOptions<Request>, 'replies' | 'logger'> {
  pool: Pool;
  addresses: Work['addresses'];
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  /** Called after the commit. The outcome is that of outcomeLabel. */
  onExecuted(name: string, outcome: string): void;
}

/** Executes the commands waiting on webhooks.commands, each in its own transaction. */
export function webhooksCommands(deps: CommandDeps) {
  return createCommandConsumer<Request>({
    ...deps,
    replies: recording(deps.replies, recordIn(deps.pool)),
    decode: (message) => decodeRequest(message, (name) => Object.hasOwn(handlers, name), deps),
    nextGroups: (lanes) => lanes.map((lane) => lane.splice(0, 1)).filter((group) => group.length > 0),
    concurrency: 2,
    uniqueIndexes: ['webhooks_pkey', 'commands_pkey'],
    probe: () => probe(deps),
    async execute(group) {
      const [{ content }] = group as [Item<Request>];
      const { address, context, name } = content;
      const body = await transaction(deps.pool, (client) => executeCommand(client, content, deps));
      return { answers: [{ address, body, context }], afterwards: () => deps.onExecuted(name, outcomeLabel(body)) };
    },
  });
}

/** Shows that this process can execute commands that write to every table: executes some and rolls back. */
function probe(deps: CommandDeps): Promise<void> {
  const [webhook_id, actor] = [formatId('webhook', randomBytes(16).toString('hex')), `probe:${randomUUID()}`];
  const time = new Date(deps.now()).toISOString();
  const content = <N extends keyof typeof handlers>(name: N, data: MessageData<N>) => {
    const sent = {
      message_id: randomUUID(),
      type: messageType(name),
      source: source.gateway,
      time,
      subject: webhook_id,
    };
    return { name, data, context: { ...sent, request_id: 'probe', actor, fingerprint: '', correlation_id: '' } };
  };
  const webhook = {
    webhook_id,
    url: 'https://example.com/',
    event_types: ['*'],
    description: 'probe',
    sealed_secret: '',
  };
  return rehearse(deps.pool, async (client) => {
    await executeCommand(client, content('create_webhook', webhook), deps);
    await executeCommand(client, content('test_webhook', { webhook_id }), deps);
    await executeCommand(client, content('disable_webhooks', { set_by: [actor], client_id: null }), deps);
  });
}

/**
 * Executes a command exactly once: its record, work, and audit record in the open transaction. A repeat gets the
 * stored reply; a different request under the same id is refused. Throws only on faults; the transaction must then be
 * rolled back.
 */
async function executeCommand(
  client: Queries,
  { name, context, data }: Pick<Request, 'name' | 'context' | 'data'>,
  deps: CommandDeps,
): Promise<ReplyBody> {
  const now = new Date(deps.now()).toISOString();
  const { message_id: id, fingerprint, correlation_id } = context;
  const handle = handlers[name as keyof typeof handlers];
  // Waits for a concurrent transaction with the same id.
  await client.query("select pg_advisory_xact_lock(hashtextextended('command ' || $1, 0))", [id]);
  const { rows } = await client.query<KnownCommand & { reply: ReplyBody }>(
    'select fingerprint, correlation_id, reply from commands where command_id = $1',
    [id],
  );
  const repeated = rows[0] && replyToRepeat(context, rows[0], rows[0].reply);
  if (repeated) await requireReplication(client);
  if (repeated) return repeated;
  const unseen = refusedUnseen(context, now);
  const work = { client, context, now, addresses: deps.addresses };
  const { body, details = {} } = unseen ? refused(unseen) : await handle(work, data as never);
  if (!body.ok && !isKept(body.refusal)) return body;
  await client.query('insert into commands values ($1, $2, $3, $4)', [id, fingerprint, correlation_id, body]);
  await writeOutbox(client, [auditMessage(context, body, details, now)]);
  return body;
}
