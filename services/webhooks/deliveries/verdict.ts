import type { Delivery } from '#libs/contracts/webhooks.ts';

/** Decides what happens to a delivery after an attempt (contract: webhooks-13). Pure. */

const minute = 60_000;
const hour = 60 * minute;

/** The delays after the first failure, the second, and so on. */
export const retryDelaysMs = [5_000, 5 * minute, 30 * minute, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * hour)];
/** A delay is up to this fraction longer, so that deliveries that failed together are not retried together. */
const jitter = 0.2;
const disabledAfterMs = 5 * 24 * hour;
const gone = 410;

export type Attempt = Delivery['attempts'][number] & {
  /** The delivery. */
  ordinal: string;
  /** The claim under which the attempt was made. */
  claim: number;
  /** The number of previous attempts in its schedule. */
  tries: number;
};

export type Verdict = { status: 'Delivered' | 'Failed' } | { status: 'Pending'; delayMs: number };

export function isDelivered({ response_status: status }: Pick<Attempt, 'response_status'>): boolean {
  return status !== null && status >= 200 && status < 300;
}

/** `random`: 0 to 1. */
export function judgeAttempt(attempt: Attempt, random: number): Verdict {
  if (isDelivered(attempt)) return { status: 'Delivered' };
  const delay = retryDelaysMs[attempt.tries];
  if (delay === undefined || attempt.response_status === gone) return { status: 'Failed' };
  return { status: 'Pending', delayMs: Math.round(delay * (1 + jitter * random)) };
}

/**
 * Returns since when deliveries have failed and, if the webhook must be disabled, why. Attempts of one webhook
 * are in the order in which they ended.
 */
export function judgeHealth(
  failingSince: string | null,
  attempts: readonly Attempt[],
  now: string,
): { failing_since: string | null; disabled?: 'gone' | 'failing' } {
  const last = attempts.findLastIndex(isDelivered);
  const failing_since = (last === -1 ? failingSince : null) ?? attempts[last + 1]?.attempted_at ?? null;
  if (attempts.some(({ response_status }) => response_status === gone))
    return { failing_since: failing_since ?? now, disabled: 'gone' };
  const isOver = failing_since !== null && Date.parse(now) - Date.parse(failing_since) >= disabledAfterMs;
  return isOver ? { failing_since, disabled: 'failing' } : { failing_since };
}
