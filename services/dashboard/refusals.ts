import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { ErrorCode } from '#libs/contracts/errors.ts';
import { logRefused as logRefusedRequest } from '#libs/service/refused-requests.ts';

/** What the dashboard itself refuses, before it calls the API. */

/** A refusal that is shown on a page, with the code and the message that the API would have. */
export class Refused extends Error {
  override name = 'Refused';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Returns the refusal for an error, or undefined if we caused the error. */
export function toRefused(error: unknown): Refused | undefined {
  if (error instanceof Refused) return error;
  const { statusCode } = error as { statusCode?: unknown };
  if (statusCode === 415) return new Refused('unsupported_media_type', 'The request is not a form');
  const isBrowsers = typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500;
  return isBrowsers ? new Refused('validation_failed', 'The request is malformed') : undefined;
}

/** Logs a refused or failed request like the gateway, with the person whose session it has or had. */
export function logRefused(
  logger: Logger,
  request: FastifyRequest,
  code: ErrorCode,
  more?: { status?: number; error?: unknown },
): void {
  logRefusedRequest(logger, request, request.visit?.actor ?? request.expiredSession?.actor, code, more);
}
