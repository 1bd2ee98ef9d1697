import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Logger } from 'pino';
import { z } from 'zod';
import { auditId } from '#libs/contracts/ids.ts';
import type { MacKeys } from '#libs/contracts/mac.ts';
import { topicName, topicTable } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { createKafka } from '#libs/kafka/client.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { Publisher } from '#libs/kafka/publish/publish.ts';
import { groupLag } from '#libs/kafka/topics.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { kafkaConfig, kafkaOptions, loadConfig } from '#libs/service/config.ts';
import { flushLogs } from '#libs/service/logger.ts';
import { ownerConfig } from '#libs/service/migration.ts';
import { run } from '#libs/service/run.ts';
import { macConfig, macKeys } from '#libs/service/signing.ts';
import { compareWithBooks } from '#services/ledger/verify/verify-events.ts';
import { callersCommand, type Evidence, readEvidence, readSince } from './evidence.ts';
import { type Command, type Commands, findDecisions, groups, planSendings, type Sending, wasDecided } from './plan.ts';

/**
 * Sends commands again that Kafka has but a restored database does not: those since the time in `--from` (to which the
 * database was restored, or some minutes earlier), in the order in which
 * they were originally decided. A command that was decided, according to its event or audit record, gets a new deadline,
 * and stays refused if it had been refused; any other keeps its own deadline and is refused as late. The services
 * recognize commands that the database has by their ids, so an earlier time does no harm. Afterwards, all
 * evidence is compared with the books. For docs/operations.md, Restore, while gateways are stopped and one ledger and
 * one accounts run. No replies are sent.
 */
export const resendConfig = z.object({
  ...kafkaConfig,
  ACCOUNTS_MAC_KEYS: macConfig.ACCOUNTS_MAC_KEYS,
  ...ownerConfig,
});

const renewedMs = 24 * 60 * 60_000;
const publishTimeoutMs = 30_000;
const comparedAtOnce = 500;
const patienceMs = 600_000;
const pollMs = 100;
const commandTopics = Object.keys(groups) as Commands[];

export interface ResendOptions {
  prefix: string;
  from: Date;
  keys: MacKeys;
  /** Pools of the schemas ledger and accounts. */
  ledger: Pool;
  accounts: Pool;
  logger: Logger;
}

export interface Resent {
  sent: number;
  /** Those among them of which there is evidence. */
  decided: number;
  /** The evidence that the books contradict. */
  unmet: Record<string, unknown>[];
}

async function readCommands(
  kafka: KafkaClient,
  evidence: Evidence,
  { prefix, from, logger }: ResendOptions,
): Promise<Command[]> {
  const found = new Map<string, Command>();
  const topics = new Map(commandTopics.map((name) => [topicName(prefix, name), name]));
  await readSince(kafka, [...topics.keys()], from, logger, (message) => {
    const name = callersCommand(message);
    const id = message.headers['ce_id'] ?? '';
    if (name === undefined) return;
    const command = { topic: topics.get(message.topic) ?? 'ledger.commands', name, message };
    // Another request may have the same id. The one that was decided is named by the evidence; otherwise the first counts.
    if (!found.has(id) || wasDecided(command, evidence)) found.set(id, command);
  });
  return [...found.values()];
}

/** Nobody waits for a reply, and a message that an earlier run of this program sent has its deadline. */
const omitted = new Set([
  'reply-topic',
  'reply-partition',
  'correlation-id',
  'renewed-deadline',
  'renewal-mac',
  'decided-before',
]);

/** Sends everything to one partition, so that it is decided in this order. */
function again({ message, isRenewed, decided }: Sending, keys: MacKeys): OutgoingMessage {
  const kept = Object.fromEntries(Object.entries(message.headers).filter(([name]) => !omitted.has(name)));
  const headers = isRenewed ? keys.renewed(kept, new Date(Date.now() + renewedMs).toISOString(), decided) : kept;
  return { topic: message.topic, partition: 0, key: message.key, value: message.value, headers };
}

/**
 * Resolves when everything that was sent to this topic was decided, with the sagas that it started. Rejects after ten
 * minutes.
 */
async function caughtUp(kafka: KafkaClient, topic: Commands, { prefix, accounts }: ResendOptions): Promise<void> {
  const isDone = async () => {
    const lags = await groupLag(kafka, prefix + groups[topic], [topicName(prefix, topic)]);
    if (lags.some(({ lag }) => lag > 0n)) return false;
    return topic !== 'accounts.commands' || (await accounts.query('select from saga_steps limit 1')).rowCount === 0;
  };
  const endsAt = performance.now() + patienceMs;
  while (!(await isDone())) {
    if (performance.now() > endsAt)
      throw new Error(
        `what was sent to ${topic} is not decided yet: /readyz of its service names the reason; run this again`,
      );
    await sleep(pollMs);
  }
}

async function send(
  kafka: KafkaClient,
  publisher: Publisher,
  sendings: Sending[],
  options: ResendOptions,
): Promise<void> {
  for (let at = 0; at < sendings.length; ) {
    const { topic } = sendings[at] as Sending;
    const end = sendings.findIndex((sending, i) => i > at && sending.topic !== topic);
    const next = sendings.slice(at, end < 0 ? sendings.length : end);
    await publisher.publishAll(
      next.map((sending) => again(sending, options.keys)),
      { timeoutMs: publishTimeoutMs },
    );
    // A later command from another topic may depend on it.
    await caughtUp(kafka, topic, options);
    at += next.length;
  }
}

/** Returns the evidence that the books contradict: events of the ledger, and audit records of accounts' commands. */
async function unmet(
  commands: Command[],
  { decisions, events }: Evidence,
  { ledger, accounts, prefix }: ResendOptions,
): Promise<Record<string, unknown>[]> {
  const found: Record<string, unknown>[] = [];
  for (let at = 0; at < events.length; at += comparedAtOnce) {
    const findings = await compareWithBooks(events.slice(at, at + comparedAtOnce), ledger, prefix);
    found.push(...findings.flatMap(({ rule, rows }) => rows.map((row) => ({ rule, ...row }))));
  }
  const due = new Map(
    commands
      .filter(({ topic }) => topic === 'accounts.commands')
      .map((command) => [auditId(command.message.headers['ce_id'] ?? ''), command] as const)
      .filter(([id]) => decisions.has(id)),
  );
  const { rows } = await accounts.query<{ audit_id: string }>(
    "select audit_id from audit where outcome = 'success' and audit_id = any($1)",
    [[...due.keys()]],
  );
  for (const { audit_id } of rows) due.delete(audit_id);
  for (const [audit_id, { name, message }] of due)
    found.push({ rule: 'each success has its audit record', audit_id, command: name, key: message.key });
  return found;
}

/** Sends until the books confirm all evidence, or until sending again confirms nothing more. */
export async function resendCommands(kafka: KafkaClient, options: ResendOptions): Promise<Resent> {
  const { prefix, logger } = options;
  const evidence = await readEvidence(kafka, options);
  const commands = await readCommands(kafka, evidence, options);
  const sendings = planSendings(commands, evidence);
  const publisher = new Publisher(kafka, { logger, name: 'resend', topics: topicTable(prefix), maxQueued: 100_000 });
  await publisher.start();
  try {
    for (let left = Number.POSITIVE_INFINITY; ; ) {
      await send(kafka, publisher, sendings, options);
      const found = await unmet(commands, evidence, options);
      if (found.length === 0 || found.length >= left) {
        const decided = commands.filter((command) => findDecisions(command, evidence).length > 0);
        return { sent: commands.length, decided: decided.length, unmet: found };
      }
      left = found.length;
    }
  } finally {
    await publisher.stop();
  }
}

if (import.meta.main) {
  run('resend-commands', async ({ logger, instance }) => {
    const { from } = parseArgs({ options: { from: { type: 'string' } } }).values;
    const start = z.iso.datetime().safeParse(from).data;
    if (start === undefined)
      throw new Error('--from must be the time to which the database was restored, such as 2026-01-31T09:00:00Z');
    const config = loadConfig(resendConfig);
    const kafka = createKafka(kafkaOptions(config, `resend-${instance}`), logger);
    const [ledger, accounts] = ['ledger', 'accounts'].map((schema) =>
      createPool({ url: config.MIGRATION_DATABASE_URL, application_name: 'resend', schema, max: 2 }, logger),
    ) as [Pool, Pool];
    try {
      const { TOPIC_PREFIX: prefix } = config;
      const keys = macKeys(config);
      const options = { prefix, from: new Date(start), keys, ledger, accounts, logger };
      const { unmet: broken, ...counts } = await resendCommands(kafka, options);
      for (const one of broken) logger.error(one, 'the books contradict an event that was published');
      logger.info({ ...counts, unmet: broken.length }, 'commands were sent again');
      if (broken.length === 0) return;
    } finally {
      await Promise.all([ledger.end(), accounts.end()]);
    }
    // `run` would end with 0.
    await flushLogs(logger);
    process.exit(1);
  });
}
