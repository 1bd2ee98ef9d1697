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
 * Compares this host's clock with the database's, which determines posting times. A difference of up to 5 s is not
 * corrected; a process with a larger one is not ready and decides nothing. The monotonic clock shows a jump of the host's
 * clock at once, also between comparisons.
 */
export interface Clock {
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
/** The clocks of two processes that decide differ by at most this. */
export const apartMs = 2 * maxSkewMs;
const everyMs = 5_000;
const retryMs = 1_000;
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
  return `this host's clock is more than ${maxSkewMs / 1000} s ${skewMs > 0 ? 'ahead of' : 'behind'} the database's`;
}

export function createClock({
  read,
  logger,
  own = Date.now,
  monotonic = () => performance.now(),
}: ClockOptions): Clock {
  /** The database's clock minus the monotonic clock. */
  let aheadMs: number | undefined;
  let wasRight = true;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const skewMs = (): number | undefined => (aheadMs === undefined ? undefined : own() - monotonic() - aheadMs);

  function check(): CheckResult {
    const skew = skewMs();
    if (skew === undefined)
      return { ok: false, reason: "this host's clock has not been compared with the database's yet" };
    return Math.abs(skew) <= maxSkewMs ? { ok: true } : { ok: false, reason: describe(skew) };
  }

  async function compare(): Promise<boolean> {
    const asked = monotonic();
    const time = await read().catch(
      (error: unknown) => void logger.debug({ err: error }, "the database's clock could not be read"),
    );
    const tookMs = monotonic() - asked;
    if (time === undefined || tookMs > slowestMs) return false;
    aheadMs = time - (asked + tookMs / 2);
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
    check,
    skewMs,
    start: turn,
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
