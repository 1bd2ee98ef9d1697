import type { Logger } from 'pino';
import type { PublishedEvent } from './outbox-messages.ts';

/** What identifies a state in a compacted topic. */
export type StateName = Pick<PublishedEvent, 'topic' | 'key'>;

const statesAtOnce = 500;

/** States whose last record may be an older one, until they are published again. */
export class Doubts {
  readonly #logger: Logger;
  readonly #republish: (states: readonly StateName[]) => Promise<void>;
  /**
   * By delay and name, because a message that is republished now may have to be republished later,
   * too.
   */
  readonly #doubts = new Map<string, StateName & { until: number }>();
  #running: Promise<void> | undefined;

  /** `republish` writes the latest of at most 500 states to the outbox. */
  constructor(republish: (states: readonly StateName[]) => Promise<void>, logger: Logger) {
    this.#republish = republish;
    this.#logger = logger;
  }

  /** Has these states republished after `delayMs`, when the messages can no longer be written. */
  add(messages: readonly PublishedEvent[], delayMs: number): void {
    const until = performance.now() + delayMs;
    for (const { topic, key } of messages) this.#doubts.set(`${delayMs} ${topic} ${key}`, { topic, key, until });
  }

  /** Republishes what is due. Never fails: what could not be republished remains doubtful. */
  republishDue(): Promise<void> {
    return this.#run(performance.now());
  }

  /** Also republishes what is not due yet. */
  async republishAll(): Promise<void> {
    await this.#running;
    await this.#run(Number.POSITIVE_INFINITY);
  }

  #run(now: number): Promise<void> {
    this.#running ??= this.#republishUntil(now)
      .catch((error: unknown) => this.#logger.warn({ err: error }, 'republishing the latest states failed; retrying'))
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  async #republishUntil(now: number): Promise<void> {
    const due = [...this.#doubts].filter(([, { until }]) => until <= now);
    for (let at = 0; at < due.length; at += statesAtOnce) {
      const page = due.slice(at, at + statesAtOnce);
      await this.#republish(page.map(([, state]) => state));
      // What was doubted again meanwhile remains.
      for (const [name, state] of page) if (this.#doubts.get(name) === state) this.#doubts.delete(name);
    }
  }
}
