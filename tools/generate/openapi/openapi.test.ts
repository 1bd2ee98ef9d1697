import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect, test } from 'vitest';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { errorCodes } from '#libs/contracts/errors.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import { ids, ok, samples, testApp } from '#services/gateway/test/test-app.ts';
import { testToken, testTokens } from '#services/gateway/test/test-token.ts';
import packageJson from '../../../package.json' with { type: 'json' };
import { fieldMeanings } from '../meanings.ts';
import { openApiDocument } from './openapi.ts';

const document = JSON.parse(JSON.stringify(openApiDocument(packageJson.version)));
const { schemas } = document.components;

test('every endpoint is included, with its scope and its errors', () => {
  for (const [name, { path, method, errors }] of Object.entries(endpoints)) {
    const operation = document.paths[path.replace(/:(\w+)/g, '{$1}')][method.toLowerCase()];
    expect(operation.operationId).toBe(name);
    const text = JSON.stringify(operation.responses);
    for (const code of errors) expect(text, `${name} ${code}`).toContain(code);
  }
});

test('every operation has valid examples of requests and responses, and every code an example of its body', () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { decimal: true } });
  addFormats.default(ajv);
  ajv.addSchema(document, 'openapi');
  const wrong: string[] = [];
  const check = (place: string[], contents: Record<string, object> = {}) => {
    // A file of lines has examples of its lines.
    const form = contents['application/x-ndjson'] ? 'application/x-ndjson' : 'application/json';
    const content = (contents[form] ?? {}) as { examples?: Record<string, { value?: unknown; $ref?: string }> };
    const examples = Object.entries(content.examples ?? {});
    if (examples.length === 0) wrong.push(`${place.join(' ')}: no example`);
    const pointer = [...place, 'content', form, 'schema']
      .map((key) => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1')))
      .join('/');
    const validate = ajv.compile({ $ref: `openapi#/${pointer}` });
    for (const [title, { value, $ref }] of examples) {
      const example = $ref === undefined ? value : document.components.examples[$ref.replace(/^.*\//, '')].value;
      if (!validate(example)) wrong.push(`${place.join(' ')} ${title}: ${ajv.errorsText(validate.errors)}`);
    }
  };
  const operations = Object.entries<
    Record<
      string,
      {
        requestBody?: { content: Record<string, object> };
        responses: Record<string, { $ref?: string; content?: Record<string, object> }>;
      }
    >
  >(document.paths);
  for (const [path, methods] of operations) {
    for (const [method, { requestBody, responses }] of Object.entries(methods)) {
      if (requestBody) check(['paths', path, method, 'requestBody'], requestBody.content);
      for (const [status, { $ref, content }] of Object.entries(responses))
        if ($ref === undefined && status !== '304') check(['paths', path, method, 'responses', status], content);
    }
  }
  for (const [name, { content }] of Object.entries<{ content: Record<string, object> }>(document.components.responses))
    check(['components', 'responses', name], content);
  expect(wrong).toEqual([]);
});

test('every code that callers can receive belongs to an operation', () => {
  // contract: errors-10
  const told = new Set(
    Object.values<object>(document.paths)
      .flatMap((methods) => Object.values(methods))
      .flatMap(({ responses }) =>
        [...JSON.stringify(responses).matchAll(/examples\/(\w+)|responses\/(\w+)/g)].map(
          ([, one, other]) => one ?? other,
        ),
      ),
  );
  told.add('missing_credentials').add('invalid_credentials').add('ambiguous_credentials');
  // These codes belong to other paths and methods, which are not operations.
  expect(Object.keys(errorCodes).filter((code) => !told.has(code))).toEqual(['route_not_found', 'method_not_allowed']);
});

/** Returns every schema of the document with its path, except parts that only restrict other schemas. */
function listSchemas(value: unknown, place = ''): [string, Record<string, unknown>][] {
  if (typeof value !== 'object' || value === null) return [];
  return [
    [place, value as Record<string, unknown>] as [string, Record<string, unknown>],
    ...Object.entries(value).flatMap(([key, part]) =>
      ['examples', 'example', 'not'].includes(key) ? [] : listSchemas(part, `${place}/${key}`),
    ),
  ];
}

test('every property, parameter, and header has a description', () => {
  const silent = listSchemas(document).flatMap(([place, { properties, parameters }]) => [
    ...Object.entries((properties ?? {}) as Record<string, { description?: string }>)
      .filter(([, { description }]) => !description)
      .map(([name]) => `${place}: ${name}`),
    ...(Array.isArray(parameters) ? parameters : [])
      .filter(({ $ref, description }) => $ref === undefined && !description)
      .map(({ name }) => `${place}: ${name}`),
  ]);
  expect(silent).toEqual([]);
  const components = [...Object.values(document.components.headers), ...Object.values(document.components.parameters)];
  expect(components.filter((component) => !(component as { description?: string }).description)).toEqual([]);
});

test('headers are defined once', () => {
  const own = listSchemas(document.paths).flatMap(([place, { headers }]) =>
    Object.entries((headers ?? {}) as Record<string, { $ref?: string }>)
      .filter(([, { $ref }]) => $ref === undefined)
      .map(([name]) => `${place}: ${name}`),
  );
  expect(own).toEqual([]);
});

test('every integer has a lower bound of ours, and none the limits of a double', () => {
  const unbounded = listSchemas(document)
    .filter(([, { type, minimum, maximum }]) => {
      const isInteger = (kind: unknown) => (Array.isArray(kind) ? kind.includes('integer') : kind === 'integer');
      return isInteger(type) && (typeof minimum !== 'number' || minimum < 0 || maximum === Number.MAX_SAFE_INTEGER);
    })
    .map(([place]) => place);
  expect(unbounded).toEqual([]);
});

test('all descriptions of fields are used', () => {
  const said = new Set(
    listSchemas(document).map(([, { description }]) =>
      typeof description === 'string' ? description.replace(/\. (An exact decimal|Known values):.*$/, '') : undefined,
    ),
  );
  const idle = Object.entries(fieldMeanings).filter(([, meaning]) => !said.has(meaning));
  expect(idle.map(([name]) => name)).toEqual([]);
});

test('Redocly reports no problems in the document', async () => {
  const config = await createConfig({ extends: ['recommended-strict'] });
  const problems = await lintFromString({
    source: JSON.stringify(document),
    absoluteRef: 'openapi.json',
    config,
  });
  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
});

test('every object and union has a name, so that no generator invents one', () => {
  const inline = [...listSchemas(document.paths, '/paths'), ...listSchemas(schemas, '/schemas')].filter(
    ([place, { properties, oneOf, anyOf }]) =>
      (properties ?? oneOf ?? anyOf) !== undefined &&
      !/^\/schemas\/\w+$/.test(place) &&
      // A resource that may be null.
      !(Array.isArray(anyOf) && anyOf.length === 2 && anyOf[0].$ref && anyOf[1].type === 'null') &&
      !place.endsWith('/properties'),
  );
  expect(inline.map(([place]) => place)).toEqual([]);
  for (const name of [
    'RetailClient',
    'CorporateClient',
    'AccountResponse',
    'AccountListResponse',
    'CreateTransactionRequest',
  ])
    expect(schemas[name], name).toBeDefined();
});

test('client_type tells clients apart, in requests and responses', () => {
  for (const [name, retail, corporate] of [
    ['Client', 'RetailClient', 'CorporateClient'],
    ['CreateClientRequest', 'CreateRetailClientRequest', 'CreateCorporateClientRequest'],
  ] as const) {
    const ref = (one: string) => `#/components/schemas/${one}`;
    expect(schemas[name]).toMatchObject({
      oneOf: [{ $ref: ref(retail) }, { $ref: ref(corporate) }],
      discriminator: { propertyName: 'client_type', mapping: { Retail: ref(retail), Corporate: ref(corporate) } },
    });
    expect(schemas[retail].properties.client_type.enum).toEqual(['Retail']);
  }
});

test('times and days have their formats', () => {
  const texts = listSchemas(document).flatMap(([place, { properties }]) =>
    Object.entries(
      (properties ?? {}) as Record<string, { type?: string | string[]; format?: string; description?: string }>,
    )
      .filter(([, { type }]) => [type].flat().includes('string'))
      .map(([name, { format, description = '' }]) => [`${place}/${name}`, name, format, description] as const),
  );
  const wrong = texts.filter(([, name, format, description]) => {
    if (/_at$/.test(name) || /ISO 8601/.test(description)) return !['date-time', 'date'].includes(format ?? '');
    return /^(date|day)$|_date$|_day$/.test(name) && format !== 'date';
  });
  expect(wrong.map(([place]) => place)).toEqual([]);
});

test('enumerations are open in responses, which list the known values, and closed in requests', () => {
  // contract: envelope-20
  const reached = new Set<string>();
  const reach = (part: unknown): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/#\/components\/schemas\/(\w+)"/g)) {
      if (reached.has(name)) continue;
      reached.add(name);
      reach(schemas[name]);
    }
  };
  const operations = Object.values<object>(document.paths).flatMap((methods) => Object.values(methods));
  for (const { responses } of operations) reach(responses);
  reach(document.components.responses);
  const discriminators = new Set(
    Object.values<{ discriminator?: { propertyName: string; mapping: Record<string, string> } }>(schemas).flatMap(
      ({ discriminator }) =>
        Object.values(discriminator?.mapping ?? {}).map(
          (reference) => `${reference.replace(/^.*\//, '')}/properties/${discriminator?.propertyName}`,
        ),
    ),
  );
  const closed = [...reached].flatMap((name) =>
    listSchemas(schemas[name], name).filter(
      ([place, schema]) => schema['enum'] !== undefined && !discriminators.has(place),
    ),
  );
  expect(closed.map(([place]) => place)).toEqual([]);
  const { Transaction, ErrorCode, CreateTransactionRequest } = schemas;
  for (const field of ['status', 'transaction_type'])
    expect(Transaction.properties[field]).toMatchObject({
      type: 'string',
      description: expect.stringContaining('Known values: '),
    });
  expect(Transaction.properties.status.enum).toBeUndefined();
  expect(ErrorCode['x-extensible-enum']).toEqual(Object.keys(errorCodes));
  expect(CreateTransactionRequest.properties.transaction_type.enum).toEqual(['Deposit', 'Withdrawal']);
});

test('Idempotency-Key is the first header parameter, and X-Request-Id is none', () => {
  const { parameters } = document.components;
  const wrong = Object.entries<Record<string, { parameters: { $ref?: string; in?: string }[] }>>(
    document.paths,
  ).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const headers = operation.parameters.flatMap(({ $ref }) =>
        $ref ? [parameters[$ref.replace(/^.*\//, '')].name] : [],
      );
      const isFirst = !headers.includes('Idempotency-Key') || headers[0] === 'Idempotency-Key';
      return isFirst && !headers.includes('X-Request-Id') ? [] : [`${method} ${path}`];
    }),
  );
  expect(wrong).toEqual([]);
  expect(document.paths['/transactions'].post.parameters).toEqual([{ $ref: '#/components/parameters/IdempotencyKey' }]);
  expect(document.info.description).toContain('X-Request-Id');
  expect(document.paths['/transactions'].post.responses['201'].headers['X-Request-Id']).toBeDefined();
});

test('every reference resolves', () => {
  for (const [, reference = ''] of JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
    const target = reference.split('/').reduce((value, key) => value?.[key], document);
    expect(target, reference).toBeDefined();
  }
});

test('money is a number, in requests and responses', () => {
  const { CreateTransactionRequest, OpenAccountRequest, Account } = schemas;
  const decimal = { type: 'number', format: 'decimal', description: expect.stringContaining('An exact decimal') };
  expect(CreateTransactionRequest.properties.amount).toMatchObject({ ...decimal, exclusiveMinimum: 0 });
  expect(OpenAccountRequest.properties.initial_deposit).toMatchObject({ ...decimal, minimum: 0, default: 0 });
  expect(Account.properties.balance).toMatchObject(decimal);
});

test('the endpoints accept the request examples', async () => {
  const { app } = await testApp(({ name }) => ok(name === 'get_transaction' ? samples.transaction : samples.client), {
    tokens: testTokens,
  });
  // A person for each request, because signing in ends earlier tokens, and signing out ends one.
  const bearerHeaders = (sub: string) => ({
    authorization: `Bearer ${testToken({ sub, scope: scopes.join(' ') })}`,
    'idempotency-key': 'k',
  });
  for (const [path, operations] of Object.entries<
    Record<string, { requestBody?: { content: Record<string, { examples: Record<string, { value: object }> }> } }>
  >(document.paths)) {
    for (const [method, { requestBody }] of Object.entries(operations)) {
      for (const { value } of Object.values(requestBody?.content['application/json']?.examples ?? {})) {
        const url = path.replace(
          /\{(\w+)_id\}/g,
          (_all, kind: string) =>
            ({
              client: ids.client,
              account: ids.account,
              transaction: ids.transaction,
              hold: ids.hold,
              dead_letter: `dlt_${'1'.repeat(32)}`,
              approval: `apr_${'1'.repeat(32)}`,
              webhook: `whk_${'1'.repeat(32)}`,
              delivery: `dlv_${'1'.repeat(32)}`,
              till: `til_${'1'.repeat(32)}`,
            })[kind] ?? `key_${'1'.repeat(32)}`,
        );
        const response = await app.inject({
          method: method.toUpperCase() as 'POST',
          url,
          headers: bearerHeaders(url),
          payload: value,
        });
        expect([201, 200, 504], `${method} ${path} ${response.body}`).toContain(response.statusCode);
      }
    }
  }
  await app.close();
});

test('a creation links to the reads of its resource', () => {
  const targets = (path: string, status: string) =>
    Object.values<{ operationId: string; parameters: object }>(document.paths[path].post.responses[status].links).map(
      ({ operationId, parameters }) => [operationId, parameters],
    );
  expect(targets('/clients', '201')).toContainEqual(['get_client', { client_id: '$response.body#/data/client_id' }]);
  expect(targets('/transactions', '202')).toContainEqual([
    'get_transaction',
    { transaction_id: '$response.body#/transaction_id' },
  ]);
  expect(targets('/accounts', '201')).toContainEqual([
    'get_balance_by_number',
    { accountNumber: '$response.body#/data/account_number' },
  ]);
});

test('the patterns of texts and phone numbers match what the fields accept', () => {
  const { first_name, contact_number, email } = schemas.CreateRetailClientRequest.properties;
  const fits = (schema: { pattern: string }, value: string) => new RegExp(schema.pattern, 'u').test(value);
  const taken = (changes: object) =>
    endpoints.create_client.body.safeParse({
      client_type: 'Retail',
      first_name: 'A',
      last_name: 'B',
      email: 'a@b.cc',
      contact_number: '+254700000001',
      ...changes,
    }).success;
  for (const name of ['x', ' x ', '中', '', ' ', '\u00a0', '\ufeff', 'a\u0000', 'a\u0085b', '\u2028x', '\u3000'])
    expect([name, fits(first_name, name)]).toEqual([name, taken({ first_name: name })]);
  // The numbering plans are too large for a pattern: it matches what may be a number, and refuses what cannot.
  for (const phone of ['+254700000001', '00254700000001', ' +254 7-00 000001 ', '+254\u2011700000001'])
    expect([phone, fits(contact_number, phone), taken({ contact_number: phone })]).toEqual([phone, true, true]);
  for (const phone of ['', 'call me', '+2547x', 'E.164'])
    expect([phone, fits(contact_number, phone), taken({ contact_number: phone })]).toEqual([phone, false, false]);
  // So are the rules of domains in any script.
  for (const address of ['a@b.cc', "o'x@b.cc", `${'a'.repeat(64)}@b.cc`, `a@${'b'.repeat(63)}.cc`, 'a@b-c.dd'])
    expect([address, fits(email, address), taken({ email: address })]).toEqual([address, true, true]);
  for (const address of ['', 'a', 'a@', '@b.cc', 'a@b@c.dd', 'a b@c.dd'])
    expect([address, fits(email, address), taken({ email: address })]).toEqual([address, false, false]);
});

test('rules over several fields are conditions', () => {
  const ajv = new Ajv2020({ strict: false, formats: { decimal: true } });
  const { not } = schemas.ChangeAccountStatusRequest;
  const isRefused = ajv.compile(not);
  expect(
    [
      { status: 'Frozen' },
      { status: 'Frozen', reason: null },
      { status: 'Frozen', reason: 'fraud' },
      { status: 'Active' },
    ].map((body) => isRefused(body)),
  ).toEqual([true, true, false, false]);
  expect(schemas.CreateRetailClientRequest.not.required).toEqual(['ussd_status']);
  expect(schemas.UpdateClientRequest.minProperties).toBe(1);
});
