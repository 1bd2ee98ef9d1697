/** Counts are looked at once per window. */
const windowMs = 5_000;
/** An account is hot from so many transfers a second to it on, if they are also this share of all transfers. */
const [leastPerSecond, leastShare] = [20, 0.06];
/** It stays hot while it has half of that, and for this time afterwards. */
const coolingMs = 60_000;

/**
 * Finds the accounts that receive so large a part of the transfers through this gateway that every batch of every ledger
 * would wait for the lock of one. Their transfers are routed by the destination, so that one ledger has all of them. This may
 * change, and gateways may disagree: where a command is executed matters only for speed (docs/decisions/0003).
 */
export class HotAccounts {
  readonly #now: () => number;
  #startedAt: number;
  #counts = new Map<string, number>();
  #total = 0;
  /** Until when each hot account is hot. */
  readonly #hot = new Map<string, number>();

  /** `now` returns a time in ms that is never set back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#startedAt = now();
  }

  /** Counts a transfer, and returns the account by which it is routed. */
  route(from: string, to: string): string {
    const now = this.#now();
    if (now - this.#startedAt >= windowMs) this.#look(now);
    this.#total += 1;
    this.#counts.set(to, (this.#counts.get(to) ?? 0) + 1);
    return this.#hot.has(to) ? to : from;
  }

  #look(now: number): void {
    const seconds = (now - this.#startedAt) / 1_000;
    const least = Math.max(leastPerSecond * seconds, leastShare * this.#total);
    for (const [account, count] of this.#counts)
      if (count >= (this.#hot.has(account) ? least / 2 : least)) this.#hot.set(account, now + coolingMs);
    for (const [account, until] of this.#hot) if (until <= now) this.#hot.delete(account);
    this.#counts = new Map();
    this.#total = 0;
    this.#startedAt = now;
  }
}
