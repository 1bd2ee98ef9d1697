import type { Logger } from 'pino';
import { z } from 'zod';
import { url } from './config.ts';

/**
 * Traces by OpenTelemetry, of spans made by hand at our own seams: a request, a message with its
 * reply, a command within its batch, the batch's transaction, what is published. Off, and nothing
 * of the SDK loaded, unless an endpoint is configured. The gateway decides what is sampled;
 * everything behind it follows the traceparent of its message.
 */
export const tracingConfig = {
  OTEL_EXPORTER_OTLP_ENDPOINT: url('http', 'https')
    .optional()
    .describe(
      'OpenTelemetry collector that takes traces over OTLP/HTTP, such as http://collector:4318; without it there are no traces',
    ),
  OTEL_EXPORTER_OTLP_HEADERS: z
    .string()
    .regex(/^[^=,]+=[^,]*(,[^=,]+=[^,]*)*$/, 'must be name=value, separated by commas')
    .optional()
    .describe('Headers of requests to the collector, name=value separated by commas'),
  OTEL_TRACES_SAMPLER: z
    .enum([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ])
    .default('parentbased_always_on')
    .describe('Which requests are traced; parentbased: a caller who sends a traceparent has decided'),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .regex(/^(0(\.\d+)?|1(\.0+)?)$/, 'must be a number from 0 to 1')
    .prefault('1')
    .transform(Number)
    .describe('The part of requests that the ratio samplers take, from 0 to 1'),
};

export type TracingConfig = z.output<z.ZodObject<typeof tracingConfig>>;

export interface SpanOptions {
  kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  /** The span above, by its W3C traceparent; without one a trace begins. */
  traceparent?: string | undefined;
  /** Of performance.now; default now. */
  startedAt?: number;
  attributes?: Record<string, string | number | undefined>;
  /** Spans of other traces that belong to this one, by their traceparents. */
  links?: string[];
}

export interface Span {
  /** What is sent on, so that what comes of it lies below this span. */
  readonly traceparent: string;
  /** `at`: of performance.now, default now. `failed`: why, where it did. */
  end(options?: { at?: number; failed?: string | undefined; attributes?: SpanOptions['attributes'] }): void;
}

export interface Tracing {
  begin(name: string, options: SpanOptions): Span;
  /** Sends what waits, for a few seconds at most. */
  stop(): Promise<void>;
}

/** Version, trace id, parent id, flags (W3C Trace Context, 3.2). */
export const traceparentForm = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** True where the gateway has decided that this is traced: the lowest bit of the flags (3.2.2.5). */
export function isSampled(traceparent: string | undefined): traceparent is string {
  return (
    traceparent !== undefined && traceparentForm.test(traceparent) && parseInt(traceparent.slice(-1), 16) % 2 === 1
  );
}

/** Undefined where no collector is configured. */
export async function createTracing(
  service: string,
  config: TracingConfig & { INSTANCE: string },
  logger: Logger,
): Promise<Tracing | undefined> {
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return undefined;
  const { startTracing } = await import('./tracing-sdk.ts');
  return startTracing(service, config.OTEL_EXPORTER_OTLP_ENDPOINT, config, logger);
}

interface Published {
  topic: string;
  headers: Record<string, string>;
}

/**
 * Called with messages that the broker has taken; `begunAt` (performance.now) is when they were
 * passed to the publisher.
 */
export type PublishTracer = (messages: readonly Published[], begunAt: number) => void;

/** Makes a span of each traced message that the broker has taken; undefined without tracing. */
export function publishTracer(tracing: Tracing | undefined, prefix: string): PublishTracer | undefined {
  if (!tracing) return undefined;
  return (messages, begunAt) => {
    const at = performance.now();
    for (const {
      topic,
      headers: { traceparent, ce_id, ce_type },
    } of messages) {
      if (!isSampled(traceparent)) continue;
      const attributes = {
        'messaging.system': 'kafka',
        'messaging.destination.name': topic,
        'messaging.message.id': ce_id,
        type: ce_type,
      };
      tracing
        .begin(`publish ${topic.slice(prefix.length)}`, {
          kind: 'producer',
          traceparent,
          startedAt: begunAt,
          attributes,
        })
        .end({ at });
    }
  };
}
