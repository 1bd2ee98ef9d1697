import { setTimeout as sleep } from 'node:timers/promises';

/** Waits `ms` milliseconds, or until the signal is aborted; never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return sleep(ms, undefined, signal && { signal }).catch(() => undefined);
}
