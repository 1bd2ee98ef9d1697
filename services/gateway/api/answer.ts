import type { FastifyReply } from 'fastify';
import { Refused, refuse, unavailable } from '../http/errors.ts';
import type { Outcome } from './forward.ts';

/** Success answers. */

const json = 'application/json; charset=utf-8';

/** `{status, data}`, with `complete` where it is given, or the bare resource. */
export function send(reply: FastifyReply, status: number, data: unknown, form: { complete?: boolean | undefined } | 'bare' = {}): FastifyReply {
  reply.header('content-type', json);
  if (form === 'bare') return reply.code(status).send(JSON.stringify(data));
  const complete = form.complete === undefined ? '' : `,"complete":${form.complete}`;
  return reply.code(status).send(`{"status":"success","data":${JSON.stringify(data)}${complete}}`);
}

/** The data of a query's outcome. Throws what is to be answered instead: its refusal, or that nobody can know now. */
export function dataOf(outcome: Outcome): unknown {
  if (outcome.kind === 'done') return outcome.data;
  throw outcome.kind === 'refused' ? new Refused(outcome.refusal) : new Refused(unavailable);
}

/** A refusal that says that the thing asked for is not there. */
export function isNotFound(outcome: Outcome): boolean {
  return outcome.kind === 'refused' && outcome.refusal.code.endsWith('_not_found');
}

/** 504: the command may or may not be executed; its resource is named, so that it can be looked for. */
export function outcomeUnknown(resource: Record<string, string>, hasKey: boolean): Refused {
  const [[, id] = ['', '']] = Object.entries(resource);
  const advice = hasKey ? 'repeat the request with the same Idempotency-Key' : `look for ${id} before repeating the request`;
  return refuse('outcome_unknown', `the outcome of ${id} is not known yet: ${advice}`, { details: resource });
}
