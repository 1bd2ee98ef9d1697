import type { FastifyRequest } from 'fastify';
import type { Approval } from '#libs/contracts/approvals.ts';
import type { Endpoint } from '#libs/contracts/endpoints.ts';
import type { Violation } from '#libs/contracts/errors.ts';
import { parseIfMatch } from '#libs/contracts/etag.ts';
import { noParameters } from '#libs/contracts/fields.ts';
import { freshBits } from '#libs/service/fresh-ids.ts';
import { bodyLength } from '../http/body.ts';
import { refuseViolations } from '../http/errors.ts';
import type { Origin } from '../messages/encode.ts';
import { answerWrite } from './answer-write.ts';
import type { Forwarder, Outcome } from './forward.ts';
import { derivedBits, fingerprint } from './ids.ts';
import { internationalPhones, parseFields, parseQuery } from './input.ts';
import type { Input, Plan, Planners, WriteName } from './plan.ts';
import { collect, readIdempotencyKey, requireCaller, toOrigin } from './request.ts';
import type { Handler, HandlerDependencies } from './routes.ts';
import { withApproval } from './with-approval.ts';
import { withFallbackRead } from './with-fallback-read.ts';
import { withPrecondition } from './with-precondition.ts';
import { withValueDate } from './with-value-date.ts';

/** A request that writes: what it asks for, and the command for it. */
export interface Write {
  endpoint: Endpoint;
  input: Input;
  plan: Plan;
  origin: Origin;
  /** Plans the same request under other id bits. */
  planAs: (bits: string) => Plan;
}

/** The outcome of a write. `approval`: nothing was executed yet, or what was executed once it was approved. */
export type WriteOutcome = Outcome | { kind: 'approval'; approval: Approval; plan: Plan; replayed: boolean };

/** Sends a write. A wrapper has the same form: it may change the write, or answer in place of what it wraps. */
export type Send = (write: Write) => Promise<WriteOutcome>;

/** A planner, whichever the endpoint. Its input has the body that the endpoint's schema returned. */
type Planner = (input: Input) => Omit<Plan, 'name'>;

/**
 * The way of every request that writes: read, plan, value date, four eyes, precondition,
 * publish and wait, read the outcome if there is no reply, answer.
 */
export function writeHandler(
  name: WriteName,
  endpoint: Endpoint,
  planners: Planners,
  deps: HandlerDependencies,
): Handler {
  const planner = planners[name] as Planner;
  const send = withValueDate(deps, withApproval(deps, withPrecondition(withFallbackRead(publish(deps.forwarder)))));
  const answer = answerWrite(endpoint, deps.acceptanceTimes);
  return async (request, reply) => {
    const { input, origin } = readWrite(request, endpoint, deps);
    const planAs = (bits: string): Plan => ({ name, ...planner({ ...input, bits }) });
    const write = { endpoint, input, plan: planAs(input.bits), origin, planAs };
    await answer(write, await send(write), reply);
  };
}

/** Sends the command and waits for its reply. */
function publish(forwarder: Forwarder): Send {
  return ({ plan, input: { acceptedAt }, origin }) => forwarder.command({ ...plan, acceptedAt }, origin);
}

/** Reads and validates a request. Throws a Refused that names all violations. */
function readWrite(
  request: FastifyRequest,
  { method, path, query, body: schema = noParameters }: Endpoint,
  { now, homeCountry, bodyMemoryLimit }: HandlerDependencies,
): { input: Input; origin: Origin } {
  const acceptedAt = new Date(now());
  const wrong: Violation[] = [];
  collect(wrong, () => parseQuery(query, request.query as Record<string, unknown>));
  const key = method === 'POST' ? collect(wrong, () => readIdempotencyKey(request)) : undefined;
  const given = request.body === undefined ? {} : internationalPhones(request.body, homeCountry);
  const caller = requireCaller(request);
  const body = collect(wrong, () =>
    bodyMemoryLimit.timed(caller.actor, bodyLength(request), () => parseFields(schema, given)),
  );
  if (wrong.length > 0) throw refuseViolations(wrong);
  const params = request.params as Record<string, string>;
  const bits =
    key === undefined ? freshBits(acceptedAt.getTime()) : derivedBits(caller.actor, `${method} ${path}`, key);
  return {
    input: { params, body, caller, bits, acceptedAt, ifMatch: parseIfMatch(request.headers['if-match']) },
    origin: toOrigin(request, key, key === undefined ? undefined : fingerprint(params, body)),
  };
}
