import { refusal } from '#libs/contracts/errors.ts';
import { Refused, unavailableBecause } from '../http/errors.ts';

export type BodyMemoryLimit = ReturnType<typeof createBodyMemoryLimit>;

/** The share of one caller in the memory, so that none uses up what all of them need. */
const share = 1 / 16;
/**
 * The share of one caller in the time. Many short bodies, of 0.5 ms each for a client on a slow machine, are work, which
 * other limits restrict; what this one is there for are bodies that are expensive and useless.
 */
const timeShare = 1 / 4;
/** The limit for all callers together: 512 of the largest bodies. */
export const maxHeldBytes = 32 * 1024 * 1024;
/** The time that a caller's bodies take is counted in windows of this length. */
const windowMs = 4_000;

const tooManyOfCaller = new Refused(
  refusal('rate_limited', 'too many concurrent request bodies from this caller; nothing was executed'),
);
const tooMany = new Refused(unavailableBecause('too many requests at once'));
const tooLong = refusal(
  'rate_limited',
  'reading the request bodies of this caller takes too long; nothing was executed',
);

/** Shorter bodies are not measured: asking for the CPU time takes longer than to read most of them. */
const smallBytes = 1_024;

/** The CPU time of this thread: on a busy machine, a body is not charged for the work of others. */
function ownCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/**
 * Limits what request bodies cost: the bytes that are in memory, from their arrival until the response has closed, and
 * the CPU time that they take from other work.
 */
export function createBodyMemoryLimit(onShed: () => void, now = () => performance.now(), cpuMs = ownCpuMs) {
  const byCaller = new Map<string, number>();
  let total = 0;
  const change = (actor: string, bytes: number): number => {
    const held = (byCaller.get(actor) ?? 0) + bytes;
    total += bytes;
    if (held > 0) byCaller.set(actor, held);
    else byCaller.delete(actor);
    return held;
  };
  let timeByCaller = new Map<string, number>();
  let endsMs = 0;
  /** Adds to the time in ms that a caller's bodies have taken in this window, and returns the sum. */
  const spend = (actor: string, ms: number): number => {
    if (now() >= endsMs) {
      timeByCaller = new Map();
      endsMs = now() + windowMs;
    }
    const spent = (timeByCaller.get(actor) ?? 0) + ms;
    timeByCaller.set(actor, spent);
    return spent;
  };
  return {
    /** Adds received bytes of a caller's body. Returns a refusal if its bodies cost too much, otherwise undefined. */
    add(actor: string, bytes: number): Refused | undefined {
      if (change(actor, bytes) > maxHeldBytes * share) return tooManyOfCaller;
      if (spend(actor, 0) > windowMs * timeShare)
        return new Refused(tooLong, { 'retry-after': String(Math.ceil((endsMs - now()) / 1000)) });
      if (total <= maxHeldBytes) return undefined;
      onShed();
      return tooMany;
    },
    remove: (actor: string, bytes: number) => void change(actor, -bytes),
    /** Parses or validates a body of this length, and adds the CPU time that this takes. */
    timed<T>(actor: string, bytes: number, read: () => T): T {
      if (bytes < smallBytes) return read();
      const begunMs = cpuMs();
      try {
        return read();
      } finally {
        spend(actor, cpuMs() - begunMs);
      }
    },
  };
}
