import { z } from 'zod';
import { statusEndpoints } from './account-status.ts';
import { accountEndpoints } from './accounts.ts';
import { apiKeyEndpoints } from './api-keys.ts';
import { approvalEndpoints } from './approvals.ts';
import { auditEndpoints } from './audit.ts';
import { batchEndpoints } from './batches.ts';
import { bookEndpoints } from './books.ts';
import { clientEndpoints } from './clients.ts';
import { dayEndpoints } from './days.ts';
import { deadLetterEndpoints } from './dead-letters.ts';
import { erasureEndpoints } from './erasure.ts';
import { type ErrorCode, notFoundCode } from './errors.ts';
import { feedEndpoints } from './event-feed.ts';
import { noParameters, pageParameters } from './fields.ts';
import { holdEndpoints } from './holds.ts';
import { kindFromField } from './ids.ts';
import { limitEndpoints } from './limits.ts';
import { type MessageName, messages } from './messages.ts';
import { accountNoteEndpoints, clientNoteEndpoints } from './notes.ts';
import { operationsEndpoints } from './operations.ts';
import { reversalEndpoints } from './reversals.ts';
import type { Scope } from './scopes.ts';
import { searchEndpoints } from './search.ts';
import { signInEndpoints } from './sign-ins.ts';
import { staffDayEndpoints } from './staff-days.ts';
import { statementEndpoints } from './statements.ts';
import { statisticsEndpoints } from './statistics.ts';
import type { EndpointRow } from './subject.ts';
import { tillEndpoints } from './tills.ts';
import { timelineEndpoints } from './timeline.ts';
import { transactionEndpoints } from './transactions.ts';
import { transferEndpoints } from './transfers.ts';
import { webhookEndpoints } from './webhooks.ts';

/**
 * An endpoint: a row of the table below with all its fields. Routes of the gateway, OpenAPI, and clients are derived
 * from it.
 */
export interface Endpoint
  extends Omit<EndpointRow, 'route' | 'message' | Defaulted>,
    Required<Pick<EndpointRow, Defaulted>> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  tag: string;
  message: MessageName | null;
}
type Defaulted = 'query' | 'result' | 'shape' | 'success' | 'errors';
type Row = Omit<EndpointRow, 'message'> & { message?: MessageName | null };

/** An endpoint with the exact types of its row. */
type Completed<R extends Row> = Omit<Endpoint, keyof R | 'method'> &
  Omit<R, 'route'> & { method: R['route'] extends `${infer Method} ${string}` ? Method : never };

const rows = {
  health: {
    route: 'GET /',
    summary: 'Health check',
    scope: null,
    result: z
      .object({ status: z.literal('success'), message: z.string(), apiVersion: z.string() })
      .meta({ id: 'Health' }),
    shape: 'health',
    message: null,
    answers: { running: { message: 'the service is running', apiVersion: '1.0.0-rc' } },
  },
  ...clientEndpoints,
  ...clientNoteEndpoints,
  ...accountEndpoints,
  ...statusEndpoints,
  ...limitEndpoints,
  ...accountNoteEndpoints,
  ...statementEndpoints,
  ...transactionEndpoints,
  ...reversalEndpoints,
  ...transferEndpoints,
  ...holdEndpoints,
  ...batchEndpoints,
  ...feedEndpoints,
  ...webhookEndpoints,
  ...apiKeyEndpoints,
  ...erasureEndpoints,
  ...bookEndpoints,
  ...dayEndpoints,
  ...searchEndpoints,
  ...timelineEndpoints,
  ...statisticsEndpoints,
  ...staffDayEndpoints,
  ...tillEndpoints,
  ...operationsEndpoints,
  ...auditEndpoints,
  ...deadLetterEndpoints,
  ...approvalEndpoints,
  ...signInEndpoints,
} satisfies Record<string, Row>;

export type EndpointName = keyof typeof rows;

function complete([name, row]: [string, Row]): [string, Endpoint] {
  const { route, message = name as MessageName, shape = 'one', errors = [], ...rest } = row;
  const [method, path] = route.split(' ') as [Endpoint['method'], string];
  const endpoint = {
    method,
    path,
    tag: openApiTag(path),
    query: shape === 'page' ? pageParameters : noParameters,
    ...(method === 'POST' ? { body: noParameters } : {}),
    result: message === null ? z.null() : itemSchema(messages[message].result, shape),
    shape,
    success: 200 as const,
    message,
    ...rest,
  };
  return [
    name,
    {
      ...endpoint,
      errors: [
        ...notFoundErrors(path),
        ...listErrors(shape),
        ...errors,
        ...(takesIfMatch(endpoint) ? ['version_mismatch' as const] : []),
        ...writeErrors(method, message),
      ],
    },
  ];
}

/** Returns the schema of a list's items, or of the document that a page is a part of. */
function itemSchema(result: z.ZodType, shape: Endpoint['shape']): z.ZodType {
  if (shape === 'list') return (result as z.ZodArray<z.ZodType>).element;
  const { items, item } = (result as z.ZodObject<Record<string, z.ZodType>>).shape ?? {};
  if (shape === 'page' || shape === 'feed') return (items as z.ZodArray<z.ZodType>).element;
  return shape === 'document' ? (item as z.ZodType) : result;
}

/** An id in the path may be unknown. */
function notFoundErrors(path: string): ErrorCode[] {
  return [...path.matchAll(/:(\w+)/g)].flatMap(([, name]) => {
    const kind = kindFromField(name);
    return kind ? [notFoundCode(kind)] : [];
  });
}

function listErrors(shape: Endpoint['shape']): ErrorCode[] {
  return isPaged({ shape }) || shape === 'feed' ? ['invalid_cursor'] : [];
}

/** Only a POST can have an Idempotency-Key. Commands on a queries topic have no deadline and are not stored. */
function writeErrors(method: Endpoint['method'], message: MessageName | null): ErrorCode[] {
  if (method === 'GET' || message === null) return [];
  if (message !== null && messages[message].topic.endsWith('.queries')) return ['outcome_unknown'];
  return ['deadline_exceeded', ...(method === 'POST' ? ['idempotency_key_reused' as const] : []), 'outcome_unknown'];
}

/** Groups the endpoints in OpenAPI by the first part of their path. */
function openApiTag(path: string): string {
  if (path.endsWith('/holds')) return 'Holds';
  const [, first = ''] = path.split('/');
  const names: Record<string, string> = { '': 'Health', admin: 'Administration' };
  return names[first] ?? first.charAt(0).toUpperCase() + first.slice(1);
}

export const endpoints = Object.fromEntries(Object.entries<Row>(rows).map(complete)) as {
  [Name in EndpointName]: Completed<(typeof rows)[Name]>;
};

/**
 * Returns what the endpoint requires before it reads a body: one scope of each list. No list means any authenticated
 * caller.
 */
export function neededScopes({ scope, alsoRequires }: Pick<Endpoint, 'scope' | 'alsoRequires'>): (readonly Scope[])[] {
  return [scope, alsoRequires].flatMap((needed) => (needed === null || needed === undefined ? [] : [[needed].flat()]));
}

/** Reports whether the endpoint checks If-Match: it reads or changes a resource that has an ETag. */
export function takesIfMatch({ versioned, success }: Pick<Endpoint, 'versioned' | 'success'>): boolean {
  return versioned === true && success !== 201;
}

/** Reports whether the endpoint returns pages with a Link to the next one. */
export function isPaged({ shape }: Pick<Endpoint, 'shape'>): boolean {
  return shape === 'page' || shape === 'document';
}

export const queryNames: ReadonlySet<string> = new Set(
  Object.values<Endpoint>(endpoints).flatMap(({ query }) => Object.keys((query as z.ZodObject).shape)),
);
