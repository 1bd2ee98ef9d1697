/** SQLSTATEs after which the same transaction can simply be repeated: serialization_failure, deadlock_detected. */
const retryable = new Set(['40001', '40P01']);
/** Classes: 22 data exception, 23 integrity constraint violation. */
const dataClass = /^2[23][0-9A-Z]{3}$/;

function field(error: unknown, name: string): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const value: unknown = Reflect.get(error, name);
  return typeof value === 'string' ? value : undefined;
}

/**
 * Reports whether Postgres rolled back the transaction only because of concurrent ones (40001, 40P01), so that
 * repeating it can succeed.
 */
export function isRetryable(error: unknown): boolean {
  return retryable.has(field(error, 'code') ?? '');
}

/**
 * Reports whether Postgres rejected the data of a statement, so that repeating it with the same data is useless. Errors
 * that end the session (FATAL) concern settings, never data.
 */
export function isDataError(error: unknown): boolean {
  return dataClass.test(field(error, 'code') ?? '') && field(error, 'severity') !== 'FATAL';
}

/**
 * Reports whether only the transaction failed, so that its connection can be reused after ROLLBACK. After any other
 * error the state of the connection is unknown: the server may have become a standby, a prepared statement may be
 * outdated, or a response may be outstanding.
 */
export function leavesConnectionSound(error: unknown): boolean {
  return isRetryable(error) || isDataError(error);
}

/**
 * Returns the name of the unique constraint or index that a statement violated (23505; '' if the server did not name it),
 * otherwise undefined.
 */
export function uniqueViolation(error: unknown): string | undefined {
  return field(error, 'code') === '23505' ? (field(error, 'constraint') ?? '') : undefined;
}

/**
 * Reports whether a statement exceeded a timeout, of the server (57014) or of the driver. A smaller statement may
 * succeed.
 */
export function tookTooLong(error: unknown): boolean {
  return field(error, 'code') === '57014' || field(error, 'message') === 'Query read timeout';
}
