/** SQLSTATEs after which the same transaction may simply be run again: serialization_failure, deadlock_detected. */
const retryable = new Set(['40001', '40P01']);

/**
 * SQLSTATEs that say "not now" rather than "not so": statement cancelled by its time-out, lock not obtained in time,
 * an idle transaction or one that took too long ended, the server read-only after a failover.
 */
const unavailableStates = new Set(['57014', '55P03', '25P03', '25P04', '25006']);
/** Classes: 08 connection, 28 log-in refused, 53 out of connections, memory or disk, 57P server going or coming, 58 I/O. */
const unavailableClass = /^(08|28|53|57P|58)/;
const networkCode = /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_AGAIN|ENOTFOUND|ERR_SOCKET|ERR_SSL|ERR_TLS)/;
/** pg and pg-pool give these no code. */
const driverMessage =
  /^(Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|Client has encountered|Client was closed|Cannot use a pool after|The server does not support SSL)/;

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
 * True where the database could not do the work now: connection lost or refused, too many connections, shutting down,
 * a time-out. Nothing is known to be wrong with the work itself; after a lost COMMIT it may even have been done.
 */
export function isUnavailable(error: unknown): boolean {
  const code = field(error, 'code') ?? '';
  if (unavailableStates.has(code) || unavailableClass.test(code) || networkCode.test(code)) return true;
  if (error instanceof AggregateError) return error.errors.some(isUnavailable);
  return code === '' && driverMessage.test(field(error, 'message') ?? '');
}

/** The name of the unique constraint or index that a statement violated (23505), else undefined. */
export function uniqueViolation(error: unknown): string | undefined {
  return field(error, 'code') === '23505' ? field(error, 'constraint') : undefined;
}

/** True where a statement was given up for its time-out, the server's (57014) or the driver's: a smaller one may get through. */
export function tookTooLong(error: unknown): boolean {
  return field(error, 'code') === '57014' || isReadTimeout(error);
}

/** True where the connection must not be used again: its answers may belong to a query that was given up. */
export function isReadTimeout(error: unknown): boolean {
  return field(error, 'message') === 'Query read timeout';
}
