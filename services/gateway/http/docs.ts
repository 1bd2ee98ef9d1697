import { readdirSync, readFileSync } from 'node:fs';
import fastifySwagger from '@fastify/swagger';
import fastifySwaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';

// The plugin's own policy upgrades requests to https, which a local start does not support.
const contentPolicy =
  "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; frame-ancestors 'none'";

const logo =
  '<svg xmlns="http://www.w3.org/2000/svg" width="170" height="40"><text x="0" y="27" font-family="sans-serif" font-size="22" font-weight="600" fill="#fff">Core Banking</text></svg>';

/** The generated documents (`npm run generate`). */
const folder = new URL('../../../docs/', import.meta.url);
const read = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Record<string, unknown>;

/**
 * Serves /docs for people; /docs/json and /openapi.json for programs; /docs/asyncapi.json and
 * /docs/events/<type>.schema.json for consumers of events. They need no credentials, because they contain no data of
 * the bank.
 */
export async function addDocs(app: FastifyInstance): Promise<void> {
  const document = read('openapi.json');
  const files: Record<string, string> = {
    '/openapi.json': JSON.stringify(document),
    '/docs/asyncapi.json': JSON.stringify(read('asyncapi.json')),
  };
  for (const name of readdirSync(new URL('events/', folder)))
    files[`/docs/events/${name}`] = JSON.stringify(read(`events/${name}`));
  await app.register(async (docs) => {
    docs.addHook('onRoute', (route) => {
      route.config = { ...route.config, public: true };
    });
    await docs.register(fastifySwagger, { mode: 'static', specification: { document: document as never } });
    await docs.register(fastifySwaggerUi, {
      routePrefix: '/docs',
      staticCSP: contentPolicy,
      uiConfig: { persistAuthorization: false, displayRequestDuration: true },
      theme: { title: 'Core Banking API' },
      logo: { type: 'image/svg+xml', content: logo, href: '/docs' },
    });
    for (const [path, text] of Object.entries(files))
      docs.get(path, async (_request, reply) =>
        reply.header('content-type', 'application/json; charset=utf-8').send(text),
      );
  });
}
