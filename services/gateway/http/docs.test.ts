import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { events, schemaId } from '#libs/contracts/events.ts';
import { testApp } from '../test/test-app.ts';

test('/docs does not store credentials that were entered', async () => {
  const { app } = await testApp();
  const { statusCode, body } = await app.inject({ url: '/docs/static/swagger-initializer.js' });
  expect([statusCode, body.includes('SwaggerUIBundle'), /persistAuthorization"?\s*:\s*true/.test(body)]).toEqual([
    200,
    true,
    false,
  ]);
  await app.close();
});

test('/docs needs no credentials, other paths do', async () => {
  const { app } = await testApp();
  const get = async (url: string) => (await app.inject({ method: 'GET', url })).statusCode;
  expect([
    await get('/docs'),
    await get('/docs/json'),
    await get('/openapi.json'),
    await get('/docs/static/swagger-ui.css'),
  ]).toEqual([200, 200, 200, 200]);
  expect([
    await get('/docs/nothing'),
    await get('/docsx'),
    await get('/openapi.yaml'),
    await get('/docs/../clients'),
    await get('/docs/%2e%2e/clients'),
  ]).toEqual([401, 401, 401, 401, 401]);
  expect((await app.inject({ method: 'GET', url: '/openapi.json' })).json().openapi).toBe('3.1.0');
  // These are for consumers of events: the document and the schemas in docs/.
  for (const [url, file] of [
    ['/docs/asyncapi.json', 'asyncapi.json'],
    ['/docs/events/corebanking.balance.v1.schema.json', 'events/corebanking.balance.v1.schema.json'],
  ] as const) {
    const served = (await app.inject({ method: 'GET', url })).json();
    const written = JSON.parse(readFileSync(new URL(`../../../docs/${file}`, import.meta.url), 'utf8'));
    expect({ ...served, info: undefined }).toEqual({ ...written, info: undefined });
  }
  // The dataschema of an event names the schema that is served for its type.
  for (const type of Object.keys(events))
    expect((await app.inject(`/docs/events/${type}.schema.json`)).json()).toHaveProperty('$id', schemaId(type));
  expect(await get('/docs/events/nothing.schema.json')).toBe(401);
  await app.close();
});
