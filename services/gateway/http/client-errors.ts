import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Refusal } from '#libs/contracts/errors.ts';
import { errorCodes, refusal } from '#libs/contracts/errors.ts';
import type { ServerSocket } from './connections.ts';
import { errorBody, writeRefused } from './errors.ts';
import { plainAddress } from './network.ts';

const ofParser: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: refusal('headers_too_large', 'the request line and headers must not exceed 80 KiB'),
  ERR_HTTP_REQUEST_TIMEOUT: refusal('request_timeout', 'the request did not arrive in time'),
};
const malformed = refusal('validation_failed', 'the request is not valid HTTP');

const latest = new WeakMap<Socket, ServerResponse>();

/** Told of every request, so that what goes wrong on its connection can be told apart from it. */
export function rememberLatest({ socket }: IncomingMessage, response: ServerResponse): void {
  latest.set(socket, response);
}

/**
 * Told of every answer: with its request complete, nothing of the two can be asked for again, and
 * they need not be kept.
 */
export function forgetLatest({ socket, complete }: IncomingMessage): void {
  if (complete) latest.delete(socket);
}

/**
 * Answers what never became a request with the one error body, then closes the connection. What
 * follows a request that is still being worked on gets no answer: the caller would take it for that
 * of the request. That one is answered, then the connection closed. A request that has its answer,
 * and whose body goes wrong afterwards, gets no second one.
 */
export function answerClientError(logger: Logger, error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  if (!socket.writable) return void socket.destroy();
  const last = latest.get(socket);
  if (last?.headersSent && !last.req.complete) return void socket.destroySoon();
  const underWay = (socket as ServerSocket)._httpMessage;
  if (underWay?.req.complete) {
    socket.pause();
    return void underWay.once('finish', () => socket.destroySoon());
  }
  const refused = ofParser[error.code ?? ''] ?? malformed;
  const { status } = errorCodes[refused.code];
  const id = randomUUID();
  writeRefused(logger, {
    request_id: id,
    method: null,
    route: null,
    status,
    code: refused.code,
    caller: null,
    caller_address: plainAddress(socket.remoteAddress ?? ''),
  });
  const body = errorBody(refused, id);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    `X-Request-Id: ${id}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroySoon());
}
