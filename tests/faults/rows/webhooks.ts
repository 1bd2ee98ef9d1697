import { setTimeout as sleep } from 'node:timers/promises';
import type { CloudEvent } from '#libs/contracts/event-feed.ts';
import { type Answer, close, hang, ok, startReceiver, status } from '#services/webhooks/test/receiver.ts';
import { migrateService } from '../../../tools/local/bank.ts';
import { eventually } from '../../support/eventually.ts';
import {
  type Booking,
  delaysDuring,
  deliveredInOrder,
  disabledByGone,
  type Held,
  notDelivered,
  polledOnce,
  type Taken,
} from '../check-deliveries.ts';
import { databaseTime } from '../evidence.ts';
import type { Bench, Row } from '../row.ts';
import { killAndStart, workingLedger } from './kills.ts';

const names = ['webhooks', 'webhooks-2'];
/** This is more than the maximum difference between the clocks of the host and the database. */
const clockMs = 1000;
/**
 * Deliveries of a killed process stay claimed for 30 s; an attempt takes 15 s, and the next one
 * starts 5 s later.
 */
const quietMs = 60_000;
const requestMs = 60_000;

interface Delivering {
  webhook_id: string;
  /** The webhook whose receiver responds with 410. */
  gone_id: string;
  /** The webhook whose receiver never responds. */
  hanging_id: string;
  /** Everything posted from this database time on must be delivered. */
  since: string;
  /** The deliveries to which the receiver responded with 204, in order. */
  taken: Taken[];
  poller: Poller;
  /** Delays caused by the receiver that never responds. */
  delays: string[];
}

let delivering: Delivering | undefined;

/**
 * Receives the events of the load with a webhook in this process, and polls GET /events for them. The receiver refuses
 * or hangs only for deliveries that it receives for the first time, because the second retry would come after five
 * minutes.
 */
const webhooks: Row = {
  name: 'webhooks',
  title:
    'webhooks deliver to a receiver that answers 500, redirects, hangs, and cuts connections in between, and to one that answers 410, and to one that always hangs, and a poller follows GET /events, while each of their processes, the broker, Postgres, and a ledger are killed, started again after 0-3 s',
  touches: ['webhooks', 'kafka', 'postgres', 'ledger'],
  recoveryMs: 5000,
  async inject(bench) {
    const { cluster, pool, random, say, slowness } = bench;
    delivering = undefined;
    await migrateService('webhooks', cluster.nodeSettings('webhooks'));
    for (const name of names) cluster.node(name).start();
    await Promise.all(names.map((name) => cluster.node(name).ready()));
    let [answer, refused] = [ok, 0];
    const taken: Taken[] = [];
    const seen = new Set<string>();
    const receiver = await startReceiver((response, received, request) => {
      const { id, data } = received.event;
      const next = seen.has(id) ? ok : answer;
      seen.add(id);
      if (next === ok) taken.push({ ...toBooking(data), at: performance.now() });
      else refused++;
      next(response, received, request);
    });
    const gone = await startReceiver(status(410));
    const held: Held[] = [];
    const hanging = await startReceiver((response) => {
      const from = performance.now();
      response.on('close', () => held.push({ from, to: performance.now() }));
    });
    for (const { stop } of [receiver, gone, hanging]) cluster.atEnd.push(() => void stop());
    const webhook_id = await createWebhook(bench, receiver.url);
    // This is created before the other webhook, which may be disabled at once.
    const poller = await startPoller(bench);
    cluster.atEnd.push(() => poller.stop());
    const gone_id = await createWebhook(bench, gone.url);
    const hanging_id = await createWebhook(bench, hanging.url);
    await sleep(clockMs);
    delivering = { webhook_id, gone_id, hanging_id, since: await databaseTime(pool), taken, poller, delays: [] };
    // An attempt ends after 15 s.
    await eventually(async () => held.length > 0, requestMs * slowness);
    let goneAt = performance.now();
    const answers: Answer[] = [ok, status(500), status(302, { location: receiver.url }), hang, close, ok];
    const killed = [
      ...names.map((name) => async () => cluster.node(name)),
      () => workingLedger(bench),
      async () => cluster.broker,
      async () => cluster.postgres,
    ];
    for (const findPart of random.shuffle(killed)) {
      for (const next of random.shuffle(answers)) {
        answer = next;
        await sleep(random.int(100, 700));
      }
      goneAt = await killAndStart(await findPart(), bench);
    }
    answer = ok;
    await sleep(clockMs);
    delivering.delays = delaysDuring(held, taken);
    await hanging.stop();
    say(`${refused} attempts were refused or left hanging`);
    return goneAt;
  },
  async check({ pool }, bench) {
    const { cluster, slowness, say } = bench;
    if (!delivering) return [];
    const { webhook_id, gone_id, hanging_id, since, taken, poller, delays } = delivering;
    try {
      const { rows: booked } = await pool.query<Booking>(
        'select e.account_id, e.sequence::int as sequence from v_entries e join v_accounts a using (account_id) where a.client_id is not null and e.created_at >= $1',
        [since],
      );
      await untilQuiet(booked, taken, quietMs * slowness);
      await untilQuiet(booked, poller.got, quietMs * slowness);
      say(`${booked.length} entries, ${taken.length} deliveries accepted, ${poller.got.length} events polled`);
      const findings = [
        ...deliveredInOrder(booked, taken),
        ...polledOnce(booked, poller.got),
        ...disabledByGone(await disabling(bench, gone_id, poller)),
        ...delays,
      ];
      // 404: the webhook was deleted, but the response was lost.
      for (const id of [webhook_id, gone_id, hanging_id])
        await eventually(
          async () => [204, 200, 404].includes((await call(bench, 'DELETE', `/webhooks/${id}`)).status),
          requestMs * slowness,
        );
      return booked.length === 0 ? ['I7: nothing was posted while webhooks delivered'] : findings;
    } finally {
      poller.stop();
      await Promise.all(names.map((name) => cluster.node(name).stop()));
    }
  },
};

interface Poller {
  /** The received postings, in order. */
  got: Booking[];
  /** The webhooks that were disabled according to events. */
  disabled: string[];
  stop(): void;
}

/** This is far below the number of events, so most pages are full. */
const pageLimit = 20;
const pollMs = 50;

/** Follows the cursor of GET /events, from its current end on. A page that did not arrive is requested again. */
async function startPoller(bench: Bench): Promise<Poller> {
  const poller = { got: [] as Booking[], disabled: [] as string[], stop: () => void (stopped = true) };
  let stopped = false;
  let after: string | undefined;
  const next = async (limit: number): Promise<{ data: CloudEvent[]; more: boolean } | undefined> => {
    const query = new URLSearchParams({ types: 'transaction.completed,webhook.disabled', limit: String(limit) });
    if (after !== undefined) query.set('after', after);
    const response = await call(bench, 'GET', `/events?${query}`).catch(() => undefined);
    if (response?.status !== 200) return undefined;
    const page = (await response.json().catch(() => undefined)) as { data: CloudEvent[]; cursor: string } | undefined;
    if (page) after = page.cursor;
    return page && { data: page.data, more: response.headers.has('link') };
  };
  await eventually(async () => (await next(500))?.more === false, requestMs * bench.slowness);
  const poll = async (): Promise<void> => {
    while (!stopped) {
      const page = await next(pageLimit);
      for (const { type, data } of page?.data ?? []) {
        if (type === 'corebanking.webhook.disabled.v1') poller.disabled.push(String(data['webhook_id']));
        else poller.got.push(toBooking(data));
      }
      if (!page?.more) await sleep(pollMs);
    }
  };
  void poll();
  return poller;
}

/** Returns the state of a webhook that should have been disabled, when it is disabled or after a while. */
async function disabling(bench: Bench, webhook_id: string, { disabled }: Poller) {
  const read = async <T>(path: string): Promise<T> => {
    const response = await call(bench, 'GET', path);
    if (response.status !== 200) throw new Error(`GET ${path} was answered ${response.status}`);
    return ((await response.json()) as { data: T }).data;
  };
  const look = async () => ({
    status: (await read<{ status: string }>(`/webhooks/${webhook_id}`)).status,
    pending: (await read<object[]>(`/webhooks/${webhook_id}/deliveries?status=Pending`)).length,
    disablings: disabled.filter((id) => id === webhook_id).length,
  });
  const isDone = async () => disabledByGone(await look()).length === 0;
  await eventually(isDone, quietMs * bench.slowness).catch(() => undefined);
  return eventually(look, requestMs * bench.slowness);
}

function toBooking(data: unknown): Booking {
  const { transaction, sequence } = data as { transaction: { account_id: string }; sequence: number };
  return { account_id: transaction.account_id, sequence };
}

/** Resolves when everything has been received, or nothing new has been received for a while. */
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
