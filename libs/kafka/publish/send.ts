import type { Message, Producer } from 'kafkajs';
import { PublishError } from './outgoing-message.ts';
import { acknowledgeOne, type Entry, fail } from './publish-queue.ts';

const tooLargeTypes = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);

/**
 * Sends entries and acknowledges each. An entry that is too large by itself fails alone. Rejects if the outcome
 * of the other entries is unknown; kafkajs' sequence numbers are then in doubt.
 *
 * The broker may allow less than the topics table says. Its error does not name the partition, so each
 * partition is then sent separately. The broker cannot recognize messages that it has already written, because
 * kafkajs has rolled back their sequence numbers, so only a part that is too large by itself is halved and sent
 * again.
 */
export async function send(producer: Producer, entries: readonly Entry[]): Promise<void> {
  try {
    await sendWhole(producer, entries);
  } catch (error) {
    if (!tooLargeTypes.has((error as { type?: string }).type ?? '')) throw error;
    for (const part of parts(entries)) await send(producer, part);
    if (entries.length === 1)
      fail((entries[0] as Entry).unit, `the broker rejected it: ${(error as Error).message}`, error);
  }
}

function parts(entries: readonly Entry[]): Entry[][] {
  const partitions = [...Map.groupBy(entries, ({ message, copy }) => `${message.topic} ${copy?.partition}`).values()];
  if (partitions.length > 1) return partitions;
  const half = entries.length >> 1;
  return half === 0 ? [] : [entries.slice(0, half), entries.slice(half)];
}

/**
 * Sends all messages. If a partition moves to a broker that has already responded to the same send, kafkajs'
 * retry skips that broker and reports success. Messages for partitions that the response does not name are
 * therefore sent again, unless the response names none at all.
 */
async function sendWhole(producer: Producer, entries: readonly Entry[]): Promise<void> {
  let rest = entries;
  while (rest.length > 0) {
    const answer = await producer.sendBatch({ acks: -1, topicMessages: byTopic(rest) });
    if (answer.length === 0) throw new PublishError('the broker knows none of the partitions', true);
    const written = new Set(answer.map(({ topicName, partition }) => `${topicName} ${partition}`));
    const isWritten = ({ message, copy }: Entry): boolean => written.has(`${message.topic} ${copy?.partition}`);
    for (const entry of rest) if (isWritten(entry)) acknowledgeOne(entry.unit);
    rest = rest.filter((entry) => !isWritten(entry));
  }
}

function byTopic(entries: readonly Entry[]): { topic: string; messages: Message[] }[] {
  const topics = new Map<string, Message[]>();
  for (const { message, copy } of entries) {
    const messages = topics.get(message.topic);
    if (messages) messages.push(copy as Message);
    else topics.set(message.topic, [copy as Message]);
  }
  return [...topics].map(([topic, messages]) => ({ topic, messages }));
}
