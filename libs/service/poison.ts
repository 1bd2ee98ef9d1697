import { ZodError } from 'zod';
import { isDataError } from '#libs/postgres/errors.ts';

/** Thrown when the pure decision about a command fails, which is a bug in our code that the command triggers. */
export class Defect extends Error {
  override name = 'Defect';
}

const defects = [Defect, TypeError, RangeError, ReferenceError, SyntaxError, ZodError];

/** Reports whether our own code failed, not a dependency. */
export function isDefect(error: unknown): boolean {
  return defects.some((type) => error instanceof type);
}

/**
 * Reports whether a message is itself the cause of its failure: Postgres rejects its data, or our code fails
 * because of it. Every other error is a fault, and the message is retried.
 */
export function isPoison(error: unknown): boolean {
  return isDataError(error) || isDefect(error);
}
