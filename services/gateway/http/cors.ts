import type { FastifyReply, FastifyRequest } from 'fastify';

const exposed =
  'ETag, Link, Location, X-Request-Id, Idempotent-Replayed, Retry-After, RateLimit, RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, WWW-Authenticate, Accept-Patch';
const preflight = {
  'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
  'access-control-allow-headers':
    'Authorization, X-Api-Key, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Request-Id, Traceparent',
  'access-control-max-age': '600',
};

/**
 * CORS for an API that authenticates by headers, never by cookies. Written by hand, because @fastify/cors
 * answers every OPTIONS request without credentials, which is only allowed for a preflight.
 */
export function createCors(origins: readonly string[]) {
  const isAny = origins.includes('*');
  const allowed = (origin: string): string | undefined => (isAny ? '*' : origins.includes(origin) ? origin : undefined);
  return {
    /** Sets the headers of a response to a page of an allowed origin. */
    mark(request: FastifyRequest, reply: FastifyReply): void {
      const { origin } = request.raw.headers;
      if (!isAny && origins.length > 0) reply.header('vary', 'Origin');
      const allow = origin === undefined ? undefined : allowed(origin);
      if (allow !== undefined)
        reply.headers({ 'access-control-allow-origin': allow, 'access-control-expose-headers': exposed });
    },
    isPreflight: (request: FastifyRequest): boolean =>
      request.method === 'OPTIONS' &&
      request.raw.headers.origin !== undefined &&
      request.raw.headers['access-control-request-method'] !== undefined,
    answerPreflight(request: FastifyRequest, reply: FastifyReply): FastifyReply {
      const { origin } = request.raw.headers;
      if (origin !== undefined && allowed(origin) !== undefined) reply.headers(preflight);
      return reply.code(204).send();
    },
  };
}
