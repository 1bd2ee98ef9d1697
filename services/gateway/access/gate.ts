import rateLimit, { type CreateRateLimitOptions } from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Endpoint, endpoints, takesIfMatch } from '#libs/contracts/endpoints.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { kindFromField } from '#libs/contracts/ids.ts';
import { maxReportsPerMinute } from '#libs/contracts/sign-ins.ts';
import { toNetwork } from '#libs/service/networks.ts';
import { acceptPatch } from '../http/body.ts';
import { Refused, refuse, refuseViolations } from '../http/errors.ts';
import { notFound, numberNotFound } from '../http/unknown-ids.ts';
import type { Authenticate } from './auth.ts';

/** Counts a request, in windows of one minute per key. */
type RateLimit = ReturnType<FastifyInstance['createRateLimit']>;

interface RateLimits {
  requests: RateLimit | undefined;
  failures: RateLimit | undefined;
  reports: RateLimit | undefined;
}

/** Requests that leave a permanent record, or a summary, of what the person chooses. Sign-outs are never refused. */
const reporting = new Set<string | undefined>(['sign_in', 'record_activity']);

/**
 * Returns the limits per minute: of requests and of reports per caller, and of failed authentications per address (an
 * IPv6 /64 is one address); 0: no limit. Each gateway counts on its own. Beyond 100,000 keys, the least recently used is forgotten.
 */
export async function createRateLimits(
  app: FastifyInstance,
  perMinute: { requests: number; failures: number },
): Promise<RateLimits> {
  await app.register(rateLimit, { global: false, timeWindow: 60_000 });
  // Each limit has a store of its own, whose size is in its own options, though their type does not name it.
  const create = (max: number, options: CreateRateLimitOptions = {}) => {
    const sized = { ...options, max, cache: 100_000 };
    return max === 0 ? undefined : app.createRateLimit(sized);
  };
  const keyGenerator = ({ caller }: FastifyRequest) => caller?.actor ?? '';
  return {
    requests: create(perMinute.requests, { keyGenerator }),
    reports: create(maxReportsPerMinute, { keyGenerator }),
    failures: create(perMinute.failures, { keyGenerator: ({ ip }) => toNetwork(ip) }),
  };
}

/**
 * Authenticates every request and applies the rate limits, also for unknown paths. Only request ids, preflights, and
 * load shedding come before it (app.ts). Rejects with a Refused.
 */
export function createGate(authenticate: Authenticate, limits: RateLimits) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    try {
      request.caller = await authenticate(request.raw.headers);
    } catch (error) {
      const isFailure = error instanceof Refused && error.refusal.code.endsWith('_credentials');
      const counted = isFailure ? await limits.failures?.(request) : undefined;
      throw counted && isExceeded(counted) ? tooMany('too many failed authentications', counted.ttlInSeconds) : error;
    }
    const reports = reporting.has(request.routeOptions?.config.endpoint) ? await limits.reports?.(request) : undefined;
    if (reports && isExceeded(reports))
      throw tooMany(`more than ${reports.max} sign-ins and reports a minute`, reports.ttlInSeconds);
    const counted = await limits.requests?.(request);
    if (!counted || counted.isAllowed) return;
    reply.headers(rateLimitFields(counted));
    if (counted.isExceeded) throw tooMany(`more than ${counted.max} requests a minute`, counted.ttlInSeconds);
  };
}

type Counted = Awaited<ReturnType<RateLimit>>;

/** Returns the fields of the current draft of the IETF (ratelimit-headers-11), and the three of its early ones. */
function rateLimitFields({ max, remaining, ttlInSeconds }: Extract<Counted, { isAllowed: false }>) {
  return {
    'ratelimit-policy': `"requests";q=${max};w=60`,
    ratelimit: `"requests";r=${remaining};t=${ttlInSeconds}`,
    'ratelimit-limit': String(max),
    'ratelimit-remaining': String(remaining),
    'ratelimit-reset': String(ttlInSeconds),
  };
}

/** `isAllowed` is only set by allow lists, which are not used. */
const isExceeded = (counted: Counted): counted is Extract<Counted, { isAllowed: false }> =>
  !counted.isAllowed && counted.isExceeded;

function tooMany(message: string, resetS: number): Refused {
  return new Refused(refusal('rate_limited', `${message}; try again in ${resetS} s`), {
    'retry-after': String(resetS),
  });
}

const maxHeaders = 1000;

/**
 * Checks, after authentication, that the route exists and that the caller may call it, whatever the request contains.
 * Returns the refusal, or undefined.
 */
export function checkRoute(request: FastifyRequest): Refused | undefined {
  const refused = checkMessage(request);
  if (refused) return refused;
  // The router takes /clients/ for a client with an empty id.
  if (request.is404 || Object.values(request.params ?? {}).includes('')) return noRoute(request);
  const { scopes, endpoint } = request.routeOptions.config;
  const lacking = scopes?.find((sufficient) => !sufficient.some((scope) => request.caller?.scopes.has(scope)));
  if (lacking) return refuse('insufficient_scope', `the scope ${lacking.join(' or ')} is required`);
  if (endpoint === undefined) return undefined;
  const isOfBank = endpoints[endpoint].bankOnly === true;
  return isOfBank && request.caller?.boundClientId !== undefined
    ? refuse('insufficient_scope', 'credentials bound to one client cannot do this')
    : checkConditions(request, endpoints[endpoint]);
}

/**
 * Refuses the conditions that are not checked here, because a caller relies on them. Those of a read that only save a
 * transfer (If-None-Match, If-Modified-Since, If-Range) may have no effect. RFC 9110, 13.1.
 */
function checkConditions({ headers }: FastifyRequest, endpoint: Endpoint): Refused | undefined {
  const isMatched = takesIfMatch(endpoint) && headers['if-match'] !== undefined;
  const named = [
    ...(isMatched ? [] : ['If-Match', 'If-Unmodified-Since']),
    ...(endpoint.method === 'GET' ? [] : ['If-None-Match']),
  ].filter((name) => headers[name.toLowerCase()] !== undefined);
  if (named.length === 0) return undefined;
  return refuseViolations(
    named.map((field) => ({ field, code: 'validation_failed', message: `${field} is not supported here` })),
  );
}

/** Returns why the HTTP message itself is refused, or undefined. */
function checkMessage(request: FastifyRequest): Refused | undefined {
  const {
    httpVersion,
    headers: { host },
    rawHeaders,
  } = request.raw;
  // Node silently drops headers beyond 2000, but a proxy in front of the gateway may have read them.
  if (rawHeaders.length > 2 * maxHeaders)
    return refuse('headers_too_large', `the request must not have more than ${maxHeaders} headers`);
  // Node accepts HTTP/2.0 and HTTP/0.9 request lines as if they were HTTP/1.1.
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return refuse('validation_failed', 'only HTTP/1.1 and HTTP/1.0 are supported');
  // Node itself would refuse the request with an empty body, before authentication.
  if (host === undefined && httpVersion === '1.1') return refuse('validation_failed', 'the request has no Host header');
  // RFC 9112, section 3.2: several Host headers are refused (they arrive joined), because a proxy in front of
  // the gateway may have read another one.
  if (host?.includes(',')) return refuse('validation_failed', 'the request has more than one Host header');
  // The router would read another path from it. The asterisk is for OPTIONS (RFC 9112, 3.2.4).
  if (!request.url.startsWith('/') && !(request.method === 'OPTIONS' && request.url === '*'))
    return refuse('validation_failed', 'the request target must begin with a slash');
  // The router would treat the rest of the path as parameters.
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

/**
 * Returns the 404 for a path that cannot be decoded (`%ZZ`): the id in it is malformed, so its resource does
 * not exist.
 */
export function undecodable(request: FastifyRequest): Refused {
  const path = request.url.split('?', 1)[0] ?? '';
  for (const { form } of routes.values()) {
    const [name, value = ''] = Object.entries(form.exec(path)?.groups ?? {})[0] ?? [];
    const kind = kindFromField(name);
    if (kind) return notFound(kind, value);
    if (name === 'accountNumber') return numberNotFound(value);
  }
  return refuse('route_not_found', 'the path does not exist');
}

/** Returns the methods of a path, or of all paths for `*`; none if there is no such path. */
function allowedMethods(request: FastifyRequest): string[] {
  const path = request.url.split('?', 1)[0] ?? '';
  const matching = [...routes.values()].filter(({ form }) => path === '*' || form.test(path));
  return matching.length === 0 ? [] : [...new Set([...matching.flatMap((route) => route.methods), 'OPTIONS'])];
}

/** Returns 404 if the path has no method, otherwise 405, unless the request asks for the methods. */
function noRoute(request: FastifyRequest): Refused | undefined {
  const methods = allowedMethods(request);
  if (methods.length === 0) return refuse('route_not_found', 'the path does not exist');
  if (request.method === 'OPTIONS') return undefined;
  return new Refused(
    refusal('method_not_allowed', `${request.method} is not allowed here, only ${methods.join(', ')}`),
    { allow: methods.join(', ') },
  );
}

/** Answers OPTIONS, after its path was checked. */
export function answerOptions(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const methods = allowedMethods(request);
  if (methods.includes('PATCH')) reply.header('accept-patch', acceptPatch);
  return reply.header('allow', methods.join(', ')).code(204).send();
}
