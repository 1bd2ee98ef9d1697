import type { FastifyReply } from 'fastify';
import { hashApiKey, type KeyEnvironment, makeApiKey } from '#libs/contracts/api-key.ts';
import type { Approval, ApprovalAction } from '#libs/contracts/approvals.ts';
import { type Endpoint, endpoints } from '#libs/contracts/endpoints.ts';
import { formatId } from '#libs/contracts/ids.ts';
import { scopesOf } from '../access/caller.ts';
import { type FourEyes, isWatched } from '../access/four-eyes.ts';
import { Refused, unavailable } from '../http/errors.ts';
import { pathId } from '../http/unknown-ids.ts';
import type { Origin } from '../messages/encode.ts';
import { dataOf, outcomeUnknown, send } from './answer.ts';
import type { Question } from './approval-question.ts';
import { isApprovable, questionOf } from './approval-questions.ts';
import type { CommandDependencies } from './commands.ts';
import { type Forwarder, isUnknownRepeat } from './forward.ts';
import { freshBits } from './ids.ts';
import type { Plan } from './plan.ts';
import { jsonNumber, presenterOf } from './present.ts';
import { type Page, queryById, type ReadDependencies, type ReadInput, readPage } from './reads.ts';

/** Four eyes in the gateway: requests approvals instead of publishing commands, and reads and presents approvals. */

export interface ApprovalDependencies extends ReadDependencies {
  fourEyes: FourEyes;
  now: () => number;
}

export interface Needed {
  action: ApprovalAction;
  question: Question;
}

/**
 * Returns the command to publish and, if it needs an approval, the reason. Throws a Refused if a resource does
 * not exist.
 */
export async function checkFourEyes(
  plan: Plan,
  origin: Origin,
  deps: ApprovalDependencies,
): Promise<{ plan: Plan; needed?: Needed }> {
  const { fourEyes, now } = deps;
  if (fourEyes.actions.size === 0 || !isWatched(origin.caller, fourEyes)) return { plan };
  const quiet = { ...origin, caller: { ...origin.caller, isStaff: false } };
  const question = await questionOf(plan, { reads: deps, origin: quiet, fourEyes, now });
  const action = question?.actions.find((one) => fourEyes.actions.has(one));
  if (question && action !== undefined) return { plan, needed: { action, question } };
  // The account may be frozen before the command arrives. The ledger then refuses to unfreeze it.
  return question && plan.name === 'change_account_status'
    ? { plan: { ...plan, data: { ...plan.data, keep_frozen: true } as Plan['data'] } }
    : { plan };
}

interface Request {
  endpoint: Endpoint;
  params: Record<string, string>;
  body: unknown;
  /** The id bits of the command and of the approval. */
  bits: string;
  acceptedAt: Date;
}

/**
 * Requests the approval and responds with 202. A repeat with the same Idempotency-Key gets the response of the
 * approved command once there is one.
 */
export async function askForApproval(
  reply: FastifyReply,
  plan: Plan,
  { action, question }: Needed,
  request: Request,
  origin: Origin,
  forwarder: Forwarder,
): Promise<void> {
  const { endpoint, params, body, bits, acceptedAt } = request;
  const { name } = plan;
  if (!isApprovable(name)) throw new TypeError(`${name} cannot wait for an approval`);
  const approval_id = formatId('approval', bits);
  const { scopes, summary, changes, refusal } = question;
  const path = endpoint.path.replace(/:(\w+)/g, (_, parameter: string) => params[parameter] ?? '');
  const data = {
    approval_id,
    action,
    summary,
    changes,
    scopes,
    request: { operation: name, method: endpoint.method, path, body: body as Record<string, unknown> },
    command: { name, id: plan.id, key: plan.key, bucket: plan.bucket, data: plan.data },
  };
  const from = refusal === undefined ? origin : { ...origin, repeatOnly: true };
  const outcome = await forwarder.command(
    { name: 'request_approval' as const, id: approval_id, key: approval_id, data, acceptedAt },
    from,
  );
  if (refusal !== undefined && isUnknownRepeat(outcome)) throw new Refused(refusal);
  if (outcome.kind === 'refused') throw new Refused(outcome.refusal);
  if (outcome.kind === 'failed')
    throw outcome.stage === 'not_sent' || from.repeatOnly === true
      ? new Refused(unavailable)
      : outcomeUnknown({ approval_id }, origin.idempotencyKey !== undefined, locationOf(approval_id));
  if (!outcome.replayed) return answerWaiting(reply, outcome.data);
  reply.header('idempotent-replayed', 'true');
  const { approval } = await findApproval(approval_id, origin, forwarder);
  return approval.outcome === undefined
    ? answerWaiting(reply, approval)
    : answerOutcome(reply, approval.outcome, plan, endpoint);
}

const locationOf = (approvalId: string): string => `/admin/approvals/${approvalId}`;

function answerWaiting(reply: FastifyReply, approval: Approval): void {
  reply.header('location', locationOf(approval.approval_id));
  send(reply, 202, presentApproval(approval));
}

function answerOutcome(
  reply: FastifyReply,
  outcome: NonNullable<Approval['outcome']>,
  { location }: Plan,
  endpoint: Endpoint,
): void {
  if (outcome.status === 'error') {
    const { status: _status, ...refusal } = outcome;
    throw new Refused(refusal);
  }
  if (location !== undefined && endpoint.success === 201) reply.header('location', location);
  send(reply, endpoint.success, presentAs(endpoint, outcome.data), endpoint.shape === 'bare' ? 'bare' : {});
}

const presentAs = ({ result }: Pick<Endpoint, 'result'>, data: unknown): unknown => presenterOf(result)?.(data) ?? data;

const amounts = ['amount', 'initial_deposit'];

/** Converts an approval for REST: amounts in its outcome and request become numbers. */
export function presentApproval(approval: Approval): Approval {
  const { request, outcome } = approval;
  const body = Object.entries(request.body).map(([name, value]) => [
    name,
    amounts.includes(name) && typeof value === 'string' ? jsonNumber(value) : value,
  ]);
  const shown = { ...approval, request: { ...request, body: Object.fromEntries(body) as Approval['request']['body'] } };
  if (outcome?.status !== 'success') return shown;
  return {
    ...shown,
    outcome: { ...outcome, data: presentAs(endpoints[request.operation], outcome.data) as typeof outcome.data },
  };
}

async function findApproval(approval_id: string, origin: Origin, forwarder: Forwarder) {
  const data = { approval_id, scopes: scopesOf(origin.caller) };
  return dataOf(await queryById('get_approval', data, approval_id, origin, forwarder));
}

export async function readApprovals(input: ReadInput, deps: ReadDependencies): Promise<Page> {
  const page = await readPage(
    'list_approvals',
    { ...input, query: { ...input.query, scopes: scopesOf(input.origin.caller) } },
    deps,
  );
  return { ...page, items: page.items.map((item) => presentApproval(item as Approval)) };
}

/** Reads an approval. The first time that its requester reads it, it includes the secret of the key that it created. */
export async function readApproval(
  input: ReadInput,
  deps: ReadDependencies & CommandDependencies & { now: () => number },
): Promise<object> {
  const approval_id = pathId('approval_id', input.params);
  const { approval, has_unread_key } = await findApproval(approval_id, input.origin, deps.forwarder);
  const api_key = has_unread_key && !input.isHead ? await claimKey(approval, input.origin, deps) : undefined;
  return { ...presentApproval(approval), ...(api_key === undefined ? {} : { api_key }) };
}

/** Creates the secret. Returns undefined if another request was faster or the key is no longer active. */
async function claimKey(
  approval: Approval,
  origin: Origin,
  deps: ReadDependencies & CommandDependencies & { now: () => number },
): Promise<string | undefined> {
  const { pepper, apiKeys, forwarder, now } = deps;
  const { approval_id, outcome } = approval;
  if (outcome?.status !== 'success') return undefined;
  const key_id = String(outcome.data['key_id']);
  const apiKey = makeApiKey(outcome.data['environment'] as KeyEnvironment, key_id);
  const secret_hash = hashApiKey(pepper, apiKey);
  const command = {
    name: 'claim_approved_key' as const,
    id: `cmd_${freshBits(now())}`,
    key: approval_id,
    data: { approval_id, key_id, secret_hash },
    acceptedAt: new Date(now()),
  };
  const claimed = await forwarder.command(command, origin);
  if (claimed.kind === 'refused') return undefined;
  if (claimed.kind === 'failed')
    throw claimed.stage === 'not_sent' ? new Refused(unavailable) : outcomeUnknown({ approval_id, key_id }, false);
  await apiKeys.seen(key_id, (state) => state.secret_hash === secret_hash);
  return apiKey;
}
