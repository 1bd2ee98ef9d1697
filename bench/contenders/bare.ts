import { type Consumer, Kafka, logLevel, Partitioners } from 'kafkajs';
import { serveHelper } from '../helper.ts';
import { Histogram, type Latency } from '../histogram.ts';

/**
 * A request-reply as one would write it with kafkajs, as that library is published, and with nothing around it: what two hops
 * through the broker cost at least. ROLE responder answers each message; ROLE requester is given plans.
 */
const { KAFKA_BROKERS = '', ROLE = 'responder' } = process.env;
const kafka = new Kafka({ brokers: [KAFKA_BROKERS], clientId: `bench-${ROLE}`, logLevel: logLevel.NOTHING });
const producer = kafka.producer({ allowAutoTopicCreation: false, createPartitioner: Partitioners.DefaultPartitioner });
const [requests, replies] = ['bench.requests', 'bench.replies'];
const numPartitions = 12;
/** About as much as a transfer. */
const value = JSON.stringify({ transfer_id: 'x'.repeat(36), from_account_id: 'x'.repeat(36), to_account_id: 'x'.repeat(36), amount: '0.25' });

export interface BarePlan {
  seconds: number;
  warmUpSeconds: number;
  /** Requests per second, whatever comes back; without it one at a time. */
  rate?: number;
}

await makeTopics();
await producer.connect();
if (ROLE === 'responder') await respond();
else await serveRequests();

async function makeTopics(): Promise<void> {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [requests, replies].map((topic) => ({ topic, numPartitions })), waitForLeaders: true });
  await admin.disconnect();
}

/** Reads a topic from now on; resolves when the group is joined and a first fetch has had time to go out. */
async function read(topic: string, run: Parameters<Consumer['run']>[0]): Promise<void> {
  const consumer = kafka.consumer({ groupId: `bench-${ROLE}-${process.pid}`, allowAutoTopicCreation: false });
  const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve));
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: false });
  // Committing offsets by itself, the default, makes each fetch wait for that: four times the latency.
  await consumer.run({ partitionsConsumedConcurrently: numPartitions, autoCommit: false, ...run });
  await joined;
  await new Promise((resolve) => setTimeout(resolve, 1_000));
}

async function respond(): Promise<void> {
  await read(requests, {
    eachBatch: async ({ batch }) => {
      await producer.send({ topic: replies, messages: batch.messages.map(({ key }) => ({ key, value })) });
    },
  });
  process.on('disconnect', () => process.exit());
  process.send?.({ result: 'ready' });
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

/** Starts a request at every multiple of `gapMs`, counted from when it was to start; resolves when all are answered. */
async function paced(begun: number, end: number, gapMs: number, timed: (from: number) => Promise<void>): Promise<void> {
  const running: Promise<void>[] = [];
  let sent = 0;
  while (performance.now() < end) {
    for (; begun + sent * gapMs < performance.now(); sent++) running.push(timed(begun + sent * gapMs));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(running);
}
