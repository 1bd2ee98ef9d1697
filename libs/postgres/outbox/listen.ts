import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import pg from 'pg';
import type { Logger } from 'pino';

/**
 * Calls onNotify for every NOTIFY on the channel. It uses its own connection (with the pool's settings and passwords) and
 * reconnects when the connection breaks. A NOTIFY during an interruption is missed, so the listener must also poll.
 */
export function listen(pool: Pool, channel: string, onNotify: () => void, logger: Logger) {
  const stopping = new AbortController();
  const ended = keepListening();

  async function keepListening(): Promise<void> {
    while (!stopping.signal.aborted) {
      await listenOnce().catch((error: unknown) => logger.debug({ err: error, channel }, 'listening failed'));
      await sleep(500, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  /** Settles when the connection has ended. */
  async function listenOnce(): Promise<void> {
    const { Client = pg.Client } = pool.options as { Client?: typeof pg.Client };
    const client = new Client(pool.options);
    client.on('error', (error) => logger.debug({ err: error, channel }, 'the listening connection was lost'));
    client.on('notification', onNotify);
    const gone = new Promise<void>((resolve) => client.once('end', () => resolve()));
    const end = () => void client.end();
    try {
      await client.connect();
      await client.query(`listen "${channel.replaceAll('"', '""')}"`);
      stopping.signal.addEventListener('abort', end, { once: true });
      if (stopping.signal.aborted) end();
      onNotify();
      await gone;
    } finally {
      stopping.signal.removeEventListener('abort', end);
      await client.end();
    }
  }

  return {
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
