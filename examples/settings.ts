import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BankConsumer } from '../clients/consumer/index.ts';

/**
 * The bank whose events are read: that of KAFKA_BROKERS and TOPIC_PREFIX, or the local one (`npm
 * start`); and a database to write to.
 */
export function settings(name: string): {
  kafka: { clientId: string; brokers: string[] };
  groupId: string;
  topicPrefix: string;
  databaseUrl: string | undefined;
} {
  const {
    KAFKA_BROKERS,
    TOPIC_PREFIX: topicPrefix = '',
    DATABASE_URL,
    LOCAL_DIR = join(import.meta.dirname, '../.local'),
    GROUP_ID = name,
  } = process.env;
  const file = join(LOCAL_DIR, 'connection.json');
  const local = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as { kafka_brokers: string; database_url: string })
    : undefined;
  const brokers = KAFKA_BROKERS ?? local?.kafka_brokers;
  if (brokers === undefined) {
    console.error('no bank: start the local one (npm start), or set KAFKA_BROKERS and TOPIC_PREFIX');
    process.exit(2);
  }
  return {
    kafka: { clientId: name, brokers: brokers.split(',') },
    groupId: topicPrefix + GROUP_ID,
    topicPrefix,
    databaseUrl: DATABASE_URL ?? local?.database_url,
  };
}

/**
 * Consumes until SIGTERM or Ctrl-C, then completes all work in progress. With the argument `redrive`, passes the group's dead
 * letters to the handlers again instead, and prints how many were handled and how many failed.
 */
export async function consume(
  consumer: BankConsumer,
  close: () => Promise<unknown> = async () => undefined,
): Promise<void> {
  if (process.argv[2] === 'redrive') {
    console.log(JSON.stringify(await consumer.redrive()));
    await close();
    return;
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void consumer.stop().then(close));
  await consumer.start();
  console.error('reading …');
}
