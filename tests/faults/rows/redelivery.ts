import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { idBits, inBucket } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { type TopicName, topicName } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { eventually } from '../../support/eventually.ts';
import { again, type BankTopics, createTestKafka, publish, readTopics } from '../../support/kafka.ts';
import type { Bench, Row } from '../row.ts';

/**
 * Commands that are delivered again, late, in another order, or from the first one on. They must not post new entries.
 */
const commandTopics = ['ledger.commands', 'accounts.commands'] as const satisfies TopicName[];

export function bankTopics({ cluster }: Pick<Bench, 'cluster'>): BankTopics {
  return { kafka_brokers: cluster.brokers, topic_prefix: cluster.topicPrefix };
}

/** Returns the newest commands of both topics, each once, limited per topic. */
async function newest(bench: Bench, count: number): Promise<ReceivedMessage[]> {
  const read = await readTopics(bankTopics(bench), [...commandTopics]);
  return commandTopics.flatMap((topic) => {
    const byId = new Map(
      (read.get(topic) ?? []).map((message) => [`${message.headers['ce_type']} ${message.headers['ce_id']}`, message]),
    );
    return [...byId.values()].slice(-count);
  });
}

const copies = 200;
const againMs = 20_000;

const commandsAgain: Row = {
  name: 'commands-again',
  title: (lasts) =>
    `commands delivered again byte for byte under load: in order, in another order, repeatedly for ${lasts(againMs)}`,
  touches: ['kafka'],
  recoveryMs: 5_000,
  async inject(bench) {
    const { random, duration, say } = bench;
    const until = performance.now() + duration(againMs);
    let delivered = 0;
    for (let round = 0; round < 2 || performance.now() < until; round++) {
      const past = (await newest(bench, copies)).map(again);
      await publish(bankTopics(bench), round % 2 === 0 ? past : random.shuffle(past));
      delivered += past.length;
      await sleep(100);
    }
    say(`${delivered} commands were delivered again`);
  },
};

const delayMs = 60_000;
const delayed = 40;

/** The ids of late commands, by run of the row. */
let lateIds: string[] = [];

/** Commands that arrive after their deadline. They must be stored and never executed. */
const commandsLate: Row = {
  name: 'commands-late',
  title: 'commands that arrive 60 s after they were sent, past their deadline of 30 s',
  touches: ['kafka'],
  recoveryMs: 5_000,
  async inject(bench) {
    const candidates = (await newest(bench, 1000)).filter(
      ({ headers }) => headers['ce_type'] === messageType('create_transaction') && headers['deadline'] !== undefined,
    );
    const late = candidates.slice(-delayed).map(made60SecondsAgo);
    lateIds = late.map(({ id }) => id);
    await publish(
      bankTopics(bench),
      late.map(({ message }) => message),
    );
    await eventually(async () => (await readLate(bench)).length === lateIds.length, 10_000);
  },
  async check(_, bench) {
    const kept = await readLate(bench);
    return kept
      .filter(({ status, failure_code }) => status !== 'Failed' || failure_code !== 'deadline_exceeded')
      .map((row) => `I5: a command 60 s late became ${JSON.stringify(row)}`);
  },
};

async function readLate({
  pool,
}: Bench): Promise<{ transaction_id: string; status: string; failure_code: string | null }[]> {
  const text = 'select transaction_id, status, failure_code from v_transactions where transaction_id = any($1)';
  return (await pool.query<{ transaction_id: string; status: string; failure_code: string | null }>(text, [lateIds]))
    .rows;
}

/**
 * Returns the same command as a new one: with a new id, without an idempotency key, and with the times that it would
 * have had 60 s ago.
 */
function made60SecondsAgo(message: ReceivedMessage): { id: string; message: OutgoingMessage } {
  const { 'idempotency-key': _, ...headers } = message.headers;
  const id = `txn_${inBucket(randomBytes(16).toString('hex'), Number.parseInt(idBits(headers['ce_id'] ?? '').slice(-2), 16))}`;
  const then = (ms: number) => new Date(Date.now() - delayMs + ms).toISOString();
  const times = { ce_time: then(0), deadline: then(30_000), 'reply-by': then(5_000) };
  const data = { ...(JSON.parse(String(message.value)) as object), transaction_id: id };
  return {
    id,
    message: { ...again(message), value: JSON.stringify(data), headers: { ...headers, ...times, ce_id: id } },
  };
}

/** Stops the members of a consumer group, changes its offsets, and starts them. */
async function withGroupsAtRest({ cluster }: Bench, names: string[], use: () => Promise<unknown>): Promise<number> {
  const members = names.map((name) => cluster.node(name));
  await Promise.all(members.map((node) => node.stop()));
  await use();
  for (const node of members) node.start();
  return performance.now();
}

const replayed: Row = {
  name: 'replay-from-0',
  title: 'the offsets of ledger and accounts set to 0: every command since the beginning is delivered again',
  touches: ['all'],
  recoveryMs: 15_000,
  inject: (bench) =>
    withGroupsAtRest(bench, ['ledger', 'ledger-2', 'accounts'], () =>
      createTestKafka(bankTopics(bench)).withAdmin(async (admin) => {
        const { topicPrefix } = bench.cluster;
        for (const group of ['ledger', 'accounts'] as const) {
          await admin.resetOffsets({
            groupId: topicPrefix + group,
            topic: topicName(topicPrefix, `${group}.commands`),
            earliest: true,
          });
        }
      }),
    ),
};

const offsetsDeleted: Row = {
  name: 'offsets-deleted',
  title: "the ledger group's offsets deleted",
  touches: ['all'],
  recoveryMs: 15_000,
  inject: (bench) =>
    withGroupsAtRest(bench, ['ledger', 'ledger-2'], () =>
      createTestKafka(bankTopics(bench)).withAdmin((admin) =>
        admin.deleteGroups([`${bench.cluster.topicPrefix}ledger`]),
      ),
    ),
};

export const redelivery: Row[] = [commandsAgain, commandsLate, replayed, offsetsDeleted];
