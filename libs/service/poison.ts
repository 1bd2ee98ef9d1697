import { ZodError } from 'zod';
import { isDataError, uniqueViolation } from '#libs/postgres/errors.ts';

/** Thrown when the pure decision about a command fails, which is a bug in our code that the command triggers. */
export class Defect extends Error {
  override name = 'Defect';
}

const defects = [Defect, TypeError, RangeError, ReferenceError, SyntaxError, ZodError];

/** Reports whether our own code failed, not a dependency. */
export function isDefect(error: unknown): boolean {
  return defects.some((type) => error instanceof type);
}

/** What a service contributes to the rule that decides whether a command is poison. */
export interface PoisonRule {
  /** The unique indexes that a command can violate by its own ids. A violation of any other is never its fault. */
  uniqueIndexes: readonly string[];
  /**
   * Executes commands of every kind, by the code and the statements that execute those of callers, in a transaction
   * that is rolled back. Throws if that is not possible.
   */
  probe(): Promise<void>;
}

/**
 * Reports whether a message may be the cause of its failure: our code failed, or Postgres rejected the data of a
 * statement. Neither proves it, because a broken version, or a constraint that is newer than this version, fails on
 * every message.
 */
export function mayBePoison(error: unknown, uniqueIndexes: readonly string[] = []): boolean {
  const violated = uniqueViolation(error);
  return violated === undefined ? isDefect(error) || isDataError(error) : uniqueIndexes.includes(violated);
}

/**
 * Executes a command again that has failed alone with `error`. Returns its outcome, or the error if the command is
 * poison: it fails although the probe succeeds, or it violates one of the unique indexes. Throws a fault. The command
 * is executed after the probe, so a fault that ends in between blames nobody.
 */
export async function executeOrBlame<T>(
  error: unknown,
  execute: () => Promise<T>,
  { uniqueIndexes, probe }: PoisonRule,
): Promise<{ outcome: T } | { poison: unknown }> {
  if (!mayBePoison(error, uniqueIndexes)) throw error;
  if (uniqueViolation(error) !== undefined) return { poison: error };
  await probe();
  try {
    return { outcome: await execute() };
  } catch (again) {
    if (!mayBePoison(again, uniqueIndexes)) throw again;
    return { poison: again };
  }
}
