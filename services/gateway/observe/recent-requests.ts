import type { Operations } from '#libs/contracts/operations.ts';

const windowSeconds = 60;

interface Slot {
  second: number;
  count: number;
  server_errors: number;
  total_s: number;
  slowest_s: number;
}

/** Counts the requests of the last minute and their durations, excluding the current second. */
export function createRecentRequests(nowMs: () => number = () => performance.now()) {
  const empty = (second: number): Slot => ({ second, count: 0, server_errors: 0, total_s: 0, slowest_s: 0 });
  const slots = Array.from({ length: windowSeconds + 1 }, () => empty(-windowSeconds));
  const secondNow = (): number => Math.floor(nowMs() / 1000);
  let current = slots[0] as Slot;
  return {
    add(status: number, seconds: number): void {
      const second = secondNow();
      if (current.second !== second) slots[second % slots.length] = current = empty(second);
      current.count += 1;
      if (status >= 500) current.server_errors += 1;
      current.total_s += seconds;
      if (seconds > current.slowest_s) current.slowest_s = seconds;
    },
    read(): Operations['requests'] {
      const now = secondNow();
      const known = slots.filter(({ second, count }) => count > 0 && second < now && second >= now - windowSeconds);
      const sum = (field: 'count' | 'server_errors' | 'total_s') =>
        known.reduce((total, slot) => total + slot[field], 0);
      const count = sum('count');
      const ms = (seconds: number) => Math.round(seconds * 10_000) / 10;
      return {
        window_seconds: windowSeconds,
        count,
        server_errors: sum('server_errors'),
        mean_ms: count === 0 ? null : ms(sum('total_s') / count),
        slowest_ms: count === 0 ? null : ms(Math.max(...known.map(({ slowest_s }) => slowest_s))),
      };
    },
  };
}
