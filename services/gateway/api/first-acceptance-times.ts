/**
 * Remembers the times of acceptance of commands that got a 202, so that a repeat shows the same created_at before there
 * is an outcome. It affects only the response; a repeat has its own deadline. The number of entries is limited; the
 * oldest are removed first.
 */
export class FirstAcceptanceTimes {
  readonly #max: number;
  readonly #times = new Map<string, Date>();

  constructor(max = 10_000) {
    this.#max = max;
  }

  /** Returns the first time of acceptance given for this id. */
  first(id: string, acceptedAt: Date): Date {
    const known = this.#times.get(id);
    if (known !== undefined) return known;
    this.#times.set(id, acceptedAt);
    const [oldest] = this.#times.keys();
    if (this.#times.size > this.#max && oldest !== undefined) this.#times.delete(oldest);
    return acceptedAt;
  }
}
