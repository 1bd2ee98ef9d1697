import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { type ErrorCode, errorCodes } from '#libs/contracts/errors.ts';
import { plainAddress } from './networks.ts';

/** The log line of a refused or failed request. A field is null if the request failed before the value was known. */
interface RefusedLine {
  request_id: string;
  method: string | null;
  route: string | null;
  status: number;
  code: ErrorCode;
  caller: string | null;
  /** The name is not `address`, because that is a client's field and hidden in every log. */
  caller_address: string;
}

/** Logs a refused or failed request. If we caused the failure, logs it at level error, with the cause. */
export function writeRefused(logger: Logger, line: RefusedLine, error?: unknown): void {
  const what = line.status < 500 ? 'a request was refused' : 'a request failed';
  const isOurs = error !== undefined && line.status >= 500;
  logger[isOurs ? 'error' : 'info'](error === undefined ? line : { ...line, err: error }, what);
}

/**
 * Logs this request of `caller`, so that it can be found by its request id. A resource that does not exist is not
 * logged. `status` is set if a page has another status than its code.
 */
export function logRefused(
  logger: Logger,
  { id, method, ip, routeOptions }: Pick<FastifyRequest, 'id' | 'method' | 'ip' | 'routeOptions'>,
  caller: string | undefined,
  code: ErrorCode,
  { status = errorCodes[code].status, error }: { status?: number; error?: unknown } = {},
): void {
  if (status === 404 && code !== 'route_not_found') return;
  const line = { request_id: id, method, route: routeOptions?.url ?? null, status, code };
  writeRefused(logger, { ...line, caller: caller ?? null, caller_address: plainAddress(ip) }, error);
}
