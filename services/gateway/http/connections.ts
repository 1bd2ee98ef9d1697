import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from './network.ts';

/**
 * How long a connection may take its time. Whoever drips headers or a body is answered 408 and cut
 * within 13 s: each bound plus the second between two looks.
 */
export const patience = {
  requestTimeout: 12_000,
  // Nothing sent and nothing taken for so long, in the middle of a request or an answer. No reply
  // is waited for as long.
  connectionTimeout: 30_000,
  // Longer than the idle time-out of the usual load balancer, so that it is the one to close.
  keepAliveTimeout: 72_000,
} as const;

export const httpPatience = { headersTimeout: 10_000, connectionsCheckingInterval: 1_000 } as const;

export interface ConnectionBounds {
  /** Of all addresses together; a tenth of them may be of one. */
  max: number;
  /** A proxy in front of the gateway: the callers behind it are many, so that the bound per address is not theirs. */
  isProxy: (address: string) => boolean;
  /** Told of each connection that is closed to make room. */
  onCut: () => void;
}

/** The response that Node has under way on this connection; it has no public name. */
export type ServerSocket = Socket & { _httpMessage?: ServerResponse | null };

/** Bytes that had come on a connection when its last request was answered. */
const bytesAnswered = new WeakMap<Socket, number>();

/**
 * Told of every answer, so that a connection which waits for its next request is known from one in
 * the middle of it.
 */
export function markAnswered({ socket }: IncomingMessage): void {
  bytesAnswered.set(socket, socket.bytesRead);
}

function stateOf(socket: ServerSocket): 'unfinished' | 'idle' | 'working' {
  const underWay = socket._httpMessage;
  if (underWay) return underWay.req.complete ? 'working' : 'unfinished';
  return socket.bytesRead > (bytesAnswered.get(socket) ?? 0) ? 'unfinished' : 'idle';
}

/**
 * The oldest connection with an unfinished request, else the oldest idle one; undefined where all
 * are being worked on.
 */
function leastMissed(sockets: Iterable<Socket>): Socket | undefined {
  let idle: Socket | undefined;
  for (const socket of sockets) {
    const state = stateOf(socket);
    if (state === 'unfinished') return socket;
    if (state === 'idle') idle ??= socket;
  }
  return idle;
}

/**
 * Bounds the connections of one address, and of all together. Beyond a bound an older connection of
 * that address (of the address that has most) is closed for the new one; where all of them are
 * being worked on, the new one is.
 */
export function boundConnections(server: Server, { max, isProxy, onCut }: ConnectionBounds): void {
  const perAddress = Math.max(1, Math.floor(max / 10));
  /** The oldest connection of each address first. */
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

  server.on('connection', (socket) => {
    const { remoteAddress = '' } = socket;
    const own = networkOf(remoteAddress);
    const isFull = (byAddress.get(own)?.size ?? 0) >= perAddress && !isProxy(remoteAddress);
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
