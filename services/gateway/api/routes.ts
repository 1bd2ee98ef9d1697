import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { endpoints, isPaged, neededScopes } from '#libs/contracts/endpoints.ts';
import type { Endpoint, EndpointName } from '#libs/contracts/endpoints.ts';
import type { Violation } from '#libs/contracts/errors.ts';
import type { Scope } from '#libs/contracts/scopes.ts';
import type { Span } from '#libs/service/tracing.ts';
import { Acceptances } from './acceptances.ts';
import { outcomeUnknown, send } from './answer.ts';
import type { Caller } from '../access/caller.ts';
import { askForApproval, checkFourEyes, readApproval, readApprovals } from './approvals.ts';
import { createPlanners } from './commands.ts';
import type { CommandDependencies, Plan, Planner } from './commands.ts';
import { listName } from './cursor.ts';
import type { Cursors } from './cursor.ts';
import { Refused, refuse, refuseViolations, unavailable } from '../http/errors.ts';
import { type Forwarder, type Origin, type Outcome, replyWaitMs } from './forward.ts';
import { derivedBits, fingerprint, freshBits } from './ids.ts';
import { parseFields, parseQuery } from './input.ts';
import { plainAddress } from '../http/network.ts';
import { givenTraceparent } from '../http/trace.ts';
import { readOperations } from './operations.ts';
import { presenterOf } from './present.ts';
import { readAccount, readAccounts, readBalance, readOne, readPage, readPosting } from './reads.ts';
import type { Document, Page, ReadDependencies, ReadInput } from './reads.ts';
import { Searches } from '../overload/searches.ts';
import { search } from './search.ts';
import { isRecorded, isRecordedFor, recordRead } from './recorded-reads.ts';
import type { AuditRecords } from '../access/audit-records.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the gate before anything else looks at the request. */
    caller: Caller | null;
    /** Where requests are traced. */
    span: Span | null;
  }
  interface FastifyContextConfig {
    endpoint?: EndpointName;
    /** Each is needed. */
    scopes?: readonly Scope[];
    /** Answered without the credentials of the API: what holds no data, and the dashboard's pages, which ask for their session themselves. */
    public?: boolean;
  }
}

export interface RouteDependencies extends Omit<ReadDependencies, 'searches'>, CommandDependencies {
  cursors: Cursors;
  idempotencySecret: string;
  apiVersion: string;
  auditRecords: AuditRecords;
  now: () => number;
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/** One route per row of the endpoints table. */
export function addRoutes(app: FastifyInstance, given: RouteDependencies): void {
  const deps = { ...given, searches: new Searches() };
  const planners = createPlanners(deps) as unknown as Record<string, Planner | undefined>;
  const acceptances = new Acceptances();
  for (const [name, endpoint] of Object.entries(endpoints) as [EndpointName, Endpoint][]) {
    const planner = planners[name];
    const handler = name === 'health' ? health(deps) : planner ? write(endpoint, planner, { ...deps, acceptances }) : read(name, endpoint, deps);
    app.route({ method: endpoint.method, url: endpoint.path, config: { endpoint: name, scopes: neededScopes(endpoint) }, handler });
  }
}

function health({ apiVersion }: RouteDependencies): Handler {
  const body = { status: 'success', message: 'the service is running', apiVersion };
  return async (request, reply) => {
    parseQuery(endpoints.health.query, request.query as Record<string, unknown>);
    send(reply, 200, body, 'bare');
  };
}

/** The caller that the gate has let in. */
function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new TypeError('a route was reached without authentication');
  return request.caller;
}

function originOf(request: FastifyRequest, idempotencyKey?: string, bodyFingerprint?: string): Origin {
  return { caller: callerOf(request), requestId: request.id, address: plainAddress(request.ip), traceparent: request.span?.traceparent ?? givenTraceparent(request), answerBy: performance.now() + replyWaitMs, idempotencyKey, fingerprint: bodyFingerprint };
}

function read(name: EndpointName, endpoint: Endpoint, deps: RouteDependencies & ReadDependencies): Handler {
  const present = presenterOf(endpoint.result);
  const ask = reader(name, endpoint);
  const isOfCustomers = isRecorded(name, endpoint);
  return async (request, reply) => {
    const query = parseQuery(endpoint.query, request.query as Record<string, unknown>) as Record<string, unknown>;
    const origin = originOf(request);
    const params = request.params as Record<string, string>;
    const { caller } = origin;
    const record = async (data: unknown) => isOfCustomers && isRecordedFor(name, caller) && recordRead(deps.auditRecords, request, { name, endpoint, caller, query, data });
    if (!isPaged(endpoint)) {
      const data = await ask({ params, query, after: undefined, origin, isHead: request.method === 'HEAD' }, deps);
      await record(data);
      const show = present && (endpoint.shape === 'list' ? (items: unknown) => (items as unknown[]).map(present) : present);
      return void send(reply, endpoint.success, show ? show(data) : data);
    }
    const path = request.url.split('?', 1)[0] ?? '';
    const list = listName(path, query);
    const cursor = query['cursor'];
    const after = typeof cursor === 'string' ? deps.cursors.read(list, cursor) : undefined;
    const page = (await ask({ params, query, after, origin, isHead: request.method === 'HEAD' }, deps)) as Page | Document;
    await record('item' in page ? page.item : page.items);
    if (page.next) reply.header('link', nextLink(path, request.url, deps.cursors.make(list, page.next)));
    if ('item' in page) return void send(reply, endpoint.success, present ? present(page.item) : page.item);
    send(reply, endpoint.success, present ? page.items.map(present) : page.items, { complete: page.complete });
  };
}

type Ask = (input: ReadInput, deps: RouteDependencies & ReadDependencies) => Promise<unknown>;

/** How an endpoint reads: the composed ones by hand, the rest by their message. */
function reader(name: EndpointName, endpoint: Endpoint): Ask {
  switch (name) {
    case 'get_account':
      return readAccount;
    case 'list_accounts':
      return readAccounts;
    case 'get_balance_by_number':
      return readBalance;
    case 'get_transaction':
      return (input, deps) => readPosting('transaction', input, deps);
    case 'get_operations':
      return readOperations;
    case 'search':
      return search;
    case 'list_approvals':
      return readApprovals;
    case 'get_approval':
      return readApproval;
    case 'get_transfer':
      return (input, deps) => readPosting('transfer', input, deps);
  }
  const { message } = endpoint;
  if (message === null) throw new TypeError(`endpoint ${name} has no message`);
  return (input, deps) => (isPaged(endpoint) ? readPage : readOne)(message, input, deps);
}

/** The same request with the cursor of the next page (RFC 8288; relative to the request's URL). */
function nextLink(path: string, url: string, cursor: string): string {
  const parameters = new URLSearchParams(url.slice(path.length));
  parameters.set('cursor', cursor);
  return `<${path}?${parameters.toString()}>; rel="next"`;
}

/** Runs a check; its violations join those of the others, so that a caller is told all of them at once. */
function collect<T>(wrong: Violation[], check: () => T): T | undefined {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof Refused) || error.refusal.errors === undefined) throw error;
    wrong.push(...error.refusal.errors);
    return undefined;
  }
}

function write(endpoint: Endpoint, plan: Planner, deps: RouteDependencies & ReadDependencies & { acceptances: Acceptances }): Handler {
  const route = `${endpoint.method} ${endpoint.path}`;
  const schema = endpoint.body;
  if (!schema) throw new TypeError(`${route} has no body`);
  const needsBody = !schema.safeParse({}).success;
  const present = presenterOf(endpoint.result);
  const show = (data: unknown): unknown => (present ? present(data) : data);
  return async (request, reply) => {
    const acceptedAt = new Date(deps.now());
    if (request.body === undefined && needsBody) throw refuse('validation_failed', 'the request needs a JSON body');
    const wrong: Violation[] = [];
    collect(wrong, () => parseQuery(endpoint.query, request.query as Record<string, unknown>));
    const idempotencyKey = endpoint.method === 'POST' ? collect(wrong, () => idempotencyKeyOf(request)) : undefined;
    const body = collect(wrong, () => parseFields(schema, request.body === undefined ? {} : request.body));
    if (wrong.length > 0) throw refuseViolations(wrong);
    const params = request.params as Record<string, string>;
    const caller = callerOf(request);
    const bits = idempotencyKey === undefined ? freshBits() : derivedBits(deps.idempotencySecret, caller.actor, route, idempotencyKey);
    const planned = plan({ params, body, caller, bits, acceptedAt });
    const origin = originOf(request, idempotencyKey, idempotencyKey === undefined ? undefined : fingerprint(params, body));
    const { plan: checked, needed } = await checkFourEyes(planned, origin, deps);
    if (needed) return askForApproval(reply, checked, needed, { endpoint, params, body, bits, acceptedAt }, origin, deps.forwarder);
    const outcome = await command({ ...checked, acceptedAt }, origin, deps.forwarder);
    if (outcome.kind !== 'failed' && outcome.replayed && idempotencyKey !== undefined) reply.header('idempotent-replayed', 'true');
    if (outcome.kind === 'refused') throw new Refused(outcome.refusal);
    if (outcome.kind === 'failed') {
      const hasKey = idempotencyKey !== undefined;
      const pending = () => planned.pending?.(hasKey ? deps.acceptances.first(planned.id, acceptedAt) : acceptedAt);
      return void answerFailed(reply, endpoint, planned, outcome, { hasKey, pending: () => show(pending()) });
    }
    if (planned.location !== undefined && endpoint.success === 201) reply.header('location', planned.location);
    const data = planned.finish ? await planned.finish(outcome.data, outcome.replayed) : outcome.data;
    send(reply, endpoint.success, show(data), endpoint.shape === 'bare' ? 'bare' : {});
  };
}

/** Of a plan that knows what else to ask, the last second of the wait is for that. */
async function command(plan: Plan & { acceptedAt: Date }, origin: Origin, forwarder: Forwarder): Promise<Outcome> {
  if (!plan.otherwise) return forwarder.command(plan, origin);
  const outcome = await forwarder.command(plan, { ...origin, answerBy: origin.answerBy - 1_000 });
  return outcome.kind === 'failed' && outcome.stage === 'no_reply' ? ((await plan.otherwise(origin)) ?? outcome) : outcome;
}

interface FailedContext {
  hasKey: boolean;
  /** What is shown until the outcome is known. */
  pending: () => unknown;
}

/** 503 when nothing was sent, 202 where the broker has the command and the endpoint knows Pending, else 504. */
function answerFailed(reply: FastifyReply, endpoint: Endpoint, plan: Plan, { stage }: Outcome & { kind: 'failed' }, context: FailedContext): FastifyReply {
  if (stage === 'not_sent') throw new Refused(unavailable);
  if (stage !== 'no_reply' || !plan.pending || !endpoint.pending) throw outcomeUnknown(plan.resource, context.hasKey);
  reply.headers({ location: plan.location, 'retry-after': '1' });
  return send(reply, 202, context.pending(), endpoint.shape === 'bare' ? 'bare' : {});
}

const keyForm = /^[\x20-\x7e]{1,255}$/;

function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  const wrong = (rule: string) => refuseViolations([{ field: 'Idempotency-Key', code: 'validation_failed', message: `Idempotency-Key ${rule}` }]);
  if (typeof key !== 'string' || !keyForm.test(key)) throw wrong('must have 1 to 255 printable ASCII characters');
  // Several ones arrive joined by commas.
  if (key.includes(',') && request.raw.headersDistinct['idempotency-key']?.length !== 1) throw wrong('is given more than once');
  return key;
}
