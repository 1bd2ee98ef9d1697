import { refusal } from '#libs/contracts/errors.ts';
import { commandKey, debitLegId, idKey } from '#libs/contracts/ids.ts';
import { toMinor } from '#libs/contracts/money.ts';
import { decideBatch, type Item, type Posting } from './batches.ts';
import { accountNotFound, badAmount, customer, deadlineExceeded, misdated, pastDeadline } from './checks.ts';
import { closeDay } from './days.ts';
import {
  type Books,
  type Command,
  type CommandOf,
  type Decision,
  draftTransaction,
  fail,
  replyFromRecord,
  replyOnly,
  reusedKey,
} from './decision.ts';
import { replayedWaiting, waitsIfNeeded } from './four-eyes.ts';
import { captureHold, placeHold, releaseHold } from './holds.ts';
import { changeStatus, openAccount } from './lifecycle.ts';
import { setLimits } from './limits.ts';
import { moveBetween, moveCash, payout } from './movement.ts';
import type { Failure } from './records.ts';
import { reverseTransaction } from './reversal.ts';
import { closeTill, openTill } from './tills.ts';

/**
 * Decides commands. The input is commands and locked state; the output is entries or refusals. Pure: no I/O, no
 * clock, no randomness. `decide` updates the books that it is given, so that the next command of the batch sees
 * its effect.
 */

/** Decides one command. It throws only if an internal invariant is violated, never because of a caller's input. */
export function decide(command: Command, books: Books): Decision {
  switch (command.name) {
    case 'create_transaction':
      return replayed(command, books) ?? replayedWaiting(command, books) ?? createTransaction(command, books);
    case 'create_transfer':
      return replayed(command, books) ?? replayedWaiting(command, books) ?? createTransfer(command, books);
    case 'reverse_transaction':
      return (
        replayed(command, books) ??
        replayedStep(command, books) ??
        replayedWaiting(command, books) ??
        remembered(command, kept(reverseTransaction(command, books)), books)
      );
    case 'place_hold':
      return replayedStep(command, books) ?? remembered(command, placeHold(command, books), books);
    case 'capture_hold':
      return (
        replayedStep(command, books) ??
        replayedWaiting(command, books) ??
        remembered(command, kept(captureHold(command, books)), books)
      );
    case 'release_hold':
      return replayedStep(command, books) ?? remembered(command, releaseHold(command, books), books);
    case 'set_account_limits':
      return (
        replayedStep(command, books) ??
        replayedWaiting(command, books) ??
        remembered(command, setLimits(command, books), books)
      );
    case 'open_ledger_account':
      return replayedStep(command, books) ?? remembered(command, openAccount(command, books), books);
    case 'close_day':
      return (
        replayedStep(command, books) ??
        replayedWaiting(command, books) ??
        remembered(command, closeDay(command, books), books)
      );
    case 'open_till':
      return replayedStep(command, books) ?? remembered(command, openTill(command, books), books);
    case 'close_till':
      return replayedStep(command, books) ?? remembered(command, closeTill(command, books), books);
    case 'create_batch':
      return remembered(command, decideBatch(command, books, decideItem), books);
    case 'change_ledger_account_status':
      return replayedStep(command, books) ?? remembered(command, changeStatus(command, books), books);
  }
}

function decideItem({ command, isPoison }: Item, books: Books): Decision {
  return isPoison ? (replayed(command, books) ?? failUndecided(command, books)) : decide(command, books);
}

/**
 * Records that an item cannot be decided. Its texts, and whatever else may be the reason, are left out; the amount is
 * kept as it was sent.
 */
function failUndecided(command: Posting, books: Books): Decision {
  const { name, data, context } = command;
  const draft =
    name === 'create_transfer'
      ? draftTransaction(
          context,
          recordId(command),
          data.from_account_id,
          data.to_account_id,
          'Transfer',
          'debit',
          null,
          null,
        )
      : draftTransaction(
          context,
          data.transaction_id,
          data.account_id,
          null,
          data.transaction_type,
          data.transaction_type === 'Deposit' ? 'credit' : 'debit',
          null,
          null,
        );
  const reason = refusal('internal_error', 'the service failed on this item, and nothing was posted');
  return fail(name, draft, { decimal: data.amount, currency: null }, reason, books);
}

/** Returns the id of the transaction that is a command's record. */
export function recordId(command: CommandOf<'create_transaction' | 'create_transfer' | 'reverse_transaction'>): string {
  return command.name === 'create_transfer' ? debitLegId(command.data.transfer_id) : command.data.transaction_id;
}

/** Rebuilds the reply to a repeated command from the immutable columns of its record (contract: idempotency-10). */
function replayed(
  command: CommandOf<'create_transaction' | 'create_transfer' | 'reverse_transaction'>,
  books: Books,
): Decision | undefined {
  const record = books.transactions.get(idKey(recordId(command)));
  if (record === undefined) return undefined;
  const { fingerprint } = command.context;
  if (fingerprint !== undefined && record.fingerprint !== null && fingerprint !== record.fingerprint)
    return reusedKey();
  return replyOnly({ ...replyFromRecord(command.name, record), replayed: true });
}

/** Returns the stored reply to a repeated command whose reply is kept as sent. */
function replayedStep({ context }: Command, books: Books): Decision | undefined {
  const known = books.outcomes.get(commandKey(context.message_id));
  if (known === undefined) return undefined;
  const reused =
    context.fingerprint !== undefined && known.fingerprint !== null && known.fingerprint !== context.fingerprint;
  return reused ? reusedKey() : replyOnly({ ...known.outcome, replayed: true });
}

/**
 * The reply to a reversal or a capture is always stored in `commands`, even if a transaction records it. If
 * only one of two concurrent writers knows the original, their rows in `commands` collide, and only one of them
 * commits.
 */
function kept(decision: Decision): Decision {
  return decision.waits ? decision : { ...decision, keep: decision.reply };
}

/** Stores the decision in the books, so that a repeat in the same batch is recognized. */
function remembered(command: Command, decision: Decision, books: Books): Decision {
  if (decision.keep)
    books.outcomes.set(commandKey(command.context.message_id), {
      fingerprint: command.context.fingerprint ?? null,
      outcome: decision.keep,
    });
  return decision;
}

function createTransaction({ name, data, context }: CommandOf<'create_transaction'>, books: Books): Decision {
  const deposit = data.transaction_type === 'Deposit';
  const draft = draftTransaction(
    context,
    data.transaction_id,
    data.account_id,
    null,
    data.transaction_type,
    deposit ? 'credit' : 'debit',
    data.description,
    data.reference,
    data,
  );
  const amount = { decimal: data.amount, currency: data.currency };
  const account = customer(books, data.account_id, context.bound_client_id);
  if (account === undefined) return fail(name, draft, amount, accountNotFound(data.account_id), books);
  if (pastDeadline(context, books)) return fail(name, draft, amount, deadlineExceeded(), books);
  const currency = data.currency ?? account.currency;
  const minor = toMinor(data.amount, currency);
  const refuse = (why: Failure) => fail(name, draft, { ...amount, currency }, why, books);
  if (typeof minor !== 'bigint') return refuse(badAmount(minor, currency));
  const wrong = misdated(data.effective_date, context, books);
  if (wrong) return refuse(wrong);
  return (
    waitsIfNeeded(context, data.effective_date, minor, currency, books, refuse) ??
    moveCash(name, draft, account, minor, currency, context, books)
  );
}

function createTransfer({ name, data, context }: CommandOf<'create_transfer'>, books: Books): Decision {
  const from = customer(books, data.from_account_id, context.bound_client_id);
  const to = customer(books, data.to_account_id, undefined);
  const asked = draftTransaction(
    context,
    debitLegId(data.transfer_id),
    data.from_account_id,
    data.to_account_id,
    'Transfer',
    'debit',
    data.description,
    null,
    data,
  );
  const amount = { decimal: data.amount, currency: data.currency };
  if (from === undefined)
    return fail(name, asked, amount, accountNotFound(data.from_account_id, 'from_account_id'), books);
  if (to === undefined) {
    const refused = { ...asked, failure_account_id: data.to_account_id };
    return fail(name, refused, amount, accountNotFound(data.to_account_id, 'to_account_id'), books);
  }
  if (pastDeadline(context, books)) return fail(name, asked, amount, deadlineExceeded(), books);
  const currency = data.currency ?? from.currency;
  const minor = toMinor(data.amount, currency);
  const refuse = (why: Failure) => fail(name, asked, { ...amount, currency }, why, books);
  if (typeof minor !== 'bigint') return refuse(badAmount(minor, currency));
  const wrong = misdated(data.effective_date, context, books, ...payout(to, books));
  if (wrong) return refuse(wrong);
  return (
    waitsIfNeeded(context, data.effective_date, minor, currency, books, refuse) ??
    moveBetween(name, asked, [from, to], minor, currency, context, books)
  );
}
