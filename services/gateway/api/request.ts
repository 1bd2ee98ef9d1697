import type { FastifyRequest } from 'fastify';
import type { Violation } from '#libs/contracts/errors.ts';
import { plainAddress } from '#libs/service/networks.ts';
import type { Caller } from '../access/caller.ts';
import { Refused, refuseViolations } from '../http/errors.ts';
import { givenTraceparent } from '../http/trace.ts';
import { type Origin, replyWaitMs } from '../messages/encode.ts';

/** The data that routes read from their request. */

/** Returns the caller that the gate has authenticated. */
export function requireCaller(request: FastifyRequest): Caller {
  if (!request.caller) throw new TypeError('a route was called without authentication');
  return request.caller;
}

/** Returns the origin of a request. Call it when the request has arrived, because the wait for replies starts here. */
export function toOrigin(request: FastifyRequest, idempotencyKey?: string, bodyFingerprint?: string): Origin {
  return {
    caller: requireCaller(request),
    requestId: request.id,
    address: plainAddress(request.ip),
    traceparent: request.span?.traceparent ?? givenTraceparent(request),
    answerBy: performance.now() + replyWaitMs,
    idempotencyKey,
    fingerprint: bodyFingerprint,
  };
}

/** Runs a check and collects its violations, so that the caller receives all of them at once. */
export function collect<T>(wrong: Violation[], check: () => T): T | undefined {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof Refused) || error.refusal.errors === undefined) throw error;
    wrong.push(...error.refusal.errors);
    return undefined;
  }
}

const keyForm = /^[\x20-\x7e]{1,255}$/;

/** Returns the Idempotency-Key, or undefined if there is none. Throws a Refused if it is invalid. */
export function readIdempotencyKey(request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  const wrong = (rule: string) =>
    refuseViolations([{ field: 'Idempotency-Key', code: 'validation_failed', message: `Idempotency-Key ${rule}` }]);
  if (typeof key !== 'string' || !keyForm.test(key)) throw wrong('must have 1 to 255 printable ASCII characters');
  // Several headers arrive joined by commas.
  if (key.includes(',') && request.raw.headersDistinct['idempotency-key']?.length !== 1)
    throw wrong('is given more than once');
  return key;
}
