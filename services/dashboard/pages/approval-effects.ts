import type { StatusTransition } from '#libs/contracts/account-status.ts';
import type { Account } from '#libs/contracts/accounts.ts';
import type { ApiKey } from '#libs/contracts/api-keys.ts';
import type { Approval } from '#libs/contracts/approvals.ts';
import type { Client } from '#libs/contracts/clients.ts';
import type { Hold } from '#libs/contracts/holds.ts';
import { fromMinor, isCurrency, toMinor } from '#libs/contracts/money.ts';
import { amountText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { known } from '../api.ts';
import { readActorNames, showActor } from '../html/actors.ts';
import type { PageRequest } from '../html/frame.ts';
import { readHolder } from '../html/owners.ts';
import { type Fact, fieldWords, idLink, type ShownChange, showTime, showUntil } from '../html/show.ts';
import { whyText } from './account-views.ts';
import { clientName } from './client-views.ts';
import { limitChanges } from './limits.ts';
import { makerFacts, readMaker } from './made-by.ts';
import { planReversal } from './reversal.ts';
import { showScopes } from './scope-words.ts';

/** What an approval would change, from the request and from what is true now, as far as the person may see it. */

type Body = Record<string, unknown>;

export interface Effects {
  changes: ShownChange[];
  /** What is changed, as its own page shows it. */
  facts: readonly Fact[];
  /** Why the bank would refuse it at present. */
  warning?: string | undefined;
}
export const noEffects: Effects = { changes: [], facts: [] };

export async function findEffects(visit: PageRequest, { request }: Approval): Promise<Effects> {
  if (request.operation !== 'reverse_transaction') return { changes: await findChanges(visit, request), facts: [] };
  const planned = await known(planReversal(visit, idIn(request.path)));
  if (!planned) return noEffects;
  const { original, facts, changes, warning, impossible } = planned;
  const maker = await readMaker(visit, original.transfer_id ?? original.transaction_id);
  return { changes: [...changes], facts: [...facts, ...makerFacts(maker)], warning: impossible ?? warning };
}

const idIn = (path: string): string => path.match(/[a-z]{3}_[0-9a-f]{32}/)?.[0] ?? '';

async function findChanges(visit: PageRequest, { operation, path, body }: Approval['request']): Promise<ShownChange[]> {
  const id = idIn(path);
  switch (operation) {
    case 'create_transaction':
      return movements(visit, body, [[body['account_id'], body['transaction_type'] === 'Deposit' ? 1n : -1n]]);
    case 'create_transfer':
      return movements(visit, body, [
        [body['from_account_id'], -1n],
        [body['to_account_id'], 1n],
      ]);
    case 'capture_hold':
      return describeCapture(visit, id, body);
    case 'change_account_status': {
      const account = await read<Account>(visit, `/accounts/${id}`);
      const status = await of(visit, id, account, account?.status ?? null, String(body['status']));
      return [status, ...(await describeReason(visit, id, body))];
    }
    case 'open_account':
      return [
        await ofClient(visit, String(body['client_id']), `${String(body['account_type'])} account`, null, opened(body)),
      ];
    case 'set_account_limits':
      return describeLimits(visit, id, body);
    case 'close_day':
    case 'reverse_transaction':
      return [];
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

/** The balances of these accounts before and after the amount of `body` has moved, each in its direction. */
async function movements(
  visit: PageRequest,
  body: Body,
  moved: readonly (readonly [id: unknown, sign: bigint])[],
): Promise<ShownChange[]> {
  return Promise.all(
    moved.map(async ([named, sign]) => {
      const id = String(named);
      const account = await read<Account>(visit, `/accounts/${id}`);
      // A loan's balance is what is owed, so a payment lowers it.
      const by = account?.account_type === 'Loan' ? -1n : sign;
      return of(
        visit,
        id,
        account,
        account ? amountText(account.balance, account.currency) : null,
        after(account, body, by),
      );
    }),
  );
}

/** Why the account has its status, who gave it that and when; and why it is to have another. */
async function describeReason(visit: PageRequest, id: string, body: Body): Promise<ShownChange[]> {
  const [last] = (await read<StatusTransition[]>(visit, `/accounts/${id}/status-transitions?limit=1`)) ?? [];
  if (last === undefined) return [];
  const names = await readActorNames(visit, [last], 'actor');
  const who = last.actor !== undefined && html`<br>${showActor(last.actor, names)}`;
  const before = html`<span class="text">${whyText(last) || '–'}</span><span class="quiet">${who}<br>${showTime(last.created_at)}</span>`;
  const asked = whyText(body as Pick<StatusTransition, 'reason' | 'note'>) || '–';
  return [{ what: 'Reason', before, after: html`<span class="text">${asked}</span>` }];
}

function after(account: Account | undefined, { amount, currency: given }: Body, sign: bigint): string {
  const currency = account?.currency ?? String(given);
  if (!isCurrency(currency)) return `${sign < 0n ? '−' : '+'}${amount}`;
  const moved = toMinor(String(amount), currency);
  const now = account && toMinor(account.balance, currency);
  if (typeof moved !== 'bigint') return String(amount);
  return typeof now === 'bigint'
    ? amountText(fromMinor(now + sign * moved, currency), currency)
    : `${sign < 0n ? '−' : '+'}${amountText(fromMinor(moved, currency), currency)}`;
}

async function describeLimits(visit: PageRequest, id: string, body: Body): Promise<ShownChange[]> {
  const account = await read<Account>(visit, `/accounts/${id}`);
  const changes = limitChanges(body, await read(visit, `/accounts/${id}/limits`));
  const { what: owned } = await of(visit, id, account, null, null);
  return changes.map(({ what, ...change }) => ({ what: html`${owned}<br>${what}`, ...change }));
}

async function describeCapture(visit: PageRequest, id: string, body: Body): Promise<ShownChange[]> {
  const hold = await read<Hold>(visit, `/holds/${id}`);
  if (hold === undefined) return [];
  const { account_id, amount, captured_amount, currency } = hold;
  const left = fromMinor(BigInt(toMinor(amount, currency)) - BigInt(toMinor(captured_amount, currency)), currency);
  const to = body['to_account_id'];
  const moved: [unknown, bigint][] = [
    [account_id, -1n],
    ...(typeof to === 'string' ? [[to, 1n] as [string, bigint]] : []),
  ];
  return movements(visit, { amount: body['amount'] ?? left }, moved);
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
        : 'as late as the bank allows (KEY_MAX_LIFETIME_DAYS), or when the key of its creator does',
    ),
  ];
}
