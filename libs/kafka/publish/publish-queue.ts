import type { Message } from 'kafkajs';
import type { OutgoingMessage } from './outgoing-message.ts';
import { batchHeaderBytes, PublishError, recordBytes } from './outgoing-message.ts';
import { partitionForKey } from './partitioner.ts';

/** The messages of one publish or publishAll call. They are acknowledged, or fail, together. */
export interface PublishCall {
  unacknowledged: number;
  deadline: number;
  /** True once any message of the call was passed to a producer. */
  isBegun: boolean;
  isSettled: boolean;
  resolve(): void;
  reject(error: PublishError): void;
}

export function acknowledgeOne(call: PublishCall): void {
  call.unacknowledged -= 1;
  if (call.unacknowledged > 0 || call.isSettled) return;
  call.isSettled = true;
  call.resolve();
}

export function fail(call: PublishCall, reason: string, cause?: unknown): void {
  if (call.isSettled) return;
  call.isSettled = true;
  call.reject(new PublishError(reason, call.isBegun, { cause }));
}

/** One message of a call, queued or in flight. */
export interface Entry {
  call: PublishCall;
  message: OutgoingMessage;
  /** The message in the form that was passed to kafkajs; undefined before. */
  copy?: Message;
}

/** The limits of a topic: its number of partitions and the maximum bytes of a record batch. */
export interface TopicLimits {
  partitions: number;
  maxBatchBytes: number;
}

/** The limits of one send over all topics. */
const maxSendMessages = 2_500;
const maxSendBytes = 2_621_440;

/** The messages that were not yet passed to a producer, in call order. */
export class PublishQueue {
  #entries: Entry[] = [];

  get length(): number {
    return this.#entries.length;
  }

  push(messages: readonly OutgoingMessage[], call: PublishCall): void {
    for (const message of messages) this.#entries.push({ call, message });
  }

  /** Rejects and removes the calls whose deadline has passed. */
  expire(now: number, reason: string): void {
    let expired = false;
    for (const { call } of this.#entries) {
      if (call.deadline > now && !call.isSettled) continue;
      fail(call, reason);
      expired = true;
    }
    if (expired) this.#entries = this.#entries.filter(({ call }) => !call.isSettled);
  }

  /**
   * Takes the messages of the next send: within the limits of a send and, per partition, within the topic's
   * limit of a record batch. A message that never fits, or whose partition does not exist, fails alone.
   */
  take(getLimits: (topic: string) => TopicLimits | undefined): Entry[] {
    const taken: Entry[] = [];
    const topics = new Map<string, { limits: TopicLimits | undefined; batchBytes: number[] }>();
    let bytes = 0;
    let next = 0;
    for (; next < this.#entries.length && taken.length < maxSendMessages; next++) {
      const entry = this.#entries[next] as Entry;
      const { call, message } = entry;
      if (call.isSettled) continue;
      const topic = topics.get(message.topic) ?? { limits: getLimits(message.topic), batchBytes: [] };
      topics.set(message.topic, topic);
      const { limits, batchBytes } = topic;
      const partition =
        message.partition ?? (message.key === null || !limits ? 0 : partitionForKey(message.key, limits.partitions));
      const size = recordBytes(message);
      const refusal = checkLimits(limits, partition, size);
      if (!limits || refusal !== undefined) {
        fail(call, `${message.topic}: ${refusal}`);
        continue;
      }
      const batch = (batchBytes[partition] ?? batchHeaderBytes) + size;
      if (taken.length > 0 && (batch > limits.maxBatchBytes || bytes + size > maxSendBytes)) break;
      batchBytes[partition] = batch;
      bytes += size;
      entry.copy = { key: message.key, value: message.value, headers: message.headers, partition };
      taken.push(entry);
    }
    this.#entries.splice(0, next);
    return taken;
  }
}

function checkLimits(limits: TopicLimits | undefined, partition: number, size: number): string | undefined {
  if (!limits) return 'there is no such topic';
  if (partition >= limits.partitions) return `there is no partition ${partition}`;
  const bytes = batchHeaderBytes + size;
  return bytes > limits.maxBatchBytes
    ? `a message of ${bytes} bytes is larger than the ${limits.maxBatchBytes} that the topic accepts`
    : undefined;
}
