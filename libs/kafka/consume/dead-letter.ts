import type { OutgoingMessage } from '../publish/publish.ts';
import type { ReceivedMessage } from './received-message.ts';

const defaultTimeoutMs = 10_000;

/** The topic that takes what cannot be processed from `topic`. */
function deadLetterTopic(topic: string): string {
  return `${topic}.dlq`;
}

/**
 * Dead-letters a message that cannot be processed: it goes to `<topic>.dlq` with its key and its
 * very bytes, its headers, and why, where from and when in `dlq-*`. Resolves when the broker has
 * it, so that the caller may go on; rejects with a PublishError.
 */
export async function deadLetter(
  publisher: { publish(message: OutgoingMessage, options: { timeoutMs: number }): Promise<void> },
  message: ReceivedMessage,
  why: { reason: string; code: string },
  options: { timeoutMs: number } = { timeoutMs: defaultTimeoutMs },
): Promise<void> {
  const { topic, partition, offset, key, value, headers } = message;
  await publisher.publish(
    {
      topic: deadLetterTopic(topic),
      key,
      value,
      headers: {
        ...headers,
        'dlq-reason': why.reason,
        'dlq-code': why.code,
        'dlq-topic': topic,
        'dlq-partition': String(partition),
        'dlq-offset': String(offset),
        'dlq-time': new Date().toISOString(),
      },
    },
    options,
  );
}
