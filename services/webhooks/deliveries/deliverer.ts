import type { KeyObject } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { SecretKeys } from '#libs/contracts/webhook-secret.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { memo } from '#libs/service/metrics.ts';
import { showTo } from '../events/for-client.ts';
import { feedAll } from './feed.ts';
import { finishAttempts } from './finish.ts';
import { type Sender, type Sent, signedHeaders, signingKey } from './send.ts';
import { type Claimed, claimDue, type Load, maxPerWebhook } from './store.ts';
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

/** After this many failed attempts in a row, a receiver gets one request at a time. */
const failuresInARow = 3;
const pollMs = 500;
/** The minimum time between the starts of rounds, in ms. Each round takes what has arrived meanwhile. */
const paceMs = 5;
const stopMs = 8_000;

/** Reports that an attempt ended without a request. */
const unsent = (error: string): Sent => ({ response_status: null, duration_ms: 0, error });

type Ended = Attempt & { webhook_id: string };
/** Returns the signing key of a sealed secret. */
type KeyOf = (sealed: string) => KeyObject;

/**
 * Creates deliveries for events, sends those that are due, and records the results. Any number of processes can
 * run it concurrently. Each webhook may always have one running request; additional ones share `concurrency`. A
 * receiver that hangs therefore takes nothing that others need.
 */
export function createDeliverer({ pool, logger, concurrency, now, ...options }: DelivererOptions) {
  /** The number of running requests and of failures in a row, by webhook. */
  const receivers = new Map<string, { running: number; failures: number }>();
  const ended: Ended[] = [];
  let [stopping, recording] = [false, false];
  let loop: Promise<void> = Promise.resolve();
  let wakeUp = Promise.withResolvers<void>();

  const wake = (): void => wakeUp.resolve();
  const running = (): number => receivers.values().reduce((sum, receiver) => sum + receiver.running, 0);
  const receiverOf = (webhookId: string) => {
    const receiver = receivers.get(webhookId) ?? { running: 0, failures: 0 };
    receivers.set(webhookId, receiver);
    return receiver;
  };

  async function claimRound(): Promise<void> {
    let shared = concurrency;
    const loads = [...receivers].map(([webhook_id, { running: count, failures }]): Load => {
      shared -= Math.max(0, count - 1);
      const places = (failures >= failuresInARow ? 1 : maxPerWebhook) - count;
      return { webhook_id, running: count, places: Math.max(0, places) };
    });
    const claimed = await claimDue(pool, loads, shared);
    // Opening a secret takes four times as long as signing with it, so each is opened once per round.
    const keyOf = memo((webhookId) => memo((sealed) => signingKey(options.secretKeys.open(webhookId, sealed))));
    // If this fails, the claims expire.
    for (const one of await showTo(pool, claimed)) void attempt(one, keyOf(one.webhook_id));
  }

  async function attempt(one: Claimed, keyOf: KeyOf): Promise<void> {
    const { webhook_id, ordinal, claim, event } = one;
    const receiver = receiverOf(webhook_id);
    receiver.running++;
    const begun = now();
    const sent = event === null ? unsent('the event is no longer kept') : await post(one, keyOf, event, begun);
    const tries = event === null ? retryDelaysMs.length : one.tries;
    receiver.failures = isDelivered(sent) ? 0 : receiver.failures + 1;
    ended.push({ webhook_id, ordinal, claim, tries, attempted_at: new Date(begun).toISOString(), ...sent });
    await recordAll();
  }

  async function post(one: Claimed, keyOf: KeyOf, body: string, begun: number): Promise<Sent> {
    const { webhook_id, url, secret, previous_secret, event_id } = one;
    try {
      const keys = [secret, previous_secret].flatMap((sealed) => (sealed === null ? [] : [keyOf(sealed)]));
      const headers = {
        'content-type': 'application/cloudevents+json; charset=utf-8',
        'user-agent': options.userAgent,
        ...signedHeaders(keys, event_id, Math.floor(begun / 1000), body),
      };
      return await options.sender.post(url, headers, body);
    } catch (error) {
      logger.error({ err: error, webhook_id }, 'a delivery could not be made');
      return unsent('it could not be signed');
    }
  }

  /**
   * Records ended attempts; those that end meanwhile are recorded next. Retries until Postgres accepts them, and
   * they count as running until then.
   */
  async function recordAll(): Promise<void> {
    if (recording) return;
    recording = true;
    while (ended.length > 0) {
      const groups = Map.groupBy(ended.splice(0), ({ webhook_id }) => webhook_id);
      await Promise.all(groups.entries().map(([webhookId, group]) => record(webhookId, group)));
    }
    recording = false;
  }

  async function record(webhook_id: string, attempts: Ended[]): Promise<void> {
    try {
      const at = new Date(now()).toISOString();
      const { verdicts, disabled } = await finishAttempts(pool, webhook_id, attempts, at);
      attempts.forEach((one, i) => options.observe(one, verdicts[i] as Verdict));
      if (disabled) {
        logger.warn({ webhook_id, reason: disabled }, 'a webhook was disabled');
        options.onDisabled();
      }
      const receiver = receiverOf(webhook_id);
      receiver.running -= attempts.length;
      if (receiver.running === 0 && receiver.failures === 0) receivers.delete(webhook_id);
      wake();
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
      while (running() > 0 && performance.now() < until) await sleep(20);
    },
  };
}
