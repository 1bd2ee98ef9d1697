import { replySchema, replyType } from '#libs/contracts/envelope.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { decodeRequest, parseJson } from '#libs/contracts/exchange.ts';
import type { DecodedRequest } from '#libs/contracts/exchange.ts';
import { messages } from '#libs/contracts/messages.ts';

/** PURE: what a Kafka message says. */
export type Decoded = DecodedRequest | { kind: 'ledger_reply'; step_id: string; body: ReplyBody };

/** Reads a message of accounts.commands, where the ledger's replies arrive too, or of accounts.queries. Never throws. */
export function decode(message: { headers: Record<string, string>; value: Buffer | null }, topic: 'accounts.commands' | 'accounts.queries', prefix: string): Decoded {
  if (message.headers['ce_type'] !== replyType || topic !== 'accounts.commands') return decodeRequest(message, (name) => messages[name].topic === topic, prefix);
  const step_id = message.headers['correlation-id'];
  const body = replySchema.safeParse(parseJson(message.value));
  if (step_id !== undefined && body.success) return { kind: 'ledger_reply', step_id, body: body.data };
  return { kind: 'bad', code: 'malformed_reply', reason: 'a reply without a correlation id or a readable value', address: undefined };
}
