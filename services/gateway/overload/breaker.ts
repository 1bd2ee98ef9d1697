import CircuitBreaker from 'opossum';
import type { Logger } from 'pino';

/** Fires a request; rejects at once, with an error for which `isRefused` is true, while the service does not reply. */
export type Breaker<Reply> = CircuitBreaker<[() => Promise<Reply>], Reply>;

export interface BreakerOptions {
  name: string;
  logger: Logger;
  /** Whether an error of a request means that the service kept silent (and not, say, that Kafka was away). */
  isSilence(error: unknown): boolean;
}

/** Waits that ended without a reply for so long, and no reply in between, open the breaker. */
const silentMs = 3_000;
const halfOpenAfterMs = 1_000;

/**
 * A circuit breaker that opens when a service stays silent. Opossum opens by the share of requests
 * that fail, but here a request fails only after seconds of waiting, so that share says nothing of
 * the service: one reply shows that it is there. A refusal is a reply like any other. Open, it
 * tries one request after a second; any reply closes it.
 */
export function createBreaker<Reply>({ name, logger, isSilence }: BreakerOptions): Breaker<Reply> {
  const circuit: Breaker<Reply> = new CircuitBreaker((request: () => Promise<Reply>) => request(), {
    name,
    timeout: false,
    resetTimeout: halfOpenAfterMs,
    volumeThreshold: Number.MAX_SAFE_INTEGER,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
  });
  let silentSince: number | undefined;
  circuit.on('success', () => {
    silentSince = undefined;
    circuit.close();
  });
  circuit.on('failure', (error) => {
    if (!isSilence(error)) return;
    silentSince ??= performance.now();
    if (performance.now() - silentSince >= silentMs) circuit.open();
  });
  circuit.on('open', () => logger.warn({ target: name }, 'no reply: the breaker opens'));
  circuit.on('close', () => logger.info({ target: name }, 'replies again: the breaker closes'));
  return circuit;
}

/** Whether the breaker itself has refused a request: it was not sent. */
export const isRefused = (error: unknown): boolean => error instanceof Error && CircuitBreaker.isOurError(error);
