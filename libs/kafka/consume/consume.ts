import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import { startTimeoutMs } from '../wait.ts';
import type { Assignment } from './consumer-session.ts';
import { heartbeatMs } from './consumer-session.ts';
import { Supervisor } from './consumer-supervisor.ts';
import type { Handle } from './message-pool.ts';
import { MessagePool } from './message-pool.ts';

export type { ReceivedMessage } from './received-message.ts';

export interface ConsumeOptions {
  groupId: string;
  topics: string[];
  /**
   * Gets what waits over all partitions held, up to maxBatch, in order per partition. When it resolves, the
   * messages are done and their offsets get committed. When it throws, the same messages come again after
   * 100 ms to 2 s, and nothing behind them is handled before; a message that can never work must be caught
   * inside and sent to the dead letters. After a crash or a rebalance messages may come a second time.
   */
  handle: Handle;
  logger: Logger;
  /** Default 500. */
  maxBatch?: number;
  /** Calls of handle at the same time. Default 1; with more, order is kept by nobody. */
  concurrency?: number;
  /** Where a group without committed offsets starts. Default true: at the oldest message kept. */
  fromBeginning?: boolean;
  /** After this time without a heartbeat, the others take over this member's partitions. Default 6 s. */
  sessionTimeoutMs?: number;
  onAssignment?(assigned: Assignment[]): void;
}

export interface Consumer {
  /**
   * Resolves when the group is joined; rejects after `timeoutMs` (default a day), stopped. Comes
   * back by itself later.
   */
  start(options?: { timeoutMs?: number }): Promise<void>;
  /**
   * Lets the running call of handle finish, commits its offsets and leaves the group; each for at
   * most `timeoutMs` (default 10 s).
   */
  stop(options?: { timeoutMs?: number }): Promise<void>;
  /** Not ok when there was no fetch or heartbeat for two session time-outs, or when a partition cannot be read on. */
  health(): { ok: boolean; reason?: string };
  /** Not ok where only a new process helps: nothing was heard for over a minute although the brokers answer. */
  alive(): { ok: boolean; reason?: string };
  assigned(): Assignment[];
}

const defaultSessionTimeoutMs = 6_000;

/** A member of a consumer group: at least once, in order per partition, all partitions in one stream of batches. */
export function consume(kafka: KafkaClient, options: ConsumeOptions): Consumer {
  const {
    groupId,
    topics,
    handle,
    maxBatch = 500,
    concurrency = 1,
    fromBeginning = true,
    sessionTimeoutMs = defaultSessionTimeoutMs,
  } = options;
  const logger = options.logger;
  const pool = new MessagePool({
    handle,
    maxBatch,
    concurrency,
    heartbeatMs: heartbeatMs(sessionTimeoutMs),
    logger: logger.child({ group: groupId }),
  });
  const supervisor = new Supervisor(
    kafka,
    () => ({
      groupId,
      topics,
      fromBeginning,
      sessionTimeoutMs,
      eachBatch: (payload) => pool.add(payload),
      onJoin: (assignment) => {
        pool.join(assignment);
        options.onAssignment?.(assignment);
      },
      onLost: (isStillMember) => pool.lose(isStillMember),
      beforeStop: () => pool.stop(),
    }),
    logger,
  );
  return {
    start: ({ timeoutMs = startTimeoutMs } = {}) => supervisor.start(timeoutMs),
    stop: ({ timeoutMs = 10_000 } = {}) => supervisor.stop(timeoutMs),
    health: () => supervisor.health(),
    alive: () => supervisor.alive(),
    assigned: () => pool.assigned,
  };
}
