import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { RunContext } from './run.ts';

/** A server that does not listen yet: a fastify app. */
interface Server {
  listen(at: { host: string; port: number }): Promise<string>;
  close(): PromiseLike<unknown>;
}

/**
 * The state of a process that answers HTTP requests: starting, running, draining. It is ready while it is running. When
 * it stops, readiness fails first, requests are still accepted for SHUTDOWN_DELAY_MS, and then the server closes.
 */
export function createServing(
  name: string,
  config: { HOST: string; PORT: number; SHUTDOWN_DELAY_MS: number },
  { logger, onStop }: { logger: Logger; onStop: RunContext['onStop'] },
) {
  let state: 'starting' | 'running' | 'draining' = 'starting';
  return {
    ready: () => ({ ok: state === 'running', reason: state }),
    isDraining: () => state === 'draining',
    /** Listens. Call it last, because what is started later is stopped earlier. */
    async listen(server: Server, health: { drain(): void }): Promise<void> {
      onStop('HTTP server', () => server.close());
      const url = await server.listen({ host: config.HOST, port: config.PORT });
      logger.info({ url }, `the ${name} accepts requests`);
      state = 'running';
      onStop('readiness', async () => {
        health.drain();
        state = 'draining';
        await sleep(config.SHUTDOWN_DELAY_MS);
      });
    },
  };
}
