import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Tracing, traceparentForm } from '#libs/service/tracing.ts';

/** Returns the caller's traceparent if it is valid. */
export function givenTraceparent({ headers: { traceparent } }: FastifyRequest): string | undefined {
  return typeof traceparent === 'string' && traceparentForm.test(traceparent) ? traceparent : undefined;
}

/** Creates a span for each request to an API route, from its first hook to the end of its response. */
export function traceRequests(app: FastifyInstance, tracing: Tracing): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const { endpoint } = request.routeOptions.config;
    if (endpoint !== undefined && endpoint !== 'health') {
      const attributes = {
        'http.request.method': request.method,
        'http.route': request.routeOptions.url,
        request_id: request.id,
      };
      request.span = tracing.begin(`${request.method} ${request.routeOptions.url}`, {
        kind: 'server',
        traceparent: givenTraceparent(request),
        attributes,
      });
    }
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const status = reply.statusCode;
    request.span?.end({
      attributes: { 'http.response.status_code': status },
      failed: status >= 500 ? String(status) : undefined,
    });
    done();
  });
}
