import type { Logger } from 'pino';
import { source } from '#libs/contracts/envelope.ts';
import type { MacKeys } from '#libs/contracts/mac.ts';
import { topicName, topicTable } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { readLastValues } from '#libs/kafka/consume/read-message.ts';
import { type OutgoingMessage, Publisher } from '#libs/kafka/publish/publish.ts';
import { History } from '#libs/postgres/outbox/history.ts';
import { createPublishing, type PublishingDependencies } from '#libs/service/publishing.ts';
import { createAuditSender } from './audit/audit-sender.ts';
import { republishBalances } from './batch/republish.ts';
import type { LedgerConfig } from './config.ts';
import type { Pools } from './pools.ts';
import { ledgerSchema } from './schema.ts';

const readTimeoutMs = 2_000;
/** Further records of somebody else would hide the bank's position, which then is logged. */
const maxPositions = 1_000;

/** Publishes the newest published batch to a topic, so that a database with an older history is detected. */
export function createHistory(kafka: KafkaClient, prefix: string, keys: MacKeys, logger: Logger): History {
  const readLast = () => readLastValues(kafka, topicName(prefix, 'ledger.position'), maxPositions, readTimeoutMs);
  return new History({ topic: 'ledger.position', source: source.ledger, readLast, keys, logger });
}

interface Dependencies extends Omit<PublishingDependencies, 'relayPool'> {
  keys: MacKeys;
  pools: Pools;
  history: History;
}

/**
 * Creates separate publishers for replies, events, and audit records. Messages on which accounts acts are
 * signed: replies to saga steps, and audit records. Nothing is started yet.
 */
export function createLedgerPublishing(
  kafka: KafkaClient,
  config: LedgerConfig,
  { keys, pools, history, ...common }: Dependencies,
) {
  const prefix = config.TOPIC_PREFIX;
  const { logger, onStop } = common;
  const sign = (message: OutgoingMessage) => keys.sign('ledger', message);
  const forAccounts = topicName(prefix, 'accounts.commands');
  const { publishers, replies, relay } = createPublishing(kafka, config, {
    ...common,
    service: 'ledger',
    schema: ledgerSchema,
    relayPool: pools.relayPool,
    maxQueued: 50_000,
    signReply: (message) => void (message.topic === forAccounts && sign(message)),
    states: {
      topics: ['balances'],
      republish: (states) =>
        republishBalances(
          pools.writes,
          states.map(({ key }) => key),
        ),
    },
    history,
  });
  const audits = new Publisher(kafka, { logger, topics: topicTable(prefix), name: 'audits', sign });
  onStop('publisher of audit records', () => audits.stop());
  const auditSender = createAuditSender({ pool: pools.relayPool, publisher: audits, prefix, logger });
  return { publishers: { ...publishers, audits }, replies, relay, auditSender };
}
