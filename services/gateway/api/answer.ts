import type { FastifyReply } from 'fastify';
import type { Endpoint } from '#libs/contracts/endpoints.ts';
import { etagOf } from '#libs/contracts/etag.ts';
import { Refused, refuse, unavailable } from '../http/errors.ts';
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
  if (versioned) reply.header('etag', etagOf(data as object));
}

/** Returns the data of a query's outcome. Throws its refusal, or service_unavailable if there is no reply. */
export function dataOf<T>(outcome: Outcome<T>): T {
  if (outcome.kind === 'done') return outcome.data;
  throw outcome.kind === 'refused' ? new Refused(outcome.refusal) : new Refused(unavailable);
}

/** Reports whether the outcome is a refusal because the resource does not exist. */
export function isNotFound(outcome: Outcome): boolean {
  return outcome.kind === 'refused' && outcome.refusal.code.endsWith('_not_found');
}

/**
 * Returns a 504: the command may or may not be executed. It names the resource, so that the caller can read it later.
 */
export function outcomeUnknown(resource: Record<string, string>, hasKey: boolean): Refused {
  const [[, id] = ['', '']] = Object.entries(resource);
  const advice = hasKey
    ? 'repeat the request with the same Idempotency-Key'
    : `look for ${id} before repeating the request`;
  return refuse('outcome_unknown', `the outcome of ${id} is not known yet: ${advice}`, { details: resource });
}
