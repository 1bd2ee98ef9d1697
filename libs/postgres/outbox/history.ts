import { randomUUID } from 'node:crypto';
import type { ClientBase } from 'pg';
import type { Logger } from 'pino';
import type { MacKeys } from '#libs/contracts/mac.ts';
import type { OutboxEvent } from './outbox.ts';

/**
 * A batch of the outbox, identified by number and creation time: after data loss a number may be reused, but
 * never together with the same time.
 */
export interface Position {
  batch_id: bigint;
  /** ISO 8601 UTC, milliseconds. */
  created_at: string;
}

export interface HistoryOptions {
  /** The topic for positions, without prefix; compacted, with one partition. */
  topic: string;
  /** ce_source. */
  source: string;
  /** Returns the values of the last records of that topic, oldest first. Rejects if the broker does not respond. */
  readLast: () => Promise<string[]>;
  /** A record without the ledger's MAC is ignored: another writer of the topic could otherwise stop all postings. */
  keys: Pick<MacKeys, 'sign' | 'verifySigner'>;
  logger: Logger;
}

/** The database is older than the state of which events were already published. */
export class OlderHistoryError extends Error {
  override name = 'OlderHistoryError';
}

/** Rows are deleted in order from the oldest, and never the newest (purge), so rows before the first one existed. */
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
 * Detects a database that lost committed data: an asynchronous standby that was promoted, or a point-in-time restore. A
 * batch is published only after its commit, so the newest published batch must be in the database. The relay publishes
 * its number to a topic, which survives the database. Each new connection to a server that this process does not know
 * yet (servers are identified by their start time) is used only if the database contains that batch. After a failover
 * or restart without loss it does.
 */
export class History {
  readonly #options: HistoryOptions;
  #newest: Position | undefined;
  #server: string | undefined;
  #fault: string | undefined;

  constructor(options: HistoryOptions) {
    this.#options = options;
  }

  /** Verifies a new connection (pool.ts). Rejects if the database lacks the batch, or if that cannot be determined. */
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
          `the database has an older history: batch ${batch_id} of ${created_at} was published but is missing ` +
          `(last batch ${found?.last_batch ?? 'none'}, system ${found?.system_identifier}, timeline ${found?.timeline}). ` +
          'Nothing is posted; see docs/operations.md, "The database has an older history"';
        throw new OlderHistoryError(this.#fault);
      }
    }
    this.#fault = undefined;
    this.#server = server.started_at;
  }

  /** For the readiness probe. */
  health(): { ok: boolean; reason?: string } {
    return this.#fault === undefined ? { ok: true } : { ok: false, reason: this.#fault };
  }

  /**
   * Returns the event that the relay publishes with a chunk that ends with this batch. It never returns a position
   * older than a previous one.
   */
  event(last: Position): OutboxEvent {
    if (this.#newest === undefined || last.batch_id > this.#newest.batch_id) this.#newest = last;
    const { batch_id, created_at } = this.#newest;
    const { topic, source, keys } = this.#options;
    const payload = signed({ batch_id: String(batch_id), created_at }, keys);
    return { id: randomUUID(), topic, key: source, type: 'corebanking.outbox.position.v1', time: created_at, payload };
  }

  /** The newest position counts, and not the last one, because old records can be written again, which have valid MACs. */
  async #readNewest(): Promise<void> {
    const { readLast, keys, logger } = this.#options;
    const values = await readLast();
    const records = values.flatMap((value) => authentic(value, keys) ?? []);
    const forged = values.length - records.length;
    if (forged > 0)
      logger.error(
        {
          forged,
          position: records.length > 0 ? 'found' : 'not found: this start cannot see whether the database lost data',
        },
        'ignored positions without a valid MAC of the ledger',
      );
    const accepted =
      records
        .flatMap((record) => ('accepted_at' in record ? record.accepted_at : []))
        .sort()
        .at(-1) ?? '';
    for (const record of records) {
      if ('accepted_at' in record || record.created_at <= accepted) continue;
      const batch_id = BigInt(record.batch_id);
      if (this.#newest === undefined || batch_id > this.#newest.batch_id)
        this.#newest = { batch_id, created_at: record.created_at };
    }
  }
}

/** A position, or that positions until a time do not count, because the database that lacks them was accepted. */
type Recorded = { batch_id: string; created_at: string } | { accepted_at: string };

function signed(record: Recorded, keys: Pick<MacKeys, 'sign'>): string {
  const mac: Record<string, string> = {};
  keys.sign('ledger', { headers: mac, value: JSON.stringify(record) });
  return JSON.stringify({ ...record, ...mac });
}

/** Returns the value of the record that makes ledgers accept the database as it is at this time (ISO 8601 UTC). */
export function acceptance(accepted_at: string, keys: Pick<MacKeys, 'sign'>): string {
  return signed({ accepted_at }, keys);
}

function authentic(value: string, keys: Pick<MacKeys, 'verifySigner'>): Recorded | undefined {
  try {
    const { mac, ...record } = JSON.parse(value) as Recorded & { mac: string };
    const signer = keys.verifySigner({ headers: { mac }, value: JSON.stringify(record) });
    return signer === 'ledger' ? record : undefined;
  } catch {
    return undefined;
  }
}
