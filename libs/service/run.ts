import { hostname } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import closeWithGrace from 'close-with-grace';
import type { Logger } from 'pino';
import { z } from 'zod';
import { withTimeout } from '#libs/kafka/wait.ts';
import { inProduction, loadConfig, processConfig } from './config.ts';
import { createLogger, errorMessage, flushLogs } from './logger.ts';

export interface RunContext {
  /** Configured by LOG_LEVEL; the only logger of the process. */
  logger: Logger;
  /** The name of this process, unique among its replicas: its argument, by default its host and its number. */
  instance: string;
  /**
   * Registers how to stop what was just started. The functions are called in reverse order, each with a time
   * limit; failures are only logged.
   */
  onStop(name: string, stop: () => unknown): void;
}

export interface RunOptions {
  /** The time limit of one onStop function, in ms. */
  stopStepMs?: number;
  /** The time limit of the whole stop, in ms, after which the process exits regardless. Kubernetes allows 30 s. */
  stopMs?: number;
}

/**
 * Runs a process: main starts everything and returns. On SIGTERM or SIGINT, everything registered with onStop
 * is stopped in reverse order, and the process exits with 0. After an uncaught error, which is logged, the
 * process stops in the same way, with exit code 1. If main rejects, one line with the reason is printed,
 * everything started is stopped, and the process exits with 1.
 */
export function run(name: string, main: (context: RunContext) => Promise<void>, options: RunOptions = {}): void {
  tuneGarbageCollector();
  const { stopStepMs = 10_000, stopMs = 25_000 } = options;
  const stops: [string, () => unknown][] = [];
  let logger: Logger;
  const [given = '-'] = process.argv.slice(2);
  const instance = given.startsWith('-') ? `${hostname()}-${process.pid}` : given;
  try {
    const config = loadConfig(z.object({ LOG_LEVEL: processConfig.LOG_LEVEL }));
    logger = createLogger({ service: name, instance, level: config.LOG_LEVEL });
  } catch (error) {
    printStartFailure(name, error);
    process.exit(1);
  }
  const log = logger;

  closeWithGrace(
    {
      delay: stopMs,
      // The process exits immediately afterwards, so this is not written to the asynchronous log.
      logger: {
        error: (reason) => void process.stderr.write(`${name} exits before its stop: ${errorMessage(reason)}\n`),
      },
    },
    async ({ err, signal }) => {
      ignoreFurtherSignals();
      // Not `fatal`, because pino writes that level synchronously, ahead of lines that are still buffered.
      if (err !== undefined) log.error({ err }, 'uncaught error, stopping');
      else log.info({ signal }, 'stopping');
      await stopAll(stops, stopStepMs, log);
      log.info('stopped');
      await flushLogs(log);
    },
  );

  main({ logger, instance, onStop: (step, stop) => void stops.push([step, stop]) }).then(
    () => log.info({ mode: inProduction() ? 'production' : 'trial' }, 'started'),
    async (error: unknown) => {
      printStartFailure(name, error);
      log.debug({ err: error }, 'start failed');
      const bound = setTimeout(() => process.exit(1), stopMs);
      await stopAll(stops, stopStepMs, log);
      await flushLogs(log);
      clearTimeout(bound);
      process.exit(1);
    },
  );
}

/**
 * Makes full garbage collections rarer. Without these flags, a small process that releases many objects has one
 * per second (docs/performance/experiments.md, Promoted).
 * - V8 allocates objects in the old generation if similar ones survived earlier (arrays of parameters, for
 *   example, while the process was slow). The objects that they reference, such as the bytes of each request,
 *   are then freed only by full collections. The first flag disables this.
 * - With the second flag, a full collection runs when the heap has grown to three times its size after the last
 *   one, which is within V8's own range (1.3 to 4 times).
 */
export function tuneGarbageCollector(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--heap-growing-percent=200');
}

/**
 * A terminal sends Ctrl-C to the whole process group, and a launcher then sends its own signal. The second
 * signal must not interrupt the stop.
 */
function ignoreFurtherSignals(): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.removeAllListeners(signal);
    process.on(signal, () => undefined);
  }
}

async function stopAll(stops: [string, () => unknown][], stepMs: number, logger: Logger): Promise<void> {
  for (let next = stops.pop(); next !== undefined; next = stops.pop()) {
    const [step, stop] = next;
    await withTimeout(Promise.resolve().then(stop), stepMs, 'stopping').catch((error: unknown) =>
      logger.error({ err: error, step }, 'a component did not stop cleanly'),
    );
  }
}

function printStartFailure(name: string, error: unknown): void {
  process.stderr.write(`${name} cannot start: ${errorMessage(error)}\n`);
}
