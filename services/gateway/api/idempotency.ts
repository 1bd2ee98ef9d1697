import { unknownRepeat } from '#libs/contracts/errors.ts';
import { Refused, unavailable } from '../http/errors.ts';
import type { Origin } from '../messages/encode.ts';
import type { Outcome } from './forward.ts';
import { derivedBits } from './ids.ts';

/**
 * Determines the command ids of requests with an Idempotency-Key while IDEMPOTENCY_SECRET is rotated
 * (docs/decisions/0047). All gateways switch at the same time by the bank's clock, so that they never derive
 * different ids for a new request. Before a request gets an id from the new secret, the service is asked
 * whether it knows the id from the old one.
 */
export interface IdempotencySecrets {
  /** The secret for new ids and, during a rotation, the previous one. */
  secrets: readonly string[];
  /** When the first secret comes into use, in ms since 1970; until then the second one is used. */
  sinceMs?: number | undefined;
}

/** One attempt to send a command. The next one follows only if the service does not know this id and did nothing. */
export type Attempt = Pick<Origin, 'repeatOnly' | 'notAfterMs'> & { bits: string };

/**
 * More than any two of the bank's clocks can differ: each is compared with the database's clock to within half
 * a second.
 */
export const changeMs = 2_000;

/**
 * Returns the attempts for a request, in order. A command named with the old secret must start before the
 * change. From `changeMs` after it, such a command is known to its service or will never be executed. In
 * between, nothing new is accepted. Pure.
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

/** Makes the attempts in order until a service knows or executes the command. Throws service_unavailable if none does. */
export async function makeAttempts(
  attempts: readonly Attempt[],
  execute: (attempt: Attempt) => Promise<void>,
): Promise<void> {
  for (const attempt of attempts) {
    try {
      return await execute(attempt);
    } catch (error) {
      if (!(error instanceof Refused && error.refusal.message === unknownRepeat.message)) throw error;
    }
  }
  throw new Refused(unavailable);
}

/** Reports whether a service does not know the command of a repeat-only request. */
export function isUnknownRepeat(outcome: Outcome): boolean {
  return outcome.kind === 'refused' && outcome.refusal.message === unknownRepeat.message;
}

/** Returns the secret to use for values without history, and all secrets that are accepted. */
export function inUse(
  { secrets, sinceMs = -Infinity }: IdempotencySecrets,
  nowMs: number,
): { first: string; all: readonly string[] } {
  const [current = '', previous = current] = secrets;
  return { first: nowMs < sinceMs ? previous : current, all: secrets };
}
