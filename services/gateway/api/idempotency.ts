import { unknownRepeat } from '#libs/contracts/errors.ts';
import { Refused } from '../http/errors.ts';
import type { Outcome } from './forward.ts';
import { derivedBits } from './ids.ts';

/**
 * How requests with an Idempotency-Key get the ids of their commands while IDEMPOTENCY_SECRET is
 * rotated (docs/decisions/0047). All gateways change at one moment of the bank's clock, so that no
 * two of them name a new request differently; and before a request gets an id by the new secret,
 * the service that owns it is asked for a repeat by the old one.
 */
export interface IdempotencySecrets {
  /** The one for new things, and during a rotation the one before it. */
  secrets: readonly string[];
  /** From when on the first is used, in ms since 1970; until then the second. */
  sinceMs?: number | undefined;
}

/** One try at a command: the next follows only where the service does not know this id and did nothing. */
export interface Attempt {
  bits: string;
  /** The service answers what it has kept under this id, and executes nothing. */
  repeatOnly: boolean;
  /** The command must not begin later, in ms since 1970. */
  notAfterMs?: number | undefined;
}

/**
 * More than two clocks of the bank can differ by: each is compared with the database's, and known
 * to within half a second.
 */
export const changeMs = 2_000;

/**
 * PURE: the tries for a request, in their order. What is named by the old secret must begin before
 * the change; from `changeMs` behind it on, all that was so named is therefore known to its
 * service, or never will be executed. Between both nothing is new.
 */
export function attemptsOf(
  { secrets, sinceMs = -Infinity }: IdempotencySecrets,
  nowMs: number,
  actor: string,
  route: string,
  idempotencyKey: string,
): Attempt[] {
  const [current = '', previous] = secrets;
  const attempt = (secret: string, repeatOnly: boolean, notAfterMs?: number): Attempt => ({
    bits: derivedBits(secret, actor, route, idempotencyKey),
    repeatOnly,
    notAfterMs,
  });
  if (previous === undefined) return [attempt(current, false)];
  if (nowMs < sinceMs - changeMs) return [attempt(previous, false, sinceMs)];
  const repeat = attempt(previous, true);
  return nowMs < sinceMs + changeMs ? [repeat] : [repeat, attempt(current, false)];
}

/** Whether a service that was asked for a repeat alone knows of none. */
export function isUnknownRepeat(outcome: Outcome): boolean {
  return outcome.kind === 'refused' && outcome.refusal.message === unknownRepeat.message;
}

/** For what refuses a try: false where its service does not know the id; throws everything else. */
export function unlessUnknownRepeat(error: unknown): false {
  if (error instanceof Refused && error.refusal.message === unknownRepeat.message) return false;
  throw error;
}

/** The secret for new things that need no history, and all that are accepted. */
export function inUse(
  { secrets, sinceMs = -Infinity }: IdempotencySecrets,
  nowMs: number,
): { first: string; all: readonly string[] } {
  const [current = '', previous = current] = secrets;
  return { first: nowMs < sinceMs ? previous : current, all: secrets };
}
