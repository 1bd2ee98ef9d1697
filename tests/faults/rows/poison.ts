import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { bucketForKey } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { commandPartition, type TopicName, topicName } from '#libs/contracts/topics.ts';
import { createTestKafka, publish, readTopic, readTopics } from '../../support/kafka.ts';
import type { Bench, Row } from '../row.ts';
import { bankTopics } from './redelivery.ts';

/** Messages that cannot be processed, and topics that do not exist. */
const poisoned = [
  'ledger.commands',
  'accounts.commands',
  'ledger.queries',
  'accounts.queries',
] as const satisfies TopicName[];

type Content = { value: string | null; headers: Record<string, string> };

/** Poison messages by name, with the headers of a valid command. */
function poisons(headers: Record<string, string>): Record<string, Content> {
  const value = '{}';
  const { ce_id: _, ...withoutId } = headers;
  return {
    'non-JSON': { value: 'this is no JSON {', headers },
    null: { value: null, headers },
    '200 KB': { value: 'x'.repeat(200 * 1024), headers },
    'unknown type': { value, headers: { ...headers, ce_type: 'corebanking.command.print_money.v1' } },
    'missing ce_id': { value, headers: withoutId },
    'no headers': { value, headers: {} },
    'bad reply topic': { value, headers: { ...headers, 'reply-topic': 'nowhere' } },
  };
}

/** Identifies the dead letters of this run of the row. */
let mark = '';

const poison: Row = {
  name: 'poison',
  title: 'poison on every topic of requests: non-JSON, null, 200 KB, unknown type, missing headers, bad reply topic',
  touches: ['kafka'],
  // A type that a later version may know is a fault for 5 s.
  recoveryMs: 15_000,
  async inject(bench) {
    const topics = bankTopics(bench);
    const good = (await readTopic(topics, 'ledger.commands')).findLast(
      ({ headers }) => headers['ce_type'] === messageType('create_transaction'),
    );
    if (!good) throw new Error('there is no command from which to make poison');
    mark = randomBytes(8).toString('hex');
    const partition = commandPartition(bucketForKey(bench.accounts.probes[0] ?? ''));
    // The sender of the valid command may still wait for its reply, which must not be one to the
    // poison message.
    const nobody = () => ({
      ce_id: `txn_${randomBytes(16).toString('hex')}`,
      'correlation-id': randomBytes(8).toString('hex'),
    });
    const messages = poisoned.flatMap((topic) =>
      Object.entries(poisons({ ...good.headers, ...nobody() })).map(([name, { value, headers }]) => ({
        topic: topicName(topics.topic_prefix, topic),
        partition,
        key: null,
        value,
        headers: { ...headers, 'x-fault': `${mark} ${name}` },
      })),
    );
    await publish(topics, messages);
  },
  async check(_, bench) {
    const letters = await readTopics(
      bankTopics(bench),
      poisoned.map((topic) => `${topic}.dlq` as const),
    );
    return poisoned.flatMap((topic) => {
      const own = (letters.get(`${topic}.dlq`) ?? [])
        .map(({ headers }) => headers['x-fault'] ?? '')
        .filter((name) => name.startsWith(mark));
      return Object.keys(poisons({})).flatMap((name) => {
        const count = own.filter((found) => found === `${mark} ${name}`).length;
        return count === 1 ? [] : [`poison "${name}" on ${topic} is ${count} dead letters`];
      });
    });
  },
};

const emptyEveryMs = 500;
const emptiedMs = 20_000;

const repliesEmptied: Row = {
  name: 'empty-replies',
  title: (lasts) => `the reply topic emptied, twice a second for ${lasts(emptiedMs)}`,
  touches: ['kafka'],
  recoveryMs: 15_000,
  async inject({ cluster, duration }: Bench) {
    const kafka = createTestKafka(bankTopics({ cluster }));
    const topic = topicName(cluster.topicPrefix, 'replies');
    const until = performance.now() + duration(emptiedMs);
    while (performance.now() < until) {
      await kafka.withAdmin(async (admin) => {
        const ends = await admin.fetchTopicOffsets(topic);
        await admin.deleteTopicRecords({
          topic,
          partitions: ends.map(({ partition, high }) => ({ partition, offset: high })),
        });
      });
      await sleep(emptyEveryMs);
    }
  },
};

export const oddMessages: Row[] = [poison, repliesEmptied];
