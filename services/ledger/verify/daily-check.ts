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
  /** Returns the database's time in ms since 1970, with which the times of checks are stored. */
  now: () => Promise<number>;
  logger: Logger;
}

const lookEveryMs = 30_000;
const hourMs = 3_600_000;
/** What is interrupted again and again is for people (BankBooksUnchecked): a check costs as much as the bank is large. */
const repeatedForMs = 6 * hourMs;

/**
 * Checks the books once a day, as a person may at any time. If no check has begun since that time of day, because no ledger
 * ran or the bank is new, one begins at once. One that was interrupted is repeated an hour later, until six
 * hours after that time.
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
    const time = await now();
    const dueAt = lastTimeOf(timeZone, at, time);
    if (Date.parse(last.started_at) < dueAt) return true;
    const pausedMs = time - Date.parse(last.ended_at ?? last.started_at);
    return last.state === 'interrupted' && pausedMs > hourMs && time - dueAt < repeatedForMs;
  };
  const check = async (): Promise<false> => {
    if (at === 'none' || !isOnDuty() || !(await isDue())) return false;
    const verification_id = formatId('verification', randomUUID().replaceAll('-', ''));
    const context = {
      message_id: verification_id,
      type: messageType('verify_books'),
      source: source.ledger,
      time: new Date(await now()).toISOString(),
      subject: verification_id,
      request_id: verification_id,
      actor: 'system',
    };
    await verifier.verify({ data: { verification_id }, context });
    return false;
  };
  return sweeping('the daily check of the books', check, lookEveryMs, logger);
}
