import { expiryRefusal, latestExpiry } from '#libs/contracts/api-key.ts';
import type { ApprovableCommand, Approval, ApprovalAction } from '#libs/contracts/approvals.ts';
import type { Refusal } from '#libs/contracts/errors.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { rotationRefusal } from '#libs/contracts/scopes.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import { type FourEyes, isAbove, isAboveSome, type Posting } from '../access/four-eyes.ts';
import { Refused } from '../http/errors.ts';
import { notFound } from '../http/unknown-ids.ts';
import { type Asker, accountOf, ask, capturedPosting, destinationOf, type Question } from './approval-question.ts';
import { aboutRedrive } from './approval-redrive.ts';
import type { Plan } from './plan.ts';
import { readOne } from './reads.ts';

/** The facts for each command that may need an approval. */

type Ask<N extends ApprovableCommand> = (data: MessageData<N>, asker: Asker) => Promise<Question | undefined>;

/** undefined: no approval is needed, whatever the services would reply. */
const questions: { [N in ApprovableCommand]: { mayNeed: readonly ApprovalAction[]; about: Ask<N> } } = {
  reverse_transaction: { mayNeed: ['reverse'], about: aboutReversal },
  change_account_status: { mayNeed: ['unfreeze'], about: aboutStatus },
  create_api_key: { mayNeed: ['create_key'], about: aboutNewKey },
  rotate_api_key: { mayNeed: ['create_key'], about: aboutRotation },
  redrive_dead_letter: { mayNeed: ['redrive', 'post_above'], about: aboutRedrive },
  create_transaction: { mayNeed: ['post_above'], about: aboutCash },
  create_transfer: { mayNeed: ['post_above'], about: aboutTransfer },
  capture_hold: { mayNeed: ['post_above'], about: aboutCapture },
  open_account: { mayNeed: ['post_above'], about: aboutOpening },
  erase_client: { mayNeed: ['erase'], about: aboutErasure },
};

export function isApprovable(name: string): name is ApprovableCommand {
  return Object.hasOwn(questions, name);
}

export async function questionOf({ name, data }: Plan, asker: Asker): Promise<Question | undefined> {
  if (!isApprovable(name)) return undefined;
  const { mayNeed, about } = questions[name];
  if (!mayNeed.some((action) => asker.fourEyes.actions.has(action))) return undefined;
  return (about as (data: Plan['data'], asker: Asker) => Promise<Question | undefined>)(data, asker);
}

type Change = Approval['changes'][number];

function change(field: string, before: string | null, after: string | null): Change {
  return { field, before, after };
}

const money = ({ amount, currency }: Posting): string => `${amount} ${currency}`;

function balanceChange(account_id: string, sign: '+' | '-' | '', moved: string): Change {
  return change(`balance of account ${account_id}`, null, sign + moved);
}

/** A loan's balance is what is owed: a payment lowers it. */
function received({ account_type }: { account_type: string }): '+' | '-' {
  return account_type === 'Loan' ? '-' : '+';
}

async function aboutReversal(
  { reverses_transaction_id: id }: MessageData<'reverse_transaction'>,
  { origin, reads }: Asker,
): Promise<Question> {
  const input = { params: { transaction_id: id }, query: {}, after: undefined, origin, isHead: false };
  const original = (await readOne('get_transaction', input, reads)) as Transaction;
  const { transaction_type, account_id, direction, counterparty_account_id: other } = original;
  const moved = `${original.amount} ${original.currency ?? ''}`.trim();
  // A loan payment lowers both balances.
  const otherGains = direction === (transaction_type === 'Loan Payment' ? 'debit' : 'credit');
  return {
    actions: ['reverse'],
    scopes: ['transactions:reverse'],
    summary: `Reverse ${transaction_type} ${id} of ${moved}`,
    changes: [
      change(`transaction ${id}`, original.status, 'reversed'),
      balanceChange(account_id, direction === 'debit' ? '+' : '-', moved),
      ...(other === undefined ? [] : [balanceChange(other, otherGains ? '+' : '-', moved)]),
    ],
  };
}

async function aboutStatus(
  { account_id, status, reason }: MessageData<'change_account_status'>,
  asker: Asker,
): Promise<Question | undefined> {
  if (status === 'Frozen') return undefined;
  const [, [known]] = await Promise.all([
    accountOf(account_id, asker),
    ask('get_ledger_accounts', { account_ids: [account_id] }, account_id, asker),
  ]);
  if (!known) throw notFound('account', account_id);
  return {
    actions: known.status === 'Frozen' ? ['unfreeze'] : [],
    scopes: ['accounts:status'],
    summary: `Unfreeze account ${account_id}`,
    changes: [change('status', known.status, status), ...(reason === null ? [] : [change('reason', null, reason)])],
  };
}

function scopeText(scopes: readonly string[]): string {
  return `the ${scopes.length === 1 ? 'scope' : 'scopes'} ${scopes.join(', ')}`;
}

/** A key that only reads needs no approval. */
function keyActions(scopes: readonly string[]): ApprovalAction[] {
  return scopes.every((scope) => scope.endsWith(':read')) ? [] : ['create_key'];
}

async function aboutNewKey(data: MessageData<'create_api_key'>, asker: Asker): Promise<Question | undefined> {
  const { name, scopes, environment, client_id, expires_at } = data;
  const actions = keyActions(scopes);
  if (actions.length === 0) return undefined;
  if (client_id !== null) await ask('get_client', { client_id }, client_id, asker);
  return {
    actions,
    refusal: await refusedExpiry(data, asker),
    scopes: ['keys:manage'],
    summary: `Create an API key with ${scopeText(scopes)}`,
    changes: [
      change('name', null, name),
      change('scopes', null, scopes.join(', ')),
      change('environment', null, environment),
      change('only for the client', null, client_id ?? 'the whole bank'),
      change('expires_at', null, expires_at),
    ],
  };
}

/** Returns why accounts would refuse the expiry of the new key, or undefined. */
async function refusedExpiry(
  { expires_at, not_after, maker_key_id: key_id }: MessageData<'create_api_key'>,
  asker: Asker,
): Promise<Refusal | undefined> {
  if (expires_at === null) return undefined;
  const maker = key_id == null ? null : await ask('get_api_key', { key_id }, key_id, asker);
  return expiryRefusal(expires_at, latestExpiry(not_after, maker), new Date(asker.now()).toISOString());
}

async function aboutRotation(
  { rotates_key_id: key_id, overlap_seconds, maker_scopes }: MessageData<'rotate_api_key'>,
  asker: Asker,
): Promise<Question> {
  const { name, scopes, expires_at } = await ask('get_api_key', { key_id }, key_id, asker);
  const lacking = rotationRefusal(scopes, maker_scopes);
  if (lacking) throw new Refused(lacking);
  return {
    actions: keyActions(scopes),
    scopes: ['keys:manage'],
    summary: `Rotate API key ${key_id}, which has ${scopeText(scopes)}`,
    changes: [
      change('name', name, name),
      change('scopes', scopes.join(', '), scopes.join(', ')),
      change(`end of ${key_id}`, expires_at, `${overlap_seconds} s after the rotation`),
    ],
  };
}

/** A small amount needs no facts. */
function mayBeAbove(amount: string, currency: string | null, { limits }: FourEyes): boolean {
  return currency === null ? isAboveSome(amount, limits) : isAbove({ amount, currency }, limits);
}

/** Returns the question about a posting, or undefined if its amount is within the limit of its currency. */
function aboutPosting(posting: Posting, { fourEyes }: Asker, rest: Omit<Question, 'actions'>): Question | undefined {
  return isAbove(posting, fourEyes.limits) ? { actions: ['post_above'], ...rest } : undefined;
}

async function aboutCash(
  { account_id, transaction_type, amount, currency }: MessageData<'create_transaction'>,
  asker: Asker,
): Promise<Question | undefined> {
  if (!mayBeAbove(amount, currency, asker.fourEyes)) return undefined;
  const account = await accountOf(account_id, asker);
  const posting = { amount, currency: currency ?? account.currency };
  return aboutPosting(posting, asker, {
    scopes: ['transactions:write'],
    summary: `${transaction_type} of ${money(posting)} on account ${account_id}`,
    changes: [balanceChange(account_id, transaction_type === 'Deposit' ? '+' : '-', money(posting))],
  });
}

async function aboutTransfer(data: MessageData<'create_transfer'>, asker: Asker): Promise<Question | undefined> {
  const { from_account_id, to_account_id, amount, currency } = data;
  if (!mayBeAbove(amount, currency, asker.fourEyes)) return undefined;
  // The source first: if neither exists, the refusal names the source.
  const from = await accountOf(from_account_id, asker);
  const to = await destinationOf(to_account_id, asker);
  const posting = { amount, currency: currency ?? from.currency };
  const bound = asker.origin.caller.boundClientId;
  // The requester reads this, too. A customer must not learn that another client's account is a Loan.
  const sign = bound !== undefined && bound !== to.client_id ? '' : received(to);
  return aboutPosting(posting, asker, {
    scopes: ['transfers:write'],
    summary: `Transfer of ${money(posting)} from account ${from_account_id} to account ${to_account_id}`,
    changes: [balanceChange(from_account_id, '-', money(posting)), balanceChange(to_account_id, sign, money(posting))],
  });
}

async function aboutCapture(
  { hold_id, amount, to_account_id }: MessageData<'capture_hold'>,
  asker: Asker,
): Promise<Question | undefined> {
  const posting = await capturedPosting(hold_id, amount, asker);
  if (!isAbove(posting, asker.fourEyes.limits)) return undefined;
  const { account_id } = posting;
  const to = to_account_id === null ? undefined : await destinationOf(to_account_id, asker);
  return aboutPosting(posting, asker, {
    scopes: ['holds:write', to === undefined ? 'transactions:write' : 'transfers:write'],
    summary: `Capture ${money(posting)} of hold ${hold_id} on account ${account_id}`,
    changes: [
      balanceChange(account_id, '-', money(posting)),
      ...(to === undefined ? [] : [balanceChange(to.account_id, received(to), money(posting))]),
    ],
  });
}

async function aboutOpening(
  { client_id, account_type, currency, initial_deposit }: MessageData<'open_account'>,
  asker: Asker,
): Promise<Question | undefined> {
  const posting = { amount: initial_deposit, currency };
  if (!isAbove(posting, asker.fourEyes.limits)) return undefined;
  await ask('get_client', { client_id }, client_id, asker);
  return aboutPosting(posting, asker, {
    scopes: ['accounts:write', 'transactions:write'],
    summary: `Open a ${account_type} account of client ${client_id} with ${money(posting)}`,
    changes: [change(`${account_type} account`, null, `opened with ${money(posting)}`)],
  });
}

/** The summary contains no personal data, because an approval is kept longer than its subject. */
async function aboutErasure({ client_id }: MessageData<'erase_client'>, asker: Asker): Promise<Question> {
  const { client_type } = await ask('get_client', { client_id }, client_id, asker);
  const personal = 'names, contacts and texts';
  return {
    actions: ['erase'],
    scopes: ['clients:erase'],
    summary: `Erase client ${client_id}`,
    changes: [
      change(`${client_type} client ${client_id}`, personal, `${personal} erased for good`),
      change('API keys of the client', null, 'revoked'),
    ],
  };
}
