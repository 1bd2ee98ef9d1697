/**
 * OpenTelemetry traces with manual spans: a request, a message with its reply, a command in its batch, the
 * batch's transaction, and publishing. Tracing is off, and the SDK is not loaded, unless an endpoint is
 * configured. The gateway decides what is sampled; everything after it follows the traceparent of its message.
 */

export interface SpanOptions {
  kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  /** The W3C traceparent of the parent span; without one, a new trace starts. */
  traceparent?: string | undefined;
  /** In terms of performance.now; default now. */
  startedAt?: number;
  attributes?: Record<string, string | number | undefined>;
  /** The traceparents of linked spans in other traces. */
  links?: string[];
}

export interface Span {
  /** Sent with messages, so that their spans become children of this one. */
  readonly traceparent: string;
  /** `at`: in terms of performance.now, default now. `failed`: the reason of a failure. */
  end(options?: { at?: number; failed?: string | undefined; attributes?: SpanOptions['attributes'] }): void;
}

export interface Tracing {
  begin(name: string, options: SpanOptions): Span;
  /** Exports pending spans, for a few seconds at most. */
  stop(): Promise<void>;
}

/** Version, trace id, parent id, flags (W3C Trace Context, 3.2). */
export const traceparentForm = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Reports whether the gateway sampled this trace: the lowest bit of the flags (3.2.2.5). */
export function isSampled(traceparent: string | undefined): traceparent is string {
  return (
    traceparent !== undefined && traceparentForm.test(traceparent) && parseInt(traceparent.slice(-1), 16) % 2 === 1
  );
}

interface Published {
  topic: string;
  headers: Record<string, string>;
}

/**
 * Called with messages that the broker has acknowledged. `begunAt` (performance.now) is when they were passed
 * to the publisher.
 */
export type PublishTracer = (messages: readonly Published[], begunAt: number) => void;

/** Returns a function that creates a span for each traced message that was published; undefined without tracing. */
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
