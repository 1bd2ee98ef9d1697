export type Limiter = NonNullable<ReturnType<typeof createLimiter>>;

const windowMs = 60_000;
/** Beyond this number of keys within a minute, all counts are reset, so that memory stays bounded. */
const maxKeys = 100_000;

/**
 * Limits how often something may happen per minute and key, in windows of one minute that all keys share. Each gateway
 * counts separately, as documented. Returns undefined for limit 0: no limit.
 */
export function createLimiter(limit: number, now: () => number = Date.now) {
  if (limit === 0) return undefined;
  let counts = new Map<string, number>();
  let endsMs = now() + windowMs;
  return {
    limit,
    /**
     * Counts one occurrence. Returns how many more are allowed (0: this was the last one; negative: over the limit) and
     * when the window ends.
     */
    take(key: string): { left: number; reset_s: number } {
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
