import type { FastifyReply } from 'fastify';
import type { Endpoint } from '#libs/contracts/endpoints.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { computeEtag } from '#libs/contracts/etag.ts';
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

/** Sets the ETag of a response that can be used in If-Match. */
export function markVersion(reply: FastifyReply, { versioned }: Endpoint, data: unknown): void {
  if (versioned) reply.header('etag', computeEtag(data as object));
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
  const [[, id] = ['', '']] = Object.entries(resource);
  const created = location?.endsWith(id)
    ? `GET ${location} before repeating the request: 503 means that the outcome is still not known, 404 that nothing was executed or ever will be`
    : `it may still be executed. Read ${location ?? id} before repeating the request, because the repeat may be executed, too`;
  const advice = hasKey ? 'repeat the request with the same Idempotency-Key' : created;
  return refuse('outcome_unknown', `the outcome of ${id} is not known yet: ${advice}`, { details: resource });
}
