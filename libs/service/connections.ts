import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { compile as compileTrust } from '@fastify/proxy-addr';
import { toNetwork } from './networks.ts';

/**
 * Connection timeouts. A client that sends headers or a body too slowly gets a 408 and is disconnected within
 * 13 s: each timeout plus the second between two checks.
 */
export const patience = {
  requestTimeout: 12_000,
  // The maximum inactivity in the middle of a request or response, in ms. No reply takes as long.
  connectionTimeout: 30_000,
  // Longer than the idle timeout of common load balancers, so that the load balancer closes the connection.
  keepAliveTimeout: 72_000,
} as const;

export const httpPatience = { headersTimeout: 10_000, connectionsCheckingInterval: 1_000 } as const;

export interface ConnectionBounds {
  /** The maximum number of connections of all addresses; one address may have a tenth of it. */
  max: number;
  /** The proxies in front of the server. Each carries many callers, so the limit per address does not apply. */
  proxies: readonly string[];
  /** Called for each connection that is closed because of a limit. */
  onCut: () => void;
}

/** The responses of each connection that have not ended, in the order of the requests. */
const unended = new WeakMap<Socket, ServerResponse[]>();

function addResponse({ socket }: IncomingMessage, response: ServerResponse): void {
  const responses = unended.get(socket) ?? [];
  unended.set(socket, [...responses, response]);
  response.once('close', () => {
    const rest = unended.get(socket)?.filter((one) => one !== response) ?? [];
    if (rest.length > 0) unended.set(socket, rest);
    else unended.delete(socket);
  });
}

/** Returns the response that a connection of a server with boundConnections is waiting for. */
export function responseUnderWay(socket: Socket): ServerResponse | undefined {
  return unended.get(socket)?.[0];
}

/** The bytes received on a connection when its last request was answered. */
const bytesAnswered = new WeakMap<Socket, number>();

/** Call for every response, so that idle connections can be distinguished from those with an unfinished request. */
export function markAnswered({ socket }: IncomingMessage): void {
  bytesAnswered.set(socket, socket.bytesRead);
}

/** Reports whether a connection has a request that has not arrived completely, none, or one that is being answered. */
export function connectionState(socket: Socket): 'unfinished' | 'idle' | 'working' {
  const underWay = responseUnderWay(socket);
  if (underWay) return underWay.req.complete ? 'working' : 'unfinished';
  return socket.bytesRead > (bytesAnswered.get(socket) ?? 0) ? 'unfinished' : 'idle';
}

/**
 * Returns the oldest connection with an unfinished request, otherwise the oldest idle one; undefined if all
 * requests are being processed.
 */
function leastMissed(sockets: Iterable<Socket>): Socket | undefined {
  let idle: Socket | undefined;
  for (const socket of sockets) {
    const state = connectionState(socket);
    if (state === 'unfinished') return socket;
    if (state === 'idle') idle ??= socket;
  }
  return idle;
}

/**
 * Limits the connections per address and in total. Above a limit, an older connection of that address (in
 * total: of the address with the most) is closed for the new one. If all of them are being processed, the new
 * one is closed.
 */
export function boundConnections(server: Server, { max, proxies, onCut }: ConnectionBounds): void {
  const isProxy = proxies.length > 0 ? compileTrust([...proxies]) : () => false;
  const perAddress = Math.max(1, Math.floor(max / 10));
  /** The oldest connection of each address comes first. */
  const byAddress = new Map<string, Set<Socket>>();
  let count = 0;
  const add = (address: string, socket: Socket): void => {
    byAddress.set(address, (byAddress.get(address) ?? new Set()).add(socket));
    count++;
  };
  const remove = (address: string, socket: Socket): void => {
    const sockets = byAddress.get(address);
    if (sockets?.delete(socket)) count--;
    if (sockets?.size === 0) byAddress.delete(address);
  };
  const largest = () => [...byAddress].reduce((most, one) => (one[1].size > most[1].size ? one : most));

  server.on('request', addResponse);
  server.on('connection', (socket) => {
    const { remoteAddress = '' } = socket;
    const own = toNetwork(remoteAddress);
    const isFull = (byAddress.get(own)?.size ?? 0) >= perAddress && !isProxy(remoteAddress, 0);
    if (isFull || count >= max) {
      const [address, sockets] = isFull ? [own, byAddress.get(own) ?? []] : largest();
      const cut = leastMissed(sockets);
      onCut();
      (cut ?? socket).destroy();
      if (!cut) return;
      remove(address, cut);
    }
    add(own, socket);
    socket.once('close', () => remove(own, socket));
  });
}
