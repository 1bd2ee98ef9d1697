import { source, toHeaders } from '#libs/contracts/envelope.ts';
import { bucketForKey } from '#libs/contracts/ids.ts';
import { type MessageName, messages, messageType, notYetSent } from '#libs/contracts/messages.ts';
import { commandPartition, topicName } from '#libs/contracts/topics.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { apartMs } from '#libs/service/clock.ts';
import type { Caller } from '../access/caller.ts';

/** Messages of the gateway: their origin, and their form on the wire. */

/** The maximum time that a response waits for a reply (contract: idempotency-15). */
export const replyWaitMs = 5_000;
/** The time within which the first service must start a command. */
export const deadlineMs = 30_000;

/** The request to which a message belongs. */
export interface Origin {
  caller: Caller;
  requestId: string;
  /** The caller's network address. */
  address?: string | undefined;
  traceparent: string | undefined;
  /** The time until which the response may wait for replies, however many (performance.now). */
  answerBy: number;
  idempotencyKey?: string | undefined;
  fingerprint?: string | undefined;
  /** The rules under which the command needs an approval (access/four-eyes.ts). */
  fourEyes?: string | undefined;
}

export interface Command<N extends MessageName = MessageName> {
  name: N;
  /** The ce_id, the same on every repeat; also the idempotency record. */
  id: string;
  /** Commands with the same key are executed in order. */
  key: string;
  /** The default is the bucket of the key. */
  bucket?: number | undefined;
  data: unknown;
  /** The time of acceptance, which becomes created_at. */
  acceptedAt: Date;
}

const nobody: Caller = { actor: '', scopes: new Set(), boundClientId: undefined };

/** Encodes a message of the gateway itself, not of a caller. It has no deadline: a record or query is never too late. */
export function encodeNotice(command: Command, requestId: string, prefix: string): OutgoingMessage {
  const topic = topicName(prefix, messages[command.name].topic);
  return toMessage(command, { caller: nobody, requestId, traceparent: undefined }, topic, undefined);
}

/** Encodes a command or query. The requester adds the reply address. */
export function encode(command: Command, origin: Origin, topic: string): OutgoingMessage {
  return toMessage(command, origin, topic, new Date(command.acceptedAt.getTime() + deadlineMs).toISOString());
}

function toMessage(
  { name, id, key, bucket = bucketForKey(key), data, acceptedAt }: Command,
  origin: Omit<Origin, 'answerBy'>,
  topic: string,
  deadline: string | undefined,
): OutgoingMessage {
  if (notYetSent.has(name)) throw new TypeError(`${name} is sent only from the next release on`);
  const ms = acceptedAt.getTime();
  const headers = toHeaders({
    message_id: id,
    type: messageType(name),
    source: source.gateway,
    time: acceptedAt.toISOString(),
    subject: key,
    request_id: origin.requestId,
    actor: origin.caller.actor,
    deadline,
    // The clocks of the sender and the receiver differ. The gateway's own queries have no limit, because by them it
    // starts and finds out that its clock is wrong.
    reply_by:
      messages[name].kind === 'query' && deadline !== undefined
        ? new Date(ms + replyWaitMs + apartMs).toISOString()
        : undefined,
    idempotency_key: origin.idempotencyKey,
    fingerprint: origin.fingerprint,
    four_eyes: origin.fourEyes,
    staff: origin.caller.isStaff === true ? 'true' : undefined,
    address: messages[name].kind === 'command' ? origin.address : undefined,
    bound_client_id: origin.caller.boundClientId,
    all_webhooks: isAboutWebhooks(name) && origin.caller.scopes.has('ops:manage') ? 'true' : undefined,
    traceparent: origin.traceparent,
  });
  return { topic, partition: commandPartition(bucket), key, value: JSON.stringify(data), headers };
}

function isAboutWebhooks(name: MessageName): boolean {
  return messages[name].topic.startsWith('webhooks.');
}
