import { ZodError } from 'zod';
import { isDataError } from '#libs/postgres/errors.ts';

/** Thrown where the pure decision about one command failed: a defect of ours that concerns this command. */
export class Defect extends Error {
  override name = 'Defect';
}

const defects = [Defect, TypeError, RangeError, ReferenceError, SyntaxError, ZodError];

/** True where our own code failed, not what it works with. */
export function isDefect(error: unknown): boolean {
  return defects.some((type) => error instanceof type);
}

/**
 * The one rule for what a message itself is to blame for: Postgres refuses its data, or our code
 * fails on it. Every other error, known or not, is a fault: nothing is wrong with the message, and
 * it is tried again.
 */
export function isPoison(error: unknown): boolean {
  return isDataError(error) || isDefect(error);
}
