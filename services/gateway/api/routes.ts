import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Endpoint, type EndpointName, endpoints, isPaged, neededScopes } from '#libs/contracts/endpoints.ts';
import type { Scope } from '#libs/contracts/scopes.ts';
import type { Span } from '#libs/service/tracing.ts';
import type { Caller } from '../access/caller.ts';
import type { BodyMemoryLimit } from '../overload/body-memory-limit.ts';
import { ConcurrencyLimit } from '../overload/concurrency-limit.ts';
import { answeredByVersion, markVersion, send } from './answer.ts';
import { readApproval, readApprovalRules, readApprovals } from './approvals.ts';
import { batchHandler } from './batches.ts';
import { type CommandDependencies, createPlanners } from './commands.ts';
import { type Cursors, listName } from './cursor.ts';
import { FirstAcceptanceTimes } from './first-acceptance-times.ts';
import { internationalPhones, parseQuery } from './input.ts';
import { readOperations } from './operations.ts';
import type { Planners, WriteName } from './plan.ts';
import { createPresenter } from './present.ts';
import {
  type Document,
  type Page,
  type ReadDependencies,
  type ReadInput,
  readAccount,
  readAccounts,
  readBalance,
  readOne,
  readPage,
} from './reads.ts';
import { isRecorded, isRecordedFor, recordRead } from './recorded-reads.ts';
import { toOrigin } from './request.ts';
import { search } from './search.ts';
import { type SignInDependencies, signInHandlers } from './sign-ins.ts';
import { readStaffDay, readStaffNames, readTill, readTills } from './staff.ts';
import { statementHandler } from './statement-forms.ts';
import { isStream, streamHandler } from './streams.ts';
import { readEvents } from './webhooks.ts';
import { writeHandler } from './write.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the gate before anything else reads the request. */
    caller: Caller | null;
    /** Set if requests are traced. */
    span: Span | null;
  }
  interface FastifyContextConfig {
    endpoint?: EndpointName;
    /** One scope of each list is required. */
    scopes?: readonly (readonly Scope[])[];
    /** Needs no credentials, because it has no data of the bank. */
    public?: boolean;
  }
}

export interface RouteDependencies
  extends Omit<ReadDependencies, 'scans' | 'sums'>,
    CommandDependencies,
    SignInDependencies {
  cursors: Cursors;
  apiVersion: string;
  /** Whether GET / says that this is a trial. */
  isTrial: boolean;
  bodyMemoryLimit: Pick<BodyMemoryLimit, 'timed'>;
  now: () => number;
}

export type HandlerDependencies = RouteDependencies & ReadDependencies & { acceptanceTimes: FirstAcceptanceTimes };

export type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

const maxScans = 2;
const tooManyScans = `at most ${maxScans} searches over all accounts may run at once; retry later or filter by account_id`;
/** The first page of a manager shows three. */
const maxSums = 4;
const tooManySums = `at most ${maxSums} sums over many rows may run at once; retry later`;

/** Adds one route per row of the endpoints table. */
export function addRoutes(app: FastifyInstance, given: RouteDependencies): void {
  const deps = {
    ...given,
    scans: new ConcurrencyLimit(maxScans, tooManyScans),
    sums: new ConcurrencyLimit(maxSums, tooManySums),
    acceptanceTimes: new FirstAcceptanceTimes(),
  };
  const planners = createPlanners(deps);
  for (const [name, endpoint] of Object.entries(endpoints) as [EndpointName, Endpoint][]) {
    const handler = createHandler(name, endpoint, planners, deps);
    const { method, path: url, bodyLimit } = endpoint;
    app.route({
      method,
      url,
      config: { endpoint: name, scopes: neededScopes(endpoint) },
      handler,
      ...(bodyLimit === undefined ? {} : { bodyLimit }),
    });
  }
}

function createHandler(name: EndpointName, endpoint: Endpoint, planners: Planners, deps: HandlerDependencies): Handler {
  if (name === 'health') return health(deps);
  if (name === 'get_statement') return statementHandler(read(name, endpoint, deps), deps);
  if (name === 'create_batch') return batchHandler(planners, deps);
  if (isStream(name)) return streamHandler(name, endpoint, deps);
  if (name in signInHandlers) return signInHandlers[name as keyof typeof signInHandlers](deps);
  return name in planners ? writeHandler(name as WriteName, endpoint, planners, deps) : read(name, endpoint, deps);
}

function health({ apiVersion, isTrial }: RouteDependencies): Handler {
  const message = isTrial ? 'the service is running, as a trial: not for real money' : 'the service is running';
  const body = { status: 'success', message, apiVersion };
  return async (request, reply) => {
    parseQuery(endpoints.health.query, request.query as Record<string, unknown>);
    send(reply, 200, body, 'bare');
  };
}

function read(name: EndpointName, endpoint: Endpoint, deps: HandlerDependencies): Handler {
  const show = createPresenter(endpoint.result) ?? ((data: unknown) => data);
  const showAll = (items: unknown, bound: string | undefined) => (items as unknown[]).map((item) => show(item, bound));
  const ask = reader(name, endpoint);
  const isOfCustomers = isRecorded(name, endpoint);
  return async (request, reply) => {
    const given = internationalPhones(request.query as Record<string, unknown>, deps.homeCountry);
    const query = parseQuery(endpoint.query, given) as Record<string, unknown>;
    const origin = toOrigin(request);
    const bound = origin.caller.boundClientId;
    const path = request.url.split('?', 1)[0] ?? '';
    const list = isPaged(endpoint) ? listName(path, query) : undefined;
    const { cursor } = query;
    const input = {
      params: request.params as Record<string, string>,
      query,
      after: list !== undefined && typeof cursor === 'string' ? deps.cursors.read(list, cursor) : undefined,
      origin,
      isHead: request.method === 'HEAD',
    };
    const record = async (data: unknown) =>
      isOfCustomers &&
      isRecordedFor(name, origin.caller, data) &&
      recordRead(deps.auditRecords, request, { name, endpoint, caller: origin.caller, query, data });
    if (endpoint.shape === 'feed') {
      const { items, cursor: reached, more } = await readEvents(input, deps);
      await record(items);
      if (more) reply.header('link', nextLink(path, request.url, reached, 'after'));
      return void send(reply, endpoint.success, items, { cursor: reached });
    }
    const answer = await ask(input, deps);
    if (list === undefined) {
      await record(answer);
      const shown = markVersion(reply, endpoint, answer, bound);
      if (answeredByVersion(request, reply)) return;
      return void send(reply, endpoint.success, endpoint.shape === 'list' ? showAll(shown, bound) : show(shown, bound));
    }
    const page = answer as Page | Document;
    await record('item' in page ? page.item : page.items);
    if (page.next) reply.header('link', nextLink(path, request.url, deps.cursors.make(list, page.next)));
    if ('item' in page) return void send(reply, endpoint.success, show(page.item, bound));
    send(reply, endpoint.success, showAll(page.items, bound), { complete: page.complete });
  };
}

type Ask = (input: ReadInput, deps: HandlerDependencies) => Promise<unknown>;

/** Reads that consist of several messages, or are not shown as their message returns them. */
const composed: { [N in EndpointName]?: Ask } = {
  get_account: readAccount,
  list_accounts: readAccounts,
  get_balance_by_number: readBalance,
  get_operations: readOperations,
  search,
  list_approvals: readApprovals,
  get_approval: readApproval,
  get_staff_day: readStaffDay,
  list_staff_names: readStaffNames,
  get_approval_rules: readApprovalRules,
  get_till: readTill,
  list_tills: readTills,
};

/** Returns how an endpoint reads: unless it is composed, that follows from its message. */
function reader(name: EndpointName, endpoint: Endpoint): Ask {
  const { message } = endpoint;
  if (message === null) throw new TypeError(`endpoint ${name} has no message`);
  return composed[name] ?? ((input, deps) => (isPaged(endpoint) ? readPage : readOne)(message, input, deps));
}

/** Returns the Link to the next page: the same request with its cursor (RFC 8288; relative to the request's URL). */
function nextLink(path: string, url: string, cursor: string, parameter = 'cursor'): string {
  const parameters = new URLSearchParams(url.slice(path.length));
  parameters.set(parameter, cursor);
  return `<${path}?${parameters.toString()}>; rel="next"`;
}
