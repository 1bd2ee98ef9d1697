import { randomUUID } from 'node:crypto';
import type { ClientBase } from 'pg';
import type { OutboxEvent } from './outbox.ts';

/** A batch of the outbox by its number, and by when it was written: a number may be given again, both never. */
export interface Position {
  batch_id: bigint;
  /** ISO 8601 UTC, milliseconds. */
  created_at: string;
}

export interface HistoryOptions {
  /** The topic of the position, without the common prefix; compacted, one partition. */
  topic: string;
  /** ce_source. */
  source: string;
  /** The value of the last record of that topic; undefined where there is none. Rejects where the broker cannot say. */
  readLast: () => Promise<string | undefined>;
}

/** The database has an older history than the one that was published from it. */
export class OlderHistoryError extends Error {
  override name = 'OlderHistoryError';
}

/** Rows are deleted from the front, and the newest never (purge): what is below the first row was there. */
const statement = `select exists (select from outbox_batches where batch_id = $1 and date_trunc('milliseconds', created_at) = $2::timestamptz)
    or $1 < (select min(batch_id) from outbox_batches) as has_newest,
  (select max(batch_id) from outbox_batches) as last_batch,
  (select system_identifier from pg_control_system()) as system_identifier, (select timeline_id from pg_control_checkpoint()) as timeline`;

interface Answer {
  has_newest: boolean;
  last_batch: bigint | null;
  system_identifier: bigint;
  timeline: number;
}

/**
 * Notices a database that came back with an older history: an asynchronous standby that was
 * promoted, a restore to a moment. The fact it rests on: a batch that was published was committed
 * before, so the newest published batch is in the database. The relay writes its number beside the
 * events, into a topic, where it outlives the database. Every new connection to a server that this
 * process has not met (by the time the server started: a server that took another's place has
 * another one) is used only if the database has that batch. Where a failover or a restart lost
 * nothing, it has.
 */
export class History {
  readonly #options: HistoryOptions;
  #newest: Position | undefined;
  #server: string | undefined;
  #fault: string | undefined;

  constructor(options: HistoryOptions) {
    this.#options = options;
  }

  /** For each new connection (pool.ts): rejects where the database is behind, or where it cannot be told. */
  async verify(client: ClientBase): Promise<void> {
    const {
      rows: [server],
    } = await client.query<{ started_at: string }>('select pg_postmaster_start_time()::text as started_at');
    if (server === undefined || server.started_at === this.#server) return;
    await this.#readNewest();
    if (this.#newest !== undefined) {
      const { batch_id, created_at } = this.#newest;
      const {
        rows: [found],
      } = await client.query<Answer>(statement, [batch_id, created_at]);
      if (!found?.has_newest) {
        this.#fault =
          `the database has an older history: batch ${batch_id} of ${created_at} was published and is not in it ` +
          `(last batch ${found?.last_batch ?? 'none'}, system ${found?.system_identifier}, timeline ${found?.timeline}). ` +
          'Nothing is posted; see docs/operations.md, "The database has an older history"';
        throw new OlderHistoryError(this.#fault);
      }
    }
    this.#fault = undefined;
    this.#server = server.started_at;
  }

  /** For the probe of readiness. */
  health(): { ok: boolean; reason?: string } {
    return this.#fault === undefined ? { ok: true } : { ok: false, reason: this.#fault };
  }

  /** What the relay publishes beside a chunk that ends with this batch. Never an older position than before. */
  event(last: Position): OutboxEvent {
    if (this.#newest === undefined || last.batch_id > this.#newest.batch_id) this.#newest = last;
    const { batch_id, created_at } = this.#newest;
    const { topic, source } = this.#options;
    const payload = JSON.stringify({ batch_id: String(batch_id), created_at });
    return { id: randomUUID(), topic, key: source, type: 'corebanking.outbox.position.v1', time: created_at, payload };
  }

  async #readNewest(): Promise<void> {
    const value = await this.#options.readLast();
    if (value === undefined) return;
    const { batch_id, created_at } = JSON.parse(value) as { batch_id: string; created_at: string };
    if (this.#newest === undefined || BigInt(batch_id) > this.#newest.batch_id)
      this.#newest = { batch_id: BigInt(batch_id), created_at };
  }
}
