import { createHash } from 'node:crypto';
import { type Refusal, refusal } from '#libs/contracts/errors.ts';
import { decodeRequest, type Reader } from '#libs/contracts/exchange.ts';
import { formatId } from '#libs/contracts/ids.ts';
import { type MessageData, type MessageName, messageOfType, messages } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { type OutgoingMessage, PublishError } from '#libs/kafka/publish/publish.ts';
import { type DeadLetterTopics, done, type Outcome, refused, type Work } from '../outcome.ts';
import {
  type DeadLetterRow,
  decideDeadLetter,
  lockDeadLetter,
  type NewDeadLetter,
  toDeadLetter,
} from './dead-letter-store.ts';

/** Lists the messages of `<topic>.dlq`, redrives them, and drops them. */

const suffix = '.dlq';

export function isDeadLetterTopic(topic: string): boolean {
  return topic.endsWith(suffix);
}

export function deadLetterNotFound(id: string): Refusal {
  return refusal('dead_letter_not_found', `dead letter ${id} not found`);
}

/**
 * Returns the row for a message of a dead letter topic. Every message produces a row, so that a dead letter is
 * never dead-lettered again. Pure.
 */
export function deadLetterRow(message: ReceivedMessage, prefix: string): NewDeadLetter {
  const { partition, offset, key, value, headers, timestamp_ms } = message;
  const topic = message.topic.slice(prefix.length);
  const dead_at = new Date(timestamp_ms).toISOString();
  const source_partition = wholeNumber(headers['dlq-partition']);
  const source_offset = wholeNumber(headers['dlq-offset']);
  // The row identifies the original message, not its copy, so that a message that is delivered and dead-lettered twice
  // is listed once.
  const origin = source_offset === null ? [partition, offset, dead_at] : [source_partition, source_offset];
  return {
    dead_letter_id: formatId('dead_letter', digest([topic, ...origin].join(' '), message)),
    topic,
    partition,
    offset,
    source_topic: topic.slice(0, -suffix.length),
    source_partition: source_partition === null ? null : Number(source_partition),
    source_offset,
    key: storable(key ?? undefined, 200),
    code: storable(headers['dlq-code'], 100),
    reason: storable(headers['dlq-reason'], 1000),
    size_bytes: value?.length ?? 0,
    message: messageOfType(headers['ce_type'] ?? '') ?? null,
    request_id: storable(headers['request-id'], 200),
    dead_at,
  };
}

/**
 * Returns 128 bits in hex from a position and the content there. The content is needed because a topic that is created
 * again reuses positions.
 */
function digest(place: string, { key, value, headers }: ReceivedMessage): string {
  const own = Object.entries(headers)
    .filter(([name]) => !name.startsWith('dlq-'))
    .sort(([left], [right]) => (left < right ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([place, key, own]))
    .update(value ?? '')
    .digest('hex')
    .slice(0, 32);
}

/** Parses partitions and offsets; null for invalid values and values that do not fit the column. */
function wholeNumber(text: string | undefined): bigint | null {
  return text !== undefined && /^\d{1,9}$|^\d{10,15}$/.test(text) ? BigInt(text) : null;
}

/** Converts any bytes to text that the column accepts. */
function storable(text: string | undefined, max: number): string | null {
  return text === undefined ? null : text.replaceAll('\0', '\uFFFD').slice(0, max).toWellFormed();
}

/** Returns the message itself, or undefined if retention has deleted it or its topic was created again. */
export async function readDeadLetter(
  { topic, partition, offset, dead_at }: DeadLetterRow,
  prefix: string,
  topics: DeadLetterTopics,
): Promise<ReceivedMessage | undefined> {
  const message = await topics.read(prefix + topic, partition, offset);
  return message && new Date(message.timestamp_ms).toISOString() === dead_at ? message : undefined;
}

const renewedMs = 30_000;
/** These headers are omitted, because nobody waits for the reply any more. */
const replyHeaders = new Set(['reply-topic', 'reply-partition', 'correlation-id', 'reply-by']);

/**
 * Returns the message to publish to its original topic: key, partition, and bytes unchanged, with its sender's
 * signature. A new deadline is added beside the sender's. `now`: ISO 8601 UTC. Pure.
 */
function redriven(
  letter: DeadLetterRow,
  message: ReceivedMessage,
  { prefix, keys }: Reader,
  renewDeadline: boolean,
  now: string,
): OutgoingMessage {
  const kept = Object.fromEntries(
    Object.entries(message.headers).filter(([name]) => !name.startsWith('dlq-') && !replyHeaders.has(name)),
  );
  const headers =
    renewDeadline && kept['deadline'] !== undefined
      ? keys.renewed(kept, new Date(Date.parse(now) + renewedMs).toISOString())
      : kept;
  const partition = letter.source_partition;
  return {
    topic: prefix + letter.source_topic,
    key: message.key,
    value: message.value,
    headers,
    ...(partition === null ? {} : { partition }),
  };
}

/** Reports whether the messages of the topic have a deadline and a stored outcome. Those of queries have neither. */
const hasOutcomes = (topic: string): boolean => !topic.endsWith('.queries');

/**
 * Returns the message that closes a dropped command: the command with its deadline passed, so that its service refuses
 * it for good (deadline_exceeded), and its id, which a caller may know, gets an outcome. Returns undefined if it has no
 * deadline or would only be dead-lettered again. Pure.
 */
function closing(letter: DeadLetterRow, message: ReceivedMessage, reader: Reader): OutgoingMessage | undefined {
  const sent = redriven(letter, message, reader, false, '');
  const { deadline, ce_time } = sent.headers;
  const isCommand = (name: MessageName) => messages[name].topic === letter.source_topic;
  if (
    deadline === undefined ||
    ce_time === undefined ||
    decodeRequest({ headers: sent.headers, value: message.value }, isCommand, reader).kind !== 'request'
  )
    return undefined;
  return { ...sent, headers: reader.keys.renewed(sent.headers, ce_time) };
}

/**
 * Publishes a dead letter to its original topic before the state is committed. A crash in between repeats it,
 * which is harmless because commands are idempotent. Without renew_deadline, a command whose deadline has
 * passed is recorded as Failed (deadline_exceeded).
 */
export async function redriveDeadLetter(
  work: Work,
  { dead_letter_id, renew_deadline }: MessageData<'redrive_dead_letter'>,
): Promise<Outcome> {
  const letter = await lockOpen(work, dead_letter_id);
  if ('kind' in letter) return letter;
  const refusedSending = await atBroker(dead_letter_id, async () => {
    const message = await readDeadLetter(letter, work.prefix, work.deadLetters);
    if (!message)
      return refusal(
        'dead_letter_expired',
        `the message of ${dead_letter_id} was deleted by retention: it can only be dropped`,
      );
    // It would stop the consumers that lack the key.
    const missing = work.keys.missingKey(message.headers);
    if (missing)
      return refusal(
        'dead_letter_expired',
        `the key ${missing.name}, with which ${dead_letter_id} is signed, is no longer accepted: it can only be dropped`,
      );
    await work.deadLetters.publish(redriven(letter, message, work, renew_deadline, work.now));
  });
  return refusedSending ? refused(refusedSending) : decided(work, letter, 'redriven', null, { renew_deadline });
}

/** Decides that a dead letter will never be executed. Its bytes stay until retention deletes them. */
export async function dropDeadLetter(
  work: Work,
  { dead_letter_id, reason }: MessageData<'drop_dead_letter'>,
): Promise<Outcome> {
  const letter = await lockOpen(work, dead_letter_id);
  if ('kind' in letter) return letter;
  const refusedSending = await atBroker(dead_letter_id, async () => {
    const message = hasOutcomes(letter.source_topic)
      ? await readDeadLetter(letter, work.prefix, work.deadLetters)
      : undefined;
    const last = message && closing(letter, message, work);
    if (last) await work.deadLetters.publish(last);
  });
  return refusedSending ? refused(refusedSending) : decided(work, letter, 'dropped', reason, { reason });
}

/** Locks and returns an open dead letter; otherwise returns the refusal. */
async function lockOpen({ client }: Work, id: string): Promise<DeadLetterRow | Outcome> {
  const letter = await lockDeadLetter(client, id);
  if (!letter) return refused(deadLetterNotFound(id));
  return letter.state === 'open' ? letter : refused(alreadyDecided(letter));
}

/** If the broker cannot return or accept the message, returns a refusal and leaves the dead letter open. */
async function atBroker(id: string, send: () => Promise<Refusal | void>): Promise<Refusal | void> {
  try {
    return await send();
  } catch (error) {
    if (error instanceof PublishError && error.sent) {
      return refusal('outcome_unknown', `it is not known whether ${id} was redriven: repeat the request`, {
        details: { dead_letter_id: id },
      });
    }
    return refusal(
      'service_unavailable',
      `the broker cannot be reached; ${id} was not redriven, the request can be repeated`,
    );
  }
}

function alreadyDecided({ dead_letter_id, state }: DeadLetterRow): Refusal {
  return refusal('invalid_status_transition', `dead letter ${dead_letter_id} is already ${state}`);
}

async function decided(
  { client, context, now }: Work,
  letter: DeadLetterRow,
  state: 'redriven' | 'dropped',
  drop_reason: string | null,
  facts: object,
): Promise<Outcome> {
  const decidedLetter = { ...letter, state, decided_by: context.actor, decided_at: now, drop_reason };
  await decideDeadLetter(client, decidedLetter);
  const { topic, partition, offset, message } = letter;
  return done(toDeadLetter(decidedLetter), [], { topic, partition, offset: Number(offset), message, ...facts });
}
