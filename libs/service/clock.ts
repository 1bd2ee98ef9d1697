import type { Logger } from 'pino';
import type { CheckResult } from './health.ts';

export interface ClockOptions {
  /** The database's clock at some moment between the call and its answer, in ms since 1970. */
  read(): Promise<number>;
  logger: Logger;
  /** This host's clock, and one that never jumps; both in ms. */
  own?: () => number;
  monotonic?: () => number;
}

/**
 * The time by which the bank books: the database's. Each process follows it between two looks by a
 * clock that never jumps, so that what its host believes decides nothing; a host that is wrong is
 * noticed at once, also between two looks.
 */
export interface Clock {
  /**
   * Now, in ms since 1970, by the database's clock; by this host's until it was compared for the
   * first time. Never goes back by what a comparison may be wrong by, a second at most.
   */
  now(): number;
  /** Ok while this host's clock has been compared, and differs from the database's by no more than 5 s. */
  check(): CheckResult;
  /** This host's clock less the database's; undefined before the first comparison. */
  skewMs(): number | undefined;
  /** Compares at once, then every 5 s (each second until it has succeeded); resolves after the first attempt. */
  start(): Promise<void>;
  stop(): void;
}

/** From here on a host's clock counts as wrong. */
const maxSkewMs = 5_000;
const everyMs = 5_000;
const retryMs = 1_000;
/** Two clocks may part by so much from one look to the next: 200 ppm. */
const driftMs = 1;
/** An answer that was longer on its way says too little about now. */
const slowestMs = 1_000;

export function createClock({
  read,
  logger,
  own = Date.now,
  monotonic = () => performance.now(),
}: ClockOptions): Clock {
  /** `ahead`: the database's clock less the monotonic one; known to `precisionMs`. */
  let known: { ahead: number; precisionMs: number } | undefined;
  let wasRight = true;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  let latest = -Infinity;

  function now(): number {
    const time = known === undefined ? own() : known.ahead + monotonic();
    // What a look was wrong by must not let the time go back: it stands still until it is caught up with.
    if (time >= latest || latest - time > slowestMs) latest = time;
    return latest;
  }

  function check(): CheckResult {
    if (known === undefined) return { ok: false, reason: "this host's clock was not compared with the database's yet" };
    const skewMs = own() - now();
    if (Math.abs(skewMs) <= maxSkewMs + known.precisionMs) return { ok: true };
    return {
      ok: false,
      reason: `this host's clock is ${(Math.abs(skewMs) / 1000).toFixed(1)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the database's`,
    };
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
    // A slow answer that agrees with a quicker one before it says nothing new (the clock filter of RFC 5905, 10).
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
