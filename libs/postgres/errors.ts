/** SQLSTATEs after which the same transaction may simply be run again: serialization_failure, deadlock_detected. */
const retryable = new Set(['40001', '40P01']);
/** Classes: 22 data exception, 23 integrity constraint violation. */
const dataClass = /^2[23][0-9A-Z]{3}$/;

function field(error: unknown, name: string): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const value: unknown = Reflect.get(error, name);
  return typeof value === 'string' ? value : undefined;
}

/** True where Postgres undid the transaction only because of its rivals (40001, 40P01): run it again. */
export function isRetryable(error: unknown): boolean {
  return retryable.has(field(error, 'code') ?? '');
}

/**
 * True where Postgres refused the data of a statement: no repeat with the same data helps. What
 * ends a session (FATAL) is about its settings, never about data.
 */
export function isDataError(error: unknown): boolean {
  return dataClass.test(field(error, 'code') ?? '') && field(error, 'severity') !== 'FATAL';
}

/**
 * True where nothing but the transaction failed, so that its connection may be used again after
 * ROLLBACK. After every other error the state of the connection is in doubt: the server may have
 * become a standby, a prepared statement may be out of date, an answer may still be on its way.
 */
export function leavesConnectionSound(error: unknown): boolean {
  return isRetryable(error) || isDataError(error);
}

/** The name of the unique constraint or index that a statement violated (23505), else undefined. */
export function uniqueViolation(error: unknown): string | undefined {
  return field(error, 'code') === '23505' ? field(error, 'constraint') : undefined;
}

/**
 * True where a statement was given up for its time-out, the server's (57014) or the driver's: a
 * smaller one may get through.
 */
export function tookTooLong(error: unknown): boolean {
  return field(error, 'code') === '57014' || field(error, 'message') === 'Query read timeout';
}
