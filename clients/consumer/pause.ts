import { setTimeout as sleep } from 'node:timers/promises';

/** Waits `ms` milliseconds, or until the signal is aborted; never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return sleep(ms, undefined, signal && { signal }).catch(() => undefined);
}

/** Waits for the promise to settle, at most `ms` milliseconds. Returns whether it has; never rejects. */
export async function hasSettled(promise: Promise<unknown>, ms: number): Promise<boolean> {
  // The timer is stopped, because it would keep the process alive.
  const late = new AbortController();
  const settled = Promise.allSettled([promise]).then(() => true);
  return Promise.race([settled, pause(ms, late.signal).then(() => false)]).finally(() => late.abort());
}
