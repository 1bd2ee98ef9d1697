import { pause, withTimeout } from '../wait.ts';

export interface ReplyProbeOptions {
  /** Publishes a message with this correlation id to the partition that is read; rejects when it could not. */
  send(id: string): Promise<void>;
  /** What every probe's correlation id starts with. */
  prefix: string;
  /** The broker takes probes, but they do not come back. */
  onLost(): void;
}

const firstWaitMs = 250;
const waitMs = 2_000;
const everyMs = 3_000;
const givenUpAfterMs = 4_000;
const pauseMs = 100;

/**
 * Proves that replies arrive: sends messages to itself, often until the first one is back, then every few
 * seconds. Having joined the group is no proof, for a new member reads from an offset that it looks up later.
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

  /** Resolves when the first probe is back, or rejects after `timeoutMs`; it goes on until stop(). */
  async start(timeoutMs: number): Promise<void> {
    this.#running ??= this.#probeOn();
    await withTimeout(this.#firstBack.promise, timeoutMs, 'the first message back');
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#back?.();
    await this.#running;
  }

  /** The consumer has joined anew: it gets a few seconds until probes must come back. */
  joined(): void {
    this.#joinedAt = Date.now();
  }

  /** Something was read, whoever it is for. */
  taken(): void {
    this.#takenAt = Date.now();
  }

  /**
   * True when this id is a probe's. One that was given up and comes late proves as much as the one
   * that is waited for.
   */
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
        // However long the next join takes: what is built again before it has joined never joins on a slow machine.
        this.#joinedAt = Number.POSITIVE_INFINITY;
        this.#options.onLost();
      }
    }
  }

  /**
   * True: it came back, or, once ready, anything did. False: the broker has it, and nothing came. Undefined: it
   * could not be sent.
   */
  async #probeOnce(): Promise<boolean | undefined> {
    const sentAt = Date.now();
    const back = new Promise<true>((resolve) => {
      this.#back = () => resolve(true);
    });
    try {
      await this.#options.send(this.#options.prefix + String(this.#sequence++));
    } catch {
      // Without a broker, this says nothing about the consumer: its time begins when there is one again. What is asked
      // for meanwhile waits at the publisher, and is refused only when no broker takes it in its time.
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
