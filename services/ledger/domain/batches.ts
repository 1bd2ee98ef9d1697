import { approvalRequired } from '#libs/contracts/approvals.ts';
import type { BatchMode, ItemResult } from '#libs/contracts/batches.ts';
import { type MessageContext, type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal } from '#libs/contracts/errors.ts';
import { commandKey, formatId, idKey, itemBits } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { toMinor } from '#libs/contracts/money.ts';
import type { GivenNames } from '#libs/contracts/names.ts';
import { customer, deadlineExceeded, destinationRefused, pastDeadline } from './checks.ts';
import { type Books, type CommandOf, type Decision, replyFromRecord, replyOnly, reusedKey } from './decision.ts';
import { isAbove, isBackdated } from './four-eyes.ts';
import { countOut } from './limits.ts';
import { type AccountState, type TransactionRecord, toTransaction, toTransfer } from './records.ts';

/**
 * Decides callers' batches. Their items are ordinary commands with ids derived from the batch id, so that each
 * is executed exactly once. Pure.
 */

export type Posting = CommandOf<'create_transaction' | 'create_transfer'>;

/** A batch, or some of its items if it is executed in parts. */
export interface BatchCommand {
  name: 'create_batch';
  data: { batch_id: string; mode: BatchMode; count: number } & GivenNames;
  items: Item[];
  context: MessageContext;
}

export interface Item {
  index: number;
  command: Posting;
  /** Set if the command cannot be decided because of a defect, so that only this is recorded. */
  isPoison?: true;
}

/** What is stored of a batch regardless of its outcome, by its first transaction. */
export interface BatchRecord {
  /** The id under which its outcome is stored. */
  command_id: string;
  batch_id: string;
  mode: BatchMode;
  item_count: number;
  actor: string;
  bound_client_id: string | null;
  created_at: string;
  external_id: string | null;
  metadata: Record<string, string> | null;
}

type Decide = (item: Item, books: Books) => Decision;

/** Expands a message into its commands: all, or those that are sent again after a restore. */
export function batchCommand({ items, ...data }: MessageData<'create_batch'>, context: MessageContext): BatchCommand {
  const { batch_id } = data;
  const { decided: asJson, ...common } = context;
  const decided = asJson === undefined ? undefined : (JSON.parse(asJson) as Record<number, string>);
  const toPosting = (item: (typeof items)[number], index: number): Posting => {
    const own = { ...common, batch_id, ...(decided && { decided: decided[index] ?? '' }) };
    const posting = 'transaction' in item ? item.transaction : item.transfer;
    const bits = itemBits(batch_id, index);
    if ('account_id' in posting) {
      const transaction_id = formatId('transaction', bits);
      return {
        name: 'create_transaction',
        data: { ...posting, transaction_id },
        context: { ...own, message_id: transaction_id },
      };
    }
    const transfer_id = formatId('transfer', bits);
    return { name: 'create_transfer', data: { ...posting, transfer_id }, context: { ...own, message_id: transfer_id } };
  };
  return {
    name: 'create_batch',
    data: { ...data, count: items.length },
    items: items
      .map((item, index) => ({ index, command: toPosting(item, index) }))
      .filter(({ index }) => decided === undefined || decided[index] !== undefined),
    context,
  };
}

/**
 * Decides the items of a message in order; each sees the effects of the previous ones. In atomic mode all are
 * applied, or none.
 */
export function decideBatch(command: BatchCommand, books: Books, decideItem: Decide): Decision {
  const { data, context } = command;
  const known = books.outcomes.get(commandKey(context.message_id));
  if (known && known.fingerprint !== context.fingerprint) return reusedKey();
  if (known && !known.outcome.ok) return replyOnly({ ok: false, refusal: known.outcome.refusal, replayed: true });
  const unapproved = known || pastDeadline(context, books) ? undefined : refusedTogether(command, books);
  if (unapproved) return refuse(command, unapproved);
  return data.mode === 'atomic' && !known
    ? decideAtomic(command, books, decideItem)
    : decideEach(command, books, decideItem, known !== undefined);
}

/**
 * A batch cannot wait for an approval. Returns its refusal if an item needs one, or those of one currency together, which
 * names them (contract: batches-5). Items that will be refused anyway count as well, except those of unknown accounts.
 */
function refusedTogether({ items, context }: BatchCommand, books: Books): Refusal | undefined {
  if (context.four_eyes === undefined) return undefined;
  const counted = items.flatMap(({ index, command }) => {
    const { name, data } = command;
    const payer = name === 'create_transfer' ? data.from_account_id : data.account_id;
    const currency = data.currency ?? customer(books, payer, context.bound_client_id)?.currency;
    const minor = currency === undefined ? undefined : toMinor(data.amount, currency);
    return currency !== undefined && typeof minor === 'bigint' ? [{ index, currency, minor }] : [];
  });
  const above = [...Map.groupBy(counted, ({ currency }) => currency)].filter(([currency, ofCurrency]) => {
    const sum = ofCurrency.reduce((total, { minor }) => total + minor, 0n);
    return isAbove(context, sum, currency, books);
  });
  const backdated = items.filter(({ command }) => isBackdated(context, command.data.effective_date));
  const why = new Map([
    ...above.flatMap(([, ofCurrency]) =>
      ofCurrency.map(({ index }) => [index, 'with the other items of its currency'] as const),
    ),
    ...backdated.map(({ index }) => [index, 'because of its value date'] as const),
  ]);
  if (why.size === 0) return undefined;
  const errors = items
    .filter(({ index }) => why.has(index))
    .map((item) => toViolation(item, approvalRequired(why.get(item.index))));
  const message = `${errors[0]?.field}: ${errors[0]?.message}; nothing of the batch was executed`;
  return refusal('approval_required', message, { errors });
}

function decideEach(command: BatchCommand, books: Books, decideItem: Decide, isKnown: boolean): Decision {
  const parts = command.items.map((item) => decideItem(item, books));
  const isReplayed = parts.every(({ reply }) => reply.replayed === true);
  const reply: ReplyBody = {
    ok: true,
    data: collectResults(command, books),
    ...(isReplayed ? { replayed: true } : {}),
  };
  const { keep, batch } = kept(command, { ok: true, data: null });
  // The parts of a batch are decided in order, and its last item once.
  const isLast = command.items.at(-1)?.index === command.data.count - 1 && parts.at(-1)?.reply.replayed !== true;
  return {
    ...replyOnly(reply),
    parts,
    ...(isKnown ? {} : { keep, batch }),
    ...(isLast && { finished: { ...batch, isRefused: false } }),
  };
}

function decideAtomic(command: BatchCommand, books: Books, decideItem: Decide): Decision {
  if (pastDeadline(command.context, books)) return refuse(command, deadlineExceeded());
  const draft = copyBooks(command, books);
  const parts = command.items.map((item) => {
    const part = decideItem(item, draft.books);
    if (isDestinationRefused(part.reply)) takeFromPayer(part, item.command.context, draft.books);
    return part;
  });
  const errors = namedRefusals(command, parts, books).map(([item, reason]) => toViolation(item, reason));
  const [first] = errors;
  if (first) {
    const message = `${errors.length} of ${command.data.count} items were refused, and nothing was posted; ${first.field}: ${first.message}`;
    return refuse(command, refusal('batch_refused', message, { errors, details: { batch_id: command.data.batch_id } }));
  }
  draft.apply();
  const { keep, batch } = kept(command, { ok: true, data: null });
  return {
    ...replyOnly({ ok: true, data: collectResults(command, books) }),
    parts,
    keep,
    batch,
    finished: { ...batch, isRefused: false },
  };
}

const isDestinationRefused = (reply: ReplyBody): boolean => !reply.ok && reply.refusal.code === 'destination_refused';

/** The items after a refused payment must be decided as if it had been made, or they would show that it was refused. */
function takeFromPayer({ transactions: [record] }: Decision, context: MessageContext, books: Books): void {
  const payer = record && books.accounts.get(record.account_id);
  if (!payer) return;
  payer.balance_minor -= record.amount_minor ?? 0n;
  countOut(payer, record.amount_minor ?? 0n, context, books);
}

/**
 * Returns the refusals that the caller learns. Nothing would be paid, so a bound caller could probe accounts of other
 * clients at no cost. It therefore learns that a destination refuses only if nothing else prevents the batch, as with a
 * single transfer, and not which one: every payment to another client is named.
 */
function namedRefusals({ items, context }: BatchCommand, parts: Decision[], { accounts }: Books): [Item, Refusal][] {
  const refused = items.flatMap((item, i): [Item, Refusal][] => {
    const reply = parts[i]?.reply;
    return reply && !reply.ok ? [[item, reply.refusal]] : [];
  });
  const others = refused.filter(([, { code }]) => code !== 'destination_refused');
  if (others.length > 0 || refused.length === 0) return others;
  const paysOthers = ({ command: { name, data } }: Item) =>
    name === 'create_transfer' && accounts.get(data.to_account_id)?.client_id !== context.bound_client_id;
  return items.filter(paysOthers).map((item) => [item, destinationRefused()]);
}

function refuse(command: BatchCommand, reason: Refusal): Decision {
  const reply = refused(reason);
  const { keep, batch } = kept(command, reply);
  return { ...replyOnly(reply), keep, batch, finished: { ...batch, isRefused: true } };
}

function toViolation({ index, command }: Item, { code, message }: Refusal) {
  return { field: `items[${index}].${command.name === 'create_transfer' ? 'transfer' : 'transaction'}`, code, message };
}

function kept({ data, context }: BatchCommand, outcome: ReplyBody): Required<Pick<Decision, 'keep' | 'batch'>> {
  const { count, external_id = null, metadata = null, ...rest } = data;
  const { actor, time: created_at, bound_client_id = null } = context;
  const command_id = commandKey(context.message_id);
  const names = { external_id, metadata };
  return {
    keep: outcome,
    batch: { command_id, ...rest, item_count: count, actor, bound_client_id, created_at, ...names },
  };
}

/**
 * Returns a copy of the books on which items can be decided. The given books change only when the changes are
 * applied.
 */
function copyBooks({ items }: BatchCommand, books: Books): { books: Books; apply(): void } {
  const originals = new Map<AccountState, AccountState>();
  const copy = (account: AccountState): AccountState => {
    const made = { ...account };
    originals.set(made, account);
    return made;
  };
  const accounts = new Map<string, AccountState>();
  for (const {
    command: { name, data },
  } of items) {
    for (const id of name === 'create_transfer' ? [data.from_account_id, data.to_account_id] : [data.account_id]) {
      const account = books.accounts.get(id);
      if (account && !accounts.has(id)) accounts.set(id, copy(account));
    }
  }
  const slots = new Map<AccountState, AccountState>();
  const draft: Books = {
    ...books,
    accounts,
    moved: new Set(),
    limitsChanged: new Set(),
    transactions: new Map(),
    posted: new Map(books.posted),
    system(kind, currency) {
      const original = books.system(kind, currency);
      const slot = slots.get(original) ?? copy(original);
      slots.set(original, slot);
      return slot;
    },
  };
  const apply = (): void => {
    for (const account of draft.moved) {
      const original = originals.get(account);
      if (original === undefined) throw new Error(`account ${account.account_id} was changed without being locked`);
      books.moved.add(Object.assign(original, account));
      if (draft.limitsChanged.has(account)) books.limitsChanged.add(original);
    }
    for (const [key, record] of draft.transactions) books.transactions.set(key, record);
    for (const [key, sum] of draft.posted) books.posted.set(key, sum);
  };
  return { books: draft, apply };
}

function collectResults({ items }: BatchCommand, { transactions }: Books): { results: ItemResult[] } {
  const results = items.map(({ index, command: { name, context } }) => {
    const record = transactions.get(idKey(formatId('transaction', context.message_id.slice(-32))));
    if (record === undefined) throw new Error(`item ${index} has left no record`);
    return toItemResult(index, name, record);
  });
  return { results };
}

/** Returns the result of a decided item from its record. It is used for the first reply, for repeats, and for reads. */
export function toItemResult(index: number, name: Posting['name'], record: TransactionRecord): ItemResult {
  const reply = replyFromRecord(name, record);
  return {
    index,
    status: record.status,
    ...(name === 'create_transfer' ? { transfer: toTransfer(record) } : { transaction: toTransaction(record) }),
    ...(reply.ok ? {} : { error: reply.refusal }),
  };
}
