import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { errorCodes, type Refusal, refusal } from '#libs/contracts/errors.ts';
import { connectionState, responseUnderWay } from '#libs/service/connections.ts';
import { freshRequestId } from '#libs/service/fresh-ids.ts';
import { plainAddress } from '#libs/service/networks.ts';
import { writeRefused } from '#libs/service/refused-requests.ts';
import { errorContent } from './errors.ts';

const ofParser: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: refusal('headers_too_large', 'the request line and headers must not exceed 80 KiB'),
  ERR_HTTP_REQUEST_TIMEOUT: refusal('request_timeout', 'the request was not received in time'),
};
const malformed = refusal('validation_failed', 'the request is not valid HTTP');

const latest = new WeakMap<Socket, ServerResponse>();

/** Call for every request, so that a later error on its connection can be attributed. */
export function rememberLatest({ socket }: IncomingMessage, response: ServerResponse): void {
  latest.set(socket, response);
}

/** Call for every response. When the request is complete, neither needs to be kept. */
export function forgetLatest({ socket, complete }: IncomingMessage): void {
  if (complete) latest.delete(socket);
}

/**
 * Responds to bytes that never became a request with the usual error body, and closes the connection. If an earlier
 * request on the connection is still being processed, the client would mistake this response for that request's, so
 * only that request is answered before the connection is closed. A request that was answered before its body failed
 * gets no second response. `request`: the request, if it was parsed.
 */
export function answerClientError(logger: Logger, error: ClientError, socket: Socket, request?: IncomingMessage): void {
  if (error.code !== 'ERR_HTTP_REQUEST_TIMEOUT') return answer(logger, error, socket, request);
  // A busy process notices the time before the bytes that have arrived, which are read before the next `setImmediate`.
  const { bytesRead } = socket;
  setImmediate(() => {
    const isReceived = socket.bytesRead > bytesRead && connectionState(socket) !== 'unfinished';
    if (!isReceived) answer(logger, error, socket, request);
  });
}

type ClientError = Error & { code?: string; rawPacket?: unknown };

function answer(logger: Logger, error: ClientError, socket: Socket, request: IncomingMessage | undefined): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  if (!socket.writable) return void socket.destroy();
  const last = latest.get(socket);
  if (last?.headersSent && !last.req.complete) return void socket.destroySoon();
  const underWay = responseUnderWay(socket);
  if (underWay?.req.complete) {
    socket.pause();
    return void underWay.once('finish', () => socket.destroySoon());
  }
  const refused = ofParser[error.code ?? ''] ?? malformed;
  const { status } = errorCodes[refused.code];
  const id = freshRequestId(Date.now());
  writeRefused(logger, {
    request_id: id,
    method: null,
    route: null,
    status,
    code: refused.code,
    caller: null,
    caller_address: plainAddress(socket.remoteAddress ?? ''),
  });
  const parsed = request ?? (last?.req.complete === false ? last.req : undefined);
  const { type, text } = errorContent(refused, id, parsed ? parsed.headers.accept : acceptIn(error.rawPacket));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    `Content-Type: ${type}`,
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Cache-Control: no-store',
    `X-Request-Id: ${id}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroySoon());
}

/** Returns the Accept header among bytes that are not a valid request. */
function acceptIn(bytes: unknown): string | undefined {
  return Buffer.isBuffer(bytes) ? /\naccept:([^\r\n]*)/i.exec(bytes.toString('latin1'))?.[1] : undefined;
}
