import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { replySchema, replyType } from '#libs/contracts/envelope.ts';
import {
  decodeRequest,
  parseJson,
  type Reader,
  type Unreadable,
  type Unverifiable,
  whyNotAuthentic,
} from '#libs/contracts/exchange.ts';
import { messages } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Request } from '#libs/service/query-consumer.ts';
import type { NewDeadLetter } from '../dead-letters/dead-letter-store.ts';
import { deadLetterRow, isDeadLetterTopic } from '../dead-letters/dead-letters.ts';

/** A decoded message: a command, a reply to a saga step, or a dead letter to list. Pure. */
export type Decoded =
  | Request
  | { kind: 'ledger_reply'; step_id: string; body: ReplyBody }
  | { kind: 'dead_letter'; row: NewDeadLetter };

/**
 * Decodes a message of accounts.commands, which includes replies to saga steps, or of a dead letter topic.
 * Never throws.
 */
export function decode(message: ReceivedMessage, reader: Reader): Decoded | Unreadable | Unverifiable {
  if (isDeadLetterTopic(message.topic)) return { kind: 'dead_letter', row: deadLetterRow(message, reader.prefix) };
  if (message.headers['ce_type'] !== replyType)
    return decodeRequest(message, (name) => messages[name].topic === 'accounts.commands', reader);
  const stranger = whyNotAuthentic(message, reader.keys, (signer) => signer !== 'gateway');
  if (stranger) return stranger;
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
