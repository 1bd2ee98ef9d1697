import type { Server } from 'node:http';

/**
 * How long a connection may take its time. Whoever drips headers or a body is answered 408 and cut within 13 s: each bound plus
 * the second between two looks.
 */
export const patience = {
  requestTimeout: 12_000,
  // Nothing sent and nothing taken for so long, in the middle of a request or an answer. No reply is waited for as long.
  connectionTimeout: 30_000,
  // Longer than the idle time-out of the usual load balancer, so that it is the one to close.
  keepAliveTimeout: 72_000,
} as const;

export const httpPatience = { headersTimeout: 10_000, connectionsCheckingInterval: 1_000 } as const;

const maxConnections = 10_000;

/** Beyond so many connections a new one is closed at once, and so are all idle ones: they make room for callers with requests. */
export function boundConnections(server: Server, max = maxConnections): void {
  server.maxConnections = max;
  server.on('drop', () => server.closeIdleConnections());
}
