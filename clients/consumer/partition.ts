import {
  type BankEvent,
  type BankEventType,
  DeadLetter,
  InvalidEventError,
  isBankEventType,
  isSequenced,
  type Loss,
  type Origin,
  olderVersion,
  readEvent,
  readHead,
  readOther,
  type SequencedEvent,
} from './event.ts';
import type { ConsumerMetrics, Counts, Standing } from './measures.ts';
import { Memory } from './memory.ts';
import type { ConsumerOptions, Logger, SetAside } from './options.ts';

export type Settings = ConsumerOptions & { logger: Logger; sessionTimeoutMs: number; handlerLimitMs: number };
const completedType = 'corebanking.transaction.completed.v1';

type Handle = (event: BankEvent<BankEventType>) => Promise<void> | void;

interface Current {
  origin: Origin;
  sinceMs: number;
  /** When the running attempt began. */
  attemptMs: number;
  failures: number;
  isRunning: boolean;
  error?: Error;
  /** It became a dead letter, which the store does not know yet. */
  isDead?: true;
}

/** State shared by the partitions of a consumer. */
export interface Shared {
  options: Settings;
  /** Resolves when the broker has acknowledged the dead letter. */
  deadLetter(origin: Origin, error: Error): Promise<void>;
  /** Types of which a newer version was reported. */
  reportedTypes: Set<string>;
  counts: Counts;
  /** Every partition ever assigned, by name, so that handled events remain known in later sessions. */
  partitions: Map<string, Partition>;
}

/** Handles the events of one partition, one after another. */
export class Partition {
  readonly #shared: Shared;
  readonly #name: { topic: string; partition: number };
  readonly #memory: Memory;
  #last: Promise<unknown> = Promise.resolve();
  /** The event being handled. */
  #current: Current | undefined;
  #loss: Loss | undefined;
  /** The offset of the next message; undefined if it is unknown. */
  position: bigint | undefined;
  /** The offset after the newest message of the partition, when last read. */
  end = 0n;
  /** The group has read the topic from its beginning, which the topic still has. */
  isWhole = true;

  constructor(shared: Shared, name: { topic: string; partition: number }) {
    this.#shared = shared;
    this.#name = { topic: name.topic, partition: name.partition };
    this.#memory = new Memory(shared.options);
  }

  /**
   * Processes one message. Returns `done` if it was handled, skipped, or dead-lettered, otherwise the
   * milliseconds until its retry, before any later message. Never rejects. Waits for a handler that is
   * still running from an earlier session.
   */
  take(origin: Origin): Promise<'done' | number> {
    return this.#inTurn(() => this.#take(origin));
  }

  /** Passes a dead letter to its handler. Rejects if the handler throws. */
  redrive(origin: Origin): Promise<void> {
    return this.#inTurn(() => this.#handle(origin, true));
  }

  /** Records that the topic deleted messages before the next one. This is reported before the next one is handled. */
  lose(loss: Loss): void {
    this.#loss = { ...loss, from: this.#loss?.from ?? loss.from };
  }

  /** Must be called if the partition may have been assigned to another member meanwhile. */
  forgetPlaces(): void {
    this.#memory.forgetPlaces();
    this.#current = undefined;
    this.position = undefined;
  }

  /** How often the event in progress has failed. */
  get failures(): number {
    return this.#current?.failures ?? 0;
  }

  /** Returns the event that has been in progress for longer than `limitMs`. */
  standing(limitMs: number): Standing | undefined {
    if (!this.#current) return undefined;
    const { origin, sinceMs, attemptMs, failures, error } = this.#current;
    const now = performance.now();
    const ageMs = now - sinceMs;
    if (ageMs < limitMs) return undefined;
    const isRunning = this.#current.isRunning && now - attemptMs >= limitMs;
    const { topic, partition, offset } = origin;
    const since = new Date(Date.now() - ageMs).toISOString();
    return { topic, partition, offset, since, failures, isRunning, ...(error ? { error: error.message } : {}) };
  }

  metrics(): ConsumerMetrics['partitions'][number] {
    const { position = this.end } = this;
    const lag = Number(this.end > position ? this.end - position : 0n);
    const standingMs = this.#current ? performance.now() - this.#current.sinceMs : 0;
    return { ...this.#name, lag, standing_seconds: standingMs / 1_000 };
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(run);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #take(origin: Origin): Promise<'done' | number> {
    const retried = this.#current?.origin.offset === origin.offset ? this.#current : undefined;
    const now = performance.now();
    const current: Current = retried ?? { origin, sinceMs: now, attemptMs: now, failures: 0, isRunning: true };
    Object.assign(current, { isRunning: true, attemptMs: now });
    this.#current = current;
    try {
      await this.#tellLoss();
      if (current.isDead) await this.#setAside(origin);
      else await this.#handle(origin);
    } catch (error) {
      const pauseMs = await this.#fail(origin, current, error as Error);
      if (pauseMs !== undefined) return pauseMs;
    }
    // If the partition was assigned anew while the handler ran, its next position comes from there.
    if (this.#current === current) {
      this.#current = undefined;
      this.position = origin.offset + 1n;
    }
    return 'done';
  }

  async #tellLoss(): Promise<void> {
    if (!this.#loss) return;
    const { onLoss, logger } = this.#shared.options;
    const loss = this.#loss;
    if (onLoss) await onLoss(loss);
    else
      logger.warn(
        { ...loss, from: String(loss.from), to: String(loss.to) },
        'the topic has deleted messages that this group had not read',
      );
    this.#shared.counts.lost += Number(loss.to - loss.from) + 1;
    this.#loss = undefined;
  }

  async #handle(origin: Origin, isRedriven = false): Promise<void> {
    const { options, counts } = this.#shared;
    const { handlers, otherwise } = options;
    const head = readHead(origin, isRedriven);
    const { type } = head;
    let sequenced: SequencedEvent | undefined;
    if (await this.#memory.isHandled(head.id, isRedriven)) {
      counts.repeats += 1;
      return;
    }
    if (!isBankEventType(type) || !handlers[type]) {
      this.#reportNewer(type);
      if (!otherwise) return;
      await otherwise(readOther(head));
    } else {
      const event = readEvent(head, type);
      if (isSequenced(event) && !isRedriven) sequenced = event;
      if (sequenced && !(await this.#checkSequence(sequenced))) {
        counts.repeats += 1;
        return;
      }
      await (handlers[type] as Handle)(event);
    }
    await this.#memory.handled(head);
    // Last, because a retry would otherwise count as a repeat, and not record the event's id.
    if (sequenced) this.#memory.passed(sequenced);
    counts.handled += 1;
  }

  /** Resolves after a gap has been reported; false for a repeat. */
  async #checkSequence(event: SequencedEvent): Promise<boolean> {
    const { onGap, logger } = this.#shared.options;
    const place = await this.#memory.place(event, this.isWhole);
    if (typeof place === 'string') return place === 'next';
    if (onGap) await onGap(place, event);
    else logger.warn({ ...place, event_id: event.id }, 'events of this account are missing');
    this.#shared.counts.missing += place.to - place.from + 1;
    this.#memory.reported(place);
    return true;
  }

  #reportNewer(type: string): void {
    const { options, reportedTypes } = this.#shared;
    const handled = olderVersion(type, options.handlers);
    if (handled === undefined || reportedTypes.has(type)) return;
    reportedTypes.add(type);
    if (options.onNewerVersion) options.onNewerVersion(type, handled);
    else options.logger.warn({ type, handled }, 'events of a newer version arrive, for which there is no handler');
  }

  /** Returns the pause before the retry, or undefined if the event has become a dead letter. */
  async #fail(origin: Origin, current: Current, error: Error): Promise<number | undefined> {
    const { options, counts, deadLetter } = this.#shared;
    const { firstPauseMs = 200, maxPauseMs = 10_000 } = options.retry ?? {};
    const { topic, partition, offset } = origin;
    current.failures += 1;
    current.error = error;
    counts.failures += 1;
    const where = { topic, partition, offset: String(offset), failures: current.failures };
    if (error instanceof InvalidEventError || error instanceof DeadLetter) {
      try {
        await deadLetter(origin, error);
        current.isDead = true;
        await this.#setAside(origin);
        return undefined;
      } catch (failure) {
        options.logger.warn({ ...where, err: failure }, 'the dead letter could not be written or recorded; retrying');
      }
    } else options.logger.warn({ ...where, err: error }, 'handling failed; retrying the event');
    current.isRunning = false;
    return Math.min(firstPauseMs * 2 ** Math.min(current.failures - 1, 20), maxPauseMs);
  }

  /**
   * Records a dead letter, so that it causes no gap in its account's sequence, and no second dead letter when
   * it is delivered again. Rejects if the store does.
   */
  async #setAside(origin: Origin): Promise<void> {
    let head: ReturnType<typeof readHead>;
    try {
      head = readHead(origin);
    } catch {
      // A message that is not an event has no sequence.
      return;
    }
    await this.#memory.setAside(head.id, head.type === completedType ? await this.#readSequence(head) : undefined);
  }

  /**
   * Of an event that violates its schema, the sequence hides what follows only if it is the next one of its account. Otherwise
   * it is set aside nevertheless, so that a store recognizes the event when it is redriven.
   */
  async #readSequence(head: ReturnType<typeof readHead>): Promise<SetAside | undefined> {
    const { id, subject: account_id, origin } = head;
    try {
      const { data } = readEvent(head, completedType);
      return { account_id: data.transaction.account_id, sequence: data.sequence, id };
    } catch {
      const last = await this.#memory.last(account_id);
      const sequence = readGivenSequence(origin);
      if (last === undefined || typeof sequence !== 'number' || !Number.isSafeInteger(sequence)) return undefined;
      if (sequence === last + 1) return { account_id, sequence, id };
      return sequence > last ? { account_id, sequence, id, isUnproven: true } : undefined;
    }
  }
}

function readGivenSequence({ message }: Origin): unknown {
  try {
    return (JSON.parse(String(message.value)) as { sequence?: unknown } | null)?.sequence;
  } catch {
    return undefined;
  }
}
