/** What kafkajs gives to spread the messages of one topic over its partitions. */
export interface GroupArguments<T> {
  topic: string;
  partitionMetadata: readonly unknown[];
  messages: readonly T[];
  partitioner(choice: { topic: string; partitionMetadata: readonly unknown[]; message: T }): number;
}

/** The messages of each partition, in order; kafkajs' own copies what it has so far for every message. */
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
