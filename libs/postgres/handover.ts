import type { EncodedMessage } from '#libs/contracts/record.ts';

/** What a transaction of this process has written into the outbox and committed. */
export interface CommittedBatch {
  batch_id: bigint;
  messages: readonly EncodedMessage[];
}

/** What the sequence of batches and the running transactions were at one moment. */
export interface Probe {
  /** The last batch_id drawn. */
  last: bigint;
  /** The oldest transaction that runs, and the next one to begin (pg_current_snapshot). */
  xmin: bigint;
  xmax: bigint;
}

const maxMessages = 10_000;
const maxBeyond = 10_000;

/**
 * Committed batches on their short way to the relay of the same process, past the table. It hands out a batch only where
 * every batch with a lower number is accounted for: published, handed out before, or never to come. So a batch of another
 * process that must come before cannot be overtaken; whatever is uncertain is left to be read from the table.
 */
export class Handover {
  /** Every batch up to this one is accounted for. Unknown until two probes have shown it. */
  #watermark: bigint | undefined;
  /** Accounted for, above the watermark: something between is missing. */
  #beyond = new Set<bigint>();
  /** By number. */
  #offers: CommittedBatch[] = [];
  #messages = 0;
  /** A probe that waits until every transaction of its time has ended. */
  #settling: Probe | undefined;
  /** Settled, once the read that follows has been published. */
  #settled: bigint | undefined;

  /** True while reading the table must be accompanied by probes. */
  get isUncertain(): boolean {
    return this.#watermark === undefined || this.#beyond.size > 0;
  }

  /** A batch of this process, committed; once. Where it cannot be used or there are too many, it is dropped: the table has it. */
  offer(batch: CommittedBatch): void {
    if (this.#watermark === undefined || batch.batch_id <= this.#watermark || this.#beyond.has(batch.batch_id)) return;
    const before = this.#offers.findLastIndex(({ batch_id }) => batch_id < batch.batch_id);
    this.#offers.splice(before + 1, 0, batch);
    this.#messages += batch.messages.length;
    if (this.#messages > maxMessages) this.reset();
  }

  /** The offers that may be published now, in order: at most `max` messages, but at least one batch where there is one. */
  take(max: number): CommittedBatch[] {
    const batches: CommittedBatch[] = [];
    for (let count = 0; this.#watermark !== undefined; this.#watermark += 1n) {
      const [next] = this.#offers;
      if (next?.batch_id !== this.#watermark + 1n || (batches.length > 0 && count + next.messages.length > max)) break;
      count += next.messages.length;
      this.#messages -= next.messages.length;
      this.#offers.shift();
      batches.push(next);
    }
    return batches;
  }

  /**
   * To be called with a probe made just before the table is read. Numbers are drawn by transactions that hold the locks that
   * order their events, so they are under way by then: once all transactions of an earlier probe have ended, what is read now
   * holds every batch up to that probe's last that will ever be.
   */
  probed(probe: Probe): void {
    if (this.#settling && probe.xmin >= this.#settling.xmax) {
      this.#settled = this.#settling.last;
      this.#settling = undefined;
    }
    this.#settling ??= probe;
  }

  /** These batches were read from the table and are published. */
  published(batchIds: readonly bigint[]): void {
    const read = new Set(batchIds);
    this.#offers = this.#offers.filter(({ batch_id }) => !read.has(batch_id));
    this.#messages = this.#offers.reduce((sum, { messages }) => sum + messages.length, 0);
    for (const id of batchIds) {
      if (this.#watermark === undefined || id > this.#watermark) this.#beyond.add(id);
    }
    this.#advance();
    if (this.#beyond.size > maxBeyond) this.reset();
  }

  /** Everything that the last read could see is published. */
  drained(): void {
    const settled = this.#settled;
    if (settled !== undefined && settled > (this.#watermark ?? -1n)) {
      this.#watermark = settled;
      for (const id of this.#beyond) if (id <= settled) this.#beyond.delete(id);
    }
    this.#settled = undefined;
    this.#advance();
  }

  /** Forgets everything: what was offered is read from the table. */
  reset(): void {
    this.#watermark = undefined;
    this.#beyond.clear();
    this.#offers = [];
    this.#messages = 0;
    this.#settling = undefined;
    this.#settled = undefined;
  }

  #advance(): void {
    while (this.#watermark !== undefined && this.#beyond.delete(this.#watermark + 1n)) this.#watermark += 1n;
  }
}
