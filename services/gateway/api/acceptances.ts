/**
 * When the commands were accepted that were answered 202, so that a repeat is told the same
 * created_at before there is an outcome. A repeat keeps its own deadline: this is for what is shown
 * alone. Bounded, oldest first out.
 */
export class Acceptances {
  readonly #max: number;
  readonly #times = new Map<string, Date>();

  constructor(max = 10_000) {
    this.#max = max;
  }

  /** The moment that was given first for this id. */
  first(id: string, acceptedAt: Date): Date {
    const known = this.#times.get(id);
    if (known !== undefined) return known;
    this.#times.set(id, acceptedAt);
    const [oldest] = this.#times.keys();
    if (this.#times.size > this.#max && oldest !== undefined) this.#times.delete(oldest);
    return acceptedAt;
  }
}
