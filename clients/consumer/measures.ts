/** Metrics of a consumer. */

/** A partition that is stopped at one event. */
export interface Standing {
  topic: string;
  partition: number;
  offset: bigint;
  /** ISO 8601 UTC. */
  since: string;
  /** The number of times that the handler has failed. */
  failures: number;
  /** True if the handler has not returned for as long. Otherwise it fails, and is retried. */
  isRunning: boolean;
  /** The message of the last failure. */
  error?: string;
}

/** Counted since the start of the process. */
export interface Counts {
  handled: number;
  /** Calls of handlers that threw. */
  failures: number;
  /** Events that had been delivered before. */
  repeats: number;
  /** Events that were never delivered, according to their account's sequence. */
  missing: number;
  /** Messages that the topic deleted before this group had read them. */
  lost: number;
  dead_letters: number;
}

export interface ConsumerMetrics extends Counts {
  partitions: { topic: string; partition: number; lag: number; standing_seconds: number }[];
}

export function noCounts(): Counts {
  return { handled: 0, failures: 0, repeats: 0, missing: 0, lost: 0, dead_letters: 0 };
}

/** The metrics in Prometheus's text format. */
export function prometheusText({ partitions, ...counts }: ConsumerMetrics): string {
  const lines = Object.entries(counts).flatMap(([name, value]) => [
    `# TYPE bank_consumer_${name}_total counter`,
    `bank_consumer_${name}_total ${value}`,
  ]);
  for (const name of ['lag', 'standing_seconds'] as const) {
    lines.push(`# TYPE bank_consumer_${name} gauge`);
    for (const { topic, partition, ...values } of partitions)
      lines.push(`bank_consumer_${name}{topic="${topic}",partition="${partition}"} ${values[name]}`);
  }
  return `${lines.join('\n')}\n`;
}
