import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { errorCodes } from '#libs/contracts/errors.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { openApiDocument } from './openapi.ts';
import { ids, ok, samples, testApp } from './test-app.ts';

const document = JSON.parse(JSON.stringify(openApiDocument(packageJson.version)));

test('docs/openapi.json is what the endpoints table says now (npm run generate)', () => {
  expect(JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8'))).toEqual(document);
});

test('every endpoint is there, with its scope and its errors', () => {
  for (const [name, { path, method, errors }] of Object.entries(endpoints)) {
    const operation = document.paths[path.replace(/:(\w+)/g, '{$1}')][method.toLowerCase()];
    expect(operation.operationId).toBe(name);
    const text = JSON.stringify(operation.responses);
    for (const code of errors) expect(text, `${name} ${code}`).toContain(code);
  }
});

test('every reference leads somewhere', () => {
  for (const [, reference = ''] of JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
    const target = reference.split('/').reduce((value, key) => value?.[key], document);
    expect(target, reference).toBeDefined();
  }
});

test('money is a number, going in and coming out', () => {
  const schema = (path: string) => document.paths[path].post.requestBody.content['application/json'].schema.properties;
  expect(schema('/transactions').amount).toMatchObject({ type: 'number', exclusiveMinimum: 0 });
  expect(schema('/accounts').initial_deposit).toMatchObject({ type: 'number', minimum: 0, default: 0 });
  expect(document.components.schemas.Account.properties.balance).toEqual({ type: 'number' });
  expect(document.components.schemas.Error.properties.code.enum).toEqual(Object.keys(errorCodes));
});

test('the request examples are taken by the endpoints themselves', async () => {
  const { app, keyHeader } = await testApp(() => ok(samples.client));
  const headers = keyHeader();
  for (const [path, operations] of Object.entries<Record<string, { requestBody?: { content: Record<string, { examples: Record<string, { value: object }> }> } }>>(document.paths)) {
    for (const [method, { requestBody }] of Object.entries(operations)) {
      for (const { value } of Object.values(requestBody?.content['application/json']?.examples ?? {})) {
        const url = path.replace(/\{(\w+)_id\}/g, (_all, kind: string) => ({ client: ids.client, account: ids.account, transaction: ids.transaction })[kind] ?? `key_${'1'.repeat(32)}`);
        const response = await app.inject({ method: method.toUpperCase() as 'POST', url, headers, payload: value });
        expect([201, 200, 504], `${method} ${path} ${response.body}`).toContain(response.statusCode);
      }
    }
  }
  await app.close();
});

test('the docs need no credentials, what lies beside them does', async () => {
  const { app } = await testApp(undefined, { docs: true });
  const get = async (url: string) => (await app.inject({ method: 'GET', url })).statusCode;
  expect([await get('/docs'), await get('/docs/json'), await get('/openapi.json'), await get('/docs/static/swagger-ui.css')]).toEqual([200, 200, 200, 200]);
  expect([await get('/docs/nothing'), await get('/docsx'), await get('/openapi.yaml'), await get('/docs/../clients'), await get('/docs/%2e%2e/clients')]).toEqual([401, 401, 401, 401, 401]);
  expect((await app.inject({ method: 'GET', url: '/openapi.json' })).json().openapi).toBe('3.1.0');
  await app.close();
});
