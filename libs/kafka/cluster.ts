import type { FetchResponse } from './patched/fetch-response.ts';

/** The used part of kafkajs' Cluster and its brokers, for which its package has no types. */
export interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  addTargetTopic(topic: string): Promise<void>;
  addMultipleTargetTopics(topics: readonly string[]): Promise<void>;
  refreshMetadataIfNecessary(): Promise<void>;
  findLeaderForPartitions(topic: string, partitions: number[]): Record<string, number[]>;
  findTopicPartitionMetadata(topic: string): { partitionId: number }[];
  findBroker(options: { nodeId: string }): Promise<FetchingBroker>;
  findGroupCoordinator(options: { groupId: string }): Promise<Coordinator>;
  fetchTopicsOffset(
    topics: { topic: string; partitions: { partition: number }[]; fromBeginning: boolean }[],
  ): Promise<Offsets[]>;
}

interface Offsets {
  topic: string;
  partitions: { partition: number; offset: string }[];
}

interface Coordinator {
  offsetFetch(request: {
    groupId: string;
    topics: { topic: string; partitions: { partition: number }[] }[];
  }): Promise<{ responses: Offsets[] }>;
}

interface FetchingBroker {
  fetch(request: {
    maxWaitTime: number;
    minBytes: number;
    maxBytes: number;
    topics: { topic: string; partitions: { partition: number; fetchOffset: string; maxBytes: number }[] }[];
  }): Promise<FetchResponse>;
}
