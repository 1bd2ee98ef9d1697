import type { FastifyRequest } from 'fastify';
import type { Violation } from '#libs/contracts/errors.ts';
import type { Caller } from '../access/caller.ts';
import { Refused, refuseViolations } from '../http/errors.ts';
import { plainAddress } from '../http/network.ts';
import { givenTraceparent } from '../http/trace.ts';
import { type Origin, replyWaitMs } from './forward.ts';

/** What every route reads of its request. */

/** The caller that the gate has let in. */
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new TypeError('a route was reached without authentication');
  return request.caller;
}

/** Whose request it is. Called when it has arrived: the wait for replies counts from here. */
export function originOf(request: FastifyRequest, idempotencyKey?: string, bodyFingerprint?: string): Origin {
  return {
    caller: callerOf(request),
    requestId: request.id,
    address: plainAddress(request.ip),
    traceparent: request.span?.traceparent ?? givenTraceparent(request),
    answerBy: performance.now() + replyWaitMs,
    idempotencyKey,
    fingerprint: bodyFingerprint,
  };
}

/** Runs a check; its violations join those of the others, so that a caller is told all of them at once. */
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

/** The caller's name for the request; undefined where it has none. Throws a Refused for what cannot be one. */
export function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  const wrong = (rule: string) =>
    refuseViolations([{ field: 'Idempotency-Key', code: 'validation_failed', message: `Idempotency-Key ${rule}` }]);
  if (typeof key !== 'string' || !keyForm.test(key)) throw wrong('must have 1 to 255 printable ASCII characters');
  // Several ones arrive joined by commas.
  if (key.includes(',') && request.raw.headersDistinct['idempotency-key']?.length !== 1)
    throw wrong('is given more than once');
  return key;
}
