import CircuitBreaker from 'opossum';
import type { Logger } from 'pino';

/** Runs a request. Rejects at once, with an error for which `isRefused` is true, while the service does not reply. */
export type Breaker<Reply> = CircuitBreaker<[() => Promise<Reply>], Reply>;

/**
 * Creates a circuit breaker that opens when, within four seconds, more than three quarters as many requests have ended
 * without a reply as were sent, and at least five were sent. A request fails only after five seconds of waiting, so this
 * happens eight seconds after a service has stopped, and shorter pauses (rebalance, failover) do not open the breaker.
 * While open, the breaker tries one request per second; a reply closes it. `isSilence` reports whether an error means that
 * the service did not reply. Other errors, for example an unreachable broker, say nothing about the service and count like
 * replies.
 */
export function createBreaker<Reply>(
  name: string,
  logger: Logger,
  isSilence: (error: unknown) => boolean,
): Breaker<Reply> {
  const circuit: Breaker<Reply> = new CircuitBreaker((request: () => Promise<Reply>) => request(), {
    name,
    timeout: false,
    rollingCountTimeout: 4_000,
    volumeThreshold: 5,
    errorThresholdPercentage: 75,
    errorFilter: (error) => !isSilence(error),
    resetTimeout: 1_000,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
  });
  circuit.on('open', () => logger.warn({ target: name }, 'the breaker opened, because the service does not reply'));
  circuit.on('close', () => logger.info({ target: name }, 'the breaker closed, because the service replies again'));
  return circuit;
}

/** Reports whether the breaker rejected a request without sending it. */
export const isRefused = (error: unknown): boolean => error instanceof Error && CircuitBreaker.isOurError(error);
