import { pause, withTimeout } from '../wait.ts';

export interface ReplyProbeOptions {
  /** Publishes a message with this correlation id to the partition that is read. Rejects if that fails. */
  send(id: string): Promise<void>;
  /** The prefix of every probe's correlation id. */
  prefix: string;
  /** Called when the broker accepts probes but they do not arrive. */
  onLost(): void;
}

const firstWaitMs = 250;
const waitMs = 2_000;
const everyMs = 3_000;
const givenUpAfterMs = 4_000;
const pauseMs = 100;

/**
 * Verifies that replies arrive, by sending messages to its own partition: often until the first one arrives,
 * then every few seconds. Joining the group is not sufficient, because a new member reads from an offset that
 * it looks up later.
 */
export class ReplyProbe {
  readonly #options: ReplyProbeOptions;
  readonly #stopping = new AbortController();
  readonly #firstBack = Promise.withResolvers<void>();
  #sequence = 0;
  #ready = false;
  #joinedAt = 0;
  #takenAt = 0;
  #back: (() => void) | undefined;
  #running: Promise<void> | undefined;

  constructor(options: ReplyProbeOptions) {
    this.#options = options;
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** Resolves when the first probe arrives. Probing continues until stop(). */
  start(): Promise<void> {
    this.#running ??= this.#probeOn();
    return this.#firstBack.promise;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#back?.();
    await this.#running;
  }

  /** Must be called when the consumer has rejoined. Probes then have a few seconds to arrive. */
  joined(): void {
    this.#joinedAt = Date.now();
  }

  /** Must be called when any message was read. */
  taken(): void {
    this.#takenAt = Date.now();
  }

  /** Reports whether this id belongs to a probe. A late probe counts as the current one does. */
  arrived(id: string): boolean {
    const isProbe = id.startsWith(this.#options.prefix);
    if (isProbe) this.#back?.();
    return isProbe;
  }

  async #probeOn(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const isBack = await this.#probeOnce();
      if (isBack === undefined) await pause(pauseMs, signal);
      else if (isBack) await pause(everyMs, signal);
      else if (!signal.aborted && Date.now() - this.#joinedAt > givenUpAfterMs) {
        this.#ready = false;
        // Pauses the check until the next join, however long it takes. A consumer that is rebuilt before it has
        // joined would never join on a slow machine.
        this.#joinedAt = Number.POSITIVE_INFINITY;
        this.#options.onLost();
      }
    }
  }

  /**
   * Returns true if the probe arrived or, once ready, if anything was read; false if the broker has it and
   * nothing was read; undefined if it could not be sent.
   */
  async #probeOnce(): Promise<boolean | undefined> {
    const sentAt = Date.now();
    const back = new Promise<true>((resolve) => {
      this.#back = () => resolve(true);
    });
    try {
      await this.#options.send(this.#options.prefix + String(this.#sequence++));
    } catch {
      // A probe that fails because there is no broker says nothing about the consumer, so its time starts when
      // a broker is available. Meanwhile requests wait in the publisher, and are refused only if no broker
      // accepts them in time.
      this.#joinedAt = Date.now();
      return undefined;
    }
    const isBack = await withTimeout(back, this.#ready ? waitMs : firstWaitMs, 'the probe').catch(
      () => this.#ready && this.#takenAt > sentAt,
    );
    if (isBack) {
      this.#ready = true;
      this.#firstBack.resolve();
    }
    return isBack;
  }
}
