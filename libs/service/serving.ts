import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { RunContext } from './run.ts';

/** A server that does not listen yet: a fastify app. */
interface App {
  server: HttpServer;
  listen(at: { host: string; port: number }): Promise<string>;
  close(): PromiseLike<unknown>;
}

interface ServingConfig {
  PORT: { host: string; port: number };
  BANK_MODE: 'production' | 'trial';
  TRUST_PROXY: string[];
}

/**
 * The state of a process that answers HTTP requests: starting, running, draining. It is ready while it is running. When
 * it stops, readiness fails first, requests are still accepted until load balancers have noticed, and then the server closes: it serves
 * every connection that it has accepted, and others are refused, but not reset.
 */
export function createServing(
  name: string,
  config: ServingConfig,
  { logger, onStop }: { logger: Logger; onStop: RunContext['onStop'] },
) {
  let state: 'starting' | 'running' | 'draining' = 'starting';
  return {
    ready: () => ({ ok: state === 'running', reason: state }),
    isDraining: () => state === 'draining',
    /** Listens. Call it last, because what is started later is stopped earlier. */
    async listen(app: App, health: { drain(): void }): Promise<void> {
      const silent = trackSilent(app.server);
      onStop('HTTP server', async () => {
        await stopListening(app.server);
        // Node no longer ends the wait for a first request once the server has closed.
        const impatience = setTimeout(() => silent.forEach((socket) => void socket.destroy()), longestSilenceMs);
        await app.close();
        clearTimeout(impatience);
      });
      const url = await app.listen(config.PORT);
      logger.info({ url }, `the ${name} accepts requests`);
      state = 'running';
      onStop('readiness', async () => {
        health.drain();
        state = 'draining';
        await sleep(noticeMs(config));
      });
    },
  };
}

/**
 * Returns the time in which load balancers notice that a process is no longer ready. A managed one, which a controller of
 * Kubernetes tells, takes up to ten seconds; the proxy of docker compose, one.
 */
function noticeMs({ BANK_MODE: mode, TRUST_PROXY: proxies }: ServingConfig): number {
  if (mode === 'production') return 12_000;
  return proxies.length > 0 ? 2_000 : 300;
}

/** How long a connection may wait with its first request after the server has closed. */
const longestSilenceMs = 5_000;

/** Returns the connections that have not sent a request yet. */
function trackSilent(server: HttpServer): ReadonlySet<Socket> {
  const silent = new Set<Socket>();
  server.on('connection', (socket) => {
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
  });
  server.on('request', ({ socket }) => silent.delete(socket));
  return silent;
}

const quietMs = 15;
const longestWaitMs = 500;
/** A turn of the event loop in which nothing happens is shorter. */
const idleTurnMs = 0.2;

/**
 * Closes the listening socket when no client is about to connect, because the system resets connections that wait to be
 * accepted. Requests that arrive are held until then, at most for half a second: who connects for each request waits for
 * an answer first. The socket is closed after a turn of the event loop in which nothing else happened.
 */
async function stopListening(server: HttpServer): Promise<void> {
  const handlers = server.listeners('request') as ((...call: Call) => void)[];
  const held: Call[] = [];
  let arrivedAt = performance.now();
  const note = () => void (arrivedAt = performance.now());
  const hold = (...call: Call) => {
    held.push(call);
    note();
  };
  server.removeAllListeners('request').on('request', hold).on('connection', note);
  const latest = arrivedAt + longestWaitMs;
  for (let begun = 0; ; begun = performance.now()) {
    await nextTurn();
    const now = performance.now();
    if (now > latest || (now - begun < idleTurnMs && now - arrivedAt > quietMs)) break;
  }
  // http.Server.close() would first look through all connections.
  NetServer.prototype.close.call(server);
  server.closeIdleConnections();
  server.off('request', hold).off('connection', note);
  for (const handler of handlers) server.on('request', handler);
  for (const call of held) server.emit('request', ...call);
}

type Call = [request: IncomingMessage, response: ServerResponse];
