import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AccountReply } from '#libs/contracts/accounts.ts';
import type { Client } from '#libs/contracts/clients.ts';
import type { Endpoint } from '#libs/contracts/endpoints.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { accountEtag, computeEtag, isKnown, parseIfMatch } from '#libs/contracts/etag.ts';
import { showNamesTo } from '#libs/contracts/names.ts';
import { Refused, refuse } from '../http/errors.ts';
import type { Outcome } from './forward.ts';

/** Success responses. */

const json = 'application/json; charset=utf-8';

/** Sends `{status, data}`, with `complete` or `cursor` if given, or the bare resource. */
export function send(
  reply: FastifyReply,
  status: number,
  data: unknown,
  form: { complete?: boolean | undefined; cursor?: string } | 'bare' = {},
): FastifyReply {
  reply.header('content-type', json);
  if (form === 'bare') return reply.code(status).send(JSON.stringify(data));
  const complete = form.complete === undefined ? '' : `,"complete":${form.complete}`;
  const cursor = form.cursor === undefined ? '' : `,"cursor":${JSON.stringify(form.cursor)}`;
  return reply.code(status).send(`{"status":"success","data":${JSON.stringify(data)}${complete}${cursor}}`);
}

/**
 * Sets the ETag of a response that shows a versioned resource to a caller, who may be bound to a client, and returns what is
 * shown of it. An account's reply has the version of its status only for the tag; one from before 1.0.0 lacks it, and gets
 * no tag.
 */
export function markVersion(
  reply: FastifyReply,
  { versioned }: Endpoint,
  data: unknown,
  bound: string | undefined,
): unknown {
  if (!versioned) return data;
  const { status_version, ...all } = data as AccountReply | (Client & { status_version?: never });
  const shown = showNamesTo(bound, all);
  if (!('account_id' in shown)) reply.header('etag', computeEtag(shown));
  else if (status_version !== undefined) reply.header('etag', accountEtag(shown, status_version));
  return shown;
}

/**
 * Answers a read of a versioned resource by the conditions of its request: 412 if it has another version than If-Match
 * names, 304 if the caller has its version. Returns whether it answered.
 */
export function answeredByVersion({ headers }: FastifyRequest, reply: FastifyReply): boolean {
  const tag = reply.getHeader('etag');
  if (typeof tag !== 'string') return false;
  if (parseIfMatch(headers['if-match'])?.includes(tag) === false)
    throw refuse('version_mismatch', 'the resource has another version than If-Match names');
  const { 'if-none-match': known } = headers;
  if (known === undefined || !isKnown(tag, known)) return false;
  reply.code(304).send();
  return true;
}

/** It does not say that nothing was executed, because the reader may ask for the outcome of another request. */
export const unreadable = refusal('service_unavailable', 'the service cannot answer now; the request can be repeated');

/** Returns the data of a query's outcome. Throws its refusal, or service_unavailable if there is no reply. */
export function requireData<T>(outcome: Outcome<T>): T {
  if (outcome.kind === 'done') return outcome.data;
  throw new Refused(outcome.kind === 'refused' ? outcome.refusal : unreadable);
}

/** Reports whether the outcome is a refusal because the resource does not exist. */
export function isNotFound(outcome: Outcome): boolean {
  return outcome.kind === 'refused' && outcome.refusal.code.endsWith('_not_found');
}

/**
 * Returns a 504: the command may or may not be executed. It names the resource, which a caller without an
 * Idempotency-Key can read: reads.ts reports no id as unknown while its command may still be executed.
 */
export function outcomeUnknown(resource: Record<string, string>, hasKey: boolean, location?: string): Refused {
  const [[field, id] = ['', '']] = Object.entries(resource);
  // A day is closed under its date, of which the reader cannot know whether a command about it is waiting.
  const created =
    field.endsWith('_id') && location?.endsWith(id)
      ? `GET ${location} before repeating the request: 503 means that the outcome is still not known, 404 that nothing was executed or ever will be`
      : `it may still be executed. Read ${location ?? id} before repeating the request, because the repeat may be executed, too`;
  const advice = hasKey ? 'repeat the request with the same Idempotency-Key' : created;
  return refuse('outcome_unknown', `the outcome of ${id} is not known yet: ${advice}`, { details: resource });
}
