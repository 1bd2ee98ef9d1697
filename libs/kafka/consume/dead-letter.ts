import type { OutgoingMessage } from '../publish/publish.ts';
import type { ReceivedMessage } from './received-message.ts';

const defaultTimeoutMs = 10_000;

/** Returns the name of the dead letter topic of `topic`. */
function deadLetterTopic(topic: string): string {
  return `${topic}.dlq`;
}

/**
 * Dead-letters a message: publishes its unchanged key, value, and headers to `<topic>.dlq`, with the reason,
 * origin, and time in `dlq-*` headers. Resolves when the broker has acknowledged it; rejects with a
 * PublishError.
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
