import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A span as OTLP/HTTP sends it in JSON. */
export interface SentSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Record<string, unknown> }[];
  links?: { traceId: string; spanId: string }[];
  /** The attributes of its resource. */
  service: string;
}

export interface Collector {
  url: string;
  spans: SentSpan[];
  of(traceId: string): SentSpan[];
  stop(): Promise<void>;
}

type Export = {
  resourceSpans: {
    resource: { attributes: { key: string; value: { stringValue?: string } }[] };
    scopeSpans: { spans: Omit<SentSpan, 'service'>[] }[];
  }[];
};

/** Receives traces like an OpenTelemetry collector: POST /v1/traces, JSON. */
export async function startCollector(): Promise<Collector> {
  const spans: SentSpan[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      if (request.url !== '/v1/traces') return void response.writeHead(404).end();
      for (const { resource, scopeSpans } of (JSON.parse(Buffer.concat(parts).toString()) as Export).resourceSpans) {
        const service = resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '';
        for (const scope of scopeSpans) spans.push(...scope.spans.map((span) => ({ ...span, service })));
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    of: (traceId) => spans.filter((span) => span.traceId === traceId),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
