import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { replySchema, replyType } from '#libs/contracts/envelope.ts';
import { decodeRequest, notAuthentic, parseJson, type Reader } from '#libs/contracts/exchange.ts';
import { messages } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Request } from '#libs/service/query-consumer.ts';
import type { Unreadable } from '#libs/service/replies.ts';
import type { NewDeadLetter } from '../dead-letters/dead-letter-store.ts';
import { deadLetterRow, isDeadLetterTopic } from '../dead-letters/dead-letters.ts';

/** PURE: what a message says that waits for accounts: a command, a reply to a step, a dead letter to be listed. */
export type Decoded =
  | Request
  | { kind: 'ledger_reply'; step_id: string; body: ReplyBody }
  | { kind: 'dead_letter'; row: NewDeadLetter };

/**
 * Reads a message of accounts.commands, where replies to steps of sagas arrive too, or of a
 * dead-letter topic. Never throws.
 */
export function decode(message: ReceivedMessage, reader: Reader): Decoded | Unreadable {
  if (isDeadLetterTopic(message.topic)) return { kind: 'dead_letter', row: deadLetterRow(message, reader.prefix) };
  if (message.headers['ce_type'] !== replyType)
    return decodeRequest(message, (name) => messages[name].topic === 'accounts.commands', reader);
  const signer = reader.keys.signerOf(message);
  if (signer !== 'ledger' && signer !== 'accounts') return notAuthentic;
  const step_id = message.headers['ce_id'];
  const body = replySchema.safeParse(parseJson(message.value));
  if (step_id !== undefined && body.success) return { kind: 'ledger_reply', step_id, body: body.data };
  return {
    kind: 'bad',
    code: 'malformed_reply',
    reason: 'a reply without an id or a readable value',
    address: undefined,
  };
}
