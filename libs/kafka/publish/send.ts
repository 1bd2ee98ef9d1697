import type { Message, Producer } from 'kafkajs';
import { PublishError } from './outgoing-message.ts';
import { acknowledgeOne, type Entry } from './publish-queue.ts';

/**
 * Sends entries and acknowledges each. Rejects if the outcome of the others is unknown; kafkajs' sequence numbers are
 * then in doubt.
 *
 * If a partition moves to a broker that has already responded to the same send, kafkajs' retry skips that broker and
 * reports success. Messages for partitions that the response does not name are therefore sent again, unless the
 * response names none at all.
 */
export async function send(producer: Producer, entries: readonly Entry[]): Promise<void> {
  let rest = entries;
  while (rest.length > 0) {
    const answer = await producer.sendBatch({ acks: -1, topicMessages: byTopic(rest) });
    if (answer.length === 0) throw new PublishError('the broker knows none of the partitions', true);
    const written = new Set(answer.map(({ topicName, partition }) => `${topicName} ${partition}`));
    const isWritten = ({ message, copy }: Entry): boolean => written.has(`${message.topic} ${copy?.partition}`);
    for (const entry of rest) if (isWritten(entry)) acknowledgeOne(entry.call);
    rest = rest.filter((entry) => !isWritten(entry));
  }
}

function byTopic(entries: readonly Entry[]): { topic: string; messages: Message[] }[] {
  const topics = Map.groupBy(entries, ({ message }) => message.topic);
  return [...topics].map(([topic, ofTopic]) => ({ topic, messages: ofTopic.map(({ copy }) => copy as Message) }));
}
