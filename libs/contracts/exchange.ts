import {
  fromHeaders,
  type MessageContext,
  type ReplyAddress,
  type ReplyBody,
  replyAddress,
  replyType,
  toHeaders,
} from './envelope.ts';
import type { MacKeys, Signer } from './mac.ts';
import { type MessageName, maySend, messageOfType, messages } from './messages.ts';
import { commandPartitions, replyPartitions, topicName } from './topics.ts';

/** Decodes requests on the command and query topics, and builds their replies. Pure. */
export type DecodedRequest =
  | { kind: 'request'; name: MessageName; context: MessageContext; data: unknown; address: ReplyAddress | undefined }
  | Unreadable
  | Unverifiable;

/** A message that can never be processed. It is dead-lettered, and replied to if it has a valid reply address. */
export interface Unreadable {
  kind: 'bad';
  code: string;
  reason: string;
  address: ReplyAddress | undefined;
  /** A service has signed it, but no message of this version has its type: a later version may know it. */
  mayBeNewer?: true;
}

/**
 * A message whose MAC this process cannot check, because it lacks the key. It may be authentic, so it is a fault of the
 * process's configuration: a command waits for the key.
 */
export interface Unverifiable {
  kind: 'unknown_key';
  reason: string;
}

/** Settings for consumers of requests: the topic prefix, and the keys of the services that may send requests. */
export interface Reader {
  prefix: string;
  keys: MacKeys;
}

/**
 * A message without a valid MAC of a service that may send it. It gets no reply, because a forger could choose
 * the reply address.
 */
export const notAuthentic = {
  kind: 'bad',
  code: 'not_authentic',
  reason: 'it has no MAC of a service that may send it',
  address: undefined,
} as const;

/** Returns undefined if a service that may send the message has signed it. */
export function whyNotAuthentic(
  message: { headers: Record<string, string>; value: Buffer | null },
  keys: MacKeys,
  mayBeSentBy: (signer: Signer) => boolean,
): typeof notAuthentic | Unverifiable | undefined {
  const signer = keys.verifySigner(message);
  if (signer !== undefined) return mayBeSentBy(signer) ? undefined : notAuthentic;
  return waitingFor(keys.missingKey(message.headers), mayBeSentBy);
}

function waitingFor(
  missing: { signer: Signer; name: string } | undefined,
  mayBeSentBy: (signer: Signer) => boolean,
): typeof notAuthentic | Unverifiable {
  if (missing === undefined || !mayBeSentBy(missing.signer)) return notAuthentic;
  const variable = `${missing.signer.toUpperCase()}_MAC_KEYS`;
  return { kind: 'unknown_key', reason: `it is signed with the key ${missing.name}, which is not in ${variable}` };
}

/**
 * Decodes a command or query. Never throws. The reason of a bad message names only paths and rules, because
 * values may be personal data.
 */
export function decodeRequest(
  message: { headers: Record<string, string>; value: Buffer | null },
  takes: (name: MessageName) => boolean,
  { prefix, keys }: Reader,
): DecodedRequest {
  const name = messageOfType(message.headers['ce_type'] ?? '');
  const stranger = whyNotAuthentic(message, keys, (signer) => name === undefined || maySend(signer, name));
  if (stranger) return stranger;
  const renewal = keys.renewal(message.headers);
  if (renewal === null)
    return waitingFor(keys.missingKey(message.headers, 'renewal'), (signer) => signer === 'accounts');
  const context = fromHeaders(message.headers);
  if (context === undefined) return bad('malformed_headers', 'a required header is missing or malformed');
  Object.assign(context, renewal);
  const address = replyAddress(context);
  if (address && !maySendTo(address, context, prefix))
    return bad('bad_reply_topic', `replies do not go to ${address.topic}/${address.partition}`);
  if (name === undefined || !takes(name))
    return {
      ...bad('unknown_type', `no handler here for ${context.type}`, address),
      ...(name === undefined ? { mayBeNewer: true } : {}),
    };
  const json = parseJson(message.value);
  if (json === undefined) return bad('malformed_json', 'the value is not JSON', address);
  const parsed = messages[name].data.safeParse(json);
  if (parsed.success) return { kind: 'request', name, context, data: parsed.data, address };
  const issues = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  return bad('invalid_data', issues.join('; ').slice(0, 500), address);
}

function bad(code: string, reason: string, address?: ReplyAddress): Unreadable {
  return { kind: 'bad', code, reason, address };
}

/**
 * Reports whether a reply may be sent to this address. A reply to a saga step has the step's own id, and a reply to an
 * approved command has the id of its approval.
 */
function maySendTo(
  { topic, partition, correlation_id }: ReplyAddress,
  { message_id, approval_id = message_id }: MessageContext,
  prefix: string,
): boolean {
  if (topic === topicName(prefix, 'replies')) return partition < replyPartitions;
  return (
    topic === topicName(prefix, 'accounts.commands') && partition < commandPartitions && correlation_id === approval_id
  );
}

/** Parses JSON; returns undefined if the value is not JSON. */
export function parseJson(value: Buffer | null): unknown {
  try {
    return value === null ? undefined : JSON.parse(value.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Creates the reply message to a request, ready to publish. */
export function replyMessage(
  address: ReplyAddress,
  body: ReplyBody,
  from: string,
  time: string,
  context?: MessageContext,
) {
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
