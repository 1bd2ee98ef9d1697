import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

/** Seconds, from a bare round trip to the longest wait for a reply. */
const latencyBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export interface Metrics {
  readonly contentType: string;
  /** The text for Prometheus. */
  text(): Promise<string>;
  counter<Label extends string = string>(name: string, help: string, labels?: readonly Label[]): Counter<Label>;
  /** Buckets in seconds unless others are given. */
  histogram<Label extends string = string>(name: string, help: string, labels?: readonly Label[], buckets?: number[]): Histogram<Label>;
  /** read is called at each scrape, 2 s at most; where it fails or is late, the gauge is left out. */
  gauge(name: string, help: string, read: () => number | Promise<number>): void;
}

const readTimeoutMs = 2000;
/** How often the event loop is looked at; the default of 10 ms wakes an idle process a hundred times a second. */
const eventLoopSampleMs = 200;

/** A registry of its own with Node's default metrics (heap, event loop, CPU) and `service` on every line. */
export function createMetrics(service: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopSampleMs });
  const registers = [registry];
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    counter: (name, help, labels = []) => new Counter({ name, help, labelNames: [...labels], registers }),
    histogram: (name, help, labels = [], buckets = latencyBuckets) =>
      new Histogram({ name, help, labelNames: [...labels], buckets, registers }),
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          const value = await bounded(Promise.resolve().then(read));
          if (value === undefined) this.remove();
          else this.set(value);
        },
      });
    },
  };
}

async function bounded(value: Promise<number>): Promise<number | undefined> {
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
