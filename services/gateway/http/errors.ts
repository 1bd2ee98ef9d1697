import type { FastifyReply } from 'fastify';
import {
  type ErrorCode,
  errorCodes,
  type Refusal,
  refusal,
  type Violation,
  violationsRefusal,
} from '#libs/contracts/errors.ts';

/** An error response, thrown to the error handler. Its refusal may be shown to callers. */
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

/** Shortens a caller's input so that a message can quote it. */
export function quote(text: string): string {
  return text.length > longestQuote ? `${text.slice(0, longestQuote)}…` : text;
}

/** Returns the error body (contract: errors-1) as JSON text. */
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

/** Sends the error body with the status of its code and the given headers. */
export function sendRefusal(reply: FastifyReply, given: Refusal, headers?: Record<string, string>): FastifyReply {
  const own = challenges[given.code];
  if (own) reply.headers(own);
  if (headers) reply.headers(headers);
  reply.header('content-type', 'application/json; charset=utf-8');
  return reply.code(errorCodes[given.code].status).send(errorBody(given, reply.request.id));
}

/** The errors that fastify itself reports, by error code. Its other 4xx errors are malformed requests. */
const ofFastify: Record<string, Refusal> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: refusal('unsupported_media_type', 'the Content-Type must be application/json'),
  FST_ERR_CTP_BODY_TOO_LARGE: refusal('body_too_large', 'the body must not exceed 64 KiB'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: refusal('malformed_json', 'the body is not as long as its Content-Length says'),
};

/** Returns the refusal for an error, or undefined if we caused the error. */
export function toRefusal(error: unknown): Refusal | undefined {
  if (error instanceof Refused) return error.refusal;
  if (!(error instanceof Error)) return undefined;
  const { code, statusCode } = error as Error & { code?: unknown; statusCode?: unknown };
  const known = typeof code === 'string' ? ofFastify[code] : undefined;
  if (known) return known;
  const isCallers = typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500;
  return isCallers ? refusal('validation_failed', 'the request is malformed') : undefined;
}

export const internalError = refusal('internal_error', 'an unexpected error occurred');
export const unavailableBecause = (why: string): Refusal =>
  refusal('service_unavailable', `${why}; nothing was executed, the request can be repeated`);
export const unavailable = unavailableBecause('the service cannot answer now');
