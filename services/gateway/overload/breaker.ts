import CircuitBreaker from 'opossum';
import type { Logger } from 'pino';

/** Runs a request. Rejects at once, with an error for which `isRefused` is true, while the service does not reply. */
export type Breaker<Reply> = CircuitBreaker<[() => Promise<Reply>], Reply>;

/** The breaker opens if requests have ended without reply for this long, with no reply in between. */
const silentMs = 3_000;
const halfOpenAfterMs = 1_000;

/**
 * Creates a circuit breaker that opens when a service does not reply. Opossum opens by the share of failed requests.
 * Here a request fails only after seconds of waiting, so that share is not meaningful: a single reply, also a refusal,
 * shows that the service works. While open, the breaker tries one request per second; any reply closes it.
 * `isSilence` reports whether an error means that the service did not reply, as opposed to, for example, an unreachable
 * broker.
 */
export function createBreaker<Reply>(
  name: string,
  logger: Logger,
  isSilence: (error: unknown) => boolean,
): Breaker<Reply> {
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
  circuit.on('open', () => logger.warn({ target: name }, 'the breaker opened, because the service does not reply'));
  circuit.on('close', () => logger.info({ target: name }, 'the breaker closed, because the service replies again'));
  return circuit;
}

/** Reports whether the breaker rejected a request without sending it. */
export const isRefused = (error: unknown): boolean => error instanceof Error && CircuitBreaker.isOurError(error);
