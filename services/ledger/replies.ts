import type { Logger } from 'pino';
import { idsOf, type MessageContext, type ReplyAddress, replyAddress, type ReplyBody, source } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { replyMessage } from '#libs/contracts/exchange.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { deadLetter } from '#libs/kafka/consume/dead-letter.ts';
import type { OutgoingMessage, Publisher } from '#libs/kafka/publish/publish.ts';

export interface ReplyDependencies {
  publisher: Publisher;
  logger: Logger;
  /** Told of each message put among the dead letters. */
  onDeadLetter?: (topic: string, code: string) => void;
  /** Told of replies that the broker has taken; `begunAt` (performance.now) is when they were handed to the publisher. */
  onReplies?: ((messages: readonly OutgoingMessage[], begunAt: number) => void) | undefined;
}

const publishTimeoutMs = 10_000;

/** Sends replies in one produce request. Not waited for: the truth is in the database, and a repeat gets it. */
export function sendReplies(replies: { context: MessageContext; reply: ReplyBody }[], deps: ReplyDependencies): void {
  const now = new Date().toISOString();
  const outgoing = replies.flatMap(({ context, reply }) => {
    const address = replyAddress(context);
    return address ? [replyMessage(address, reply, source.ledger, now, context)] : [];
  });
  publish(outgoing, deps);
}

/** Why a message can never be processed, and who waits for an answer. */
export interface Poison {
  code: string;
  reason: string;
  address: ReplyAddress | undefined;
}

/** The reply to what cannot be processed. */
export const failure: ReplyBody = { ok: false, refusal: refusal('internal_error', 'the request could not be processed') };

/** Puts a message among the dead letters, and answers it where it says where to. Rejects where the broker does not take it. */
export async function setAside(message: ReceivedMessage, { code, reason, address }: Poison, deps: ReplyDependencies): Promise<void> {
  const { topic, partition, offset, headers } = message;
  deps.logger.warn({ topic, partition, offset: String(offset), ...idsOf(headers), code, reason }, 'dead letter');
  await deadLetter(deps.publisher, message, { code, reason });
  deps.onDeadLetter?.(topic, code);
  if (address) publish([replyMessage(address, failure, source.ledger, new Date().toISOString())], deps);
}

/** Never rejects. */
function publish(outgoing: OutgoingMessage[], { publisher, logger, onReplies }: ReplyDependencies): void {
  if (outgoing.length === 0) return;
  const begunAt = performance.now();
  const published = publisher.publishAll(outgoing, { timeoutMs: publishTimeoutMs });
  (onReplies ? published.then(() => onReplies(outgoing, begunAt)) : published).catch((error: unknown) => logger.warn({ err: error, replies: outgoing.length }, 'replies could not be sent'));
}
