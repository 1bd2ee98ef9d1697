import type { Logger } from 'pino';
import {
  idsForLog,
  type MessageContext,
  type ReplyAddress,
  type ReplyBody,
  refused,
} from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { replyMessage, type Unreadable } from '#libs/contracts/exchange.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { deadLetter } from '#libs/kafka/consume/dead-letter.ts';
import type { OutgoingMessage, Publisher } from '#libs/kafka/publish/publish.ts';

/** A reply whose content is committed. If it has no address, no caller waits for it. */
export interface Answer {
  address: ReplyAddress | undefined;
  body: ReplyBody;
  context?: MessageContext | undefined;
}

export interface Replies {
  /**
   * Sends replies in one produce request. It does not wait and never fails: the outcome is in the database, and
   * a repeat of the command returns it.
   */
  send(answers: readonly Answer[]): void;
  /**
   * Dead-letters the message and replies to its address, if any, once per message. Resolves when the broker has
   * acknowledged it; otherwise rejects. A message that was read from a dead letter topic is only logged.
   */
  deadLetter(message: ReceivedMessage, why: Omit<Unreadable, 'kind'>): Promise<void>;
}

export interface RepliesOptions {
  publisher: Pick<Publisher, 'publish' | 'publishAll'>;
  /** The CloudEvents source. */
  source: string;
  logger: Logger;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  onDeadLetter?: (topic: string, code: string) => void;
  /** Called with replies that the broker has acknowledged. `begunAt` (performance.now) is when they were published. */
  onReplies?: ((messages: readonly OutgoingMessage[], begunAt: number) => void) | undefined;
}

const publishTimeoutMs = 5_000;

/** The reply to a message that cannot be processed. */
export const failure = refused(refusal('internal_error', 'the request could not be processed'));

export function createReplies({ publisher, source, logger, now, onDeadLetter, onReplies }: RepliesOptions): Replies {
  const dead = new WeakSet<ReceivedMessage>();

  function send(answers: readonly Answer[]): void {
    const time = new Date(now()).toISOString();
    const outgoing = answers.flatMap(({ address, body, context }) =>
      address ? [replyMessage(address, body, source, time, context)] : [],
    );
    if (outgoing.length === 0) return;
    const begunAt = performance.now();
    publisher.publishAll(outgoing, { timeoutMs: publishTimeoutMs }).then(
      () => onReplies?.(outgoing, begunAt),
      (error: unknown) => {
        const ids = outgoing.slice(0, 10).map(({ headers }) => headers['request-id']);
        logger.warn({ err: error, replies: outgoing.length, request_ids: ids }, 'replies were lost');
      },
    );
  }

  return {
    send,
    async deadLetter(message, { code, reason, address }) {
      if (dead.has(message)) return;
      const { topic, partition, offset, headers } = message;
      const isDeadAlready = topic.endsWith('.dlq');
      if (!isDeadAlready) await deadLetter(publisher, message, { code, reason });
      dead.add(message);
      const about = { topic, partition, offset: String(offset), ...idsForLog(headers), code, reason };
      logger.error(about, isDeadAlready ? 'a dead letter cannot be listed' : 'dead-lettered');
      if (isDeadAlready) return;
      onDeadLetter?.(topic, code);
      send([{ address, body: failure }]);
    },
  };
}
