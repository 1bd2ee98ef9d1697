import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal, violationsRefusal } from '#libs/contracts/errors.ts';
import { creditLegId, debitLegId, idBits, idKey, idOf, openingTransactionId, siblingBits } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { fromMinor, maxMinor, toMinor } from '#libs/contracts/money.ts';
import type { Direction, TransactionType } from '#libs/contracts/resources.ts';
import { cashIn, cashOut, isSystem, type Leg, move, opposite, sideOf, type SystemKind, turned } from './chart.ts';
import { type AccountState, type EntryRecord, isTransferLeg, toTransaction, toTransfer, type TransactionRecord } from './records.ts';

/**
 * The decision: commands and locked state in, entries or refusals out. Pure: no I/O, no clock, no randomness.
 * `decide` works on the books that it is given and changes them, so that the next command of the batch sees its effect.
 */
export type CommandName = 'create_transaction' | 'create_transfer' | 'reverse_transaction' | 'open_ledger_account' | 'change_ledger_account_status';

export type Command = { [N in CommandName]: { name: N; data: MessageData<N>; context: MessageContext } }[CommandName];
type CommandOf<N extends CommandName> = Extract<Command, { name: N }>;

export interface Books {
  /** Customers' accounts touched by the batch, locked, by account_id. */
  accounts: Map<string, AccountState>;
  /** Accounts that the batch has posted to. */
  moved: Set<AccountState>;
  /** Numbers of accounts to be opened that are taken already. */
  takenNumbers: Set<string>;
  /** This writer's slot of Teller or Vault. */
  system: (kind: SystemKind, currency: string) => AccountState;
  /** Transactions that are decided already: those of repeated commands, and those to be reversed, by idKey. */
  transactions: Map<string, TransactionRecord>;
  /** Reversed transaction → its reversal. */
  reversals: Map<string, string>;
  /** Outcomes of repeated commands that leave no transaction, by the bits of the command's id. */
  outcomes: Map<string, { fingerprint: string | null; outcome: ReplyBody }>;
  /** The moment of the batch, by the database's clock. ISO 8601 UTC. */
  now: string;
}

export interface Decision {
  reply: ReplyBody;
  transactions: TransactionRecord[];
  entries: EntryRecord[];
  /** The account that this command opened. */
  opened?: AccountState;
  /** The account whose status this command changed. */
  restated?: AccountState;
  /** To be kept under the command's id, where no transaction is its record. */
  keep?: ReplyBody;
}

type Draft = Omit<TransactionRecord, 'amount_minor' | 'amount_text' | 'currency' | 'status' | 'failure_code' | 'failure_message'>;
interface Amount {
  decimal: string;
  currency: string | null;
}

/** Decides one command. Never throws for what a caller can send; throws where an invariant of ours is broken. */
export function decide(command: Command, books: Books): Decision {
  switch (command.name) {
    case 'create_transaction':
      return replayed(command, books) ?? createTransaction(command, books);
    case 'create_transfer':
      return replayed(command, books) ?? createTransfer(command, books);
    case 'reverse_transaction':
      return replayed(command, books) ?? reverseTransaction(command, books);
    case 'open_ledger_account':
      return replayedStep(command, books) ?? remembered(command, openAccount(command, books), books);
    case 'change_ledger_account_status':
      return replayedStep(command, books) ?? remembered(command, changeStatus(command, books), books);
  }
}

/** The id of the transaction that is the record of a command. */
export function recordId(command: CommandOf<'create_transaction' | 'create_transfer' | 'reverse_transaction'>): string {
  return command.name === 'create_transfer' ? debitLegId(command.data.transfer_id) : command.data.transaction_id;
}

function reusedKey(): Decision {
  const message = 'this Idempotency-Key was used for another request';
  return only({ ok: false, refusal: refusal('idempotency_key_reused', message) });
}

function only(reply: ReplyBody): Decision {
  return { reply, transactions: [], entries: [] };
}

/** The answer to a command whose record exists: rebuilt from its immutable columns (contract: Idempotency). */
function replayed(command: CommandOf<'create_transaction' | 'create_transfer' | 'reverse_transaction'>, books: Books): Decision | undefined {
  const record = books.transactions.get(idKey(recordId(command)));
  if (record === undefined) return undefined;
  const { fingerprint } = command.context;
  if (fingerprint !== undefined && record.fingerprint !== null && fingerprint !== record.fingerprint) return reusedKey();
  return only({ ...outcomeOf(command.name, record), replayed: true });
}

function replayedStep(command: CommandOf<'open_ledger_account' | 'change_ledger_account_status'>, books: Books): Decision | undefined {
  const known = books.outcomes.get(idBits(command.context.message_id));
  return known && only({ ...known.outcome, replayed: true });
}

/** So that a repeat within the batch is recognised too. */
function remembered(command: Command, decision: Decision, books: Books): Decision {
  if (decision.keep) books.outcomes.set(idBits(command.context.message_id), { fingerprint: command.context.fingerprint ?? null, outcome: decision.keep });
  return decision;
}

function outcomeOf(name: CommandName, record: TransactionRecord): ReplyBody {
  if (record.status === 'Completed') return { ok: true, data: name === 'create_transfer' ? toTransfer(record) : toTransaction(record) };
  const code = record.failure_code as Refusal['code'];
  return { ok: false, refusal: { code, message: record.failure_message ?? '', details: { transaction_id: record.transaction_id } } };
}

function createTransaction({ name, data, context }: CommandOf<'create_transaction'>, books: Books): Decision {
  const deposit = data.transaction_type === 'Deposit';
  const draft = draftOf(context, data.transaction_id, data.account_id, null, data.transaction_type, deposit ? 'credit' : 'debit', data.description, data.reference);
  const amount = { decimal: data.amount, currency: data.currency };
  if (pastDeadline(context, books)) return fail(name, draft, amount, deadlineExceeded(), books);
  const account = customer(books, data.account_id, context.bound_client_id);
  if (account === undefined) return refuseUnkept(name, draft, amount, accountNotFound(data.account_id), context, books);
  const currency = data.currency ?? account.currency;
  const minor = toMinor(data.amount, currency);
  if (typeof minor !== 'bigint') return refuseUnkept(name, draft, { ...amount, currency }, badAmount(minor, currency), context, books);
  const reason =
    (account.account_type === 'Loan' ? refusal('invalid_account_type', `a ${data.transaction_type} is not possible on a Loan account`) : undefined) ??
    inactive(account) ??
    otherCurrency(account, currency) ??
    (deposit ? beyondLimit(account, minor) : undefined) ??
    (deposit ? undefined : withoutFunds(account, minor, `account ${account.account_id} has too little balance for this withdrawal`));
  if (reason) return fail(name, draft, { decimal: data.amount, currency }, reason, books);
  const teller = books.system('Teller', currency);
  const vault = books.system('Vault', currency);
  const legs = deposit ? cashIn(account, teller, vault) : cashOut(account, teller, vault, 'debit');
  return complete(name, [completed(draft, minor, currency)], legs, minor, books);
}

function createTransfer({ name, data, context }: CommandOf<'create_transfer'>, books: Books): Decision {
  const from = customer(books, data.from_account_id, context.bound_client_id);
  const to = customer(books, data.to_account_id, undefined);
  const toLoan = to?.account_type === 'Loan';
  const type: TransactionType = toLoan ? 'Loan Payment' : 'Transfer';
  const draft = draftOf(context, debitLegId(data.transfer_id), data.from_account_id, data.to_account_id, type, 'debit', data.description, null);
  const amount = { decimal: data.amount, currency: data.currency };
  if (pastDeadline(context, books)) return fail(name, draft, amount, deadlineExceeded(), books);
  if (from === undefined) return refuseUnkept(name, draft, amount, accountNotFound(data.from_account_id, 'from_account_id'), context, books);
  const currency = data.currency ?? from.currency;
  if (to === undefined) return refuseUnkept(name, draft, { ...amount, currency }, accountNotFound(data.to_account_id, 'to_account_id'), context, books);
  const minor = toMinor(data.amount, currency);
  if (typeof minor !== 'bigint') return refuseUnkept(name, draft, { ...amount, currency }, badAmount(minor, currency), context, books);
  const reason =
    (from === to ? refusal('same_account', 'to_account_id must differ from from_account_id') : undefined) ??
    (from.account_type === 'Loan' ? refusal('invalid_account_type', 'a transfer from a Loan account is not possible') : undefined) ??
    inactive(from) ??
    inactive(to) ??
    otherCurrency(from, currency) ??
    otherCurrency(to, currency) ??
    (toLoan ? beyondOutstanding(to, minor) : beyondLimit(to, minor)) ??
    withoutFunds(from, minor, `source account ${from.account_id} has too little balance for this transfer`);
  if (reason) return fail(name, draft, { decimal: data.amount, currency }, reason, books);
  const credit: Draft = {
    ...draft,
    transaction_id: creditLegId(data.transfer_id),
    account_id: to.account_id,
    counterparty_account_id: from.account_id,
    direction: toLoan ? 'debit' : 'credit',
  };
  return complete(name, [completed(draft, minor, currency), completed(credit, minor, currency)], move(from, to, toLoan), minor, books);
}

function reverseTransaction({ name, data, context }: CommandOf<'reverse_transaction'>, books: Books): Decision {
  const found = books.transactions.get(idKey(data.reverses_transaction_id));
  const original = found?.transaction_id === data.reverses_transaction_id ? found : undefined;
  const account = original && customer(books, original.account_id, context.bound_client_id);
  if (original === undefined || account === undefined || original.amount_minor === null || original.currency === null) {
    return only({ ok: false, refusal: refusal('transaction_not_found', `transaction ${data.reverses_transaction_id} not found`) });
  }
  const { amount_minor: minor, currency } = original;
  const draft: Draft = {
    ...draftOf(context, data.transaction_id, account.account_id, original.counterparty_account_id, original.transaction_type, opposite(original.direction), data.reason, original.reference),
    reverses_transaction_id: original.transaction_id,
  };
  const amount = { decimal: fromMinor(minor, currency), currency };
  if (pastDeadline(context, books)) return fail(name, draft, amount, deadlineExceeded(), books);
  if (original.status !== 'Completed' || original.reverses_transaction_id !== null) {
    const what = original.status === 'Completed' ? 'is a reversal itself' : `is ${original.status}`;
    return refuseUnkept(name, draft, amount, refusal('not_reversible', `transaction ${original.transaction_id} ${what}`), context, books);
  }
  const reversal = books.reversals.get(original.transaction_id);
  if (reversal !== undefined) {
    const details = { reversal_transaction_id: reversal };
    return refuseUnkept(name, draft, amount, refusal('already_reversed', `transaction ${original.transaction_id} was reversed by ${reversal}`, { details }), context, books);
  }
  const { legs, records } = reversalOf(original, draft, account, books);
  const reason = refusedReversal(legs, minor);
  if (reason) return fail(name, draft, amount, reason, books);
  return complete(name, records.map((record) => completed(record, minor, currency)), legs, minor, books);
}

/** The turned legs of an operation, and the transactions that record them: one, or two where a transfer is reversed. */
function reversalOf(original: TransactionRecord, draft: Draft, account: AccountState, books: Books): { legs: Leg<AccountState>[]; records: Draft[] } {
  const currency = account.currency;
  if (!isTransferLeg(original)) {
    const teller = books.system('Teller', currency);
    const vault = books.system('Vault', currency);
    const legs = original.transaction_type === 'Deposit' ? cashIn(account, teller, vault) : cashOut(account, teller, vault, original.direction);
    return { legs: turned(legs), records: [draft] };
  }
  const other = customer(books, original.counterparty_account_id ?? '', undefined);
  if (other === undefined) throw new Error(`counterparty of ${original.transaction_id} is not locked`);
  const fromSource = original.transaction_id === idOf('transaction', idBits(original.operation_id));
  const [source, destination] = fromSource ? [account, other] : [other, account];
  const toLoan = original.transaction_type === 'Loan Payment';
  const originalSibling = idOf('transaction', siblingBits(idBits(original.transaction_id)));
  const sibling: Draft = {
    ...draft,
    transaction_id: idOf('transaction', siblingBits(idBits(draft.transaction_id))),
    account_id: other.account_id,
    counterparty_account_id: account.account_id,
    direction: fromSource && !toLoan ? 'debit' : 'credit',
    reverses_transaction_id: originalSibling,
  };
  return { legs: turned(move(source, destination, toLoan)), records: [draft, sibling] };
}

function refusedReversal(legs: Leg<AccountState>[], minor: bigint): Refusal | undefined {
  const customers = legs.filter((leg) => !isSystem(leg.account.account_type));
  for (const { account } of customers) {
    const reason = inactive(account);
    if (reason) return reason;
  }
  for (const { account, direction } of customers) {
    const reason = direction === 'credit' ? beyondLimit(account, minor) : account.account_type === 'Loan' ? beyondOutstanding(account, minor) : undefined;
    if (reason) return reason;
  }
  for (const { account, direction } of customers) {
    if (direction === 'debit') {
      const reason = withoutFunds(account, minor, `account ${account.account_id} has too little balance for this reversal`);
      if (reason) return reason;
    }
  }
  return undefined;
}

function openAccount({ data, context }: CommandOf<'open_ledger_account'>, books: Books): Decision {
  if (books.accounts.has(data.account_id) || books.takenNumbers.has(data.account_number)) {
    const reply: ReplyBody = { ok: false, refusal: refusal('duplicate_account_number', `an account with the number ${data.account_number} already exists`) };
    return { ...only(reply), keep: reply };
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
  };
  const minor = toMinor(data.initial_deposit, data.currency);
  if (typeof minor !== 'bigint') throw new Error(`initial deposit ${data.initial_deposit} ${data.currency} passed the gateway`);
  books.accounts.set(account.account_id, account);
  books.takenNumbers.add(account.account_number);
  const opening = minor === 0n ? only({ ok: true, data: null }) : bookOpening(account, minor, context, books);
  const reply: ReplyBody = {
    ok: true,
    data: { account_id: account.account_id, status: account.status, status_version: 1, balance: fromMinor(account.balance_minor, account.currency) },
  };
  return { ...opening, reply, opened: account, keep: reply };
}

/** The opening amount is booked whatever the opening status is: it is part of the opening. */
function bookOpening(account: AccountState, minor: bigint, context: MessageContext, books: Books): Decision {
  const loan = account.account_type === 'Loan';
  const teller = books.system('Teller', account.currency);
  const vault = books.system('Vault', account.currency);
  const id = openingTransactionId(account.account_id);
  const draft = draftOf(context, id, account.account_id, null, loan ? 'Withdrawal' : 'Deposit', 'credit', loan ? 'Loan disbursement' : 'Initial deposit', null);
  const legs = loan ? cashOut(account, teller, vault, 'credit') : cashIn(account, teller, vault);
  return complete('create_transaction', [completed(draft, minor, account.currency)], legs, minor, books);
}

function changeStatus({ data }: CommandOf<'change_ledger_account_status'>, books: Books): Decision {
  const account = customer(books, data.account_id, undefined);
  if (account === undefined) return only({ ok: false, refusal: accountNotFound(data.account_id) });
  const from = account.status;
  const changed = from !== data.status;
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
      balance: fromMinor(account.balance_minor, account.currency),
      changed_at: books.now,
    },
  };
  return { ...only(reply), keep: reply, ...(changed ? { restated: account } : {}) };
}

/** A customer's account; Teller and Vault, and accounts of another client than the caller's, are unknown to callers. */
function customer(books: Books, accountId: string, boundClientId: string | undefined): AccountState | undefined {
  const account = books.accounts.get(accountId);
  if (account === undefined || isSystem(account.account_type)) return undefined;
  return boundClientId === undefined || account.client_id === boundClientId ? account : undefined;
}

function pastDeadline(context: MessageContext, books: Books): boolean {
  return context.deadline !== undefined && context.deadline < books.now;
}

function deadlineExceeded(): Refusal {
  return refusal('deadline_exceeded', 'the command was picked up after its deadline: it was not executed and never will be; repeat it with a new Idempotency-Key');
}

function accountNotFound(accountId: string, field = 'account_id'): Refusal {
  const shown = accountId.slice(0, 64);
  return refusal('account_not_found', `${field} ${shown}: account not found`, { details: { field, account_id: shown } });
}

function badAmount(code: 'invalid_amount_precision' | 'amount_too_large', currency: string): Refusal {
  const message = code === 'amount_too_large' ? 'amount exceeds 10^15 - 1 minor units' : `amount has more decimal places than ${currency} has`;
  return violationsRefusal([{ field: 'amount', code, message }]);
}

function inactive(account: AccountState): Refusal | undefined {
  if (account.status === 'Active') return undefined;
  return refusal('inactive_account', `account ${account.account_id} is ${account.status}`);
}

function otherCurrency(account: AccountState, currency: string): Refusal | undefined {
  if (account.currency === currency) return undefined;
  return refusal('currency_mismatch', `account ${account.account_id} is held in ${account.currency}, not in ${currency}`);
}

function beyondLimit(account: AccountState, minor: bigint): Refusal | undefined {
  if (account.balance_minor + minor <= maxMinor) return undefined;
  return refusal('balance_limit_exceeded', `the balance of account ${account.account_id} would exceed 10^15 - 1 minor units`);
}

function beyondOutstanding(account: AccountState, minor: bigint): Refusal | undefined {
  if (minor <= account.balance_minor) return undefined;
  return refusal('amount_exceeds_outstanding', `the amount exceeds the outstanding principal of loan account ${account.account_id}`);
}

function withoutFunds(account: AccountState, minor: bigint, message: string): Refusal | undefined {
  return minor <= account.balance_minor ? undefined : refusal('insufficient_funds', message);
}

function draftOf(
  context: MessageContext,
  transactionId: string,
  accountId: string,
  counterpartyId: string | null,
  type: TransactionType,
  direction: Direction,
  description: string | null,
  reference: string | null,
): Draft {
  return {
    transaction_id: transactionId,
    operation_id: idOf('operation', idBits(transactionId)),
    account_id: accountId,
    counterparty_account_id: counterpartyId,
    transaction_type: type,
    direction,
    description,
    reference,
    reverses_transaction_id: null,
    idempotency_key: context.idempotency_key ?? null,
    fingerprint: context.fingerprint ?? null,
    actor: context.actor,
    request_id: context.request_id,
    created_at: context.time,
  };
}

function completed(draft: Draft, minor: bigint, currency: string): TransactionRecord {
  return { ...draft, amount_minor: minor, amount_text: null, currency, status: 'Completed', failure_code: null, failure_message: null };
}

/** A refusal that is kept: one Failed Transaction, no entries. */
function fail(name: CommandName, draft: Draft, { decimal, currency }: Amount, reason: Refusal, books: Books): Decision {
  const minor = currency === null ? null : toMinor(decimal, currency);
  const countable = typeof minor === 'bigint';
  const record: TransactionRecord = {
    ...draft,
    amount_minor: countable ? minor : null,
    amount_text: countable ? null : decimal,
    currency,
    status: 'Failed',
    failure_code: reason.code,
    failure_message: reason.message,
  };
  books.transactions.set(idKey(record.transaction_id), record);
  return { reply: outcomeOf(name, record), transactions: [record], entries: [] };
}

/** Validation and not-found keep nothing, unless the caller was told 202 already: then every outcome is kept. */
function refuseUnkept(name: CommandName, draft: Draft, amount: Amount, reason: Refusal, context: MessageContext, books: Books): Decision {
  const late = context.reply_by !== undefined && context.reply_by < books.now;
  return late ? fail(name, draft, amount, reason, books) : only({ ok: false, refusal: reason });
}

function complete(name: CommandName, records: TransactionRecord[], legs: Leg<AccountState>[], minor: bigint, books: Books): Decision {
  const [primary] = records;
  if (primary === undefined) throw new Error('an operation without a transaction');
  const idByAccount = new Map(records.map((record) => [record.account_id, record.transaction_id]));
  const entries = legs.map((leg) => enter(leg, minor, primary, idByAccount.get(leg.account.account_id) ?? primary.transaction_id, books));
  for (const record of records) {
    books.transactions.set(idKey(record.transaction_id), record);
    if (record.reverses_transaction_id !== null) books.reversals.set(record.reverses_transaction_id, record.transaction_id);
  }
  return { reply: outcomeOf(name, primary), transactions: records, entries };
}

function enter({ account, direction }: Leg<AccountState>, minor: bigint, primary: TransactionRecord, transactionId: string, books: Books): EntryRecord {
  books.moved.add(account);
  account.balance_minor += direction === 'credit' ? minor : -minor;
  account.last_sequence += 1n;
  if (!isSystem(account.account_type) && (account.balance_minor < 0n || account.balance_minor > maxMinor)) {
    throw new Error(`balance of ${account.account_id} out of bounds: a check is missing`);
  }
  return {
    account_id: account.account_id,
    sequence: account.last_sequence,
    operation_id: primary.operation_id,
    transaction_id: transactionId,
    direction,
    side: sideOf(account.account_type, direction),
    amount_minor: minor,
    currency: account.currency,
    balance_after_minor: account.balance_minor,
    created_at: books.now,
  };
}
