import { z } from 'zod';
import { createDocument, type ZodOpenApiObject } from 'zod-openapi';
import { approvableCommand, approvalSchema } from '#libs/contracts/approvals.ts';
import type { Endpoint, EndpointName } from '#libs/contracts/endpoints.ts';
import { endpoints, isPaged, neededScopes, takesIfMatch } from '#libs/contracts/endpoints.ts';
import type { ErrorCode } from '#libs/contracts/errors.ts';
import { errorBodySchema, errorCodes, problemSchema } from '#libs/contracts/errors.ts';
import { isSearchable } from '#libs/contracts/searches.ts';
import { textWithoutNul } from '#libs/contracts/texts.ts';
import { withPortablePatterns } from '../patterns.ts';
import { sample } from '../samples.ts';
import { answerExamples, camtExample, errorExample, pathExample, requestExamples } from './openapi-examples.ts';
import { links } from './openapi-links.ts';
import { explained, findMeaning } from './openapi-meanings.ts';
import type { Json } from './openapi-schemas.ts';
import { adjust, jsonSchema } from './openapi-schemas.ts';

/** Builds the OpenAPI 3.1 document from the endpoints table and the names of schemas (`.meta({ id })`). */

const description = `Core banking: clients, accounts, transactions, and transfers with double-entry accounting.

Amounts are JSON numbers with at most the decimal places of their currency (format \`decimal\`): decode them as decimals, never as
floating point. Times are ISO 8601 UTC. Success bodies are \`{status: "success", data}\`, error bodies
\`{status: "error", message, code, request_id}\`; each code always has the same HTTP status. Lists are sorted newest first; the
\`Link\` header (rel="next") refers to the next page. A POST with an \`Idempotency-Key\` can be repeated: it is executed once,
and every repeat returns the first outcome.

Within a major version, responses gain fields, and values where \`x-extensible-enum\` lists those that are known. Take an error code
that you do not know by its HTTP status.

Every request may have an \`X-Request-Id\` of 1 to 128 printable ASCII characters, which logs, events, and the response then have;
otherwise the bank makes one. It does not make a request safe to repeat.`;

const tags: Record<Endpoint['tag'], string> = {
  Health: 'Health check',
  Clients: 'People and organizations that have accounts',
  Accounts: 'Accounts, their status, balances, entries, and statements',
  Transactions: 'Deposits, withdrawals, and all postings on an account',
  Transfers: 'Movements between two accounts',
  Holds: 'Reserved money on an account',
  Tills: 'What a person has in cash, from one count to the next',
  Batches: 'Many postings in one request',
  Events: 'Polling for events',
  Webhooks: 'Sending events to a URL',
  Administration: 'For staff and operators: API keys, audit log, approvals, dead letters, verification',
};

/** Returns the components of these sections that are referred to. */
function used(document: Json): Json {
  const { components, ...rest } = document as { components: Record<string, Record<string, Json>> };
  const text = JSON.stringify(document);
  const kept = Object.entries(components).map(([section, all]) => [
    section,
    section === 'securitySchemes'
      ? all
      : Object.fromEntries(Object.entries(all).filter(([name]) => text.includes(`"#/components/${section}/${name}"`))),
  ]);
  return { ...rest, components: Object.fromEntries(kept) };
}

export function openApiDocument(version: string): Json {
  // A component that is used only by an unused response is also unused.
  return withPortablePatterns(used(used(explained(wholeDocument(version)))));
}

function wholeDocument(version: string): Json {
  const paths: Record<string, Json> = {};
  for (const [name, endpoint] of Object.entries(endpoints) as [EndpointName, Endpoint][]) {
    const path = endpoint.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(name, endpoint) };
  }
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Core Banking',
      version,
      description,
      contact: { name: 'The operators of the bank' },
      license: { name: 'UNLICENSED', identifier: 'LicenseRef-UNLICENSED' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }, { api_key: [] }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'A JWT of the identity provider; `scope` contains the permissions',
        },
        api_key: {
          type: 'apiKey',
          in: 'header',
          name: 'x-api-key',
          description: 'An API key: `cbk_<live|test>_<id>_<secret>`',
        },
      },
      headers: headerComponents,
      parameters: headerParameters,
      responses: responseComponents(),
      examples: Object.fromEntries(
        (Object.keys(errorCodes) as ErrorCode[]).map((code) => [code, { value: errorExample(code) }]),
      ),
    },
  };
  return createDocument(document as unknown as ZodOpenApiObject, {
    override: ({ jsonSchema: made, io }) => adjust(made as Json, io),
    allowEmptySchema: { pipe: true, transform: true },
  }) as unknown as Json;
}

const text = { type: 'string' };
const count = { type: 'integer', minimum: 0 };
/** Callers are counted per minute. */
const seconds = { ...count, maximum: 60 };
const headerComponents: Record<string, Json> = {
  RequestId: { description: "The caller's X-Request-Id, or a new one", required: true, schema: text },
  Location: { description: 'Path of the resource', required: true, schema: text },
  ETag: { description: 'The version of the resource, for If-Match', required: true, schema: text },
  Link: { description: 'The next page, rel="next"; absent on the last one', schema: text },
  RetryAfter: { description: 'Seconds to wait', required: true, schema: seconds },
  RetryAfterIfPending: { description: 'Seconds to wait, if the outcome is pending', schema: seconds },
  Replayed: {
    description: 'true if this is the response to a repeated request',
    schema: { type: 'string', const: 'true' },
  },
  Challenge: { description: 'How to authenticate', required: true, schema: text },
  AcceptPatch: { description: 'The media types of a PATCH', schema: text },
  Accept: { description: 'The media type that is required, if that is the reason', required: true, schema: text },
  AcceptEncoding: { description: 'identity, if the body is compressed', schema: text },
  RateLimitPolicy: {
    description: 'Requests per minute allowed for this caller (`q`); absent if there is no limit',
    schema: { ...text, examples: ['"requests";q=6000;w=60'] },
  },
  RateLimit: {
    description: 'Requests left in the current window (`r`), and seconds until it ends (`t`)',
    schema: { ...text, examples: ['"requests";r=5990;t=42'] },
  },
  RateLimitLimit: {
    description: 'Requests per minute allowed for this caller; absent if there is no limit',
    schema: count,
  },
  RateLimitRemaining: { description: 'Requests left in the current window', schema: count },
  RateLimitReset: { description: 'Seconds until the window ends', schema: seconds },
};
const idempotencyKey: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  schema: { type: 'string', maxLength: 255, pattern: '^[!-~]([ -~]*[!-~])?$' },
  description: 'Makes the request safe to repeat: every repeat with the same key returns the same outcome',
};
const headerParameters: Record<string, Json> = {
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    schema: text,
    description:
      'One or more ETags: the resource is read or changed only if it has one of them, otherwise the response is 412',
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    schema: text,
    description: 'One or more ETags: if the resource has one of them, the response is 304',
  },
  IdempotencyKey: idempotencyKey,
  RequiredIdempotencyKey: { ...idempotencyKey, required: true },
};
const parameter = (name: keyof typeof headerParameters): Json => ({ $ref: `#/components/parameters/${name}` });
const header = (name: keyof typeof headerComponents): Json => ({ $ref: `#/components/headers/${name}` });

/** Returns the headers of a response to an authenticated caller. */
function knownCallersHeaders(): Record<string, Json> {
  return {
    'X-Request-Id': header('RequestId'),
    'RateLimit-Policy': header('RateLimitPolicy'),
    RateLimit: header('RateLimit'),
    'RateLimit-Limit': header('RateLimitLimit'),
    'RateLimit-Remaining': header('RateLimitRemaining'),
    'RateLimit-Reset': header('RateLimitReset'),
  };
}

function operation(name: EndpointName, endpoint: Endpoint): Json {
  const { tag, summary, description, method, body } = endpoint;
  const needed = neededScopes(endpoint)
    .map((sufficient) => sufficient.map((scope) => `\`${scope}\``).join(' or '))
    .join(' and ');
  return {
    operationId: name,
    tags: [tag],
    summary,
    description: [
      needed === '' ? 'Any authenticated caller.' : `Scope: ${needed}.`,
      ...(description === undefined ? [] : [description]),
    ].join(' '),
    parameters: [
      ...pathParameters(endpoint),
      ...queryParameters(name, endpoint),
      ...(method === 'POST' && endpoint.message !== null
        ? [parameter(endpoint.needsKey ? 'RequiredIdempotencyKey' : 'IdempotencyKey')]
        : []),
      ...(takesIfMatch(endpoint) ? [parameter('IfMatch')] : []),
      ...(isVersionedRead(endpoint) ? [parameter('IfNoneMatch')] : []),
    ],
    ...(body ? { requestBody: requestBody(name, endpoint) } : {}),
    responses: { ...successes(name, endpoint), ...errors(endpoint) },
  };
}

const isVersionedRead = ({ method, versioned }: Endpoint) => method === 'GET' && versioned === true;

function pathParameters({ path }: Endpoint): Json[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: text,
    description: findMeaning(name, ''),
    example: pathExample(name),
  }));
}

function queryParameters(operation: EndpointName, { query, result, shape }: Endpoint): Json[] {
  // A parameter of a list with the name of one of its fields is a filter.
  const listed = shape === 'page' ? JSON.stringify(jsonSchema(result, 'output')) : '';
  const filter = (name: string) =>
    listed.includes(`"${name}":`) ? `Only those with this ${name.replaceAll('_', ' ')}` : undefined;
  const schema = jsonSchema(query, 'input') as { properties?: Record<string, Json>; required?: string[] };
  return Object.entries(schema.properties ?? {}).map(([name, { description: said, ...property }]) => ({
    // Any key of an object is a parameter of its own.
    name: property['type'] === 'object' ? `${name}.<key>` : name,
    in: 'query',
    required: schema.required?.includes(name) ?? false,
    description: findMeaning(name, operation, filter(name) ?? said),
    schema: withoutNul((property['additionalProperties'] as Json | undefined) ?? property),
  }));
}

/** No parameter accepts NUL. Parameters without other restrictions have no pattern for that. */
function withoutNul(property: Json): Json {
  const isFree =
    property['type'] === 'string' &&
    ['pattern', 'enum', 'const', 'format'].every((rule) => property[rule] === undefined);
  return isFree ? { ...property, pattern: textWithoutNul } : property;
}

function requestBody(name: EndpointName, endpoint: Endpoint): Json {
  const { body, method } = endpoint;
  if (!body) return {};
  const examples = Object.entries(requestExamples(endpoint)).map(([title, value]) => [title, { value }]);
  const schema = requestSchema(name, body);
  const content = () => ({ schema, examples: Object.fromEntries(examples) });
  return {
    required: !body.safeParse({}).success,
    content: {
      'application/json': content(),
      ...(method === 'PATCH' ? { 'application/merge-patch+json': content() } : {}),
    },
  };
}

/** Returns the body of an operation under its name: that of the contract, or one made of that of the operation. */
export const requestSchema = (name: EndpointName, body: z.ZodType): z.ZodType =>
  nameOf(body) === undefined ? body.meta({ ...body.meta(), id: `${pascal(name)}Request` }) : body;

/** Returns the name that the contract gives a schema. */
export const nameOf = (schema: z.ZodType): string | undefined => z.globalRegistry.get(schema)?.id;
const pascal = (name: string): string => name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());

const made = new Map<string, z.ZodType>();
/** Returns the schema with that name, which is made once. */
function named(id: string, make: () => z.ZodType): z.ZodType {
  const schema = made.get(id) ?? make().meta({ id });
  made.set(id, schema);
  return schema;
}

const successStatus = z.literal('success').meta({ description: 'Always success' });
const wrapped = (data: z.ZodType, more: z.ZodRawShape = {}) => z.object({ status: successStatus, data, ...more });

const cursor = z.string().meta({ description: 'The position after this page; pass it as `after`' });
const complete = z.boolean().optional().meta({
  description:
    'Only for searches without an index: false if the page ended because the scan limit was reached; the Link continues from there',
});

/** Returns the body of a successful response, around the resource. */
function envelope({ result, shape, message, path }: Endpoint): z.ZodType {
  const name = nameOf(result);
  if (name === undefined) throw new TypeError(`the result of ${path} has no name`);
  if (shape === 'bare' || shape === 'health' || shape === 'stream') return result;
  if (shape === 'one' || shape === 'document') return named(`${name}Response`, () => wrapped(result));
  return named(`${name}ListResponse`, () =>
    wrapped(z.array(result), {
      ...(shape === 'feed' && { cursor }),
      ...(message !== null && isSearchable(message) && { complete }),
    }),
  );
}

/** Puts the body around each example, or around all of them for a list. */
function bodyExamples(endpoint: Endpoint, changes: Json = {}): Record<string, Json> {
  const { shape } = endpoint;
  const items = Object.entries(answerExamples(endpoint)).map(
    ([title, resource]) => [title, { ...resource, ...changes }] as const,
  );
  const cursor = shape === 'feed' ? { cursor: 'q0v3v0H0fVnXk2x6mB1cPpZ8o1Qw7u5h3rJm4t9cXyVbN2sKd8fLg6aE0iUoTr4' } : {};
  if (shape === 'page' || shape === 'list' || shape === 'feed')
    return { items: { value: { status: 'success', data: items.map(([, item]) => item), ...cursor } } };
  return Object.fromEntries(
    items.map(([title, data]) => [
      title,
      { value: shape === 'one' || shape === 'document' ? { status: 'success', data } : data },
    ]),
  );
}

function successes(name: EndpointName, endpoint: Endpoint): Record<string, Json> {
  const { method, success, pending, versioned } = endpoint;
  const schema = envelope(endpoint);
  const form = endpoint.shape === 'stream' ? 'application/x-ndjson' : 'application/json';
  const content = { [form]: { schema, examples: bodyExamples(endpoint) } };
  const page = {
    ...Object.fromEntries(
      (endpoint.forms ?? []).map((form) => [
        form,
        { schema: text, ...(form === 'application/xml' && { example: camtExample() }) },
      ]),
    ),
    ...(endpoint.shape === 'stream' && { 'text/csv': { schema: text } }),
  };
  const headers = knownCallersHeaders();
  if (success === 201) headers['Location'] = header('Location');
  if (versioned) headers['ETag'] = header('ETag');
  if (patchable.has(endpoint.path)) headers['Accept-Patch'] = header('AcceptPatch');
  if (isPaged(endpoint) || endpoint.shape === 'feed') headers['Link'] = header('Link');
  if (method === 'POST') headers['Idempotent-Replayed'] = header('Replayed');
  const answers: Record<string, Json> = {
    [success]: {
      description: success === 201 ? 'Created' : endpoint.summary,
      headers,
      content: { ...content, ...page },
      ...links(name),
    },
  };
  if (isVersionedRead(endpoint)) answers['304'] = { description: 'The caller has the current version', headers };
  if (pending) {
    const waiting = { ...knownCallersHeaders(), Location: header('Location'), 'Retry-After': header('RetryAfter') };
    const unfinished = {
      'application/json': { schema, examples: bodyExamples(endpoint, { status: 'Pending' }) },
    };
    answers['202'] = {
      description: `Accepted; the outcome of ${name} is not known yet: poll Location`,
      headers: waiting,
      content: unfinished,
      ...links(name),
    };
  }
  if (approvableCommand.safeParse(name).success) answers['202'] = withApproval(endpoint, answers['202']);
  return answers;
}

const awaitsApproval =
  'A second person must approve it (FOUR_EYES); nothing was executed, and the approval is at Location';

/** Adds a 202 with an Approval to other contents. */
function withApproval(endpoint: Endpoint, pending: Json | undefined): Json {
  const approval = named('ApprovalResponse', () => wrapped(approvalSchema));
  const examples = { approval: { value: { status: 'success', data: sample(jsonSchema(approvalSchema, 'output')) } } };
  const headers = { ...knownCallersHeaders(), Location: header('Location'), 'Idempotent-Replayed': header('Replayed') };
  if (!pending)
    return {
      description: awaitsApproval,
      headers,
      content: { 'application/json': { schema: approval, examples } },
    };
  const {
    description,
    content,
    headers: own,
    ...rest
  } = pending as {
    description: string;
    headers: Record<string, Json>;
    content: { 'application/json': { examples: Json } };
  };
  const schema = named(`Accepted${nameOf(endpoint.result)}`, () => z.union([envelope(endpoint), approval]));
  const both = { 'application/json': { schema, examples: { ...content['application/json'].examples, ...examples } } };
  // There is no Retry-After while a person decides.
  const { 'Retry-After': _later, ...common } = own;
  return {
    ...rest,
    description: `${description}. Or: ${awaitsApproval}`,
    headers: { ...headers, ...common, 'Retry-After': header('RetryAfterIfPending') },
    content: both,
  };
}

const patchable = new Set(Object.values(endpoints).flatMap(({ method, path }) => (method === 'PATCH' ? [path] : [])));

const everywhere: ErrorCode[] = [
  'validation_failed',
  'unknown_parameter',
  'missing_credentials',
  'invalid_credentials',
  'ambiguous_credentials',
  'request_timeout',
  'rate_limited',
  'headers_too_large',
  'internal_error',
  'service_unavailable',
];
const withBody: ErrorCode[] = ['malformed_json', 'unknown_field', 'body_too_large', 'unsupported_media_type'];

/** Returns every code that the operation can return, by status. */
function errors(endpoint: Endpoint): Record<string, Json> {
  const codes = new Set<ErrorCode>([...everywhere, ...endpoint.errors]);
  if (endpoint.scope !== null) codes.add('insufficient_scope');
  // A DELETE needs no body, but a body is parsed.
  if (endpoint.method !== 'GET') withBody.forEach((code) => codes.add(code));
  const byStatus = Map.groupBy([...codes], (code) => errorCodes[code].status);
  const answers = [...byStatus]
    .sort(([left], [right]) => left - right)
    .map(([status, group]) => {
      const isStored = endpoint.method === 'POST' && storedStatuses.includes(status);
      return [String(status), isStored ? replayable(errorResponse(status, group)) : errorResponseRef(status, group)];
    });
  return Object.fromEntries(answers);
}

/** The statuses of refusals that are stored under an Idempotency-Key. */
const storedStatuses = [400, 404];

/** Adds the header of repeats, because stored refusals are repeated, too. */
function replayable(answer: Json): Json {
  return { ...answer, headers: { ...(answer['headers'] as Json), 'Idempotent-Replayed': header('Replayed') } };
}

/**
 * Responses common to most operations have a name; if several codes have one status, the list
 * belongs to the operation.
 */
function errorResponseRef(status: number, codes: ErrorCode[]): Json {
  if (status === 401) return { $ref: '#/components/responses/unauthenticated' };
  return codes.length === 1 ? { $ref: `#/components/responses/${codes[0]}` } : errorResponse(status, codes);
}

function responseComponents(): Record<string, Json> {
  const all = Object.keys(errorCodes) as ErrorCode[];
  const single = all.map((code) => [code, errorResponse(errorCodes[code].status, [code])]);
  return {
    unauthenticated: errorResponse(
      401,
      all.filter((code) => errorCodes[code].status === 401),
    ),
    ...Object.fromEntries(single),
  };
}

function errorResponse(status: number, codes: ErrorCode[]): Json {
  const headers: Record<string, Json> =
    status === 401 ? { 'X-Request-Id': header('RequestId') } : knownCallersHeaders();
  if (status === 401 || status === 403) headers['WWW-Authenticate'] = header('Challenge');
  if (status === 429 || status === 503) headers['Retry-After'] = header('RetryAfter');
  if (status === 409) headers['Idempotent-Replayed'] = header('Replayed');
  if (status === 415) {
    const accepted = { Accept: header('Accept'), 'Accept-Encoding': header('AcceptEncoding') };
    Object.assign(headers, accepted, { 'Accept-Patch': header('AcceptPatch') });
  }
  const examples = Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]));
  const content = {
    'application/json': { schema: errorBodySchema, examples },
    'application/problem+json': { schema: problemSchema },
  };
  return { description: codes.join(', '), headers, content };
}
