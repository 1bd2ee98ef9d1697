import type { Message, Producer, RecordMetadata } from 'kafkajs';
import type { Flight } from './publish-queue.ts';

/**
 * One send, complete; returns the messages whose partition does not exist. When a partition moves to a broker
 * that has already answered in the same send, kafkajs' retry leaves that broker out and reports success: so
 * what its answer does not name is sent again, under sequence numbers that were never used.
 */
export async function send(producer: Producer, flight: Flight): Promise<ReadonlySet<Message>> {
  let topics = flight.topics;
  for (let written = true; written && topics.size > 0;) {
    const topicMessages = [...topics].map(([topic, messages]) => ({ topic, messages }));
    const answer = await producer.sendBatch({ acks: -1, topicMessages });
    topics = missingFrom(answer, topics);
    written = answer.length > 0;
  }
  return new Set([...topics.values()].flat());
}

/** The messages of partitions that the answer does not name; the partitioner has noted each message's partition in it. */
function missingFrom(answer: RecordMetadata[], topics: Flight['topics']): Flight['topics'] {
  const known = Map.groupBy(answer, ({ topicName }) => topicName);
  const missing: Flight['topics'] = new Map();
  for (const [topic, messages] of topics) {
    const written = new Set(known.get(topic)?.map(({ partition }) => partition));
    const rest = messages.filter(({ partition }) => partition === undefined || !written.has(partition));
    if (rest.length > 0) missing.set(topic, rest);
  }
  return missing;
}
