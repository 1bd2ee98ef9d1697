import { refuse } from '../http/errors.ts';

interface Caller {
  underWay: number;
  /** Begins the work that waits, first come first served. */
  waiting: Set<() => void>;
}

/** Work that may wait for the caller's other work: how much of it, and for how long. */
interface Waiting {
  max: number;
  ms: number;
}

/** Limits the concurrent work of each caller in this process, so that no caller uses up what all of them need. */
export class ConcurrencyLimit {
  readonly #max: number;
  readonly #message: string;
  readonly #waiting: Waiting;
  readonly #callers = new Map<string, Caller>();

  /** `message`: the refusal of what is neither under way nor may wait. By default nothing waits. */
  constructor(max: number, message: string, waiting: Waiting = { max: 0, ms: 0 }) {
    this.#max = max;
    this.#message = message;
    this.#waiting = waiting;
  }

  /**
   * Runs the work when fewer than `max` of the caller's are under way. Rejects with a Refused (rate_limited) if too much
   * waits already, or has waited too long.
   */
  async run<T>(actor: string, work: () => Promise<T>): Promise<T> {
    const caller = this.#callers.get(actor) ?? { underWay: 0, waiting: new Set() };
    this.#callers.set(actor, caller);
    if (caller.underWay < this.#max) caller.underWay += 1;
    else if (caller.waiting.size < this.#waiting.max) await this.#turn(caller);
    else throw refuse('rate_limited', this.#message);
    try {
      return await work();
    } finally {
      const [next] = caller.waiting;
      if (next) next();
      else {
        caller.underWay -= 1;
        if (caller.underWay === 0) this.#callers.delete(actor);
      }
    }
  }

  /** Resolves when a place has been handed over, so that nobody comes between. */
  #turn({ waiting }: Caller): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        clearTimeout(timer);
        waiting.delete(begin);
        resolve();
      };
      const timer = setTimeout(() => {
        waiting.delete(begin);
        reject(refuse('rate_limited', this.#message));
      }, this.#waiting.ms);
      waiting.add(begin);
    });
  }
}
