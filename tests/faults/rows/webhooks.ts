import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, close, hang, ok, startReceiver, status } from '#services/webhooks/test/receiver.ts';
import { migrateService } from '../../../tools/local/bank.ts';
import { eventually } from '../../support/eventually.ts';
import { type Booking, deliveredInOrder, notDelivered } from '../check-deliveries.ts';
import { databaseTime } from '../evidence.ts';
import type { Bench, Row } from '../row.ts';
import { killAndStart } from './kills.ts';

const names = ['webhooks', 'webhooks-2'];
/** More than the maximum difference between the clocks of the host and the database. */
const clockMs = 1000;
/**
 * Deliveries of a killed process stay claimed for 30 s; an attempt takes 15 s, and the next one
 * starts 5 s later.
 */
const quietMs = 60_000;
const requestMs = 60_000;

interface Delivering {
  webhook_id: string;
  /** Everything posted from this database time on must be delivered. */
  since: string;
  /** The deliveries that the receiver answered 204, in order. */
  taken: Booking[];
}

let delivering: Delivering | undefined;

/**
 * Receives what the load posts as a webhook in this process. It refuses or hangs only for
 * deliveries that it has not seen before, because the second retry would come after five minutes.
 */
const webhooks: Row = {
  name: 'webhooks',
  title:
    'webhooks deliver to a receiver that answers 500, redirects, hangs, and cuts connections in between, while each of their processes, the broker and Postgres are killed, started again after 0-3 s',
  touches: ['webhooks', 'kafka', 'postgres'],
  recoveryMs: 5000,
  async inject(bench) {
    const { cluster, pool, random, say } = bench;
    delivering = undefined;
    await migrateService('webhooks', cluster.settingsOf('webhooks'));
    for (const name of names) cluster.node(name).start();
    await Promise.all(names.map((name) => cluster.node(name).ready()));
    let [mood, refused] = [ok, 0];
    const taken: Booking[] = [];
    const seen = new Set<string>();
    const receiver = await startReceiver((response, received, request) => {
      const { id, data } = received.event;
      const answer = seen.has(id) ? ok : mood;
      seen.add(id);
      if (answer === ok) taken.push(bookingOf(data));
      else refused++;
      answer(response, received, request);
    });
    cluster.atEnd.push(() => void receiver.stop());
    const webhook_id = await createWebhook(bench, receiver.url);
    await sleep(clockMs);
    delivering = { webhook_id, since: await databaseTime(pool), taken };
    let goneAt = performance.now();
    const moods: Answer[] = [ok, status(500), status(302, { location: receiver.url }), hang, close, ok];
    const killed = [...names.map((name) => cluster.node(name)), cluster.broker, cluster.postgres];
    for (const victim of random.shuffle(killed)) {
      for (const next of random.shuffle(moods)) {
        mood = next;
        await sleep(random.int(100, 700));
      }
      goneAt = await killAndStart(victim, bench);
    }
    mood = ok;
    await sleep(clockMs);
    say(`${refused} attempts were refused or left hanging`);
    return goneAt;
  },
  async check({ pool }, bench) {
    const { cluster, slowness, say } = bench;
    if (!delivering) return [];
    const { webhook_id, since, taken } = delivering;
    try {
      const { rows: booked } = await pool.query<Booking>(
        'select e.account_id, e.sequence::int as sequence from v_entries e join v_accounts a using (account_id) where a.client_id is not null and e.created_at >= $1',
        [since],
      );
      await untilQuiet(booked, taken, quietMs * slowness);
      say(`${booked.length} bookings, ${taken.length} deliveries taken`);
      const findings = deliveredInOrder(booked, taken);
      // 404: it was deleted, but the response was lost.
      await eventually(
        async () => [204, 200, 404].includes((await call(bench, 'DELETE', `/webhooks/${webhook_id}`)).status),
        requestMs * slowness,
      );
      return booked.length === 0 ? ['I7: nothing was posted while webhooks delivered'] : findings;
    } finally {
      await Promise.all(names.map((name) => cluster.node(name).stop()));
    }
  },
};

function bookingOf(data: unknown): Booking {
  const { transaction, sequence } = data as { transaction: { account_id: string }; sequence: number };
  return { account_id: transaction.account_id, sequence };
}

/** Resolves when everything has been received, or nothing new for a while. */
async function untilQuiet(booked: readonly Booking[], taken: readonly Booking[], patienceMs: number): Promise<void> {
  for (
    let [count, since] = [taken.length, performance.now()];
    notDelivered(booked, taken).length > 0;
    await sleep(200)
  ) {
    if (taken.length > count) [count, since] = [taken.length, performance.now()];
    if (performance.now() - since > patienceMs) return;
  }
}

async function createWebhook(bench: Bench, url: string): Promise<string> {
  return eventually(async () => {
    const response = await call(bench, 'POST', '/webhooks', { url, event_types: ['transaction.completed'] });
    if (response.status !== 201)
      throw new Error(`POST /webhooks was answered ${response.status} ${await response.text()}`);
    return ((await response.json()) as { data: { webhook_id: string } }).data.webhook_id;
  }, requestMs * bench.slowness);
}

function call({ cluster, entrance }: Bench, method: string, path: string, body?: object): Promise<Response> {
  return fetch(entrance.pick().baseUrl + path, {
    method,
    headers: { 'x-api-key': cluster.apiKey, ...(body && { 'content-type': 'application/json' }) },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  });
}

export const webhookRows: Row[] = [webhooks];
