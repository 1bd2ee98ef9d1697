import type { Endpoint, EndpointName } from '#libs/contracts/endpoints.ts';
import { endpoints, neededScopes } from '#libs/contracts/endpoints.ts';
import { nameOf, openApiDocument, requestSchema } from './openapi.ts';
import type { Json } from './openapi-schemas.ts';
import { jsonSchema } from './openapi-schemas.ts';

/**
 * Returns clients/typescript/operations.ts: the endpoints table and the schemas of the OpenAPI document as plain TypeScript,
 * so that the package depends neither on this project nor on zod.
 */

const longestLine = 140;
/** The client takes resources out of the bodies around them. */
const around = /Response$|^(Accepted|EmptyRequest$|Problem$)/;

export function operationsSource(version: string): string {
  const table = Object.entries(endpoints) as [EndpointName, Endpoint][];
  const { components } = openApiDocument(version) as { components: { schemas: Record<string, Json> } };
  const resources = Object.entries(components.schemas)
    .filter(([name]) => !around.test(name))
    .map(([name, schema]) => declaration(name, schema));
  return `// Made from the OpenAPI document by \`npm run generate\`; not to be edited.
import type { CallOptions, Lines, Pages } from './call.ts';

/** How an operation is called, and where its response contains the resource. */
export interface Operation {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  /** A list, or one resource that is divided into pages. */
  paged?: 'items' | 'document';
  /** A feed, whose responses have the cursor for the next request. */
  feed?: true;
  /** A file of any length: of the type that form names, otherwise JSON lines or CSV. */
  stream?: true;
  /** The body is the resource itself. */
  bare?: true;
  /** The body is of this type. */
  form?: 'text/html' | 'application/xml';
}

export const operations = {
${table.flatMap(([name, endpoint]) => [`  ${callName(name)}: ${operation(endpoint)},`, ...formOperations(name, endpoint)]).join('\n')}
} as const satisfies Record<string, Operation>;

/** One of the known values, or one that a newer bank has. */
export type Open<Known extends string> = Known | (string & Record<never, never>);

${resources.join('\n\n')}

export interface Calls {
${table.flatMap(([name, endpoint]) => [call(name, endpoint), ...formCalls(name, endpoint)]).join('\n')}
}
`;
}

const callName = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

function operation({ method, path, shape }: Endpoint): string {
  const paged = shape === 'page' ? ", paged: 'items'" : shape === 'document' ? ", paged: 'document'" : '';
  return `{ method: '${method}', path: '${path}'${paged}${shape === 'feed' || shape === 'stream' ? `, ${shape}: true` : ''}${shape === 'bare' || shape === 'health' ? ', bare: true' : ''} }`;
}

/** Other forms of an operation's response have calls of their own. */
const formCallNames = {
  'text/html': ['Html', 'an HTML page made for paper'],
  'application/xml': [
    'Xml',
    'a file of ISO 20022 camt.053 that is read as it arrives. It is requested when it is read, once',
  ],
} as const;

function formOperations(name: EndpointName, { method, path, forms = [] }: Endpoint): string[] {
  return forms.map(
    (form) =>
      `  ${callName(name)}${formCallNames[form][0]}: { method: '${method}', path: '${path}', form: '${form}'${form === 'application/xml' ? ', stream: true' : ''} },`,
  );
}

function formCalls(name: EndpointName, endpoint: Endpoint): string[] {
  return (endpoint.forms ?? []).map((form) => {
    const [suffix, what] = formCallNames[form];
    // A page is a text; a file of any length is read as it arrives, and is the statement of one day.
    const isFile = form === 'application/xml';
    const { type, optional } = isFile
      ? { type: '{ account_id: string; on: string }', optional: false }
      : input(name, endpoint);
    const answer = isFile ? 'AsyncIterable<Uint8Array>' : 'Promise<string>';
    return `  /** ${endpoint.summary}, as ${what}. */\n  ${callName(name)}${suffix}(input${optional ? '?' : ''}: ${type}, options?: CallOptions): ${answer};`;
  });
}

const declaration = (name: string, schema: Json) => `export type ${name} = ${toTypeScript(schema, '')};`;

/** Returns the members of a union; for any other schema, the schema itself. */
function unionMembers(schema: Json): Json[] {
  const {
    anyOf,
    oneOf,
    enum: values,
    type,
  } = schema as { anyOf?: Json[]; oneOf?: Json[]; enum?: unknown[]; type?: string | string[] };
  if (values !== undefined) return values.map((value) => ({ const: value }));
  if (!Array.isArray(type)) return anyOf ?? oneOf ?? [schema];
  // What else is said of it does not concern null.
  return type.map((one) => (one === 'null' ? { type: one } : { ...schema, type: one }));
}

function call(name: EndpointName, endpoint: Endpoint): string {
  const { summary, description, shape } = endpoint;
  const needed = neededScopes(endpoint)
    .map((sufficient) => sufficient.join(' or '))
    .join(' and ');
  const text = [
    `${summary}.`,
    ...(description === undefined ? [] : [description]),
    needed === '' ? 'Any authenticated caller.' : `Scope: ${needed}.`,
  ].join(' ');
  const result = nameOf(endpoint.result);
  const answer =
    shape === 'page' || shape === 'document'
      ? `Pages<${result}>`
      : shape === 'stream'
        ? `Lines<${result}>`
        : shape === 'feed'
          ? `Promise<{ data: ${result}[]; cursor: string }>`
          : `Promise<${result}${shape === 'list' ? '[]' : ''}>`;
  const { type, optional } = input(name, endpoint);
  return `  /** ${text} */\n  ${callName(name)}(input${optional ? '?' : ''}: ${type}, options?: CallOptions): ${answer};`;
}

/** Returns the input of a call: path parameters, and the fields of query or body. */
function input(name: EndpointName, endpoint: Endpoint): { type: string; optional: boolean } {
  const { path, query, body } = endpoint;
  const names = [...path.matchAll(/:(\w+)/g)].map(([, one = '']) => one);
  const inPath = Object.fromEntries(names.map((one) => [one, { type: 'string' }]));
  const hasBody = body !== undefined && nameOf(body) !== 'EmptyRequest';
  const { properties = {}, required = [] } = (hasBody ? {} : jsonSchema(query, 'input')) as {
    properties?: Json;
    required?: string[];
  };
  const parts = [
    ...(hasBody ? [nameOf(requestSchema(name, body)) ?? ''] : []),
    ...(hasBody && names.length === 0
      ? []
      : [
          toTypeScript(
            { type: 'object', properties: { ...inPath, ...properties }, required: [...names, ...required] },
            '  ',
          ),
        ]),
  ];
  return {
    type: parts.reverse().join(' & '),
    optional: names.length === 0 && required.length === 0 && (!hasBody || body.safeParse({}).success),
  };
}

/** Returns the TypeScript type of a schema. Throws for schemas that this project does not use. */
function toTypeScript(schema: Json, indent: string): string {
  const { $ref, type, items, properties, additionalProperties } = schema as {
    $ref?: string;
    type?: string;
    items?: Json;
    properties?: Json;
    additionalProperties?: Json;
  };
  if ($ref !== undefined) return $ref.replace(/^.*\//, '');
  const options = unionMembers(schema);
  if (options.length > 1) return options.map((option) => toTypeScript(option, indent)).join(' | ');
  if (options[0]?.['const'] !== undefined) return literal(options[0]['const']);
  const known = schema['x-extensible-enum'] as unknown[] | undefined;
  if (known !== undefined) return known.length === 1 ? literal(known[0]) : `Open<${known.map(literal).join(' | ')}>`;
  if (type === 'array' && items !== undefined)
    return unionMembers(items).length > 1 ? `(${toTypeScript(items, indent)})[]` : `${toTypeScript(items, indent)}[]`;
  if (type === 'integer' || type === 'number') return 'number';
  if (type === 'string' || type === 'boolean' || type === 'null') return type;
  if (type === 'object' && properties !== undefined) return object(schema, indent);
  if (type === 'object')
    return `Record<string, ${additionalProperties === undefined ? 'unknown' : toTypeScript(additionalProperties, indent)}>`;
  if (Object.keys(schema).length === 0) return 'unknown';
  throw new TypeError(`no TypeScript for ${JSON.stringify(schema)}`);
}

const literal = (value: unknown) => (typeof value === 'string' ? `'${value}'` : String(value));

function fields(
  { properties = {}, required = [] }: { properties?: Record<string, Json>; required?: string[] },
  indent: string,
): string[] {
  return Object.entries(properties).map(
    ([name, field]) => `${name}${required.includes(name) ? '' : '?'}: ${toTypeScript(field, indent)}`,
  );
}

function object(schema: Json, indent: string): string {
  const line = `{ ${fields(schema, indent).join('; ')} }`;
  return line.length + indent.length <= longestLine && !line.includes('\n')
    ? line.replace('{  }', 'Record<never, never>')
    : multiline(schema, indent);
}

function multiline(schema: Json, indent: string): string {
  return `{\n${fields(schema, `${indent}  `)
    .map((field) => `${indent}  ${field};\n`)
    .join('')}${indent}}`;
}
