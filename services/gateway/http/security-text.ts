import type { FastifyInstance } from 'fastify';

const monthMs = 30 * 24 * 3_600_000;

/**
 * /.well-known/security.txt (RFC 9116), without credentials, whatever else is served: it holds no
 * data, and strangers need it.
 */
export function addSecurityText(app: FastifyInstance, contact: string, now: () => number): void {
  app.get('/.well-known/security.txt', { config: { public: true } }, async (_request, reply) => {
    // The text is made for each reader, so it is never out of date; RFC 9116 asks for a moment less than a year ahead.
    const expires = new Date(now() + monthMs).toISOString();
    reply.header('content-type', 'text/plain; charset=utf-8');
    return reply.send(`Contact: ${contact}\nExpires: ${expires}\nPreferred-Languages: en\n`);
  });
}
