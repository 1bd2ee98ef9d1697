import type { FastifyInstance } from 'fastify';

const monthMs = 30 * 24 * 3_600_000;

/** Serves /.well-known/security.txt (RFC 9116) without credentials. */
export function addSecurityText(app: FastifyInstance, contact: string, now: () => number): void {
  app.get('/.well-known/security.txt', { config: { public: true } }, async (_request, reply) => {
    // The text is generated per request, so it never expires. RFC 9116 recommends that Expires is less than a year
    // ahead.
    const expires = new Date(now() + monthMs).toISOString();
    reply.header('content-type', 'text/plain; charset=utf-8');
    return reply.send(`Contact: ${contact}\nExpires: ${expires}\nPreferred-Languages: en\n`);
  });
}
