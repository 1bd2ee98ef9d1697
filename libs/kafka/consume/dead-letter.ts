import type { Publisher } from '../publish/publish.ts';
import type { ReceivedMessage } from '../received-message.ts';

const timeoutMs = 10_000;

/**
 * Dead-letters a message: publishes its unchanged key, value, and headers to `<topic>.dlq`, with the reason,
 * origin, and time in `dlq-*` headers. Resolves when the broker has acknowledged it; rejects with a
 * PublishError.
 */
export async function deadLetter(
  publisher: Pick<Publisher, 'publish'>,
  message: ReceivedMessage,
  why: { reason: string; code: string },
): Promise<void> {
  const { topic, partition, offset, key, value, headers } = message;
  await publisher.publish(
    {
      topic: `${topic}.dlq`,
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
    { timeoutMs },
  );
}
