import { setFlagsFromString } from 'node:v8';
import closeWithGrace from 'close-with-grace';
import type { Logger } from 'pino';
import { z } from 'zod';
import { ConfigError, loadConfig, processConfig } from './config.ts';
import { createLogger, flushLogs } from './logger.ts';

export interface RunContext {
  /** Made from LOG_LEVEL and INSTANCE; the one logger of the process. */
  logger: Logger;
  instance: string;
  /**
   * Registers how to stop what has just been started. Called in reverse order, each bounded; a
   * failure is logged only.
   */
  onStop(name: string, stop: () => unknown): void;
}

export interface RunOptions {
  /** Bound for one onStop function. */
  stopStepMs?: number;
  /** Bound for the whole stop; the process ends then, whatever still runs. Kubernetes gives 30 s. */
  stopMs?: number;
}

/**
 * Runs a process: main starts everything and returns. On SIGTERM or SIGINT what was registered with
 * onStop is stopped in reverse order, then the process exits with 0. An uncaught error is logged,
 * then the same, with 1. When main rejects, one clear line is printed, what had been started is
 * stopped, exit 1.
 */
export function run(name: string, main: (context: RunContext) => Promise<void>, options: RunOptions = {}): void {
  collectSeldom();
  const { stopStepMs = 10_000, stopMs = 25_000 } = options;
  const stops: [string, () => unknown][] = [];
  let logger: Logger;
  let instance: string;
  try {
    const config = loadConfig(z.object({ LOG_LEVEL: processConfig.LOG_LEVEL, INSTANCE: processConfig.INSTANCE }));
    instance = config.INSTANCE;
    logger = createLogger({ service: name, instance, level: config.LOG_LEVEL });
  } catch (error) {
    printStartFailure(name, error);
    process.exit(1);
  }
  const log = logger;

  closeWithGrace(
    { delay: stopMs, logger: { error: (message: unknown) => log.fatal({ err: message }, 'stopped by force') } },
    async ({ err, signal }) => {
      ignoreFurtherSignals();
      // Not fatal: pino writes that level at once, before the lines that are still on their way.
      if (err !== undefined) log.error({ err }, 'uncaught error, stopping');
      else log.info({ signal }, 'stopping');
      await stopAll(stops, stopStepMs, log);
      log.info('stopped');
      await flushLogs(log);
    },
  );

  main({ logger, instance, onStop: (step, stop) => void stops.push([step, stop]) }).then(
    () => log.info('started'),
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
 * Collections of the whole heap, of which a small one that lets go of much would see one a second
 * (docs/performance/experiments.md, Promoted).
 * - V8 makes in the old generation at once what it saw grow old (arrays of parameters, say, in slow
 *   seconds). What these hold, the
 *   bytes of each request, is then freed by such collections alone: it is told not to.
 * - They come when the heap has grown to three times what the last one left, which is within V8's
 *   own range (1.3 to 4 times).
 */
export function collectSeldom(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--heap-growing-percent=200');
}

/**
 * A terminal sends Ctrl-C to the whole group and a launcher its own signal after it: the second
 * must not cut the stop short.
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
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not stopped within ${stepMs} ms`)), stepMs);
    });
    try {
      await Promise.race([Promise.resolve().then(stop), late]);
    } catch (error) {
      logger.error({ err: error, step }, 'a part did not stop cleanly');
    } finally {
      clearTimeout(timer);
    }
  }
}

function printStartFailure(name: string, error: unknown): void {
  const reason = error instanceof ConfigError ? error.message : describe(error);
  process.stderr.write(`${name} cannot start: ${reason}\n`);
}

/** pg and node give an AggregateError without a message where a host has several addresses. */
function describe(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(describe).join('; ');
  return error instanceof Error ? error.message : String(error);
}
