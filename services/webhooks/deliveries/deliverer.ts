import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { SecretKeys } from '#libs/contracts/webhook-secret.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { sweeping } from '#libs/service/sweeping.ts';
import packageJson from '../../../package.json' with { type: 'json' };
import { showTo } from '../events/for-client.ts';
import { feedAll } from './feed.ts';
import { finishAttempts } from './finish.ts';
import { type Ending, type Sender, type Sent, signedHeaders, unsent } from './send.ts';
import { type Claimed, claimDue, claimS, maxPerWebhook, renewClaims } from './store.ts';
import { type Attempt, isDelivered, retryDelaysMs } from './verdict.ts';

export interface DelivererOptions {
  pool: Pool;
  /** For creating and claiming deliveries, with plans that look up rows (lookupPlans). */
  feedPool: Pool;
  sender: Sender;
  secretKeys: SecretKeys;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  /** False while the clocks disagree, so that it is unknown what is due. */
  mayDecide: () => boolean;
  /** The maximum number of concurrent requests, in addition to one per webhook. */
  concurrency: number;
  logger: Logger;
  /** Called after the commit. If a webhook was disabled, its event must be published. */
  onRecorded(recorded: Awaited<ReturnType<typeof finishAttempts>>): void;
}

/** After this many failed attempts in a row, a receiver gets one request at a time. */
const failuresInARow = 3;
const pollMs = 500;
/** The minimum time between the starts of rounds, in ms. Each round takes what has arrived meanwhile. */
const paceMs = 5;
const stopMs = 8_000;
const renewMs = 1_000;
/** An attempt is ended this long before its claim, which another process may then take. */
const marginMs = 1_000;
const commonHeaders = {
  'content-type': 'application/cloudevents+json; charset=utf-8',
  'user-agent': `core-banking/${packageJson.version}`,
};

const leaseKey = ({ webhook_id, ordinal, claim }: Pick<Claimed, 'webhook_id' | 'ordinal' | 'claim'>) =>
  `${webhook_id}/${ordinal}/${claim}`;

/** A webhook to which this process is sending, or whose last attempts failed. */
interface Receiver {
  /** Running requests, and ended ones that are not recorded. */
  running: number;
  /** In a row. */
  failures: number;
  ended: Attempt[];
}

/** A delivery that this process has claimed, until its attempt is recorded. */
interface Lease extends Ending {
  one: Claimed;
  /** By performance.now(). */
  endsMs: number;
  isLost?: true;
}

/**
 * Creates deliveries for events, sends those that are due, and records the results. Any number of processes can
 * run it concurrently. Each webhook may always have one running request; additional ones share `concurrency`. A
 * receiver that hangs therefore does not delay others.
 */
export function createDeliverer(options: DelivererOptions) {
  const { pool, feedPool, sender, secretKeys, now, mayDecide, concurrency, logger } = options;
  const receivers = new Map<string, Receiver>();
  const leases = new Map<string, Lease>();

  const running = (): number => receivers.values().reduce((sum, receiver) => sum + receiver.running, 0);

  /** Returns whether there are more events to create deliveries for. If it fails, the claims expire. */
  async function round(): Promise<boolean> {
    const pace = sleep(paceMs);
    const isFed = await feedAll(feedPool);
    if (!mayDecide()) return isFed;
    let shared = concurrency;
    const loads = [...receivers].map(([webhook_id, { running: count, failures }]) => {
      shared -= Math.max(0, count - 1);
      const places = (failures >= failuresInARow ? 1 : maxPerWebhook) - count;
      return { webhook_id, running: count, places: Math.max(0, places) };
    });
    const endsMs = performance.now() + claimS * 1000 - marginMs;
    for (const one of await showTo(feedPool, await claimDue(feedPool, loads, shared))) void attempt(one, endsMs);
    await pace;
    return isFed;
  }

  async function attempt(one: Claimed, endsMs: number): Promise<void> {
    const { webhook_id, ordinal, claim, event } = one;
    if (performance.now() > endsMs) return;
    const lease: Lease = { one, endsMs };
    leases.set(leaseKey(one), lease);
    const receiver = receivers.get(webhook_id) ?? { running: 0, failures: 0, ended: [] };
    receivers.set(webhook_id, receiver);
    receiver.running++;
    const begun = now();
    const sent = event === null ? unsent('the event is no longer kept') : await post(one, event, begun, lease);
    // Another process makes the attempt again, or may already.
    if (lease.isLost) return settle(webhook_id, receiver, [one]);
    const tries = event === null ? retryDelaysMs.length : one.tries;
    receiver.failures = isDelivered(sent) ? 0 : receiver.failures + 1;
    receiver.ended.push({ ordinal, claim, tries, attempted_at: new Date(begun).toISOString(), ...sent });
    if (receiver.ended.length === 1) await record(webhook_id, receiver);
  }

  async function post(one: Claimed, body: string, begun: number, at: Ending): Promise<Sent> {
    const { webhook_id, url, event_id } = one;
    try {
      const sealed = [one.secret, one.previous_secret].filter((secret) => secret !== null);
      const secrets = sealed.map((secret) => secretKeys.open(webhook_id, secret));
      const signed = signedHeaders(secrets, event_id, Math.floor(begun / 1000), body);
      return await sender.post(url, { ...commonHeaders, ...signed }, body, at);
    } catch (error) {
      logger.error({ err: error, webhook_id }, 'a delivery could not be signed');
      return unsent('it could not be signed');
    }
  }

  /** Records ended attempts of a webhook together until none is left, including those that end meanwhile. */
  async function record(webhook_id: string, receiver: Receiver): Promise<void> {
    while (receiver.ended.length > 0) {
      const attempts = [...receiver.ended];
      try {
        const recorded = await finishAttempts(pool, webhook_id, attempts, new Date(now()).toISOString());
        options.onRecorded(recorded);
        if (recorded.disabled) logger.warn({ webhook_id, reason: recorded.disabled }, 'a webhook was disabled');
        receiver.ended.splice(0, attempts.length);
        settle(
          webhook_id,
          receiver,
          attempts.map((ended) => ({ webhook_id, ...ended })),
        );
        rounds.wake();
      } catch (error) {
        logger.warn({ err: error, webhook_id, attempts: attempts.length }, 'attempts could not be recorded; retrying');
        await sleep(pollMs);
      }
    }
  }

  function settle(webhook_id: string, receiver: Receiver, claims: readonly Parameters<typeof leaseKey>[0][]): void {
    for (const claim of claims) leases.delete(leaseKey(claim));
    receiver.running -= claims.length;
    if (receiver.running === 0 && receiver.failures === 0) receivers.delete(webhook_id);
  }

  /** Most attempts end before their claims have to be renewed. */
  async function renew(): Promise<boolean> {
    const begunMs = performance.now();
    const aging = [...leases.values()].filter(
      ({ endsMs }) => endsMs - begunMs < claimS * 1000 - marginMs - renewMs / 2,
    );
    if (aging.length === 0) return false;
    const claims = aging.map(({ one: { webhook_id, ordinal, claim, tries } }) => ({
      webhook_id,
      ordinal,
      claim,
      tries,
    }));
    for (const claim of await renewClaims(pool, claims)) {
      const lease = leases.get(leaseKey(claim));
      if (lease) lease.endsMs = begunMs + claimS * 1000 - marginMs;
    }
    return false;
  }

  function endLost(): void {
    for (const lease of leases.values()) {
      if (performance.now() < lease.endsMs || lease.end === undefined) continue;
      lease.isLost = true;
      lease.end();
    }
  }

  const renewals = sweeping('renewing claims', renew, renewMs, logger);
  let ending: NodeJS.Timeout | undefined;
  const rounds = sweeping('claiming deliveries', round, pollMs, logger);

  return {
    start() {
      rounds.start();
      renewals.start();
      ending = setInterval(endLost, renewMs / 4);
    },
    wake: rounds.wake,
    underWay: running,
    /**
     * Claims nothing more and waits for running work, but not for receivers that hang: another process takes
     * over when their claims expire.
     */
    async stop() {
      await rounds.stop();
      const until = performance.now() + stopMs;
      while (running() > 0 && performance.now() < until) await sleep(20);
      clearInterval(ending);
      await renewals.stop();
    },
  };
}
