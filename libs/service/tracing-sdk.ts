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
import { openTelemetry } from './config.ts';
import type { SpanOptions, Tracing } from './tracing.ts';
import { traceparentForm } from './tracing.ts';

/** Loaded only if tracing is enabled. */

/** The spans of one second of a busy process. Spans that the collector does not accept in time are dropped. */
const batching = { maxQueueSize: 8_192, scheduledDelayMillis: 1_000, exportTimeoutMillis: 5_000 };
const stopMs = 3_000;

export function startTracing(service: string, instance: string, logger: Logger): Tracing {
  const quiet = () => undefined;
  const warn: DiagLogger['warn'] = (...parts) =>
    logger.warn({ detail: parts.map(String).join(' ').slice(0, 500) }, 'traces could not be sent');
  // An unreachable collector must not delay anything.
  diag.setLogger({ error: warn, warn, info: quiet, debug: quiet, verbose: quiet }, DiagLogLevel.WARN);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': `core-banking-${service}`,
      'service.instance.id': instance,
      'service.version': packageJson.version,
    }),
    sampler: createSampler(),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter(), ...batching })],
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

/** An invalid setting has no effect but a line in the log, as OpenTelemetry specifies. */
function createSampler(): Sampler {
  const { sampler: name, ratio } = openTelemetry();
  const roots: Record<string, () => Sampler> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  };
  const root = roots[name.replace(/^parentbased_/, '')]?.();
  if (root === undefined || !(ratio >= 0 && ratio <= 1)) {
    diag.warn('OTEL_TRACES_SAMPLER or its ARG is not valid: every request is traced', name, ratio);
    return new ParentBasedSampler({ root: new AlwaysOnSampler() });
  }
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}
