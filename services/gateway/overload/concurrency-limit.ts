import { refuse } from '../http/errors.ts';

interface Caller {
  underWay: number;
  /** Begins the work that waits, first come first served. */
  waiting: (() => void)[];
}

/** Limits the concurrent work of each caller in this process, so that no caller uses up what all of them need. */
export class ConcurrencyLimit {
  readonly #max: number;
  readonly #message: string;
  readonly #maxWaiting: number;
  readonly #callers = new Map<string, Caller>();

  /** `message`: the refusal of more than `max` under way and `maxWaiting` that wait for them. */
  constructor(max: number, message: string, maxWaiting = 0) {
    this.#max = max;
    this.#message = message;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Runs the work when at most `max` of the caller's are under way, so it waits as long as they take. Rejects with a
   * Refused (rate_limited) if `maxWaiting` wait already.
   */
  async run<T>(actor: string, work: () => Promise<T>): Promise<T> {
    const caller = this.#callers.get(actor) ?? { underWay: 0, waiting: [] };
    this.#callers.set(actor, caller);
    if (caller.underWay < this.#max) caller.underWay += 1;
    else if (caller.waiting.length < this.#maxWaiting)
      await new Promise<void>((resolve) => caller.waiting.push(resolve));
    else throw refuse('rate_limited', this.#message);
    try {
      return await work();
    } finally {
      // Whoever waits takes the place over, so nobody comes between.
      const next = caller.waiting.shift();
      if (next) next();
      else {
        caller.underWay -= 1;
        if (caller.underWay === 0) this.#callers.delete(actor);
      }
    }
  }
}
