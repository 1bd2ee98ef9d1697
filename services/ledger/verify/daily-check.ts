import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { source } from '#libs/contracts/envelope.ts';
import { formatId } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { lastTimeOf } from '#libs/service/days.ts';
import { type Sweeping, sweeping } from '#libs/service/sweeping.ts';
import { readLastVerification, type Verifier } from '#libs/service/verifications.ts';

export interface DailyCheckOptions {
  verifier: Pick<Verifier, 'verify'>;
  reads: Pool;
  /** The time of day in this zone, such as 03:00, or `none`. */
  at: string;
  timeZone: string;
  /** True in one ledger: the one with the active relay. */
  isOnDuty: () => boolean;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  logger: Logger;
}

const lookEveryMs = 30_000;
const hourMs = 3_600_000;

/**
 * Checks the books once a day, as a person may at any time. If no check has begun since that time of day, because no ledger
 * ran or the bank is new, one begins at once. One that was interrupted is repeated an hour after it began.
 */
export function createDailyCheck({
  verifier,
  reads,
  at,
  timeZone,
  isOnDuty,
  now,
  logger,
}: DailyCheckOptions): Sweeping {
  const isDue = async (): Promise<boolean> => {
    const last = await readLastVerification(reads);
    if (last === null) return true;
    const isBroken = last.state === 'interrupted' && now() - Date.parse(last.started_at) > hourMs;
    return isBroken || Date.parse(last.started_at) < lastTimeOf(timeZone, at, now());
  };
  const check = async (): Promise<false> => {
    if (at === 'none' || !isOnDuty() || !(await isDue())) return false;
    const verification_id = formatId('verification', randomUUID().replaceAll('-', ''));
    const context = {
      message_id: verification_id,
      type: messageType('verify_books'),
      source: source.ledger,
      time: new Date(now()).toISOString(),
      subject: verification_id,
      request_id: verification_id,
      actor: 'system',
    };
    await verifier.verify({ data: { verification_id }, context });
    return false;
  };
  return sweeping('the daily check of the books', check, lookEveryMs, logger);
}
