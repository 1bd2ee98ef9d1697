import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import packageJson from '../../package.json' with { type: 'json' };

/** Seconds, from a bare round trip to the longest wait for a reply. */
const latencyBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export interface Metrics {
  readonly contentType: string;
  /** The text for Prometheus. */
  text(): Promise<string>;
  counter<Label extends string = string>(name: string, help: string, labels?: readonly Label[]): Counter<Label>;
  /** Buckets in seconds unless others are given. */
  histogram<Label extends string = string>(
    name: string,
    help: string,
    labels?: readonly Label[],
    buckets?: number[],
  ): Histogram<Label>;
  /**
   * read is called at each scrape, 2 s at most; where it fails or is late, or has nothing to say,
   * the gauge is left out.
   */
  gauge(name: string, help: string, read: () => number | undefined | Promise<number | undefined>): void;
  /** The same with labels: what `read` does not name is left out. */
  gauges<Label extends string>(
    name: string,
    help: string,
    labels: readonly Label[],
    read: () => Sample<Label>[] | Promise<Sample<Label>[]>,
  ): void;
  /** Every name with its type, labels and help, as docs/metrics.md lists them. */
  describe(): { name: string; type: string; labels: string[]; help: string }[];
}

interface Sample<Label extends string> {
  labels: Record<Label, string>;
  value: number;
}

/** What every metric of ours begins with; Node's own begin with process_ and nodejs_. */
export const metricPrefix = 'corebanking_';

const readTimeoutMs = 2000;
/** How often the event loop is looked at; the default of 10 ms wakes an idle process a hundred times a second. */
const eventLoopSampleMs = 500;

/**
 * A registry of its own with Node's default metrics (heap, event loop, CPU), build info, and
 * `service` on every line. Names are given without their common prefix.
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
        const samples = await bounded(Promise.resolve().then(read));
        this.reset();
        if (labels.length === 0) this.remove();
        for (const sample of samples ?? []) this.set(sample.labels, sample.value);
      },
    });
  };
  gauges('build_info', 'Always 1: what runs here', ['version', 'node_version'], () => [
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

async function bounded<T>(value: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), readTimeoutMs);
  });
  try {
    return await Promise.race([value, late]);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The same answer for `forMs`: for what several gauges ask at one scrape, or what is dear to read.
 * A failure is not kept.
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

/** What `make` made of a key before: finding the object of a label anew costs more than counting. */
export function memo<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, T>();
  return (key) => {
    let value = made.get(key);
    if (value === undefined) {
      value = make(key);
      made.set(key, value);
    }
    return value;
  };
}
