import type { Logger } from 'pino';
import { type MessageContext, replyAddress, type ReplyBody, source } from '#libs/contracts/envelope.ts';
import { replyMessage } from '#libs/contracts/exchange.ts';
import type { OutgoingMessage, Publisher } from '#libs/kafka/publish.ts';

interface ReplyDependencies {
  publisher: Publisher;
  logger: Logger;
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

/** Never rejects. */
export function publish(outgoing: OutgoingMessage[], { publisher, logger }: ReplyDependencies): void {
  if (outgoing.length === 0) return;
  publisher.publishAll(outgoing, { timeoutMs: publishTimeoutMs }).catch((error: unknown) => logger.warn({ err: error, replies: outgoing.length }, 'replies could not be sent'));
}
