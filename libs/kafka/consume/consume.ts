import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import { heartbeatMs } from './consumer-session.ts';
import { Supervisor } from './consumer-supervisor.ts';
import type { Assignment, Handle } from './message-pool.ts';
import { MessagePool } from './message-pool.ts';

export type { ReceivedMessage } from './received-message.ts';

export interface ConsumeOptions {
  groupId: string;
  topics: string[];
  /**
   * Receives available messages of all assigned partitions, up to maxBatch, in order per partition. When it
   * resolves, the messages are processed and their offsets will be committed. When it rejects, the same
   * messages are delivered again after 100 ms to 2 s, and no later messages before them. The handler must
   * therefore dead-letter messages that can never be processed. After a crash or a rebalance, messages may be
   * delivered twice.
   */
  handle: Handle;
  logger: Logger;
  /** The maximum number of messages per call of handle. Default 500. */
  maxBatch?: number;
  /**
   * The number of concurrent calls of handle. Default 1. If higher, order is not preserved, and a crash loses the
   * messages of the running calls. This suits queries: their callers no longer wait when another member takes over.
   */
  concurrency?: number;
  /** Where a group without committed offsets starts. Default true: at the oldest message. */
  fromBeginning?: boolean;
  /** After this time without a heartbeat, other members take over the partitions. Default 6 s. */
  sessionTimeoutMs?: number;
}

export interface Consumer {
  /** Resolves when the consumer has joined its group. Later it reconnects by itself. */
  start(): Promise<void>;
  /**
   * Waits for the running call of handle, commits its offsets, and leaves the group, each for at most
   * `timeoutMs` (default 10 s).
   */
  stop(options?: { timeoutMs?: number }): Promise<void>;
  /** Not ok if there was no fetch or heartbeat for two session timeouts, or if a partition cannot be read. */
  health(): { ok: boolean; reason?: string };
  /**
   * Not ok if the process must be restarted: it received nothing for more than a minute although the brokers
   * respond.
   */
  alive(): { ok: boolean; reason?: string };
  assigned(): Assignment[];
}

const defaultSessionTimeoutMs = 6_000;

/**
 * Creates a consumer group member that delivers all its partitions as one stream of batches: at least once, in
 * order per partition.
 */
export function consume(kafka: KafkaClient, options: ConsumeOptions): Consumer {
  const { groupId, topics, handle, logger, maxBatch = 500, concurrency = 1, fromBeginning = true } = options;
  const sessionTimeoutMs = options.sessionTimeoutMs ?? defaultSessionTimeoutMs;
  const pool = new MessagePool({
    handle,
    maxBatch,
    concurrency,
    heartbeatMs: heartbeatMs(sessionTimeoutMs),
    logger: logger.child({ group: groupId }),
  });
  const supervisor = new Supervisor(kafka, { groupId, topics, fromBeginning, sessionTimeoutMs }, pool, logger);
  return {
    start: () => supervisor.start(),
    stop: ({ timeoutMs = 10_000 } = {}) => supervisor.stop(timeoutMs),
    health: () => supervisor.health(),
    alive: () => supervisor.alive(),
    assigned: () => pool.assigned,
  };
}
