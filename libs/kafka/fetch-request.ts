import type { ByteWriter } from '#libs/contracts/byte-writer.ts';
import type { Request } from './produce-request.ts';

/** What kafkajs gives to make a fetch request. */
export interface FetchArguments {
  replicaId: number;
  maxWaitTime: number;
  minBytes: number;
  maxBytes: number;
  isolationLevel?: number;
  sessionId?: number;
  sessionEpoch?: number;
  topics: { topic: string; partitions: { partition: number; fetchOffset: string; maxBytes: number }[] }[];
  rackId?: string;
}

const fetchApiKey = 1;
const readCommitted = 1;
const unknown = -1;

/** Fetch request (version 11), byte for byte what kafkajs makes: its own fills and clears half a kilobyte for every partition. */
export function fetchRequest(options: FetchArguments): Request {
  const { replicaId, maxWaitTime, minBytes, maxBytes, isolationLevel = readCommitted, sessionId = 0, sessionEpoch = -1, topics, rackId = '' } = options;
  const write = (writer: ByteWriter): void => {
    writer.int32(replicaId);
    writer.int32(maxWaitTime);
    writer.int32(minBytes);
    writer.int32(maxBytes);
    writer.int8(isolationLevel);
    writer.int32(sessionId);
    writer.int32(sessionEpoch);
    writer.int32(topics.length);
    for (const { topic, partitions } of topics) {
      writer.string(topic);
      writer.int32(partitions.length);
      for (const each of partitions) {
        writer.int32(each.partition);
        writer.int32(unknown); // the leader's epoch
        writer.int64(BigInt(each.fetchOffset));
        writer.int64(BigInt(unknown)); // the log's start, for replicas
        writer.int32(each.maxBytes);
      }
    }
    writer.int32(0); // topics to leave out of a session
    writer.string(rackId);
  };
  return { apiKey: fetchApiKey, apiVersion: 11, apiName: 'Fetch', write };
}
