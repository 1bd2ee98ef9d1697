import type { Context, DiagLogger, SpanContext } from '@opentelemetry/api';
import { DiagLogLevel, diag, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { Sampler } from '@opentelemetry/sdk-trace';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import { withTimeout } from '#libs/kafka/wait.ts';
import packageJson from '../../package.json' with { type: 'json' };
import type { SpanOptions, Tracing, TracingConfig } from './tracing.ts';
import { traceparentForm } from './tracing.ts';

/** Loaded only if tracing is enabled. */

/** The spans of one second of a busy process. Spans that the collector does not accept in time are dropped. */
const batching = { maxQueueSize: 8_192, scheduledDelayMillis: 1_000, exportTimeoutMillis: 5_000 };
const stopMs = 3_000;

export function startTracing(
  service: string,
  endpoint: string,
  config: TracingConfig & { INSTANCE: string },
  logger: Logger,
): Tracing {
  const quiet = () => undefined;
  const warn: DiagLogger['warn'] = (...parts) =>
    logger.warn({ detail: parts.map(String).join(' ').slice(0, 500) }, 'traces could not be sent');
  // An unreachable collector must not delay anything.
  diag.setLogger({ error: warn, warn, info: quiet, debug: quiet, verbose: quiet }, DiagLogLevel.WARN);
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/$/, '')}/v1/traces`,
    headers: parseHeaders(config.OTEL_EXPORTER_OTLP_HEADERS),
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': `core-banking-${service}`,
      'service.instance.id': config.INSTANCE,
      'service.version': packageJson.version,
    }),
    sampler: createSampler(config),
    spanProcessors: [new BatchSpanProcessor({ exporter, ...batching })],
  });
  const tracer = provider.getTracer('core-banking', packageJson.version);
  return {
    begin(name, { kind, traceparent, startedAt, attributes, links }) {
      const span = tracer.startSpan(
        name,
        {
          kind: SpanKind[kind.toUpperCase() as Uppercase<SpanOptions['kind']>],
          startTime: startedAt,
          attributes: { ...attributes },
          links: links?.flatMap((link) => parseTraceparent(link) ?? []).map((context) => ({ context })),
        },
        below(traceparent),
      );
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
        end({ at, failed, attributes: more } = {}) {
          if (more) span.setAttributes({ ...more });
          if (failed !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failed });
          span.end(at);
        },
      };
    },
    stop: () => withTimeout(provider.shutdown(), stopMs, 'sending traces').catch(() => undefined),
  };
}

function parseTraceparent(traceparent: string): SpanContext | undefined {
  const [, traceId, spanId, flags] = traceparentForm.exec(traceparent) ?? [];
  return traceId && spanId && flags
    ? { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true }
    : undefined;
}

function below(traceparent: string | undefined): Context {
  const context = traceparent === undefined ? undefined : parseTraceparent(traceparent);
  return context ? trace.setSpanContext(ROOT_CONTEXT, context) : ROOT_CONTEXT;
}

function createSampler({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio }: TracingConfig): Sampler {
  const root = name.endsWith('always_on')
    ? new AlwaysOnSampler()
    : name.endsWith('always_off')
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(ratio);
  return name.startsWith('parentbased') ? new ParentBasedSampler({ root }) : root;
}

function parseHeaders(text: string | undefined): Record<string, string> {
  const pairs = (text ?? '').matchAll(/([^=,]+)=([^,]*)/g);
  return Object.fromEntries([...pairs].map(([, name = '', value = '']) => [name.trim(), value.trim()]));
}
