/**
 * How often something may happen a minute, per key, in this process (documented so: every gateway
 * counts for itself).
 */
export interface Limiter {
  /** Counts one; says how many are left (0 when this was the last one, negative beyond) and when it starts over. */
  take(key: string): { left: number; reset_s: number };
  readonly limit: number;
}

const windowMs = 60_000;
/** Beyond so many keys within one minute all start over: memory is bounded before fairness is. */
const maxKeys = 100_000;

/** Counts in windows of a minute, the same one for all keys. undefined for 0: no limit. */
export function createLimiter(limit: number, now: () => number = Date.now): Limiter | undefined {
  if (limit === 0) return undefined;
  let counts = new Map<string, number>();
  let endsMs = now() + windowMs;
  return {
    limit,
    take(key) {
      const nowMs = now();
      if (nowMs >= endsMs || counts.size >= maxKeys) {
        counts = new Map();
        endsMs = nowMs + windowMs;
      }
      const count = (counts.get(key) ?? 0) + 1;
      counts.set(key, count);
      return { left: limit - count, reset_s: Math.ceil((endsMs - nowMs) / 1000) };
    },
  };
}
