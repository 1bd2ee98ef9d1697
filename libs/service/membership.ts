import type { Logger } from 'pino';
import type { Consumer } from '#libs/kafka/consume/consume.ts';
import type { Clock } from './clock.ts';
import { sweeping } from './sweeping.ts';

type Member = Pick<Consumer, 'start' | 'leave' | 'isAlone'>;

export interface MembershipOptions {
  /** Asks the database. Rejects if it cannot be used, and soon if it does not respond. */
  probe(): Promise<unknown>;
  clock: Pick<Clock, 'check'>;
  /** The consumers that execute commands and store events. */
  deciding: readonly Member[];
  queries: Member;
  logger: Logger;
}

const probeEveryMs = 500;
/** A shorter absence of the database, such as its restart, ends sooner than partitions move to another process and back. */
const patienceMs = 3_000;

/**
 * Keeps a process in its consumer groups while it can do their work, and only then. Otherwise its partitions would wait
 * for it, although other processes could take them.
 * - It joins when it can use the database, and leaves when it could not for 3 s.
 * - It also leaves the groups whose members decide while its clock and the database's disagree.
 * - A member that has all partitions of a group stays, because nobody would take them.
 */
export function createMembership({ probe, clock, deciding, queries, logger }: MembershipOptions) {
  const firstJoin = Promise.withResolvers<void>();
  let isUsable = false;
  let failing: { since: number; probes: number } | undefined;

  async function look(): Promise<void> {
    const begun = performance.now();
    try {
      await probe();
      if (!isUsable) logger.info('the database can be used; joining the consumer groups');
      isUsable = true;
      failing = undefined;
    } catch (error) {
      failing = { since: failing?.since ?? begun, probes: (failing?.probes ?? 0) + 1 };
      const isFirst = failing.probes === 1;
      // In a process that was frozen, the probe times out before its response is read. So one probe proves nothing.
      const isLost = isUsable && !isFirst && performance.now() - failing.since >= patienceMs;
      if (isLost) isUsable = false;
      if (isLost || (isFirst && !isUsable))
        logger.warn({ err: error }, 'cannot use the database; staying out of the consumer groups until it can');
    }
  }

  const settle = (member: Member, mayWork: boolean): Promise<void> => {
    if (mayWork) return member.start();
    return member.isAlone() ? Promise.resolve() : member.leave();
  };

  async function turn(): Promise<boolean> {
    await look();
    const mayDecide = isUsable && clock.check().ok;
    const settled = Promise.all([settle(queries, isUsable), ...deciding.map((member) => settle(member, mayDecide))]);
    // Joining may take long and is not waited for, because the process must be able to leave meanwhile.
    if (mayDecide) void settled.then(() => firstJoin.resolve());
    return false;
  }

  const turns = sweeping('joining and leaving the consumer groups', turn, probeEveryMs, logger);
  return {
    /** Resolves when all groups have been joined for the first time. */
    start(): Promise<void> {
      turns.start();
      return firstJoin.promise;
    },
    stop: turns.stop,
  };
}
