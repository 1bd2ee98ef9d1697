import type { Pool } from 'pg';
import { wakeRelay } from './outbox.ts';

/** Wakes the relay of another process: one NOTIFY on the way, at most one more behind it, however often it is asked. */
export class Notifier {
  readonly #pool: Pool;
  readonly #schema: string;
  #onTheWay: Promise<void> | undefined;
  #again = false;

  constructor(pool: Pool, schema: string) {
    this.#pool = pool;
    this.#schema = schema;
  }

  /** Never waits, never fails: a relay polls too. */
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

  /** Resolves when nothing is on the way. */
  async stop(): Promise<void> {
    this.#again = false;
    await this.#onTheWay;
  }
}
