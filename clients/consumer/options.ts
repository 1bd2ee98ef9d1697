import type { KafkaConfig } from 'kafkajs';
import type { Letter } from './dead-letter.ts';
import type { Gap, Handlers, Loss, OtherEvent, SequencedEvent } from './event.ts';
import type { ConsumerMetrics, Standing } from './measures.ts';
import type { Redriven } from './redrive.ts';

/** Where the consumer says what happens to it; pino and console have this shape. */
export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface ConsumerOptions {
  /** How to reach the brokers, as kafkajs takes it; at least `brokers`. */
  kafka: KafkaConfig;
  groupId: string;
  /** TOPIC_PREFIX of the bank. Default none. */
  topicPrefix?: string;
  /**
   * What to do with an event, by type; the topics of these types are read. The next event of the
   * same partition, and so of the same account, waits until it has resolved. When it throws, it is
   * called again, for as long as it takes (see `retry`); when it throws a DeadLetter, the event is
   * set aside and the next one comes.
   */
  handlers: Handlers;
  /** Gets the events on these topics that have no handler; without it they are skipped. */
  otherwise?(event: OtherEvent): Promise<void> | void;
  /**
   * Where a group begins that has read nothing yet. Default true: at the oldest event kept; false:
   * behind the newest.
   */
  fromBeginning?: boolean;
  /**
   * Events that were published before this moment, by the broker's clock, are left out: the group begins
   * with the first one of each partition from then on. A group that has read further goes on where it was,
   * so that the option may stay when the process restarts. To read a period again, take a new `groupId`.
   */
  from?: Date;
  /** Partitions that are handled at the same time. Default 1; order is kept by partition, whatever the number. */
  parallelism?: number;
  /** Pauses before an event is tried again: they double from 200 ms to 10 s. Meanwhile the other partitions go on. */
  retry?: { firstPauseMs?: number; maxPauseMs?: number };
  /** After so long with one event, in a handler that hangs or by trying again, health() says so. Default a minute. */
  handlerLimitMs?: number;
  /** Takes this group's dead letters; made where it is missing. Default `<groupId>.DLT`. */
  deadLetterTopic?: string;
  /** What is remembered of a partition: ids of events, and accounts with their sequences. Default 10,000 of each. */
  memory?: number;
  /** What your own database knows of events that were handled; without it, memory alone. */
  store?: {
    /**
     * The account's last sequence there; 0: none, so the first must be 1; undefined: not known.
     * Asked when memory does not know the account.
     */
    lastSequence?(accountId: string): Promise<number | undefined>;
    /** Whether the event with this ce_id was handled. */
    isHandled?(id: string): Promise<boolean>;
    /** Called when its handler has resolved. */
    markHandled?(id: string): Promise<void>;
  };
  /**
   * Called before the handler of the event behind the gap; when it throws, both are tried again.
   * Default: a warning.
   */
  onGap?(gap: Gap, event: SequencedEvent): Promise<void> | void;
  /**
   * The topic has deleted messages that this group had not read. Called before the first that is
   * left; when it throws, both are tried again. Default: a warning.
   */
  onLoss?(loss: Loss): Promise<void> | void;
  /** Once per type: events of a newer version than the one that has a handler. Default: a warning. */
  onNewerVersion?(type: string, handled: string): void;
  /** When an event has become a dead letter. Default: a warning. */
  onDeadLetter?(letter: Letter): void;
  /** Default: warnings to the console. */
  logger?: Logger;
  /**
   * After this time without a heartbeat the others take over. Default 6 s, the least that a broker
   * takes unless told otherwise.
   */
  sessionTimeoutMs?: number;
}

export interface Health {
  /** Not so when nothing is heard from the brokers, or a partition stands. */
  ok: boolean;
  /**
   * Not so where a new process would help: nothing is heard from the brokers, or a handler hangs.
   * For a liveness probe.
   */
  alive: boolean;
  reason?: string;
  /** Partitions that have been at one event for longer than `handlerLimitMs`. */
  standing: Standing[];
}

export interface BankConsumer {
  /**
   * Resolves when the group is joined, or the consumer stopped; tries until then, and comes back by
   * itself after every failure.
   */
  start(): Promise<void>;
  /**
   * Lets running handlers finish, commits, leaves the group; at most `timeoutMs` (default 30 s).
   * The same promise when called again.
   */
  stop(options?: { timeoutMs?: number }): Promise<void>;
  health(): Health;
  /** Since the start; for Prometheus see `prometheusText`. */
  metrics(): ConsumerMetrics;
  /**
   * Hands the dead letters that there are now to the handlers, with `redriven: true`, whatever
   * place they have in their accounts' sequences. One whose handler throws again becomes a new dead
   * letter. Can be called without start(), from another process too.
   */
  redrive(): Promise<Redriven>;
}
