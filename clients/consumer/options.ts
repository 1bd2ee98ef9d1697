import type { KafkaConfig } from 'kafkajs';
import type { Letter } from './dead-letter.ts';
import type { Gap, Handlers, Loss, OtherEvent, SequencedEvent } from './event.ts';
import type { ConsumerMetrics, Standing } from './measures.ts';

/** The consumer's logger; pino and console have this interface. */
export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** The results of redriving the existing dead letters. */
export interface Redriven {
  handled: number;
  /** The number of events that failed again and became new dead letters. */
  failed: number;
}

/** An event of an account's sequence that became a dead letter. */
export interface SetAside {
  account_id: string;
  sequence: number;
  /** ce_id */
  id: string;
  /** It violates the contract, and its sequence is not the next one: `lastSequence` must not include it. */
  isUnproven?: true;
}

export interface ConsumerOptions {
  /** kafkajs's configuration; at least `brokers`. */
  kafka: KafkaConfig;
  groupId: string;
  /** The bank's TOPIC_PREFIX. Default: none. */
  topicPrefix?: string;
  /**
   * A handler by event type; the topics of these types are read. The next event of the same
   * partition, and so of the same account, waits until the handler has resolved. If it throws, it is
   * called again for as long as necessary (see `retry`); if it throws a DeadLetter, the event becomes
   * a dead letter and the next one is handled.
   */
  handlers: Handlers;
  /** Handles events on these topics that have no handler; by default they are skipped. */
  otherwise?(event: OtherEvent): Promise<void> | void;
  /**
   * Where a new group starts. Default true: at the oldest event; false: after the newest.
   */
  fromBeginning?: boolean;
  /**
   * Skips events published before this time, by the broker's clock: the group starts with the first later
   * event of each partition. A group that has read further continues from there, so the option may remain
   * set when the process restarts. To read a period again, use a new `groupId`.
   */
  from?: Date;
  /** Number of partitions handled concurrently. Default 1. Each partition is handled in order. */
  parallelism?: number;
  /**
   * The pauses before retries. By default they double from 200 ms to 10 s. Other partitions continue meanwhile, but for the
   * first three pauses if `parallelism` handlers are waiting, and these are not longer than a second.
   */
  retry?: { firstPauseMs?: number; maxPauseMs?: number };
  /** If one event takes longer, because its handler hangs or is retried, health() reports it. Default: one minute. */
  handlerLimitMs?: number;
  /** Topic of this group's dead letters; created if it is missing. Default: `<groupId>.DLT`. */
  deadLetterTopic?: string;
  /** Number of event ids, and of accounts with their sequences, kept in memory per partition. Default: 10,000 each. */
  memory?: number;
  /** Your own record of handled events, such as a database. By default only memory is used. */
  store?: {
    /**
     * Returns the account's last sequence, 0 if there is none, or undefined if it is unknown. After 0 the first must
     * be 1, unless this group has not read its topic from its beginning. Called if memory does not contain the account.
     */
    lastSequence?(accountId: string): Promise<number | undefined>;
    /**
     * Called after an event of the sequence became a dead letter, before the next one. `lastSequence` must then include it, or
     * a restart reports a gap. If it throws, it is called again.
     */
    setAside?(event: SetAside): Promise<void>;
    /** Returns whether the event with this ce_id was handled. */
    isHandled?(id: string): Promise<boolean>;
    /** Called after the handler has resolved. */
    markHandled?(id: string): Promise<void>;
  };
  /**
   * Called before the handler of the event after the gap; if it throws, both are retried.
   * Default: a warning.
   */
  onGap?(gap: Gap, event: SequencedEvent): Promise<void> | void;
  /**
   * Called if the topic has deleted messages that this group had not read, before the first remaining
   * one is handled; if it throws, both are retried. Default: a warning.
   */
  onLoss?(loss: Loss): Promise<void> | void;
  /** Called once per type for events of a newer version than the handled one. Default: a warning. */
  onNewerVersion?(type: string, handled: string): void;
  /** Called after an event has become a dead letter. Default: a warning. */
  onDeadLetter?(letter: Letter): void;
  /** Default: warnings to the console. */
  logger?: Logger;
  /**
   * After this time without a heartbeat the other members take over. Default: 6 s, the minimum that a
   * broker accepts by default.
   */
  sessionTimeoutMs?: number;
}

export interface Health {
  /** False if nothing is received from the brokers, or a partition is stopped. */
  ok: boolean;
  /**
   * False if a restart would help: nothing is received although the brokers respond, for longer
   * than a rebalance may take, or a handler hangs. For a liveness probe.
   */
  alive: boolean;
  reason?: string;
  /** Partitions that have been stopped at one event for longer than `handlerLimitMs`. */
  standing: Standing[];
}

export interface BankConsumer {
  /**
   * Resolves when the group is joined or the consumer is stopped. Until then it retries. It also recovers from
   * later failures.
   */
  start(): Promise<void>;
  /**
   * Lets running handlers finish, commits, and leaves the group, within `timeoutMs` (default 30 s).
   * Then closes all connections, so that nothing of the consumer keeps the process alive. Returns
   * the same promise when called again.
   */
  stop(options?: { timeoutMs?: number }): Promise<void>;
  health(): Health;
  /** Returns the counts since the start. For Prometheus see `prometheusText`. */
  metrics(): ConsumerMetrics;
  /**
   * Returns, by partition of `transactions`, the offset after the last event that the group has handled, as all its members
   * have committed it. For the store of `reconcile`. Can be called without start().
   */
  positions(): Promise<Map<number, bigint>>;
  /**
   * Passes the existing dead letters to the handlers, with `redriven: true`, regardless of their
   * accounts' sequences. An event whose handler throws again becomes a new dead letter. Concurrent
   * calls of several members share the letters, and resolve when all were passed to handlers. While
   * a call of this member runs, another one returns the same promise. Can be called without start(),
   * also in another process, but not after stop().
   */
  redrive(): Promise<Redriven>;
}
