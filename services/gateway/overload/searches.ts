import { refuse } from '../http/errors.ts';

/**
 * The maximum number of concurrent searches per caller in this process. Searches are the most expensive reads
 * of the ledger.
 */
const maxPerCaller = 2;

/** Limits the concurrent searches of each caller, so that no caller uses up the ledger's connections for them. */
export class Searches {
  readonly #underWay = new Map<string, number>();

  /** Rejects with a Refused (rate_limited) if too many searches of the caller are running. */
  async run<T>(actor: string, search: () => Promise<T>): Promise<T> {
    const count = this.#underWay.get(actor) ?? 0;
    if (count >= maxPerCaller)
      throw refuse(
        'rate_limited',
        `more than ${maxPerCaller} concurrent searches; specify an account, or wait for one of them to finish`,
      );
    this.#underWay.set(actor, count + 1);
    try {
      return await search();
    } finally {
      const left = (this.#underWay.get(actor) ?? 1) - 1;
      if (left > 0) this.#underWay.set(actor, left);
      else this.#underWay.delete(actor);
    }
  }
}
