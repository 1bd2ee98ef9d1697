import type { Logger } from 'pino';
import type { CheckResult } from './health.ts';

export interface ClockOptions {
  /** Returns the database's time at some moment during the call, in ms since 1970. */
  read(): Promise<number>;
  logger: Logger;
  /** This host's clock and a monotonic clock, both in ms. */
  own?: () => number;
  monotonic?: () => number;
}

/**
 * The time of postings, which is the database's. Each process compares its clock with it and uses a monotonic
 * clock between comparisons, so that the host's clock has no effect. A wrong host clock is detected at once,
 * also between comparisons.
 */
export interface Clock {
  /**
   * Returns the current time in ms since 1970, by the database's clock; before the first comparison, by this
   * host's. An inaccurate comparison, which is wrong by at most one second, never makes it go backwards.
   */
  now(): number;
  /** Ok if this host's clock has been compared and differs from the database's by at most 5 s. */
  check(): CheckResult;
  /** This host's clock minus the database's, in ms; undefined before the first comparison. */
  skewMs(): number | undefined;
  /** Compares immediately, then every 5 s (every second until the first success). Resolves after the first attempt. */
  start(): Promise<void>;
  stop(): void;
}

/** A host clock with a larger difference is considered wrong. */
const maxSkewMs = 5_000;
const everyMs = 5_000;
const retryMs = 1_000;
/** Two clocks may drift this far between comparisons: 200 ppm. */
const driftMs = 1;
/** A slower response is too inaccurate. */
const slowestMs = 1_000;

/** Thrown while two clocks disagree. It is a fault: what an unknown clock decides could not be undone, so it waits. */
class ClockError extends Error {
  override name = 'ClockError';
}

/** Throws if the time that the database has just returned differs from this host's clock by more than 5 s. */
export function requireSameTime(databaseTime: string): void {
  const skewMs = Date.now() - Date.parse(databaseTime);
  if (Math.abs(skewMs) > maxSkewMs) throw new ClockError(describe(skewMs));
}

/** Returns a handler that rejects while the clocks disagree. */
export function whileClocksAgree<T>(
  clock: Pick<Clock, 'check'>,
  handle: (messages: T) => Promise<void>,
): (messages: T) => Promise<void> {
  return async (messages) => {
    const { ok, reason } = clock.check();
    if (!ok) throw new ClockError(reason);
    await handle(messages);
  };
}

function describe(skewMs: number): string {
  return `this host's clock is ${(Math.abs(skewMs) / 1000).toFixed(1)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the database's`;
}

export function createClock({
  read,
  logger,
  own = Date.now,
  monotonic = () => performance.now(),
}: ClockOptions): Clock {
  /** `ahead`: the database's clock minus the monotonic clock, accurate to `precisionMs`. */
  let known: { ahead: number; precisionMs: number } | undefined;
  let wasRight = true;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  let latest = -Infinity;

  function now(): number {
    const time = known === undefined ? own() : known.ahead + monotonic();
    // Correcting an earlier comparison must not move the time backwards, so the time does not change until the
    // clock has caught up.
    if (time >= latest || latest - time > slowestMs) latest = time;
    return latest;
  }

  function check(): CheckResult {
    if (known === undefined)
      return { ok: false, reason: "this host's clock has not been compared with the database's yet" };
    const skewMs = own() - now();
    if (Math.abs(skewMs) <= maxSkewMs + known.precisionMs) return { ok: true };
    return { ok: false, reason: describe(skewMs) };
  }

  async function compare(): Promise<boolean> {
    const asked = monotonic();
    const time = await read().catch(
      (error: unknown) => void logger.debug({ err: error }, "the database's clock could not be read"),
    );
    const answered = monotonic();
    if (time === undefined || answered - asked > slowestMs) return false;
    const precisionMs = (answered - asked) / 2;
    const seen = { ahead: time - (asked + precisionMs), precisionMs };
    const kept = known && { ahead: known.ahead, precisionMs: known.precisionMs + driftMs };
    // A slow response that agrees with an earlier, faster one is ignored (the clock filter of RFC 5905, section 10).
    known = kept && kept.precisionMs < precisionMs && Math.abs(kept.ahead - seen.ahead) <= precisionMs ? kept : seen;
    const { ok, reason } = check();
    if (ok !== wasRight) logger[ok ? 'info' : 'error'](ok ? "this host's clock is right again" : (reason ?? ''));
    wasRight = ok;
    return true;
  }

  async function turn(): Promise<void> {
    const compared = await compare();
    if (!stopped) timer = setTimeout(() => void turn(), compared ? everyMs : retryMs).unref();
  }

  return {
    now,
    check,
    skewMs: () => (known === undefined ? undefined : own() - now()),
    start: turn,
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
