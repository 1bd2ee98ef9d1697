import { fromHeaders, type MessageContext, type ReplyAddress, replyAddress, type ReplyBody, replyType, toHeaders } from './envelope.ts';
import { messageOfType, messages, type MessageName } from './messages.ts';
import { commandPartitions, replyPartitions, topicName } from './topics.ts';

/** Pure: what a request on a command or query topic says, and the reply that goes back. */
export type DecodedRequest =
  | { kind: 'request'; name: MessageName; context: MessageContext; data: unknown; address: ReplyAddress | undefined }
  /** Can never be processed: for the dead letters, and answered where it says where to. */
  | { kind: 'bad'; code: string; reason: string; address: ReplyAddress | undefined };

/**
 * Reads a command or query that this consumer takes. Never throws. The reason of a bad one names paths and rules only:
 * values may be personal data.
 */
export function decodeRequest(message: { headers: Record<string, string>; value: Buffer | null }, takes: (name: MessageName) => boolean, prefix: string): DecodedRequest {
  const context = fromHeaders(message.headers);
  if (context === undefined) return bad('malformed_headers', 'a required header is missing or malformed');
  const address = replyAddress(context);
  if (address && !maySendTo(address, prefix)) return bad('bad_reply_topic', `replies do not go to ${address.topic}/${address.partition}`);
  const name = messageOfType(context.type);
  if (name === undefined || !takes(name)) return bad('unknown_type', `no handler here for ${context.type}`, address);
  const json = parseJson(message.value);
  if (json === undefined) return bad('malformed_json', 'the value is not JSON', address);
  const parsed = messages[name].data.safeParse(json);
  if (parsed.success) return { kind: 'request', name, context, data: parsed.data, address };
  const issues = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  return bad('invalid_data', issues.join('; ').slice(0, 500), address);
}

function bad(code: string, reason: string, address?: ReplyAddress): DecodedRequest {
  return { kind: 'bad', code, reason, address };
}

function maySendTo({ topic, partition }: ReplyAddress, prefix: string): boolean {
  if (topic === topicName(prefix, 'replies')) return partition < replyPartitions;
  return topic === topicName(prefix, 'accounts.commands') && partition < commandPartitions;
}

/** undefined for what is no JSON. */
export function parseJson(value: Buffer | null): unknown {
  try {
    return value === null ? undefined : JSON.parse(value.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The reply to a request, for a publisher. */
export function replyMessage(address: ReplyAddress, body: ReplyBody, from: string, time: string, context?: MessageContext) {
  const headers = toHeaders({
    message_id: address.correlation_id,
    type: replyType,
    source: from,
    time,
    subject: context?.message_id ?? '',
    request_id: context?.request_id ?? '',
    actor: '',
    correlation_id: address.correlation_id,
    ...(context?.traceparent === undefined ? {} : { traceparent: context.traceparent }),
  });
  return { topic: address.topic, key: null, value: JSON.stringify(body), headers, partition: address.partition };
}
