import type { Logger } from 'pino';
import type { Consumer } from '#libs/kafka/consume/consume.ts';
import type { Clock } from './clock.ts';
import type { CheckResult } from './health.ts';
import { errorMessage } from './logger.ts';
import { sweeping } from './sweeping.ts';

type Member = Pick<Consumer, 'start' | 'leave' | 'isAlone'>;

export interface MembershipOptions {
  /** Asks the database. Rejects if it cannot be used, or does not answer in time. */
  probe(): Promise<unknown>;
  clock: Pick<Clock, 'check'>;
  members: readonly Member[];
  logger: Logger;
}

const turnMs = 500;
/**
 * A shorter absence of the database, such as its restart, ends sooner than partitions move to another process and back.
 * A database that answers, however slowly, is not away: leaving would only add to its load.
 */
const patienceMs = 4_000;
/** A process that was frozen for longer has not read the answer yet. It gets this many turns to do so. */
const leastTurns = 3;

/**
 * Keeps a process in its consumer groups while it can do their work, and only then. Otherwise its partitions would wait
 * for it, although other processes could take them.
 * - It joins when the database answers, and leaves when it has not for 4 s.
 * - It also leaves while its clock and the database's disagree.
 * - A member that has all partitions of a group stays, because nobody would take them.
 */
export function createMembership({ probe, clock, members, logger }: MembershipOptions) {
  const firstJoin = Promise.withResolvers<void>();
  let isUsable = false;
  /** Since when the database has not answered, and what it answered instead. */
  let silence: { since: number; turns: number; error?: unknown } | undefined;
  let isAsking = false;

  async function ask(): Promise<void> {
    isAsking = true;
    const asked = (silence ??= { since: performance.now(), turns: 0 });
    try {
      await probe();
      silence = undefined;
      if (isUsable) return;
      isUsable = true;
      logger.info('the database can be used; joining the consumer groups');
      turns.wake();
    } catch (error) {
      if (!isUsable && asked.error === undefined) warn(error);
      asked.error = error;
    } finally {
      isAsking = false;
    }
  }

  const warn = (err: unknown): void =>
    logger.warn({ err }, 'cannot use the database; staying out of the consumer groups until it can');

  /** Asks again unless an answer is outstanding. */
  function look(): void {
    if (silence) silence.turns += 1;
    if (!isAsking) void ask();
    if (!isUsable || !silence || silence.turns < leastTurns) return;
    if (performance.now() - silence.since < patienceMs) return;
    isUsable = false;
    silence.error ??= new Error('the database does not answer');
    warn(silence.error);
  }

  const settle = (member: Member, mayWork: boolean): Promise<void> => {
    if (mayWork) return member.start();
    return member.isAlone() ? Promise.resolve() : member.leave();
  };

  async function turn(): Promise<boolean> {
    look();
    const mayWork = isUsable && clock.check().ok;
    const settled = Promise.all(members.map((member) => settle(member, mayWork)));
    // Joining may take long and is not waited for, because the process must be able to leave meanwhile.
    if (mayWork) void settled.then(() => firstJoin.resolve());
    return false;
  }

  const turns = sweeping('joining and leaving the consumer groups', turn, turnMs, logger);
  return {
    /** Resolves when all groups have been joined for the first time. */
    start(): Promise<void> {
      turns.start();
      return firstJoin.promise;
    },
    stop: turns.stop,
    /** Not ok, with the last error, while the process stays out of its groups because of the database. */
    health: (): CheckResult =>
      isUsable || silence?.error === undefined ? { ok: true } : { ok: false, reason: errorMessage(silence.error) },
  };
}
