import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { withTimeout } from '#libs/kafka/wait.ts';
import packageJson from '../../package.json' with { type: 'json' };

/** In seconds, from one round trip to the longest wait for a reply. */
const latencyBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
  counter<Label extends string = string>(name: string, help: string, labels?: readonly Label[]): Counter<Label>;
  /** The buckets are in seconds unless others are given. */
  histogram<Label extends string = string>(
    name: string,
    help: string,
    labels?: readonly Label[],
    buckets?: number[],
  ): Histogram<Label>;
  /**
   * `read` is called at each scrape, for at most 2 s. If it fails, is late, or returns undefined, the gauge is
   * omitted.
   */
  gauge(name: string, help: string, read: () => number | undefined | Promise<number | undefined>): void;
  /** Gauges with labels; label values that `read` does not return are omitted. */
  gauges<Label extends string>(
    name: string,
    help: string,
    labels: readonly Label[],
    read: () => Sample<Label>[] | Promise<Sample<Label>[]>,
  ): void;
  /** Describes all metrics, as listed in docs/metrics.md. */
  describe(): { name: string; type: string; labels: string[]; help: string }[];
}

interface Sample<Label extends string> {
  labels: Record<Label, string>;
  value: number;
}

/** The prefix of our metrics; Node's own have process_ and nodejs_. */
export const metricPrefix = 'corebanking_';

const readTimeoutMs = 2000;
/** How often the event loop is sampled. The default of 10 ms would wake an idle process a hundred times a second. */
const eventLoopSampleMs = 500;

/**
 * Creates a registry with Node's default metrics (heap, event loop, CPU), build info, and a `service` label on
 * every line. Metric names are given without the prefix.
 */
export function createMetrics(service: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopSampleMs });
  const registers = [registry];
  const described: ReturnType<Metrics['describe']> = [];
  const describe = (type: string, name: string, help: string, labels: readonly string[]) => {
    described.push({ name: metricPrefix + name, type, labels: [...labels], help });
    return { name: metricPrefix + name, help, registers };
  };
  const gauges: Metrics['gauges'] = (name, help, labels, read) => {
    new Gauge({
      ...describe('gauge', name, help, labels),
      labelNames: [...labels],
      async collect() {
        const reading = withTimeout(Promise.resolve().then(read), readTimeoutMs, name);
        const samples = await reading.catch(() => undefined);
        this.reset();
        if (labels.length === 0) this.remove();
        for (const sample of samples ?? []) this.set(sample.labels, sample.value);
      },
    });
  };
  gauges('build_info', 'Always 1; the labels show the running version', ['version', 'node_version'], () => [
    { labels: { version: packageJson.version, node_version: process.version }, value: 1 },
  ]);
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    counter: (name, help, labels = []) =>
      new Counter({ ...describe('counter', name, help, labels), labelNames: [...labels] }),
    histogram: (name, help, labels = [], buckets = latencyBuckets) =>
      new Histogram({ ...describe('histogram', name, help, labels), labelNames: [...labels], buckets }),
    gauge(name, help, read) {
      gauges(name, help, [], async () => {
        const value = await read();
        return value === undefined ? [] : [{ labels: {}, value }];
      });
    },
    gauges,
    describe: () => described,
  };
}

/**
 * Caches the result of `read` for `forMs`, for expensive reads and for reads shared by several gauges of one
 * scrape. Failures are not cached.
 */
export function kept<T>(read: () => Promise<T>, forMs: number): () => Promise<T> {
  let asked: { at: number; answer: Promise<T> } | undefined;
  return () => {
    const now = performance.now();
    if (asked !== undefined && now - asked.at < forMs) return asked.answer;
    const answer = read();
    asked = { at: now, answer };
    answer.catch(() => {
      if (asked?.answer === answer) asked = undefined;
    });
    return answer;
  };
}
