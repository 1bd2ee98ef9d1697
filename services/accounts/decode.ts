import { fromHeaders, replyAddress, replySchema, replyType } from '#libs/contracts/envelope.ts';
import type { MessageContext, ReplyAddress, ReplyBody } from '#libs/contracts/envelope.ts';
import { messageOfType, messages } from '#libs/contracts/messages.ts';
import type { MessageName } from '#libs/contracts/messages.ts';
import { commandPartitions, replyPartitions, topicName } from '#libs/contracts/topics.ts';

/** PURE: what a Kafka message says. */

export type Decoded =
  | { kind: 'request'; name: MessageName; context: MessageContext; data: unknown; address: ReplyAddress | undefined }
  | { kind: 'ledger_reply'; step_id: string; body: ReplyBody }
  /** Can never be processed: for the dead letters, and answered where it says where to. */
  | { kind: 'bad'; code: string; reason: string; address: ReplyAddress | undefined };

interface Encoded {
  headers: Record<string, string>;
  value: Buffer | null;
}

/** Reads a message of accounts.commands or accounts.queries. Never throws. */
export function decode(message: Encoded, topic: 'accounts.commands' | 'accounts.queries', prefix: string): Decoded {
  const { headers } = message;
  if (headers['ce_type'] === replyType && topic === 'accounts.commands') return decodeReply(message);
  const context = fromHeaders(headers);
  if (!context) return bad('malformed_headers', 'a required header is missing or malformed', undefined);
  const address = replyAddress(context);
  if (address && !maySendTo(address, prefix)) return bad('bad_reply_topic', `replies do not go to ${address.topic}/${address.partition}`, undefined);
  const name = messageOfType(context.type);
  if (name === undefined || messages[name].topic !== topic) return bad('unknown_type', `${topic} takes no ${context.type}`, address);
  const json = parseJson(message.value);
  if (json === undefined) return bad('malformed_json', 'the value is not JSON', address);
  const data = messages[name].data.safeParse(json);
  if (!data.success) return bad('invalid_data', describe(data.error.issues), address);
  return { kind: 'request', name, context, data: data.data, address };
}

function decodeReply(message: Encoded): Decoded {
  const step_id = message.headers['correlation-id'];
  const body = replySchema.safeParse(parseJson(message.value));
  if (step_id === undefined || !body.success) return bad('malformed_reply', 'a reply without a correlation id or a readable value', undefined);
  return { kind: 'ledger_reply', step_id, body: body.data };
}

function maySendTo(address: ReplyAddress, prefix: string): boolean {
  if (address.topic === topicName(prefix, 'replies')) return address.partition < replyPartitions;
  return address.topic === topicName(prefix, 'accounts.commands') && address.partition < commandPartitions;
}

function bad(code: string, reason: string, address: ReplyAddress | undefined): Decoded {
  return { kind: 'bad', code, reason, address };
}

function parseJson(value: Buffer | null): unknown {
  try {
    return value === null ? undefined : JSON.parse(value.toString());
  } catch {
    return undefined;
  }
}

/** Paths and rules only: values may be personal data. */
function describe(issues: { path: PropertyKey[]; message: string }[]): string {
  return issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ').slice(0, 500);
}
