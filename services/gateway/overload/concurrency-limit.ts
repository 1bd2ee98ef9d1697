import { refuse } from '../http/errors.ts';

/** Limits the concurrent work of each caller in this process, so that no caller uses up what all of them need. */
export class ConcurrencyLimit {
  readonly #max: number;
  readonly #message: string;
  readonly #underWay = new Map<string, number>();

  /** `message`: the refusal of more than `max`. */
  constructor(max: number, message: string) {
    this.#max = max;
    this.#message = message;
  }

  /** Rejects with a Refused (rate_limited) if too much work of the caller is under way. */
  async run<T>(actor: string, work: () => Promise<T>): Promise<T> {
    const count = this.#underWay.get(actor) ?? 0;
    if (count >= this.#max) throw refuse('rate_limited', this.#message);
    this.#underWay.set(actor, count + 1);
    try {
      return await work();
    } finally {
      const left = (this.#underWay.get(actor) ?? 1) - 1;
      if (left > 0) this.#underWay.set(actor, left);
      else this.#underWay.delete(actor);
    }
  }
}
