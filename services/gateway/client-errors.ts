import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { errorCodes, refusal } from '#libs/contracts/errors.ts';
import type { Refusal } from '#libs/contracts/errors.ts';
import { errorBody } from './errors.ts';

const ofParser: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: refusal('headers_too_large', 'the request line and headers must not exceed 32 KiB'),
  ERR_HTTP_REQUEST_TIMEOUT: refusal('request_timeout', 'the request did not arrive in time'),
};
const malformed = refusal('validation_failed', 'the request is not valid HTTP');

/** The response that Node has under way on this connection; it has no public name. */
type ServerSocket = Socket & { _httpMessage?: ServerResponse | null };

/**
 * Answers what never became a request with the one error body, then closes the connection. What follows a request that is
 * still being worked on gets no answer: the caller would take it for that of the request. That one is answered, then the
 * connection closed.
 */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  if (!socket.writable) return void socket.destroy();
  const underWay = (socket as ServerSocket)._httpMessage;
  if (underWay?.req.complete) {
    socket.pause();
    return void underWay.once('finish', () => socket.destroySoon());
  }
  const refused = ofParser[error.code ?? ''] ?? malformed;
  const { status } = errorCodes[refused.code];
  const id = randomUUID();
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
