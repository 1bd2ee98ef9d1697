import type { Unverifiable } from '#libs/contracts/exchange.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { CheckResult } from './health.ts';

export interface Watched {
  /** The handler for libs/kafka's consume. */
  handle(messages: ReceivedMessage[]): Promise<void>;
  /** Not ok while every attempt fails with a fault. */
  health(): CheckResult;
}

/** A fault older than this no longer counts: after a rebalance no retry clears it. */
const recentMs = 30_000;

/** Remembers a fault until it is cleared, for at most 30 s. */
export function createFault() {
  let fault: { at: number; reason: string } | undefined;
  return {
    note(error: unknown): void {
      fault = { at: performance.now(), reason: describe(error) };
    },
    clear(): void {
      fault = undefined;
    },
    health: (): CheckResult =>
      fault !== undefined && performance.now() - fault.at < recentMs
        ? { ok: false, reason: fault.reason }
        : { ok: true },
  };
}

/** Reports the error of a handler whose last call failed, so that the process is not ready while messages wait. */
export function watchFaults(handle: Watched['handle']): Watched {
  const { note, clear, health } = createFault();
  return {
    async handle(messages) {
      try {
        await handle(messages);
        clear();
      } catch (error) {
        note(error);
        throw error;
      }
    },
    health,
  };
}

/** Returns the fault of a message whose MAC this process cannot check. */
export function unverifiable({ topic, partition, offset }: ReceivedMessage, { reason }: Unverifiable): Error {
  return new Error(`the message at ${topic}/${partition}/${offset} cannot be checked: ${reason}`);
}

/** Returns the first result that is not ok. */
export function firstFailure(...results: CheckResult[]): CheckResult {
  return results.find(({ ok }) => !ok) ?? { ok: true };
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}`.slice(0, 500) : 'unknown';
}
