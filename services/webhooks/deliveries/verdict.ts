/** Decides what happens to a delivery after an attempt (contract: Webhooks). Pure. */

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** After the first failure, the second, and so on. */
export const retryDelaysMs = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
];
/** A delay is up to this fraction longer, so that deliveries that failed together are not retried together. */
const jitter = 0.2;
const disabledAfterMs = 5 * day;
const gone = 410;

export interface Attempt {
  /** The delivery. */
  ordinal: string;
  /** The claim under which the attempt was made. */
  claim: number;
  /** The number of previous attempts in its schedule. */
  tries: number;
  attempted_at: string;
  duration_ms: number;
  response_status: number | null;
  error: string | null;
}

export type Verdict = { status: 'Delivered' | 'Failed' } | { status: 'Pending'; delayMs: number };

export function isDelivered({ response_status: status }: Pick<Attempt, 'response_status'>): boolean {
  return status !== null && status >= 200 && status < 300;
}

/** `random`: 0 to 1. */
export function verdictOf(attempt: Attempt, random: number): Verdict {
  if (isDelivered(attempt)) return { status: 'Delivered' };
  const delay = retryDelaysMs[attempt.tries];
  if (delay === undefined || attempt.response_status === gone) return { status: 'Failed' };
  return { status: 'Pending', delayMs: Math.round(delay * (1 + jitter * random)) };
}

/**
 * Returns since when deliveries have failed and, if the webhook must be disabled, why. Attempts of one webhook
 * are in the order in which they ended.
 */
export function healthOf(
  failingSince: string | null,
  attempts: readonly Attempt[],
  now: string,
): { failing_since: string | null; disabled?: 'gone' | 'failing' } {
  const behindSuccess = attempts.slice(attempts.findLastIndex(isDelivered) + 1);
  const before = behindSuccess.length === attempts.length ? failingSince : null;
  const failing_since = before ?? behindSuccess[0]?.attempted_at ?? null;
  if (attempts.some(({ response_status }) => response_status === gone))
    return { failing_since: failing_since ?? now, disabled: 'gone' };
  const isOver = failing_since !== null && Date.parse(now) - Date.parse(failing_since) >= disabledAfterMs;
  return isOver ? { failing_since, disabled: 'failing' } : { failing_since };
}
