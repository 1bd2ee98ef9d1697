/**
 * Which members of a consumer group work while the others are hot spares. Pure. One member works as long as its thread
 * can; each further one makes batches smaller, which then wait for each other's locks (docs/decisions/0069).
 */

/** A member of the group, as it has announced itself. */
export interface Member {
  id: string;
  /** The CPU that its process uses, in cores, averaged over some seconds. */
  busy: number;
  /** It has other work of its own (publishing the outbox), so it is used last once one thread is not enough. */
  keeps: boolean;
  /** The lowest partition that it had until this rebalance, if it had any. */
  first: number | undefined;
  /** The step that the group had taken, which outlives a member that is lost. */
  step: number;
}

/** A member that is busier than this gets help. */
export const busyLimit = 0.6;
/** Members share less work again if fewer would be busy for less than this. */
export const calmLimit = 0.4;

export interface Choice {
  /** Those that get partitions, in a stable order. Empty only if there are no members. */
  workers: Member[];
  step: number;
}

/**
 * Chooses who works. The steps are: the keeper alone; one, two, … others without it; and finally all. A group goes one
 * step up if a worker is busier than `busyLimit`, and one down if what all do fits into the step below with `calmLimit`.
 * The choice depends only on the members, not on their order.
 */
export function chooseWorkers(members: readonly Member[]): Choice {
  const ranked = members.toSorted((a, b) => place(a) - place(b) || (a.id < b.id ? -1 : 1));
  // While the lease moves, two may say that they hold it.
  const keeper = ranked.findLast(({ keeps }) => keeps);
  const others = ranked.filter((member) => member !== keeper);
  const steps = [
    keeper ? [keeper] : others.slice(0, 1),
    ...others.map((_, i) => others.slice(0, i + 1)),
    ...(keeper && others.length > 0 ? [ranked] : []),
  ];
  const step = Math.min(present(ranked, keeper), steps.length - 1);
  const working = ranked.filter(isWorking);
  const next = working.some(({ busy }) => busy > busyLimit)
    ? step + 1
    : isCalm(step, working, keeper)
      ? step - 1
      : step;
  const chosen = Math.max(0, Math.min(next, steps.length - 1));
  return { workers: steps[chosen] ?? [], step: chosen };
}

/** Returns the step that the group is at. Members that have been lost since then are replaced, not missed. */
function present(members: readonly Member[], keeper: Member | undefined): number {
  const working = members.filter(isWorking);
  if (working.length === 1 && working[0] === keeper) return 0;
  return Math.max(working.length, ...members.map(({ step }) => step));
}

/** Reports whether the step below could do all that is done. Nobody is judged whose work may be about to move. */
function isCalm(step: number, working: readonly Member[], keeper: Member | undefined): boolean {
  if (step === 0 || working.length === 0) return false;
  const all = keeper && !working.includes(keeper) && step === 1 ? [...working, keeper] : working;
  const busy = all.reduce((sum, member) => sum + member.busy, 0);
  return busy / Math.max(1, step - 1) < calmLimit;
}

export const isWorking = ({ first }: Member): boolean => first !== undefined;
/** Spares are ranked last. A difference of infinities would be no number. */
const place = ({ first = Number.MAX_SAFE_INTEGER }: Member): number => first;

/** Returns the partitions of each worker. */
export function shareOut(workers: readonly Member[], partitions: readonly number[]): Map<string, number[]> {
  const share = (turn: number) => partitions.filter((_, i) => i % workers.length === turn);
  return new Map(workers.map(({ id }, turn) => [id, share(turn)]));
}
