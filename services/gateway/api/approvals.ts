import { hashApiKey, type KeyEnvironment, makeApiKey } from '#libs/contracts/api-key.ts';
import { type Approval, approvalActions, type OwnRules, ownRules, rulesIn } from '#libs/contracts/approvals.ts';
import { type Endpoint, endpoints } from '#libs/contracts/endpoints.ts';
import { toMinor } from '#libs/contracts/money.ts';
import { dayIn } from '#libs/service/days.ts';
import { freshBits } from '#libs/service/fresh-ids.ts';
import { type Caller, listScopes } from '../access/caller.ts';
import { rulesFor } from '../access/four-eyes.ts';
import { Refused, unavailable } from '../http/errors.ts';
import { pathId } from '../http/unknown-ids.ts';
import type { Origin } from '../messages/encode.ts';
import { outcomeUnknown, requireData } from './answer.ts';
import { readClosing, withClosing } from './closings.ts';
import type { CommandDependencies } from './commands.ts';
import type { Forwarder } from './forward.ts';
import { createPresenter, jsonNumber } from './present.ts';
import { type Page, queryById, type ReadDependencies, type ReadInput, readPage } from './reads.ts';

/** Reads and presents approvals. */

export const approvalUrl = (approvalId: string): string => `/admin/approvals/${approvalId}`;

const presentAs = ({ result }: Pick<Endpoint, 'result'>, data: unknown, { boundClientId }: Caller): unknown =>
  createPresenter(result)?.(data, boundClientId) ?? data;

const amounts = ['amount', 'initial_deposit'];

/** Converts an approval for REST: amounts in its outcome and request become numbers. */
export function presentApproval(approval: Approval, caller: Caller): Approval {
  const { request, outcome } = approval;
  const body = Object.entries(request.body).map(([name, value]) => [
    name,
    amounts.includes(name) && typeof value === 'string' ? jsonNumber(value) : value,
  ]);
  const shown = { ...approval, request: { ...request, body: Object.fromEntries(body) as Approval['request']['body'] } };
  if (outcome?.status !== 'success') return shown;
  const { status_version: _ofEtag, ...data } = outcome.data;
  return {
    ...shown,
    outcome: { ...outcome, data: presentAs(endpoints[request.operation], data, caller) as typeof data },
  };
}

export async function findApproval(approval_id: string, origin: Origin, forwarder: Forwarder) {
  const data = { approval_id, scopes: listScopes(origin.caller) };
  return requireData(await queryById('get_approval', data, approval_id, origin, forwarder));
}
export async function readApprovals(input: ReadInput, deps: ReadDependencies): Promise<Page> {
  const page = await readPage(
    'list_approvals',
    { ...input, query: { ...input.query, scopes: listScopes(input.origin.caller) } },
    deps,
  );
  return { ...page, items: page.items.map((item) => presentApproval(item as Approval, input.origin.caller)) };
}

/** Reads what needs an approval of this caller's requests: the rules that would be sent with them, and the sums of the day. */
export async function readApprovalRules(
  { origin }: ReadInput,
  { forwarder, fourEyes, now }: ReadDependencies & Pick<CommandDependencies, 'fourEyes'> & { now: () => number },
): Promise<OwnRules> {
  const at = new Date(now());
  const rules = rulesIn({ four_eyes: rulesFor(origin.caller, approvalActions, fourEyes, at) });
  if (!rules) return { day: dayIn(fourEyes.timeZone, at), actions: [], limits: [] };
  if (!rules.actions.includes('post_above')) return ownRules(rules, new Map());
  const posted = requireData(await forwarder.query('list_posted', {}, origin.caller.actor, origin));
  return ownRules(
    rules,
    new Map(posted.map(({ currency, day, amount }) => [currency, { day, minor: BigInt(toMinor(amount, currency)) }])),
  );
}

/** Reads an approval. The first time that its requester reads it, it includes the secret of the key that it created. */
export async function readApproval(
  input: ReadInput,
  deps: ReadDependencies & CommandDependencies & { now: () => number },
): Promise<object> {
  const approval_id = pathId('approval_id', input.params);
  const { approval, has_unread_key } = await findApproval(approval_id, input.origin, deps.forwarder);
  const api_key = has_unread_key && !input.isHead ? await claimKey(approval, input.origin, deps) : undefined;
  const shown = await withClosing(approval, input.origin, deps.forwarder, readClosing);
  return { ...presentApproval(shown, input.origin.caller), ...(api_key === undefined ? {} : { api_key }) };
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
