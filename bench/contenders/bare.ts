import { randomUUID } from 'node:crypto';
import { type Consumer, Kafka, logLevel, Partitioners } from 'kafkajs';
import { pino } from 'pino';
import { createPool } from '#libs/postgres/pool.ts';
import { serveHelper } from '../helper.ts';
import { Histogram, type Latency } from '../histogram.ts';
import { accountCount, byFunction, type Posting } from './posting.ts';

/**
 * A plain request and reply with kafkajs as published, which shows the minimum cost of two hops through the broker.
 * ROLE responder replies to each message; ROLE requester receives plans. With DATABASE_URL, a reply is sent after the
 * contenders' SQL function has posted the transfer, which shows the minimum cost of broker and database together,
 * without HTTP, events, or validation. TOPICS separates several pairs.
 */
const { KAFKA_BROKERS = '', ROLE = 'responder', TOPICS = '', DATABASE_URL = '' } = process.env;
const kafka = new Kafka({ brokers: [KAFKA_BROKERS], clientId: `bench-${ROLE}`, logLevel: logLevel.NOTHING });
const producer = kafka.producer({ allowAutoTopicCreation: false, createPartitioner: Partitioners.DefaultPartitioner });
const [requests, replies] = [`${TOPICS}.requests`, `${TOPICS}.replies`];
const numPartitions = 12;
/** The number of connections to Postgres, with which the other contenders also begin. */
const poolMax = 8;
/** The size is about that of a transfer. */
const value = JSON.stringify({
  transfer_id: 'x'.repeat(36),
  from_account_id: 'x'.repeat(36),
  to_account_id: 'x'.repeat(36),
  amount: '0.25',
});

export interface BarePlan {
  seconds: number;
  warmUpSeconds: number;
  /** Requests per second, regardless of replies. Without it, there is one request at a time. */
  rate?: number;
}

await makeTopics();
await producer.connect();
if (ROLE === 'responder') await respond();
else await serveRequests();

async function makeTopics(): Promise<void> {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({
    topics: [requests, replies].map((topic) => ({ topic, numPartitions })),
    waitForLeaders: true,
  });
  await admin.disconnect();
}

/** Reads a topic from now on. Resolves when the group is joined and there was time to send a first fetch. */
async function read(topic: string, run: Parameters<Consumer['run']>[0]): Promise<void> {
  const consumer = kafka.consumer({ groupId: `bench-${ROLE}-${process.pid}`, allowAutoTopicCreation: false });
  const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve));
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: false });
  // With autoCommit, the default, each fetch waits for the commit of offsets, which increases latency fourfold.
  await consumer.run({ partitionsConsumedConcurrently: numPartitions, autoCommit: false, ...run });
  await joined;
  await new Promise((resolve) => setTimeout(resolve, 1_000));
}

async function respond(): Promise<void> {
  const pool =
    DATABASE_URL === ''
      ? undefined
      : createPool(
          { url: DATABASE_URL, application_name: TOPICS, schema: 'public', max: poolMax },
          pino({ level: 'warn' }),
        );
  const post = pool && byFunction(pool);
  await read(requests, {
    eachBatch: async ({ batch }) => {
      if (post) await Promise.all(batch.messages.map(async ({ key }) => refuse(await post(nextTransfer(String(key))))));
      await producer.send({ topic: replies, messages: batch.messages.map(({ key }) => ({ key, value })) });
    },
  });
  process.on('disconnect', () => process.exit());
  process.send?.({ result: 'ready' });
}

/** Transfers between two of the accounts, in turn. */
function nextTransfer(id: string): Posting {
  const account = (n: number) => `00000000-0000-0000-0000-${String((n % accountCount) + 1).padStart(12, '0')}`;
  return {
    caller: 'bench',
    idempotencyKey: randomUUID(),
    operationId: randomUUID(),
    accountId: account(Number(id)),
    toAccountId: account(Number(id) + 1),
    minor: 25,
  };
}

/** Fails if a posting was not made, because that would be cheaper than the work of the other contenders. */
function refuse(reason: string | undefined): void {
  if (reason !== undefined) throw new Error(`the transfer was refused: ${reason}`);
}

async function serveRequests(): Promise<void> {
  const waiting = new Map<string, () => void>();
  let count = 0;
  await read(replies, {
    eachBatch: async ({ batch }) => {
      for (const { key } of batch.messages) {
        const id = String(key);
        waiting.get(id)?.();
        waiting.delete(id);
      }
    },
  });
  const ask = async (): Promise<void> => {
    const id = String(++count);
    const answered = new Promise<void>((resolve) => waiting.set(id, resolve));
    await producer.send({ topic: requests, messages: [{ key: id, value }] });
    await answered;
  };
  serveHelper<BarePlan, Latency>(async ({ seconds, warmUpSeconds, rate }) => {
    const histogram = new Histogram();
    const begun = performance.now();
    const measureFrom = begun + warmUpSeconds * 1000;
    const end = measureFrom + seconds * 1000;
    const timed = async (from: number) => {
      await ask();
      if (from >= measureFrom) histogram.record((performance.now() - from) * 1000);
    };
    if (rate === undefined) while (performance.now() < end) await timed(performance.now());
    else await paced(begun, end, 1000 / rate, timed);
    return histogram.summary();
  });
  process.send?.({ result: 'ready' });
}

/** Starts a request at every multiple of `gapMs`, measured from its scheduled time. Resolves when all have a reply. */
async function paced(begun: number, end: number, gapMs: number, timed: (from: number) => Promise<void>): Promise<void> {
  const running: Promise<void>[] = [];
  let sent = 0;
  while (performance.now() < end) {
    for (; begun + sent * gapMs < performance.now(); sent++) running.push(timed(begun + sent * gapMs));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(running);
}
