import type { ApprovableCommand, ApprovalAction } from '#libs/contracts/approvals.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { ApiKey, Client, LedgerAccount, Transaction } from '#libs/contracts/resources.ts';
import type { FourEyes, Posting } from '../access/four-eyes.ts';
import { isAbove, isAboveSome } from '../access/four-eyes.ts';
import { dataOf } from './answer.ts';
import type { Asker, Question } from './approval-question.ts';
import { accountOf, capturedPosting, forwarderOf, quiet, unbound } from './approval-question.ts';
import { aboutRedrive } from './approval-redrive.ts';
import type { Plan } from './plan.ts';
import { readPosting } from './reads.ts';
import { notFound } from './unknown-ids.ts';

/** The facts for each command that may need an approval. */

type Ask<N extends ApprovableCommand> = (data: MessageData<N>, asker: Asker) => Promise<Question | undefined>;

/** undefined: no approval is needed, whatever the services would reply. */
const questions: { [N in ApprovableCommand]: { mayNeed: readonly ApprovalAction[]; ask: Ask<N> } } = {
  reverse_transaction: { mayNeed: ['reverse'], ask: aboutReversal },
  change_account_status: { mayNeed: ['unfreeze'], ask: aboutStatus },
  create_api_key: { mayNeed: ['create_key'], ask: async (data) => aboutNewKey(data) },
  rotate_api_key: { mayNeed: ['create_key'], ask: aboutRotation },
  redrive_dead_letter: { mayNeed: ['redrive', 'post_above'], ask: aboutRedrive },
  create_transaction: { mayNeed: ['post_above'], ask: aboutCash },
  create_transfer: { mayNeed: ['post_above'], ask: aboutTransfer },
  capture_hold: { mayNeed: ['post_above'], ask: aboutCapture },
  open_account: { mayNeed: ['post_above'], ask: aboutOpening },
  erase_client: { mayNeed: ['erase'], ask: aboutErasure },
};

export function isApprovable(name: string): name is ApprovableCommand {
  return Object.hasOwn(questions, name);
}

export async function questionOf({ name, data }: Plan, asker: Asker): Promise<Question | undefined> {
  if (!isApprovable(name)) return undefined;
  const { mayNeed, ask } = questions[name];
  if (!mayNeed.some((action) => asker.fourEyes.actions.has(action))) return undefined;
  return (ask as (data: Plan['data'], asker: Asker) => Promise<Question | undefined>)(data, asker);
}

const money = ({ amount, currency }: Posting): string => `${amount} ${currency}`;

async function aboutReversal(
  { reverses_transaction_id: id }: MessageData<'reverse_transaction'>,
  asker: Asker,
): Promise<Question> {
  const input = { params: { transaction_id: id }, query: {}, after: undefined, origin: quiet(asker), isHead: false };
  const original = (await readPosting('transaction', input, asker.reads)) as Transaction;
  const {
    transaction_type,
    amount,
    currency,
    account_id,
    direction,
    counterparty_account_id: other,
    status,
  } = original;
  const moved = `${amount} ${currency ?? ''}`.trim();
  const signed = (gains: boolean): string => `${gains ? '+' : '-'}${moved}`;
  // A loan payment lowers both balances.
  const otherGains = direction === (transaction_type === 'Loan Payment' ? 'debit' : 'credit');
  return {
    deed: { kind: 'reversal' },
    scopes: ['transactions:reverse'],
    summary: `Reverse ${transaction_type} ${id} of ${moved}`,
    changes: [
      { field: `transaction ${id}`, before: status, after: 'reversed' },
      { field: `balance of account ${account_id}`, before: null, after: signed(direction === 'debit') },
      ...(other === undefined
        ? []
        : [{ field: `balance of account ${other}`, before: null, after: signed(otherGains) }]),
    ],
  };
}

async function aboutStatus(
  { account_id, status, reason }: MessageData<'change_account_status'>,
  asker: Asker,
): Promise<Question | undefined> {
  if (status === 'Frozen') return undefined;
  const [, ledger] = await Promise.all([
    accountOf(account_id, asker),
    forwarderOf(asker).query('get_ledger_accounts', { account_ids: [account_id] }, account_id, quiet(asker)),
  ]);
  const [known] = dataOf(ledger) as LedgerAccount[];
  if (!known) throw notFound('account', account_id);
  return {
    deed: { kind: 'status_change', from: known.status, to: status },
    scopes: ['accounts:status'],
    summary: `Unfreeze account ${account_id}`,
    changes: [
      { field: 'status', before: known.status, after: status },
      ...(reason === null ? [] : [{ field: 'reason', before: null, after: reason }]),
    ],
  };
}

function scopeText(scopes: readonly string[]): string {
  return `the ${scopes.length === 1 ? 'scope' : 'scopes'} ${scopes.join(', ')}`;
}

function aboutNewKey({ name, scopes, environment, client_id, expires_at }: MessageData<'create_api_key'>): Question {
  return {
    deed: { kind: 'key', scopes },
    scopes: ['keys:manage'],
    summary: `Create an API key with ${scopeText(scopes)}`,
    changes: [
      { field: 'name', before: null, after: name },
      { field: 'scopes', before: null, after: scopes.join(', ') },
      { field: 'environment', before: null, after: environment },
      { field: 'only for the client', before: null, after: client_id ?? 'the whole bank' },
      { field: 'expires_at', before: null, after: expires_at },
    ],
  };
}

async function aboutRotation(
  { rotates_key_id: key_id, overlap_seconds }: MessageData<'rotate_api_key'>,
  asker: Asker,
): Promise<Question> {
  const old = dataOf(await forwarderOf(asker).query('get_api_key', { key_id }, key_id, quiet(asker))) as ApiKey;
  return {
    deed: { kind: 'key', scopes: old.scopes },
    scopes: ['keys:manage'],
    summary: `Rotate API key ${key_id}, which has ${scopeText(old.scopes)}`,
    changes: [
      { field: 'name', before: old.name, after: old.name },
      { field: 'scopes', before: old.scopes.join(', '), after: old.scopes.join(', ') },
      { field: `end of ${key_id}`, before: old.expires_at, after: `${overlap_seconds} s after the rotation` },
    ],
  };
}

/** A small amount needs no facts. */
function mayBeAbove(amount: string, currency: string | null, { limits }: FourEyes): boolean {
  return currency === null ? isAboveSome(amount, limits) : isAbove({ amount, currency }, limits);
}

async function aboutCash(
  { account_id, transaction_type, amount, currency }: MessageData<'create_transaction'>,
  asker: Asker,
): Promise<Question | undefined> {
  if (!mayBeAbove(amount, currency, asker.fourEyes)) return undefined;
  const account = await accountOf(account_id, asker);
  const posting = { amount, currency: currency ?? account.currency };
  return {
    deed: { kind: 'posting', posting },
    scopes: ['transactions:write'],
    summary: `${transaction_type} of ${money(posting)} on account ${account_id}`,
    changes: [
      {
        field: `balance of account ${account_id}`,
        before: null,
        after: `${transaction_type === 'Deposit' ? '+' : '-'}${money(posting)}`,
      },
    ],
  };
}

async function aboutTransfer(data: MessageData<'create_transfer'>, asker: Asker): Promise<Question | undefined> {
  const { from_account_id, to_account_id, amount, currency } = data;
  if (!mayBeAbove(amount, currency, asker.fourEyes)) return undefined;
  const [from, to] = await Promise.all([
    accountOf(from_account_id, asker),
    accountOf(to_account_id, asker, unbound(quiet(asker))),
  ]);
  const posting = { amount, currency: currency ?? from.currency };
  const bound = asker.origin.caller.boundClientId;
  // The requester reads this, too. A customer must not learn that another client's account is a Loan.
  const sign = bound !== undefined && bound !== to.client_id ? '' : to.account_type === 'Loan' ? '-' : '+';
  return {
    deed: { kind: 'posting', posting },
    scopes: ['transfers:write'],
    summary: `Transfer of ${money(posting)} from account ${from_account_id} to account ${to_account_id}`,
    changes: [
      { field: `balance of account ${from_account_id}`, before: null, after: `-${money(posting)}` },
      {
        field: `balance of account ${to_account_id}`,
        before: null,
        after: `${sign}${money(posting)}`,
      },
    ],
  };
}

async function aboutCapture(
  { hold_id, amount, to_account_id }: MessageData<'capture_hold'>,
  asker: Asker,
): Promise<Question | undefined> {
  const posting = await capturedPosting(hold_id, amount, asker);
  if (!isAbove(posting, asker.fourEyes.limits)) return undefined;
  const { account_id } = posting;
  const to = to_account_id === null ? undefined : await accountOf(to_account_id, asker, unbound(quiet(asker)));
  return {
    deed: { kind: 'posting', posting },
    scopes: ['holds:write', to === undefined ? 'transactions:write' : 'transfers:write'],
    summary: `Capture ${money(posting)} of hold ${hold_id} on account ${account_id}`,
    changes: [
      { field: `balance of account ${account_id}`, before: null, after: `-${money(posting)}` },
      ...(to === undefined
        ? []
        : [
            {
              field: `balance of account ${to.account_id}`,
              before: null,
              after: `${to.account_type === 'Loan' ? '-' : '+'}${money(posting)}`,
            },
          ]),
    ],
  };
}

async function aboutOpening(
  { client_id, account_type, currency, initial_deposit }: MessageData<'open_account'>,
  asker: Asker,
): Promise<Question | undefined> {
  const posting = { amount: initial_deposit, currency };
  if (!isAbove(posting, asker.fourEyes.limits)) return undefined;
  dataOf(await forwarderOf(asker).query('get_client', { client_id }, client_id, quiet(asker)));
  return {
    deed: { kind: 'posting', posting },
    scopes: ['accounts:write', 'transactions:write'],
    summary: `Open a ${account_type} account of client ${client_id} with ${money(posting)}`,
    changes: [{ field: `${account_type} account`, before: null, after: `opened with ${money(posting)}` }],
  };
}

/** The summary contains no personal data, because an approval is kept longer than its subject. */
async function aboutErasure({ client_id }: MessageData<'erase_client'>, asker: Asker): Promise<Question> {
  const client = dataOf(await forwarderOf(asker).query('get_client', { client_id }, client_id, quiet(asker))) as Client;
  const personal = 'names, contacts and texts';
  return {
    deed: { kind: 'erasure' },
    scopes: ['clients:erase'],
    summary: `Erase client ${client_id}`,
    changes: [
      { field: `${client.client_type} client ${client_id}`, before: personal, after: `${personal} erased for good` },
      { field: 'API keys of the client', before: null, after: 'revoked' },
    ],
  };
}
