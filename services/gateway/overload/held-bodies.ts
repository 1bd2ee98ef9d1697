import { refusal } from '#libs/contracts/errors.ts';
import { Refused, unavailableBecause } from '../http/errors.ts';

export type HeldBodies = ReturnType<typeof createHeldBodies>;

/** The limit for all callers together: 512 of the largest bodies. */
export const maxHeldBytes = 32 * 1024 * 1024;
/** The limit per caller, so that no caller can use up the limit of all. */
const maxPerCaller = maxHeldBytes / 16;

const tooManyOfCaller = new Refused(
  refusal('rate_limited', 'too many concurrent request bodies from this caller; nothing was executed'),
);
const tooMany = new Refused(unavailableBecause('too many requests at once'));

/** Counts the bytes of request bodies in memory, from their arrival until the response has closed. */
export function createHeldBodies(onShed: () => void) {
  const byCaller = new Map<string, number>();
  let total = 0;
  const change = (actor: string, bytes: number): number => {
    const held = (byCaller.get(actor) ?? 0) + bytes;
    total += bytes;
    if (held > 0) byCaller.set(actor, held);
    else byCaller.delete(actor);
    return held;
  };
  return {
    /** Adds received bytes of a caller's body. Returns a refusal if there are too many, otherwise undefined. */
    add(actor: string, bytes: number): Refused | undefined {
      if (change(actor, bytes) > maxPerCaller) return tooManyOfCaller;
      if (total <= maxHeldBytes) return undefined;
      onShed();
      return tooMany;
    },
    remove: (actor: string, bytes: number) => void change(actor, -bytes),
  };
}
