import type { FastifyReply } from 'fastify';
import {
  type ErrorBody,
  type ErrorCode,
  errorCodes,
  type Refusal,
  refusal,
  toProblem,
  type Violation,
  violationsRefusal,
} from '#libs/contracts/errors.ts';
import { prefersProblem } from './accept.ts';

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

/** Returns the error body as text (contract: errors-1, errors-9) and its media type, for a client with this Accept header. */
export function errorContent(
  { code, message, errors, details }: Refusal,
  requestId: string,
  accept: string | undefined,
): { type: string; text: string } {
  const body: ErrorBody = { status: 'error', message, code, request_id: requestId, errors, details };
  return prefersProblem(accept)
    ? { type: 'application/problem+json', text: JSON.stringify(toProblem(body)) }
    : { type: 'application/json; charset=utf-8', text: JSON.stringify(body) };
}

const retryAfter = { 'retry-after': '1' };
const challenges: Partial<Record<ErrorCode, Record<string, string>>> = {
  missing_credentials: { 'www-authenticate': 'Bearer realm="core-banking"' },
  ambiguous_credentials: { 'www-authenticate': 'Bearer realm="core-banking", error="invalid_request"' },
  invalid_credentials: { 'www-authenticate': 'Bearer realm="core-banking", error="invalid_token"' },
  insufficient_scope: { 'www-authenticate': 'Bearer realm="core-banking", error="insufficient_scope"' },
  service_unavailable: retryAfter,
  rate_limited: retryAfter,
  unsupported_media_type: { accept: 'application/json' },
};

/** Sends the error body with the status of its code and the given headers. */
export function sendRefusal(reply: FastifyReply, given: Refusal, headers?: Record<string, string>): FastifyReply {
  // They describe the resource, which an error does not show.
  reply.removeHeader('etag');
  if (given.code !== 'unsupported_media_type') reply.removeHeader('accept-patch');
  const own = challenges[given.code];
  if (own) reply.headers(own);
  if (headers) reply.headers(headers);
  const { id, headers: asked } = reply.request;
  const { type, text } = errorContent(given, id, asked.accept);
  reply.header('content-type', type);
  // Bytes, because fastify adds a charset to the type of a text, which problem details do not have.
  return reply.code(errorCodes[given.code].status).send(Buffer.from(text));
}

export const unsupportedType = refusal('unsupported_media_type', 'the Content-Type must be application/json');

/** The errors that fastify itself reports, by error code. Its other 4xx errors are malformed requests. */
const ofFastify: Record<string, Refusal> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: unsupportedType,
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
