import { pino } from 'pino';
import { createKafka } from '#libs/kafka/client.ts';
import { Consumer } from '#libs/kafka/consume/consume.ts';
import { serveHelper } from '../helper.ts';

/** A downstream system that reads the bank's transfers and records their arrival times. */
const { KAFKA_BROKERS = '', TOPIC = '' } = process.env;
const logger = pino({ level: 'warn' });
const kafka = createKafka({ brokers: [KAFKA_BROKERS], client_id: 'bench-events' }, logger);

export interface EventsPlan {
  seconds: number;
}
/** Times of arrival in µs since 1970, by ce_id. */
export type EventsResult = [ce_id: string, at: number][];

let seen: EventsResult = [];
const consumer = new Consumer(kafka, {
  groupId: `bench-events-${process.pid}`,
  topics: [TOPIC],
  fromBeginning: false,
  logger,
  handle: async (messages) => {
    const now = (performance.timeOrigin + performance.now()) * 1000;
    for (const { headers } of messages) seen.push([headers['ce_id'] ?? '', now]);
  },
});
await consumer.start();
serveHelper<EventsPlan, EventsResult>(async ({ seconds }) => {
  seen = [];
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  return seen;
});
process.send?.({ result: 'ready' });
