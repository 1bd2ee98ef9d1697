import { type BankEvent, type BankEventType, InvalidEventError, isBankEventType, isSequenced, olderVersion, type Origin, readEvent, readHead, readOther } from './event.ts';
import { Memory } from './memory.ts';
import type { ConsumerOptions, Logger } from './options.ts';

type Settings = ConsumerOptions & { logger: Logger; sessionTimeoutMs: number };
type Handle = (event: BankEvent<BankEventType>) => Promise<void> | void;

/** What the partitions of a consumer share. */
export interface Shared {
  options: Settings;
  /** Resolves when the broker has it. */
  deadLetter(origin: Origin, error: Error): Promise<void>;
  /** Types of a newer version that were reported. */
  reportedTypes: Set<string>;
  /** Every partition that was ever held, by name: what was handled stays known from one session to the next. */
  partitions: Map<string, Partition>;
}

/** The events of one partition, one after the other. */
export class Partition {
  readonly #shared: Shared;
  readonly #memory: Memory;
  #last: Promise<unknown> = Promise.resolve();
  #failing: { offset: bigint; attempts: number } | undefined;

  constructor(shared: Shared) {
    this.#shared = shared;
    this.#memory = new Memory(shared.options);
  }

  /**
   * Takes one message to its end: handled, skipped, or a dead letter; then `done`. Else the milliseconds until it is to be
   * taken again, before anything behind it. Never rejects. A handler that an earlier session has left running is waited for.
   */
  take(origin: Origin): Promise<'done' | number> {
    const turn = this.#last.then(() => this.#take(origin));
    this.#last = turn;
    return turn;
  }

  /** To be called where the partition may have been somebody else's meanwhile. */
  forgetPlaces(): void {
    this.#memory.forgetPlaces();
  }

  async #take(origin: Origin): Promise<'done' | number> {
    try {
      await this.#handle(origin);
    } catch (error) {
      return this.#fail(origin, error as Error);
    }
    this.#failing = undefined;
    return 'done';
  }

  async #handle(origin: Origin): Promise<void> {
    const { handlers, otherwise } = this.#shared.options;
    const head = readHead(origin);
    const { type } = head;
    if (await this.#memory.isHandled(head.id)) return;
    if (!isBankEventType(type) || !handlers[type]) {
      this.#reportNewer(type);
      if (!otherwise) return;
      await otherwise(readOther(head));
    } else {
      const event = readEvent(head, type);
      const isRepeat = isSequenced(event) && !(await this.#checkSequence(event));
      if (isRepeat) return;
      await (handlers[type] as Handle)(event);
      if (isSequenced(event)) this.#memory.passed(event);
    }
    await this.#memory.handled(head);
  }

  /** False for a repeat. Resolves when a gap has been reported. */
  async #checkSequence(event: BankEvent<'corebanking.transaction.completed.v1'>): Promise<boolean> {
    const { onGap, logger } = this.#shared.options;
    const place = await this.#memory.place(event);
    if (typeof place === 'string') return place === 'next';
    if (onGap) await onGap(place, event);
    else logger.warn({ ...place, event_id: event.id }, 'events of this account are missing');
    return true;
  }

  #reportNewer(type: string): void {
    const { options, reportedTypes } = this.#shared;
    const handled = olderVersion(type, options.handlers);
    if (handled === undefined || reportedTypes.has(type)) return;
    reportedTypes.add(type);
    if (options.onNewerVersion) options.onNewerVersion(type, handled);
    else options.logger.warn({ type, handled }, 'events of a newer version are coming, which have no handler');
  }

  async #fail(origin: Origin, error: Error): Promise<'done' | number> {
    const { options, deadLetter } = this.#shared;
    const { attempts: maxAttempts = 5, firstPauseMs = 200, maxPauseMs = 10_000 } = options.retry ?? {};
    const attempts = this.#failing?.offset === origin.offset ? this.#failing.attempts + 1 : 1;
    this.#failing = { offset: origin.offset, attempts };
    const where = { topic: origin.topic, partition: origin.partition, offset: String(origin.offset), attempts };
    const pauseMs = Math.min(firstPauseMs * 2 ** (attempts - 1), maxPauseMs);
    if (attempts < maxAttempts && !(error instanceof InvalidEventError)) {
      options.logger.warn({ ...where, err: error }, 'handling failed; the event is tried again');
      return pauseMs;
    }
    try {
      await deadLetter(origin, error);
    } catch (failure) {
      options.logger.warn({ ...where, err: failure }, 'the dead letter could not be written; the event is tried again');
      return pauseMs;
    }
    this.#pass(origin);
    this.#failing = undefined;
    return 'done';
  }

  /** A dead letter leaves no gap in its account's sequence, and no second one when it is delivered again. */
  #pass(origin: Origin): void {
    try {
      const head = readHead(origin);
      this.#memory.setAside(head);
      if (!isSequenced(head)) return;
      this.#memory.passed(readEvent(head, (head as BankEvent<'corebanking.transaction.completed.v1'>).type));
    } catch {
      // What cannot be read has no place in a sequence.
    }
  }
}
