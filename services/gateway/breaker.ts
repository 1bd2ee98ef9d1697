import CircuitBreaker from 'opossum';
import type { Logger } from 'pino';

/**
 * Stops asking a service that does not answer. It counts intervals, not requests: one in which something was waited for
 * in vain and no reply came at all is a failure; a refusal is a reply like any other. Open, it lets one request through
 * after a second; any reply closes it.
 */
export interface Breaker {
  /** undefined: do not ask. Otherwise runs `request`, which rejects when there was no reply. */
  run<T>(request: () => Promise<T>): Promise<T> | undefined;
  isOpen(): boolean;
  stop(): void;
}

export interface BreakerOptions {
  name: string;
  logger: Logger;
  /** Whether an error of `request` means that the service kept silent (and not, say, that Kafka was away). */
  isSilence(error: unknown): boolean;
  /** Default 1 s. */
  intervalMs?: number;
  /** Intervals without a reply, of the last ten, that open it. Default 3. */
  silentIntervals?: number;
  /** Default 1 s. */
  halfOpenAfterMs?: number;
}

export function createBreaker({ name, logger, isSilence, intervalMs = 1_000, silentIntervals = 3, halfOpenAfterMs = 1_000 }: BreakerOptions): Breaker {
  let replies = 0;
  const circuit = new CircuitBreaker((action: () => Promise<unknown>) => action(), {
    name,
    timeout: false,
    resetTimeout: halfOpenAfterMs,
    errorThresholdPercentage: 50,
    volumeThreshold: silentIntervals,
    rollingCountTimeout: 10 * intervalMs,
    rollingCountBuckets: 10,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
  });
  circuit.on('open', () => logger.warn({ target: name }, 'no reply: the breaker opens'));
  circuit.on('close', () => logger.info({ target: name }, 'replies again: the breaker closes'));

  /** Of an interval in which something was counted; without requests there is none. */
  let interval: NodeJS.Timeout | undefined;
  const conclude = () => {
    interval = undefined;
    const isSilent = replies === 0;
    replies = 0;
    if (circuit.closed) circuit.fire(() => (isSilent ? Promise.reject(new Error('no reply')) : Promise.resolve())).catch(() => undefined);
  };
  const begin = () => setTimeout(conclude, intervalMs).unref();

  const counted = <T>(request: () => Promise<T>): Promise<T> =>
    request().then(
      (reply) => {
        replies += 1;
        interval ??= begin();
        if (!circuit.closed) circuit.close();
        return reply;
      },
      (error: unknown) => {
        if (isSilence(error)) interval ??= begin();
        throw error;
      },
    );

  return {
    run(request) {
      if (circuit.closed) return counted(request);
      if (!circuit.halfOpen || !circuit.pendingClose) return undefined;
      return circuit.fire(() => counted(request)) as ReturnType<typeof request>;
    },
    isOpen: () => !circuit.closed,
    stop() {
      clearTimeout(interval);
      circuit.shutdown();
    },
  };
}
