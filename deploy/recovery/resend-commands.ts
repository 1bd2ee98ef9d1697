import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { z } from 'zod';
import { replyType } from '#libs/contracts/envelope.ts';
import { auditId, idBits, idKey, itemBits } from '#libs/contracts/ids.ts';
import type { MacKeys } from '#libs/contracts/mac.ts';
import { type MessageData, messageOfType } from '#libs/contracts/messages.ts';
import { topicName, topicTable } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { readToEnd } from '#libs/kafka/consume/read-to-end.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { Publisher } from '#libs/kafka/publish/publish.ts';
import type { ReceivedMessage } from '#libs/kafka/received-message.ts';
import { groupLag } from '#libs/kafka/topics.ts';
import { kafkaConfig, kafkaOptions, loadConfig } from '#libs/service/config.ts';
import { run } from '#libs/service/run.ts';
import { macConfig, macKeys } from '#libs/service/signing.ts';

/**
 * Sends commands again that Kafka has but a restored database does not: those since RESEND_FROM, in the order in which
 * they were originally decided. A command that succeeded, according to its event or audit record, gets a new deadline;
 * any other keeps its own and is refused as late. The services recognize commands that the database has by their ids,
 * so an earlier RESEND_FROM does no harm. For docs/operations.md, Restore, while gateways are stopped and one ledger
 * and one accounts run. No replies are sent.
 */
export const resendConfig = z.object({
  ...kafkaConfig,
  ACCOUNTS_MAC_KEYS: macConfig.ACCOUNTS_MAC_KEYS,
  RESEND_FROM: z.iso.datetime().describe('The time to which the database was restored, or some minutes earlier'),
});

const idleMs = 60_000;
const renewedMs = 24 * 60 * 60_000;
const publishTimeoutMs = 30_000;
/** The command topics, each with its consumer group. */
const groups = {
  'accounts.commands': 'accounts',
  'ledger.commands': 'ledger',
  'ledger.batches': 'ledger-batches',
} as const;
type Commands = keyof typeof groups;
const commandTopics = Object.keys(groups) as Commands[];

/**
 * A command with the time of its decision, or, if there is no evidence of success, the time at which
 * the broker stored it.
 */
interface Sent {
  topic: Commands;
  message: ReceivedMessage;
  succeeded: boolean;
  at: string;
  sequence: number;
}

/** The outcomes of commands, by the first 120 bits of their transaction or the id of their audit record. */
type Evidence = Map<string, { at: string; sequence: number }>;

const json = (message: ReceivedMessage) => JSON.parse(message.value?.toString() ?? '{}') as Record<string, unknown>;

async function readEvidence(kafka: KafkaClient, prefix: string, logger: Logger): Promise<Evidence> {
  const evidence: Evidence = new Map();
  const [transactions, audit] = [topicName(prefix, 'transactions'), topicName(prefix, 'audit')];
  await readToEnd(kafka, {
    topics: [transactions, audit],
    idleMs,
    logger,
    take: async (messages) => {
      for (const message of messages) {
        const { ce_id = '', ce_time: at = '', ce_type } = message.headers;
        const data = json(message);
        // The first event counts, because it has the original time.
        if (message.topic === audit) {
          if (data['outcome'] === 'success' && !evidence.has(String(data['audit_id'])))
            evidence.set(String(data['audit_id']), { at: String(data['created_at']), sequence: 0 });
        } else if (ce_type === 'corebanking.transaction.completed.v1') {
          const bits = ce_id.replaceAll('-', '');
          if (!evidence.has(idKey(bits))) evidence.set(idKey(bits), { at, sequence: Number(data['sequence']) });
        }
      }
    },
  });
  return evidence;
}

async function readCommands(
  kafka: KafkaClient,
  prefix: string,
  from: number,
  evidence: Evidence,
  logger: Logger,
): Promise<Sent[]> {
  const found = new Map<string, Sent>();
  const topics = new Map(commandTopics.map((name) => [topicName(prefix, name), name]));
  await readToEnd(kafka, {
    topics: [...topics.keys()],
    idleMs,
    logger,
    take: async (messages) => {
      for (const message of messages) {
        const { headers, timestamp_ms } = message;
        const id = headers['ce_id'] ?? '';
        // The services repeat steps of sagas and their replies; queries need no reply.
        const isCommand =
          headers['ce_type'] !== replyType &&
          headers['deadline'] !== undefined &&
          !(messageOfType(headers['ce_type'] ?? '') ?? 'get_').startsWith('get_');
        if (timestamp_ms < from || !isCommand || found.has(id)) continue;
        const done = evidence.get(idKey(idBits(id))) ?? evidence.get(auditId(id)) ?? ofItems(message, evidence);
        const late = { at: new Date(timestamp_ms).toISOString(), sequence: 0 };
        found.set(id, {
          topic: topics.get(message.topic) ?? 'ledger.commands',
          message,
          succeeded: done !== undefined,
          ...(done ?? late),
        });
      }
    },
  });
  return [...found.values()].toSorted((a, b) =>
    a.at < b.at ? -1 : a.at > b.at ? 1 : a.sequence - b.sequence || a.message.timestamp_ms - b.message.timestamp_ms,
  );
}

/** Returns the outcome of the first successful item of a batch's message. */
function ofItems(message: ReceivedMessage, evidence: Evidence): { at: string; sequence: number } | undefined {
  if (messageOfType(message.headers['ce_type'] ?? '') !== 'create_batch') return undefined;
  const { batch_id, items } = json(message) as unknown as MessageData<'create_batch'>;
  return items.map((_, index) => evidence.get(idKey(itemBits(batch_id, index)))).find((found) => found !== undefined);
}

/** Sends all commands to one partition, so that they are decided in this order. */
function again({ message, succeeded }: Sent, keys: MacKeys): OutgoingMessage {
  const { 'reply-topic': _topic, 'reply-partition': _partition, 'correlation-id': _id, ...kept } = message.headers;
  const headers = succeeded ? keys.renewed(kept, new Date(Date.now() + renewedMs).toISOString()) : kept;
  return { topic: message.topic, partition: 0, key: message.key, value: message.value, headers };
}

/** Resolves when the services have committed everything, including messages of sagas between them. */
async function caughtUp(kafka: KafkaClient, prefix: string): Promise<void> {
  for (let quiet = 0; quiet < 3; await sleep(300)) {
    const lags = await Promise.all(
      commandTopics.map((name) => groupLag(kafka, prefix + groups[name], [topicName(prefix, name)])),
    );
    quiet = lags.flat().every(({ lag }) => lag === 0n) ? quiet + 1 : 0;
  }
}

/** Returns the number of commands that were sent again, and of those among them that had succeeded. */
export async function resendCommands(
  kafka: KafkaClient,
  { prefix, from, keys, logger }: { prefix: string; from: Date; keys: MacKeys; logger: Logger },
): Promise<{ sent: number; succeeded: number }> {
  const commands = await readCommands(kafka, prefix, from.getTime(), await readEvidence(kafka, prefix, logger), logger);
  const publisher = new Publisher(kafka, { logger, name: 'resend', topics: topicTable(prefix), maxQueued: 100_000 });
  await publisher.start();
  try {
    for (let at = 0; at < commands.length; ) {
      const topic = commands[at]?.topic;
      const end = commands.findIndex((command, i) => i > at && command.topic !== topic);
      const run = commands.slice(at, end < 0 ? commands.length : end);
      await publisher.publishAll(
        run.map((command) => again(command, keys)),
        { timeoutMs: publishTimeoutMs },
      );
      // A later command from another topic may depend on it.
      await caughtUp(kafka, prefix);
      at += run.length;
    }
  } finally {
    await publisher.stop();
  }
  return { sent: commands.length, succeeded: commands.filter(({ succeeded }) => succeeded).length };
}

if (import.meta.main) {
  run('resend-commands', async ({ logger, instance }) => {
    const config = loadConfig(resendConfig);
    const kafka = createKafka(kafkaOptions(config, `resend-${instance}`), logger);
    logger.info(
      await resendCommands(kafka, {
        prefix: config.TOPIC_PREFIX,
        from: new Date(config.RESEND_FROM),
        keys: macKeys(config),
        logger,
      }),
      'commands were sent again',
    );
  });
}
