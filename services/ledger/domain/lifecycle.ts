import { approvalRequired, isUnapproved } from '#libs/contracts/approvals.ts';
import { type MessageContext, type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { ledgerVersion } from '#libs/contracts/etag.ts';
import { openingTransactionId } from '#libs/contracts/ids.ts';
import { fromMinor, toMinor } from '#libs/contracts/money.ts';
import { openingBalance } from '#libs/contracts/transactions.ts';
import { dayAt } from './calendar.ts';
import { cashIn, cashOut, type Leg } from './chart.ts';
import { accountNotFound, beyondSlots, customer } from './checks.ts';
import {
  type Books,
  type CommandOf,
  complete,
  completed,
  type Decision,
  draftTransaction,
  replyOnly,
  storeReply,
} from './decision.ts';
import { countPosting, isAbove } from './four-eyes.ts';
import { type AccountState, availableMinor, noLimits } from './records.ts';

/** Opens ledger accounts with their initial amount, and changes their status. Pure. */

export function openAccount({ data, context }: CommandOf<'open_ledger_account'>, books: Books): Decision {
  if (books.accounts.has(data.account_id) || books.takenNumbers.has(data.account_number)) {
    const message = `an account with the number ${data.account_number} already exists`;
    return storeReply(refused(refusal('duplicate_account_number', message)));
  }
  const account: AccountState = {
    account_id: data.account_id,
    account_number: data.account_number,
    client_id: data.client_id,
    account_type: data.account_type,
    currency: data.currency,
    status: data.status,
    status_version: 1,
    balance_minor: 0n,
    last_sequence: 0n,
    last_posted_at: null,
    held_minor: 0n,
    active_holds: 0n,
    hold_expires_at: null,
    hold_version: 0n,
    ...noLimits,
    // Counted from the beginning, in case a limit per day is set in the same batch.
    out_day: dayAt(books.now),
  };
  const minor = toMinor(data.initial_deposit, data.currency);
  if (typeof minor !== 'bigint')
    throw new Error(`initial deposit ${data.initial_deposit} ${data.currency} was not validated by the gateway`);
  const legs = minor === 0n ? [] : openingLegs(account, books);
  const isAboveLimit = minor > 0n && isAbove(context, minor, data.currency, books);
  const full = beyondSlots(legs, minor) ?? (isAboveLimit ? approvalRequired() : undefined);
  if (full) return storeReply(refused(full));
  if (minor > 0n) countPosting(context, minor, data.currency, books);
  books.accounts.set(account.account_id, account);
  books.takenNumbers.add(account.account_number);
  const opening =
    minor === 0n
      ? replyOnly({ ok: true, data: null })
      : postOpening(account, legs, minor, context, books, data.migrated);
  const reply: ReplyBody = {
    ok: true,
    data: {
      account_id: account.account_id,
      status: account.status,
      status_version: 1,
      balance: fromMinor(account.balance_minor, account.currency),
    },
  };
  return { ...opening, reply, opened: account, keep: reply };
}

function openingLegs(account: AccountState, books: Books): Leg<AccountState>[] {
  const teller = books.system('Teller', account.currency);
  const vault = books.system('Vault', account.currency);
  return account.account_type === 'Loan' ? cashOut(account, teller, vault, 'credit') : cashIn(account, teller, vault);
}

/** The initial amount is part of the opening, so it is posted even if the account is opened Inactive or Frozen. */
function postOpening(
  account: AccountState,
  legs: Leg<AccountState>[],
  minor: bigint,
  context: MessageContext,
  books: Books,
  migrated?: boolean,
): Decision {
  const loan = account.account_type === 'Loan';
  const id = openingTransactionId(account.account_id);
  const draft = draftTransaction(
    context,
    id,
    account.account_id,
    null,
    loan ? 'Withdrawal' : 'Deposit',
    'credit',
    migrated ? openingBalance : loan ? 'Loan disbursement' : 'Initial deposit',
    null,
  );
  return complete('create_transaction', [completed(draft, minor, account.currency)], legs, minor, books);
}

const hasChanged = (account_id: string) =>
  refusal('version_mismatch', `account ${account_id} has changed: If-Match does not name its current version`);

export function changeStatus({ data, context }: CommandOf<'change_ledger_account_status'>, books: Books): Decision {
  const account = customer(books, data.account_id, undefined);
  if (account === undefined) return storeReply(refused(accountNotFound(data.account_id)));
  const from = account.status;
  const changed = from !== data.status;
  const balance = fromMinor(account.balance_minor, account.currency);
  const available_balance = fromMinor(availableMinor(account), account.currency);
  const version = ledgerVersion({ ...account, balance, available_balance });
  if (changed && data.if_match?.every((tag) => tag.slice(1, 17) !== version))
    return storeReply(refused(hasChanged(data.account_id)));
  const isUnfreeze = from === 'Frozen' && data.status !== 'Frozen';
  if (isUnfreeze && isUnapproved(context, 'unfreeze')) return storeReply(refused(approvalRequired()));
  if (changed) {
    account.status = data.status;
    account.status_version += 1;
  }
  const reply: ReplyBody = {
    ok: true,
    data: {
      account_id: account.account_id,
      from_status: from,
      to_status: account.status,
      changed,
      status_version: account.status_version,
      balance,
      available_balance,
      changed_at: books.now,
    },
  };
  return changed ? { ...storeReply(reply), statusChanged: account } : storeReply(reply);
}
