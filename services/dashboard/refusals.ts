import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { type ErrorCode, errorCodes } from '#libs/contracts/errors.ts';
import { plainAddress } from '#libs/service/networks.ts';

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

/** Logs a refused or failed request like the gateway, so that it is found by its request id. */
export function logRefused(
  logger: Logger,
  request: FastifyRequest,
  code: ErrorCode,
  { status = errorCodes[code].status, error }: { status?: number; error?: unknown } = {},
): void {
  if (status === 404 && code !== 'route_not_found') return;
  const { id, method, ip } = request;
  const line = {
    request_id: id,
    method,
    route: request.routeOptions?.url ?? null,
    status,
    code,
    caller: request.visit?.actor ?? request.expiredSession?.actor ?? null,
    caller_address: plainAddress(ip),
  };
  const what = status < 500 ? 'a request was refused' : 'a request failed';
  if (error === undefined) logger.info(line, what);
  else logger[status >= 500 ? 'error' : 'info']({ ...line, err: error }, what);
}
