import type { StatusTransition } from '#libs/contracts/account-status.ts';
import type { Account } from '#libs/contracts/accounts.ts';
import type { ApiKey } from '#libs/contracts/api-keys.ts';
import type { Approval } from '#libs/contracts/approvals.ts';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { type Client, clientName } from '#libs/contracts/clients.ts';
import type { Hold } from '#libs/contracts/holds.ts';
import { fromMinor, isCurrency, toMinor } from '#libs/contracts/money.ts';
import { amountText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { inTurns, known } from '../api.ts';
import { actorText, readActorNames, showActor } from '../html/actors.ts';
import { minorOf } from '../html/amounts.ts';
import type { PageRequest } from '../html/frame.ts';
import { readHolder } from '../html/owners.ts';
import { type Fact, fieldWords, idLink, type ShownChange, showTime, showUntil } from '../html/show.ts';
import { whyText } from './account-views.ts';
import type { Subjects } from './approval-subjects.ts';
import { availableBalance, refusalText } from './counter-instructions.ts';
import { limitChanges } from './limits.ts';
import { isPostedBy, makerFacts, readMaker } from './made-by.ts';
import { planReversal } from './reversal.ts';
import { showScopes } from './scope-words.ts';

/**
 * What an approval would change, from the request and from what is true now; of a decided one, what it changed, as far as that
 * is kept. Both as far as the person may see it.
 */

type Body = Record<string, unknown>;

export interface Effects {
  changes: ShownChange[];
  /** What is changed, as its own page shows it. */
  facts: readonly Fact[];
  /** Why the bank would refuse it at present. */
  refusal?: string | undefined;
  /** What the second person should look at. */
  caution?: string | undefined;
}

export async function findEffects(visit: PageRequest, approval: Approval): Promise<Effects> {
  const { request, status } = approval;
  switch (request.operation) {
    case 'reverse_transaction':
      return findReversal(visit, approval);
    case 'create_transaction':
    case 'create_transfer':
    case 'capture_hold':
      // The balances at the decision are not kept.
      return status === 'Waiting' ? findMovements(visit, request) : { changes: [], facts: [] };
    default:
      return {
        changes: await (status === 'Waiting' ? findChanges(visit, request) : findDone(visit, approval)),
        facts: [],
      };
  }
}

async function findReversal(visit: PageRequest, approval: Approval): Promise<Effects> {
  const planned = await known(planReversal(visit, idIn(approval.request.path)));
  if (!planned) return { changes: [], facts: [] };
  const { original, facts, changes, warning, impossible } = planned;
  const [maker, isOwn] = await Promise.all([
    readMaker(visit, original.transfer_id ?? original.transaction_id),
    isPostedBy(visit, approval.requested_by, original),
  ]);
  const effects = { facts: [...facts, ...makerFacts(maker)], caution: isOwn ? ownPosting(approval) : undefined };
  return approval.status === 'Waiting'
    ? { ...effects, changes: [...changes], refusal: impossible ?? warning }
    : { ...effects, changes: [] };
}

/** Says that the person asks to reverse what they have posted themselves. */
const ownPosting = ({ requested_by, requested_by_name }: Approval): string =>
  `${requested_by_name ?? actorText(requested_by)} entered this posting, and asks to reverse it.`;

/** Returns the reversals among these requests whose posting was entered by the person who asks, as far as it is known. */
export async function readOwnPostings(
  visit: PageRequest,
  rows: readonly Approval[],
  { originals }: Pick<Subjects, 'originals'>,
): Promise<ReadonlySet<string>> {
  const own = new Set<string>();
  await inTurns(rows, async (row) => {
    const original = originals.get(idIn(row.request.path));
    if (row.request.operation !== 'reverse_transaction' || !original || !('transaction_type' in original)) return;
    if (await isPostedBy(visit, row.requested_by, original)) own.add(row.approval_id);
  });
  return own;
}

const idIn = (path: string): string => path.match(/[a-z]{3}_[0-9a-f]{32}/)?.[0] ?? '';

async function findMovements(visit: PageRequest, { operation, path, body }: Approval['request']): Promise<Effects> {
  if (operation === 'capture_hold') return describeCapture(visit, idIn(path), body);
  const { currency } = body;
  const money = { amount: String(body['amount']), currency: typeof currency === 'string' ? currency : null };
  if (operation === 'create_transfer')
    return movements(visit, { ...money, from: body['from_account_id'], to: body['to_account_id'] });
  return movements(visit, { ...money, [body['transaction_type'] === 'Deposit' ? 'to' : 'from']: body['account_id'] });
}

/** What a request that was decided changed, or would have. The reason of a status and earlier limits are kept. */
async function findDone(visit: PageRequest, approval: Approval): Promise<ShownChange[]> {
  const { request, decided_at, expires_at } = approval;
  const id = idIn(request.path);
  switch (request.operation) {
    case 'change_account_status': {
      const last = await readTransition(visit, id, decided_at ?? expires_at);
      const account = await read<Account>(visit, `/accounts/${id}`);
      const status = await of(visit, id, account, last?.to_status ?? null, String(request.body['status']));
      return [status, ...(await describeReason(visit, last, request.body))];
    }
    case 'set_account_limits':
      return describeLimits(visit, id, request.body, await readReplaced(visit, id, approval));
    case 'create_api_key':
    case 'create_webhook':
      return findChanges(visit, request);
    default:
      return [];
  }
}

async function findChanges(visit: PageRequest, { operation, path, body }: Approval['request']): Promise<ShownChange[]> {
  const id = idIn(path);
  switch (operation) {
    case 'change_account_status': {
      const account = await read<Account>(visit, `/accounts/${id}`);
      const status = await of(visit, id, account, account?.status ?? null, String(body['status']));
      return [status, ...(await describeReason(visit, await readTransition(visit, id), body))];
    }
    case 'open_account':
      return [
        await ofClient(visit, String(body['client_id']), `${String(body['account_type'])} account`, null, opened(body)),
      ];
    case 'set_account_limits':
      return describeLimits(visit, id, body, await read(visit, `/accounts/${id}/limits`));
    case 'create_api_key':
      return keyChanges(body as unknown as ApiKey);
    case 'rotate_api_key': {
      const key = await read<ApiKey>(visit, `/admin/api-keys/${id}`);
      return key === undefined ? [] : keyChanges(key);
    }
    case 'erase_client': {
      const personal = 'names, contacts, and notes';
      return [await ofClient(visit, id, 'Client', personal, `${personal} erased for good`)];
    }
    case 'update_client':
      return fieldChanges(body, await read<Body>(visit, `/clients/${id}`));
    case 'update_webhook':
      return fieldChanges(body, await read<Body>(visit, `/webhooks/${id}`));
    case 'create_webhook':
      return fieldChanges(body, {});
    case 'rotate_webhook_secret':
      return [{ what: html`Secret of ${idLink(id)}`, before: 'the present secret', after: 'a new secret' }];
    default:
      return [];
  }
}

/** Reads a resource; undefined if the person may not, or it does not exist. */
const read = <T>({ api }: PageRequest, path: string): Promise<T | undefined> =>
  known(api.get<T>(path)).then((answer) => answer?.data);

const opened = ({ initial_deposit, currency }: Body): string =>
  `opened with ${typeof initial_deposit === 'string' && isCurrency(String(currency)) ? amountText(initial_deposit, String(currency)) : initial_deposit}`;

/** Old and new values by the names of their fields. An old value that the person may not see is not shown as empty. */
function fieldChanges(body: Body, now: Body | undefined): ShownChange[] {
  const text = (value: unknown): string => {
    if (Array.isArray(value)) return value.join(', ');
    return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '–');
  };
  return Object.entries(body).map(([name, value]) => ({
    what: fieldWords(name),
    before: now === undefined ? 'not known' : text(now[name]),
    after: text(value),
  }));
}

async function ofClient(visit: PageRequest, id: string, kind: string, before: string | null, after: string) {
  const client = visit.person.scopes.has('clients:read') ? await read<Client>(visit, `/clients/${id}`) : undefined;
  return { what: html`${kind} of ${idLink(id, client && clientName(client))}`, before, after };
}

/** A change of an account, which is named as people know it. */
async function of(
  visit: PageRequest,
  id: string,
  account: Account | undefined,
  before: string | null,
  after: string | null,
): Promise<ShownChange> {
  const holder = account && (await known(readHolder(visit, account)));
  const what = html`${idLink(id, account?.account_number)}${holder && html`, <strong>${clientName(holder)}</strong>`}`;
  return { what, before, after };
}

interface Moved {
  amount: string;
  /** null: that of the account. */
  currency: string | null;
  from?: unknown;
  to?: unknown;
  /** It is held already, so it can be taken neither before nor after, and the balance is shown. */
  isHeld?: boolean;
}

/** What can be taken from these accounts, or is owed on them, before and after the amount has moved, as at the counter. */
async function movements(visit: PageRequest, { amount, currency, isHeld = false, ...ids }: Moved): Promise<Effects> {
  const side = async (id: unknown, sign: bigint) => {
    if (typeof id !== 'string') return undefined;
    const account = await read<Account>(visit, `/accounts/${id}`);
    const { what } = await of(visit, id, account, null, null);
    const moved = account && (currency ?? account.currency) === account.currency && toMinor(amount, account.currency);
    if (account === undefined || typeof moved !== 'bigint') {
      const then = `${sign < 0n ? '−' : '+'}${amountText(amount, currency)}`;
      return { account, isShort: false, change: { what, before: null, after: then } };
    }
    const isLoan = account.account_type === 'Loan';
    const word = isLoan ? 'still owed' : isHeld && sign < 0n ? 'balance' : 'available';
    const now = word === 'available' ? availableBalance(account) : account.balance;
    // What is owed on a loan is lowered by a payment.
    const minor = minorOf(now, account.currency) + (isLoan ? -1n : sign) * moved;
    const text = (decimal: string) => amountText(decimal, account.currency);
    const change = { what: html`${what}: ${word}`, before: text(now), after: text(fromMinor(minor, account.currency)) };
    return { account, isShort: minor < 0n, change };
  };
  const [from, to] = await Promise.all([side(ids.from, -1n), side(ids.to, 1n)]);
  const sides = [from, to].filter((one) => one !== undefined);
  const code = sides.some(({ account }) => account && account.status !== 'Active')
    ? 'inactive_account'
    : from?.isShort
      ? 'insufficient_funds'
      : to?.isShort && 'amount_exceeds_outstanding';
  return {
    changes: sides.map(({ change }) => change),
    facts: [],
    refusal: code ? refusalText(code, { from: from?.account, to: to?.account }) : undefined,
  };
}

/** The last change of the account's status, or of those before `until` if a request was decided then. */
async function readTransition(visit: PageRequest, id: string, until?: string): Promise<StatusTransition | undefined> {
  const history = await read<StatusTransition[]>(visit, `/accounts/${id}/status-transitions?limit=${until ? 100 : 1}`);
  return history?.find(({ created_at }) => until === undefined || created_at < until);
}

/** Why the account has its status, who gave it that and when; and why it is to have another. */
async function describeReason(
  visit: PageRequest,
  last: StatusTransition | undefined,
  body: Body,
): Promise<ShownChange[]> {
  if (last === undefined) return [];
  const names = await readActorNames(visit, [last], 'actor');
  const who = last.actor !== undefined && html`<br>${showActor(last.actor, names)}`;
  const before = html`<span class="text">${whyText(last) || '–'}</span><span class="quiet">${who}<br>${showTime(last.created_at)}</span>`;
  const asked = whyText(body as Pick<StatusTransition, 'reason' | 'note'>) || '–';
  return [{ what: 'Reason', before, after: html`<span class="text">${asked}</span>` }];
}

async function describeLimits(
  visit: PageRequest,
  id: string,
  body: Body,
  before: Parameters<typeof limitChanges>[1],
): Promise<ShownChange[]> {
  const account = await read<Account>(visit, `/accounts/${id}`);
  const { what: owned } = await of(visit, id, account, null, null);
  return limitChanges(body, before, account?.currency).map(({ what, ...change }) => ({
    what: html`${owned}<br>${what}`,
    ...change,
  }));
}

/** The limits that this request replaced, by its audit record, for people who may read the audit. */
async function readReplaced(visit: PageRequest, account_id: string, { approval_id, decided_at }: Approval) {
  if (decided_at === null || !visit.person.scopes.has('audit:read')) return undefined;
  // The clock of the ledger, which records it, may be a little behind.
  const from = new Date(Date.parse(decided_at) - 60_000).toISOString();
  const asked = { resource_id: account_id, action: 'set_account_limits', from, order: 'asc', limit: '50' };
  const records = await read<AuditRecord[]>(visit, `/admin/audit?${new URLSearchParams(asked)}`);
  const details = records?.find((record) => record.details['approval_id'] === approval_id)?.details;
  return details?.['before'] as Record<string, string> | undefined;
}

async function describeCapture(visit: PageRequest, id: string, body: Body): Promise<Effects> {
  const hold = await read<Hold>(visit, `/holds/${id}`);
  if (hold === undefined) return { changes: [], facts: [] };
  const { account_id: from, amount, captured_amount, currency } = hold;
  const left = fromMinor(minorOf(amount, currency) - minorOf(captured_amount, currency), currency);
  return movements(visit, {
    amount: String(body['amount'] ?? left),
    currency,
    from,
    to: body['to_account_id'],
    isHeld: true,
  });
}

function keyChanges({ name, scopes, environment, client_id, expires_at }: Partial<ApiKey>): ShownChange[] {
  const row = (what: string, value: Html | string | null | undefined) => ({ what, before: null, after: value ?? '–' });
  return [
    row('Name', name),
    row('Scopes', scopes && showScopes(scopes)),
    row('Environment', environment),
    row('Only for the client', client_id ? idLink(client_id) : 'the whole bank'),
    row(
      'Expires',
      expires_at
        ? html`${showUntil(expires_at)} at the latest`
        : 'as late as the bank allows: the key’s page will say when',
    ),
  ];
}
