import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { SecretKeys } from '#libs/contracts/webhook-secret.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { accountsIn, forClient } from '../events/for-client.ts';
import { ownersOf } from '../events/store-events.ts';
import { feedAll } from './feed.ts';
import { finishAttempts } from './finish.ts';
import { type Sender, type Sent, signedHeaders } from './send.ts';
import { type Claimed, claimDue } from './store.ts';
import { type Attempt, isDelivered, retryDelaysMs, type Verdict } from './verdict.ts';

export interface DelivererOptions {
  pool: Pool;
  sender: Sender;
  secretKeys: SecretKeys;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  /** The maximum number of concurrent requests, in addition to one per webhook. */
  concurrency: number;
  userAgent: string;
  logger: Logger;
  observe(attempt: Attempt, verdict: Verdict): void;
  /** Called when a webhook was disabled and its event must be published. */
  onDisabled(): void;
}

/** The maximum number of concurrent requests to one receiver. If its last attempts all failed, it is one. */
const maxPerWebhook = 64;
const failuresInARow = 3;
const pollMs = 500;
/** The minimum time between the starts of rounds, in ms. Each round takes what has arrived meanwhile. */
const paceMs = 5;
const stopMs = 8_000;
const noAnswer = { response_status: null, duration_ms: 0 };

type Ended = Attempt & { webhook_id: string };

/**
 * Creates deliveries for events, sends those that are due, and records the results. Any number of processes can
 * run it concurrently. Each webhook may always have one running request; additional ones share `concurrency`. A
 * receiver that hangs therefore takes nothing that others need.
 */
export function createDeliverer(options: DelivererOptions) {
  const { pool, logger, concurrency, now } = options;
  const underWay = new Map<string, number>();
  const failures = new Map<string, number>();
  const ended: Ended[] = [];
  let [stopping, finishing] = [false, false];
  let loop: Promise<void> = Promise.resolve();
  let wakeUp = Promise.withResolvers<void>();

  const wake = (): void => wakeUp.resolve();
  const running = (): number => [...underWay.values()].reduce((sum, count) => sum + count, 0);

  async function claimRound(): Promise<void> {
    const busy = new Map([...underWay.keys()].map((id) => [id, 0]));
    start(await claimDue(pool, busy, 1, 100_000));
    const shared = concurrency - (running() - underWay.size);
    if (underWay.size === 0 || shared <= 0) return;
    const limitOf = (id: string) => ((failures.get(id) ?? 0) >= failuresInARow ? 1 : maxPerWebhook);
    const places = new Map([...underWay].map(([id, count]) => [id, Math.max(0, limitOf(id) - count)]));
    start(await claimDue(pool, places, 0, shared));
  }

  function start(claimed: Claimed[]): void {
    for (const { webhook_id } of claimed) underWay.set(webhook_id, (underWay.get(webhook_id) ?? 0) + 1);
    if (claimed.length > 0)
      void prepare(claimed).then(
        (bodies) => claimed.forEach((one, i) => void attemptOne(one, bodies[i] ?? null)),
        (error: unknown) => {
          // Their claims expire.
          logger.warn({ err: error }, 'deliveries could not be prepared');
          for (const { webhook_id } of claimed) leave(webhook_id);
        },
      );
  }

  /** Returns the body for each claimed delivery. */
  async function prepare(claimed: Claimed[]): Promise<(string | null)[]> {
    const confined = claimed.flatMap(({ client_id, body }) => (client_id === null || body === null ? [] : [body]));
    const owners = await ownersOf(pool, confined.flatMap(accountsIn));
    return claimed.map(({ client_id, body }) =>
      client_id === null || body === null ? body : forClient(body, client_id, owners),
    );
  }

  async function attemptOne(one: Claimed, body: string | null): Promise<void> {
    const { webhook_id, ordinal, claim } = one;
    const begun = now();
    const sent = body === null ? { ...noAnswer, error: 'the event is no longer kept' } : await post(one, body, begun);
    const tries = body === null ? retryDelaysMs.length : one.tries;
    const attempt = { webhook_id, ordinal, claim, tries, attempted_at: new Date(begun).toISOString(), ...sent };
    failures.set(webhook_id, isDelivered(attempt) ? 0 : (failures.get(webhook_id) ?? 0) + 1);
    ended.push(attempt);
    await finishAll();
  }

  async function post(one: Claimed, body: string, begun: number): Promise<Sent> {
    const { webhook_id, url, secret, previous_secret, event_id } = one;
    try {
      const secrets = [secret, previous_secret].flatMap((sealed) =>
        sealed === null ? [] : [options.secretKeys.open(webhook_id, sealed)],
      );
      const headers = {
        'content-type': 'application/cloudevents+json; charset=utf-8',
        'user-agent': options.userAgent,
        ...signedHeaders(secrets, event_id, Math.floor(begun / 1000), body),
      };
      return await options.sender.post(url, headers, body);
    } catch (error) {
      logger.error({ err: error, webhook_id }, 'a delivery could not be made');
      return { ...noAnswer, error: 'it could not be signed' };
    }
  }

  function leave(webhookId: string, count = 1): void {
    const rest = (underWay.get(webhookId) ?? 0) - count;
    if (rest > 0) underWay.set(webhookId, rest);
    else underWay.delete(webhookId);
    wake();
  }

  /**
   * Writes finished attempts; those that finish meanwhile are written next. Retries until Postgres accepts
   * them, and they count as running until then.
   */
  async function finishAll(): Promise<void> {
    if (finishing) return;
    finishing = true;
    while (ended.length > 0) {
      const groups = Map.groupBy(ended.splice(0), ({ webhook_id }) => webhook_id);
      await Promise.all([...groups].map(([webhookId, group]) => finishGroup(webhookId, group)));
    }
    finishing = false;
  }

  async function finishGroup(webhook_id: string, attempts: Ended[]): Promise<void> {
    try {
      const at = new Date(now()).toISOString();
      const { verdicts, disabled } = await finishAttempts(pool, webhook_id, attempts, at);
      attempts.forEach((attempt, i) => options.observe(attempt, verdicts[i] as Verdict));
      if (disabled) {
        logger.warn({ webhook_id, reason: disabled }, 'a webhook was disabled');
        options.onDisabled();
      }
      leave(webhook_id, attempts.length);
    } catch (error) {
      logger.warn({ err: error, webhook_id, attempts: attempts.length }, 'attempts could not be recorded; retrying');
      await sleep(pollMs);
      ended.unshift(...attempts);
    }
  }

  async function run(): Promise<void> {
    while (!stopping) {
      const pause = sleep(paceMs);
      wakeUp = Promise.withResolvers();
      try {
        const isFed = await feedAll(pool);
        await claimRound();
        if (isFed) wake();
      } catch (error) {
        logger.warn({ err: error }, 'deliveries could not be claimed; retrying');
      }
      await pause;
      const timer = setTimeout(wake, pollMs);
      await wakeUp.promise;
      clearTimeout(timer);
    }
  }

  return {
    start: () => void (loop = run()),
    wake,
    underWay: running,
    /**
     * Claims nothing more and waits for running work, but not for receivers that hang: another process takes
     * over when their claims expire.
     */
    async stop() {
      stopping = true;
      wake();
      await loop;
      const until = performance.now() + stopMs;
      while (underWay.size > 0 && performance.now() < until) await sleep(20);
    },
  };
}
