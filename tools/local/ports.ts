import { randomInt } from 'node:crypto';
import { connect, createServer } from 'node:net';

/**
 * These ports are below the range that operating systems use for outgoing connections. Otherwise such a connection
 * could use our port while a service restarts.
 */
const LOWEST_PORT = 15_000;
const HIGHEST_PORT = 31_999;
/**
 * Processes with successive ids choose different ports, because nobody is listening yet on those that another has chosen
 * for a cluster that it is starting.
 */
const LANES = 8;

/** Returns whether it is possible to listen on this address now. */
export function isFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** Ports that freePort has returned, because the caller may not be listening on them yet. */
const returned = new Set<number>();

/** Returns a port on 127.0.0.1 that is free now. It is different at each call in this process. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port =
      LOWEST_PORT + LANES * randomInt(Math.floor((HIGHEST_PORT - LOWEST_PORT) / LANES)) + (process.pid % LANES);
    if (returned.has(port) || !(await isFree(port))) continue;
    returned.add(port);
    return port;
  }
  throw new Error(`no free port found between ${LOWEST_PORT} and ${HIGHEST_PORT}`);
}

/** Returns `wanted` if it is free, otherwise another port. */
export async function freePortOr(wanted: number | undefined): Promise<number> {
  return wanted !== undefined && (await isFree(wanted)) ? wanted : freePort();
}

/** Returns whether a server accepts TCP connections there within `timeoutMs`. */
export function accepts(host: string, port: number, timeoutMs = 1000): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: timeoutMs });
    const done = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => done(true));
    socket.once('timeout', () => done(false));
    socket.once('error', () => done(false));
  });
}
