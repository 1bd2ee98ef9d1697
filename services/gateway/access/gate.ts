import { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { kindOfField, notFound, numberNotFound } from '../api/unknown-ids.ts';
import type { RouteGroup } from '../config.ts';
import { Refused, refuse } from '../http/errors.ts';
import { networkOf } from '../http/network.ts';
import type { Authenticate } from './auth.ts';
import type { Caller } from './caller.ts';
import type { Limiter } from './limits.ts';

export interface GateDependencies {
  authenticate: Authenticate;
  /** undefined: no limit. */
  callerLimit: Limiter | undefined;
  failureLimit: Limiter | undefined;
}

type Done = (error?: Error) => void;

/**
 * What every request passes before anything else is looked at, unknown paths included: who is it, and how often. Calls
 * back at once where the credential is known.
 */
export function createGate({ authenticate, callerLimit, failureLimit }: GateDependencies) {
  const enter = (request: FastifyRequest, reply: FastifyReply, caller: Caller, done: Done): void => {
    request.caller = caller;
    try {
      if (callerLimit) limitCaller(callerLimit, caller, reply);
    } catch (error) {
      return done(error as Error);
    }
    done();
  };
  const fail = (request: FastifyRequest, error: unknown): Error => {
    const isFailure = error instanceof Refused && error.refusal.code.endsWith('_credentials');
    const taken = isFailure ? failureLimit?.take(networkOf(request.ip)) : undefined;
    return taken && taken.left < 0 ? tooMany('too many failed authentications', taken.reset_s) : (error as Error);
  };
  return (request: FastifyRequest, reply: FastifyReply, done: Done): void => {
    let caller: Caller | Promise<Caller>;
    try {
      caller = authenticate(request.raw.headers);
    } catch (error) {
      return done(fail(request, error));
    }
    if (!(caller instanceof Promise)) return enter(request, reply, caller, done);
    caller.then(
      (known) => enter(request, reply, known, done),
      (error: unknown) => done(fail(request, error)),
    );
  };
}

function tooMany(message: string, resetS: number): Refused {
  return new Refused(refusal('rate_limited', `${message}; try again in ${resetS} s`), {
    'retry-after': String(resetS),
  });
}

function limitCaller(limiter: Limiter, caller: Caller, reply: FastifyReply): void {
  const { left, reset_s } = limiter.take(caller.actor);
  reply.header('ratelimit-limit', String(limiter.limit));
  reply.header('ratelimit-remaining', String(Math.max(0, left)));
  reply.header('ratelimit-reset', String(reset_s));
  if (left < 0) throw tooMany(`more than ${limiter.limit} requests a minute`, reset_s);
}

const maxHeaders = 1000;

/** Whether a request is for /admin, or for the rest of the API. */
function groupOf({ routeOptions, url }: FastifyRequest): RouteGroup {
  return /^\/admin(?:[/?]|$)/.test(routeOptions.url ?? url) ? 'admin' : 'api';
}

/** A call of the dashboard, which no network has seen. */
const isFromInside = ({ raw }: FastifyRequest): boolean => !(raw.socket instanceof Socket);

/**
 * After authentication: is there such a route, is it served, and may the caller use it. What is
 * wrong with it, or undefined. What is not served is answered as if it did not exist.
 */
export function createRouteCheck(served: readonly RouteGroup[]) {
  return (request: FastifyRequest): Refused | undefined => {
    const refused = checkMessage(request);
    if (refused) return refused;
    if (!served.includes(groupOf(request)) && !isFromInside(request))
      return refuse('route_not_found', 'there is no such path');
    if (request.is404) return noRoute(request);
    const lacking = request.routeOptions.config.scopes?.find((scope) => request.caller?.scopes.has(scope) !== true);
    return lacking === undefined ? undefined : refuse('insufficient_scope', `the scope ${lacking} is required`);
  };
}

/** What is wrong with the message itself, whatever it asks for. */
function checkMessage(request: FastifyRequest): Refused | undefined {
  const {
    httpVersion,
    headers: { host },
    rawHeaders,
  } = request.raw;
  // Node drops what comes behind 2000 without a word: what stands in front of us may have read it.
  if (rawHeaders.length > 2 * maxHeaders)
    return refuse('headers_too_large', `the request must not have more than ${maxHeaders} headers`);
  // Node reads HTTP/2.0 and HTTP/0.9 as if they were ours.
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return refuse('validation_failed', 'only HTTP/1.1 and HTTP/1.0 are spoken here');
  // Node would refuse it with an empty body, before anybody has said who they are.
  if (host === undefined && httpVersion === '1.1') return refuse('validation_failed', 'the request has no Host header');
  // RFC 9112, 3.2: two are refused (they arrive joined), since what stands in front of us may have read the other one.
  if (host?.includes(',')) return refuse('validation_failed', 'the request has more than one Host header');
  // The router would take what follows for parameters.
  if (request.url.includes('#')) return refuse('validation_failed', 'the request target must not have a fragment');
  return undefined;
}

const routes = new Map<string, { form: RegExp; methods: string[] }>();
for (const { method, path } of Object.values(endpoints)) {
  const methods = method === 'GET' ? ['GET', 'HEAD'] : [method];
  const known = routes.get(path);
  if (known) known.methods.push(...methods);
  else routes.set(path, { form: new RegExp(`^${path.replace(/:(\w+)/g, '(?<$1>[^/]+)')}$`), methods });
}

/** A path that cannot be decoded (`%ZZ`) can only be a malformed id: the 404 of its resource. */
export function undecodable(request: FastifyRequest): Refused {
  const path = request.url.split('?', 1)[0] ?? '';
  for (const { form } of routes.values()) {
    const [name, value = ''] = Object.entries(form.exec(path)?.groups ?? {})[0] ?? [];
    const kind = name === undefined ? undefined : kindOfField[name];
    if (kind) return notFound(kind, value);
    if (name === 'accountNumber') return numberNotFound(value);
  }
  return refuse('route_not_found', 'there is no such path');
}

/** 405 where another method is known, else 404. */
function noRoute(request: FastifyRequest): Refused {
  const path = request.url.split('?', 1)[0] ?? '';
  const matching = [...routes.values()].filter(({ form }) => form.test(path));
  const methods = [...new Set(matching.flatMap((route) => route.methods))];
  if (methods.length === 0) return refuse('route_not_found', 'there is no such path');
  return new Refused(
    refusal('method_not_allowed', `${request.method} is not allowed here, only ${methods.join(', ')}`),
    { allow: methods.join(', ') },
  );
}
