/** kafkajs' arguments for distributing the messages of one topic to its partitions. */
export interface GroupArguments<T> {
  topic: string;
  partitionMetadata: readonly unknown[];
  messages: readonly T[];
  partitioner(choice: { topic: string; partitionMetadata: readonly unknown[]; message: T }): number;
}

/** Groups the messages by partition, in order. kafkajs copies all previous messages for each message. */
export function groupByPartition<T>({
  topic,
  partitionMetadata,
  messages,
  partitioner,
}: GroupArguments<T>): Record<number, T[]> {
  const groups: Record<number, T[]> = {};
  if (partitionMetadata.length === 0) return groups;
  for (const message of messages) (groups[partitioner({ topic, partitionMetadata, message })] ??= []).push(message);
  return groups;
}
