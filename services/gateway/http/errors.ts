import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { ErrorCode, Refusal, Violation } from '#libs/contracts/errors.ts';
import { errorCodes, refusal, violationsRefusal } from '#libs/contracts/errors.ts';
import { plainAddress } from './network.ts';

/** An answer other than success, on its way to the error handler. Its refusal is made for callers' eyes. */
export class Refused extends Error {
  override name = 'Refused';
  readonly refusal: Refusal;
  readonly headers: Record<string, string> | undefined;

  constructor(given: Refusal, headers?: Record<string, string>) {
    super(given.code);
    this.refusal = given;
    this.headers = headers;
  }
}

export function refuse(code: ErrorCode, message: string, rest?: Omit<Refusal, 'code' | 'message'>): Refused {
  return new Refused(refusal(code, message, rest));
}

export function refuseViolations(errors: Violation[]): Refused {
  return new Refused(violationsRefusal(errors));
}

const longestQuote = 80;

/** What a caller sent, short enough to be quoted in a message. */
export function quote(text: string): string {
  return text.length > longestQuote ? `${text.slice(0, longestQuote)}…` : text;
}

/** The error body (contract: Errors), as JSON text. */
export function errorBody({ code, message, errors, details }: Refusal, requestId: string): string {
  return JSON.stringify({ status: 'error', message, code, request_id: requestId, errors, details });
}

const retryAfter = { 'retry-after': '1' };
const challenges: Partial<Record<ErrorCode, Record<string, string>>> = {
  missing_credentials: { 'www-authenticate': 'Bearer realm="core-banking"' },
  ambiguous_credentials: { 'www-authenticate': 'Bearer realm="core-banking", error="invalid_request"' },
  invalid_credentials: { 'www-authenticate': 'Bearer realm="core-banking", error="invalid_token"' },
  insufficient_scope: { 'www-authenticate': 'Bearer realm="core-banking", error="insufficient_scope"' },
  service_unavailable: retryAfter,
  rate_limited: retryAfter,
};

/** Sends the one error body with the status that the table gives its code, and the headers that go with it. */
export function sendRefusal(reply: FastifyReply, given: Refusal, headers?: Record<string, string>): FastifyReply {
  const own = challenges[given.code];
  if (own) reply.headers(own);
  if (headers) reply.headers(headers);
  reply.header('content-type', 'application/json; charset=utf-8');
  return reply.code(errorCodes[given.code].status).send(errorBody(given, reply.request.id));
}

/** What the line of a refused or failed request says; null is what the request did not come far enough to have. */
interface RefusedLine {
  request_id: string;
  method: string | null;
  route: string | null;
  status: number;
  code: ErrorCode;
  caller: string | null;
  /** Not `address`, which is a client's, and hidden in every log. */
  caller_address: string;
}

/**
 * The one line of a request that was refused or failed; at level error where it is a fault of ours,
 * whose cause is then given.
 */
export function writeRefused(logger: Logger, line: RefusedLine, error?: unknown): void {
  const what = line.status < 500 ? 'a request was refused' : 'a request failed';
  const isOurs = error !== undefined && line.status >= 500;
  logger[isOurs ? 'error' : 'info'](error === undefined ? line : { ...line, err: error }, what);
}

/**
 * The line of this request, by which its request id is found; that a resource is not there leaves
 * none. `status` where a page has another one than the code.
 */
export function logRefused(
  logger: Logger,
  request: FastifyRequest,
  code: ErrorCode,
  { status = errorCodes[code].status, error }: { status?: number; error?: unknown } = {},
): void {
  if (status === 404 && code !== 'route_not_found') return;
  const { id, method, ip, caller } = request;
  writeRefused(
    logger,
    {
      request_id: id,
      method,
      route: request.routeOptions?.url ?? null,
      status,
      code,
      caller: caller?.actor ?? null,
      caller_address: plainAddress(ip),
    },
    error,
  );
}

/** What fastify refuses by itself, by its error code; the rest of its 4xx is a malformed request. */
const ofFastify: Record<string, Refusal> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: refusal('unsupported_media_type', 'the Content-Type must be application/json'),
  FST_ERR_CTP_BODY_TOO_LARGE: refusal('body_too_large', 'the body must not exceed 64 KiB'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: refusal('malformed_json', 'the body is not as long as its Content-Length says'),
};

/** The refusal that an error stands for; undefined for what is a fault of ours. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof Refused) return error.refusal;
  if (!(error instanceof Error)) return undefined;
  const { code, statusCode } = error as Error & { code?: unknown; statusCode?: unknown };
  const known = typeof code === 'string' ? ofFastify[code] : undefined;
  if (known) return known;
  const isCallers = typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500;
  return isCallers ? refusal('validation_failed', 'the request is malformed') : undefined;
}

export const internalError = refusal('internal_error', 'an unexpected error occurred');
export const unavailable = refusal(
  'service_unavailable',
  'the service cannot answer now; nothing was executed, the request can be repeated',
);
