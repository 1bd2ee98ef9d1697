import type { Pool } from 'pg';
import { wakeRelay } from './outbox.ts';

/**
 * Wakes the relay of another process. At most one NOTIFY is running and one is queued, regardless of the number
 * of calls.
 */
export class Notifier {
  readonly #pool: Pool;
  readonly #schema: string;
  #onTheWay: Promise<void> | undefined;
  #again = false;

  constructor(pool: Pool, schema: string) {
    this.#pool = pool;
    this.#schema = schema;
  }

  /** Never waits and never fails, because a relay also polls. */
  notify(): void {
    if (this.#onTheWay) {
      this.#again = true;
      return;
    }
    this.#onTheWay = wakeRelay(this.#pool, this.#schema)
      .catch(() => undefined)
      .then(() => {
        this.#onTheWay = undefined;
        if (this.#again) this.notify();
        this.#again = false;
      });
  }

  /** Resolves when no NOTIFY is running. */
  async stop(): Promise<void> {
    this.#again = false;
    await this.#onTheWay;
  }
}
