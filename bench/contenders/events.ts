import { pino } from 'pino';
import { consume } from '#libs/kafka/consume.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { serveHelper } from '../helper.ts';
import { Histogram, type Latency } from '../histogram.ts';

/** A downstream system: reads the bank's transfers as they come, and how long after their booking time they do. */
const { KAFKA_BROKERS = '', TOPIC = '' } = process.env;
const logger = pino({ level: 'warn' });
const kafka = createKafka({ brokers: [KAFKA_BROKERS], client_id: 'bench-events' }, logger);

export interface EventsPlan {
  seconds: number;
}
export interface EventsResult {
  latency: Latency;
  events: number;
}

let histogram = new Histogram();
const consumer = consume(kafka, {
  groupId: `bench-events-${process.pid}`, topics: [TOPIC], fromBeginning: false, logger,
  handle: async (messages) => {
    const now = Date.now();
    for (const { headers } of messages) histogram.record((now - Date.parse(headers['ce_time'] ?? '')) * 1000);
  },
});
await consumer.start();
serveHelper<EventsPlan, EventsResult>(async ({ seconds }) => {
  histogram = new Histogram();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  return { latency: histogram.summary(), events: histogram.count };
});
process.send?.({ result: 'ready' });
