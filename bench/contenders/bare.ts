import { pino } from 'pino';
import { consume } from '#libs/kafka/consume.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { createPublisher } from '#libs/kafka/publish.ts';
import { createRequester } from '#libs/kafka/request-reply.ts';
import { ensureTopics } from '#libs/kafka/topics.ts';
import { serveHelper } from '../helper.ts';
import { Histogram, type Latency } from '../histogram.ts';

/**
 * A request-reply over Kafka with nothing around it, by the same publisher, consumer and requester as the bank's: what two
 * hops through the broker cost at least. ROLE responder answers each message; ROLE requester is given plans.
 */
const { KAFKA_BROKERS = '', ROLE = 'responder' } = process.env;
const logger = pino({ level: 'warn' });
const kafka = createKafka({ brokers: [KAFKA_BROKERS], client_id: `bench-${ROLE}` }, logger);
const publisher = createPublisher(kafka, { logger, name: ROLE, maxQueued: 50_000 });
const [requests, replies] = ['bench.requests', 'bench.replies'];
const partitions = 12;
const timeoutMs = 5_000;
/** About as much as a transfer. */
const value = JSON.stringify({ transfer_id: 'x'.repeat(36), from_account_id: 'x'.repeat(36), to_account_id: 'x'.repeat(36), amount: '0.25' });

export interface BarePlan {
  seconds: number;
  warmUpSeconds: number;
  /** Requests per second, whatever comes back; without it one at a time. */
  rate?: number;
}

await ensureTopics(kafka, [requests, replies].map((name) => ({ name, partitions, replication_factor: 1, config: {} })));
await publisher.start();
if (ROLE === 'responder') await respond();
else await serveRequests();

async function respond(): Promise<void> {
  const consumer = consume(kafka, {
    groupId: 'bench-responder', topics: [requests], logger,
    handle: async (messages) => {
      const answers = messages.map(({ headers }) => ({ topic: replies, partition: Number(headers['reply-partition']), key: null, value, headers: { 'correlation-id': headers['correlation-id'] ?? '' } }));
      void publisher.publishAll(answers, { timeoutMs }).catch((error: unknown) => logger.error({ err: error }, 'replies were not sent'));
    },
  });
  await consumer.start();
  process.on('disconnect', () => process.exit());
  process.send?.({ result: 'ready' });
}

async function serveRequests(): Promise<void> {
  const requester = createRequester(kafka, publisher, { topic: replies, partitions, instance: 'bench', logger, maxPending: 50_000 });
  await requester.start();
  let count = 0;
  const ask = () => requester.request({ topic: requests, key: null, partition: count++ % partitions, value, headers: { ce_type: 'bench', 'request-id': String(count) } }, { ackTimeoutMs: timeoutMs, replyTimeoutMs: timeoutMs });
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
