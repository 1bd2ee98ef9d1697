import type { z } from 'zod';
import type { ErrorCode } from './errors.ts';
import type { Scope } from './scopes.ts';

export * as event from './event-fields.ts';
export * as example from './examples.ts';
export * as field from './fields.ts';
export type { Meanings } from './meanings.ts';
export * as meaning from './meanings.ts';
export * as message from './message-fields.ts';
export * as shown from './shown.ts';

/**
 * What the files of the subjects (holds.ts, webhooks.ts) are made of. A subject has its rows of the tables of endpoints,
 * messages, and events, and what the generated documents say about it.
 */

/**
 * A row of the endpoints table (endpoints.ts), which derives absent fields. Paths use fastify's syntax (`:name`).
 *
 * A row without a query takes no parameters, or those of a page; a POST without a body takes an empty one. Without a
 * message it sends the one of the same name, and without a result it returns what the message returns: one resource,
 * unless it has a shape. Without a success status it returns 200. Errors that follow from the route, shape, and message
 * are not listed (`notFoundErrors`, `listErrors`, `writeErrors`).
 */
export interface EndpointRow {
  route: `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} ${string}`;
  summary: string;
  /** The required scope; null for any authenticated caller. If there are several, any of them is sufficient. */
  scope: Scope | readonly Scope[] | null;
  /** A second required scope, for an endpoint that also shows data of another resource. */
  alsoRequires?: Scope;
  /** Not for credentials bound to one client, whatever the request contains. */
  bankOnly?: true;
  query?: z.ZodType;
  body?: z.ZodType;
  /** The maximum body size in bytes, if it is not the default of 64 KiB. */
  bodyLimit?: number;
  /** The request must have an Idempotency-Key. */
  needsKey?: true;
  /** Information that callers need beyond the summary. */
  description?: string;
  /** The schema of `data`; `shape` says how it is used. */
  result?: z.ZodType;
  /**
   * `document`: one object, a part of which is paged. `feed`: a list with a cursor for polling. `stream`: JSON
   * lines, or CSV. `bare`: without an
   * envelope.
   */
  shape?: 'one' | 'list' | 'page' | 'document' | 'feed' | 'stream' | 'bare' | 'health';
  success?: 200 | 201;
  /** Returns 202 with a Pending resource if no reply arrives in time. */
  pending?: true;
  /** Other forms of the whole resource that a request may accept: a page made for paper, or a file for accounting software. */
  forms?: readonly ('text/html' | 'application/xml')[];
  /** The response has an ETag, which reads and changes of the resource accept in If-Match. */
  versioned?: true;
  /** The message that the endpoint sends. For a read composed of several messages, the first one. */
  message?: `${string}_${string}` | null;
  /** The error codes in addition to those of every endpoint. */
  errors?: ErrorCode[];
  /**
   * Example bodies and the resources of example responses (a list has all of them), by name. Each has only what
   * distinguishes it: tools/generate/samples.ts adds the rest of the fields that its schema requires.
   */
  requests?: Record<string, object>;
  answers?: Record<string, object>;
}

export type EndpointRows = Record<string, EndpointRow>;
