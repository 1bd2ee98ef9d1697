import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { type EventData, type EventType, events } from '#libs/contracts/events.ts';
import { parseJson } from '#libs/contracts/exchange.ts';
import { debitLegId, formatId, idBits } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { type AccountState, availableMinor, type PostedEntry, type TransactionRecord } from '../domain/records.ts';
import {
  accountColumns,
  prefixed,
  readTransactions,
  selectEntries,
  toAccountState,
  toEntryRecord,
  uuids,
} from '../rows.ts';
import { canBeAvailable, type Held, readHeld } from './available-checks.ts';
import { differences, expectedTransaction, expectedTransfer, type Owners, type Reversed } from './expected-events.ts';

/** The rules that relate events to the books. */
export const eventRules = {
  form: 'each event matches the schema of its type',
  committed: 'no event describes something that was not posted',
  same: 'each event matches the books',
  repeats: 'every copy of an event, by ce_id, has the same bytes',
  sequence: 'per account, the events of Completed transactions, and those of holds, are in sequence and without a gap',
  missing:
    'each Completed or Failed transaction, transfer, change of a hold, and decided batch has its event, published or in the outbox',
  balances: 'the last published balance and status of each account match the books',
} as const;

export type ComparedTopic = 'transactions' | 'transfers' | 'holds' | 'batches' | 'balances';

/** The state of one account according to the events published so far. */
export interface Published {
  /** The sequence of the newest Completed transaction. */
  sequence?: bigint;
  /** The balance after it, and its ce_time. */
  newest?: { balance: string; time: string };
  /** The numbers of Failed transactions and of transfers in the snapshot that have an event. Copies are not counted. */
  failed: bigint;
  transfers: bigint;
  /** The number of decided batches of the whole bank in the snapshot that have an event. */
  batches?: bigint;
  /** That of the newest hold event. */
  hold_version?: bigint;
  /** The sequence, and the versions of status and holds, of the latest message in `balances`. */
  balance?: bigint;
  status?: number;
  held?: bigint;
}

export interface EventAudit {
  /** Sees everything that is committed. */
  pool: Pool;
  /** Sees what was committed before the end offsets were read. Changes after that need not have been published. */
  snapshot: Queries;
  find: (rule: string, row: Record<string, unknown>) => void;
  published: Map<string, Published>;
  /** Digests of recent events by ce_id, to detect duplicates. */
  recent: Map<string, string>;
  /** The commands of the events may have been sent again after a restore. Default: false. */
  isResent?: boolean;
  /** Reports whether retention has deleted the beginning of the partition, or of any partition. */
  headIsGone: (topic: ComparedTopic, partition?: number) => boolean;
}

const remembered = 100_000;

/** Checks events of transactions or transfers in publication order. */
export async function checkOperations(
  topic: 'transactions' | 'transfers',
  messages: ReceivedMessage[],
  audit: EventAudit,
): Promise<void> {
  const read = readEvents(topic, messages, audit).map(({ message, data }) => {
    const published = 'entries' in data ? (data as CompletedData) : undefined;
    const completed = published && audit.isResent ? ofCustomers(published) : published;
    const transactionId =
      'transfer' in data
        ? debitLegId((data as EventData<'corebanking.transfer.completed.v1'>).transfer.transfer_id)
        : (data as EventData<'corebanking.transaction.failed.v1'>).transaction.transaction_id;
    return { message, data: completed ?? data, completed, transactionId };
  });
  if (read.length === 0) return;
  const { records, before } = await readRecords(
    read.map(({ transactionId }) => transactionId),
    audit,
  );
  const posted = await readEntries(
    read.flatMap(({ completed }) => completed?.entries ?? []),
    audit.pool,
  );
  const owners = await readOwners([...records.values()], audit.pool);
  const reversed = await readReversedTransfers([...records.values()], audit.pool);
  const withAvailable = read.filter(({ data }) => 'available_balance' in data).map(({ message }) => message);
  const amounts = audit.isResent ? [] : await readHeld(withAvailable, audit.pool);
  const held = new Map(withAvailable.map((message, i) => [message, amounts[i]]));
  for (const { message, data, completed, transactionId } of read) {
    const isFirst = noteCopy(message, audit);
    const record = records.get(transactionId);
    const entries = (completed?.entries ?? []).flatMap(
      (entry) => posted.get(`${entry.account_id}-${entry.sequence}`) ?? [],
    );
    const expected =
      record &&
      (topic === 'transfers'
        ? expectedTransfer(record, reversed.get(transactionId))
        : expectedTransaction(record, entries, owners));
    if (record === undefined || expected === undefined)
      audit.find(eventRules.committed, { ...describePlace(message), transaction_id: transactionId });
    else {
      const wrong = [
        ...differences(message, data, expected, audit.isResent),
        ...(completed && entries.length !== countLegs(record, audit) ? ['entries'] : []),
        ...(isFirst && isWrongAvailable(message, data, held.get(message), audit) ? ['available_balance'] : []),
      ];
      if (wrong.length > 0)
        audit.find(eventRules.same, {
          ...describePlace(message),
          transaction_id: transactionId,
          differs_in: [...new Set(wrong)].join(', '),
        });
      const published = getPublished(record.account_id, audit);
      if (isFirst && before.has(transactionId)) {
        const type = message.headers['ce_type'];
        if (type === 'corebanking.transfer.completed.v1') published.transfers += 1n;
        else if (type === 'corebanking.transaction.failed.v1') published.failed += 1n;
      }
    }
    if (completed) {
      const { account_id } = completed.transaction;
      noteNumber(message, account_id, 'sequence', completed.sequence, audit);
      const published = getPublished(account_id, audit);
      if (published.sequence === BigInt(completed.sequence))
        published.newest = { balance: completed.balance_after, time: message.headers['ce_time'] ?? '' };
    }
  }
}

/**
 * Reports whether an event tells what cannot have been available. That of a refusal is compared with the balance after the
 * preceding event of its account. Call it only for the first copy, because others follow newer events; the first one may be
 * missing, so that one older than the newest event is not compared either.
 */
function isWrongAvailable(message: ReceivedMessage, data: object, held: Held | undefined, audit: EventAudit): boolean {
  const { available_balance: available, balance_after } = data as {
    available_balance?: string;
    balance_after?: string;
  };
  if (available === undefined || held === undefined || audit.isResent) return false;
  const { newest } = getPublished(message.key ?? '', audit);
  const isLater = newest !== undefined && newest.time > (message.headers['ce_time'] ?? '');
  const first = audit.headIsGone('transactions', message.partition) ? undefined : '0';
  const balance = balance_after ?? (isLater ? undefined : (newest?.balance ?? first));
  return balance !== undefined && !canBeAvailable(available, balance, held);
}

/** Checks messages of the compacted topic `balances`: each must contain a balance that the account had. */
export async function checkBalances(messages: ReceivedMessage[], audit: EventAudit): Promise<void> {
  const read = readEvents<EventData<'corebanking.balance.v1'>>('balances', messages, audit);
  if (read.length === 0) return;
  const posted = await readEntries(
    read.map(({ data }) => data),
    audit.pool,
  );
  const { rows } = await audit.pool.query<AccountState>(
    `select ${accountColumns} from accounts where account_id = any($1::uuid[])`,
    [uuids(read.map(({ data }) => data.account_id))],
  );
  const accounts = new Map(rows.map(toAccountState).map((account) => [account.account_id, account]));
  for (const { message, data } of read) {
    const account = accounts.get(data.account_id);
    const entry = posted.get(`${data.account_id}-${data.sequence}`);
    if (account === undefined || (entry === undefined && data.sequence !== 0))
      audit.find(eventRules.committed, {
        ...describePlace(message),
        account_id: data.account_id,
        sequence: data.sequence,
      });
    else {
      const balance = fromMinor(entry?.balance_after_minor ?? 0n, account.currency);
      const isOther =
        data.balance !== balance ||
        message.key !== data.account_id ||
        (data.client_id !== undefined && data.client_id !== account.client_id) ||
        (['account_number', 'account_type', 'currency'] as const).some((name) => data[name] !== account[name]);
      const isOtherStatus =
        data.status_version > account.status_version ||
        (data.status_version === account.status_version && data.status !== account.status);
      const isLatest =
        BigInt(data.sequence) === account.last_sequence && BigInt(data.hold_version ?? 0) === account.hold_version;
      const isOtherAvailable =
        isLatest &&
        data.available_balance !== undefined &&
        data.available_balance !== fromMinor(availableMinor(account), account.currency);
      if (isOther || isOtherStatus || isOtherAvailable)
        audit.find(eventRules.same, {
          ...describePlace(message),
          account_id: data.account_id,
          sequence: data.sequence,
          published: `${data.balance} ${data.status}`,
          posted: `${balance} ${account.status}`,
        });
      const published = getPublished(data.account_id, audit);
      published.balance = BigInt(data.sequence);
      published.status = data.status_version;
      published.held = BigInt(data.hold_version ?? 0);
    }
  }
}

/** Returns the events whose data match the schema of their type, and reports the others as findings. */
export function readEvents<Data = z.infer<(typeof events)[EventType]['data']>>(
  topic: ComparedTopic,
  messages: ReceivedMessage[],
  { find }: EventAudit,
): { message: ReceivedMessage; data: Data }[] {
  return messages.flatMap((message) => {
    const type = message.headers['ce_type'] ?? '';
    const contract = Object.hasOwn(events, type) ? events[type as EventType] : undefined;
    const parsed = contract?.topic === topic ? contract.data.safeParse(parseJson(message.value)) : undefined;
    if (parsed?.success) return [{ message, data: parsed.data as Data }];
    find(eventRules.form, { ...describePlace(message), ce_type: type });
    return [];
  });
}

export function describePlace({ topic, partition, offset, key, headers }: ReceivedMessage): Record<string, unknown> {
  return { event: `${topic}/${partition}/${offset}`, key, ce_id: headers['ce_id'] ?? null };
}

/** Reads the records of these transactions, and which of them the snapshot contains. */
async function readRecords(
  ids: string[],
  { snapshot, pool }: EventAudit,
): Promise<{ records: Map<string, TransactionRecord>; before: Set<string> }> {
  const old = await readTransactions(snapshot, ids);
  const before = new Set(old.map((record) => record.transaction_id));
  const later = ids.filter((id) => !before.has(id));
  const fresh = await readTransactions(pool, later);
  return { records: new Map([...old, ...fresh].map((record) => [record.transaction_id, record])), before };
}

async function readOwners(records: TransactionRecord[], pool: Pool): Promise<Owners> {
  const { rows } = await pool.query<{ account_id: string; client_id: string; account_number: string }>(
    'select account_id, client_id, account_number from accounts where account_id = any($1::uuid[]) and client_id is not null',
    [uuids([...new Set(records.map(({ account_id }) => account_id))])],
  );
  return new Map(
    rows.map(({ account_id, client_id, account_number }) => [
      prefixed('acc', account_id),
      { client_id: prefixed('cli', client_id), account_number },
    ]),
  );
}

/** Returns, by transaction_id, the transfers that the reversals among these records reverse. */
async function readReversedTransfers(records: TransactionRecord[], pool: Pool): Promise<Map<string, Reversed>> {
  const ids = records.flatMap(({ reverses_transaction_id }) => reverses_transaction_id ?? []);
  const originals = await readTransactions(pool, ids);
  const byId = new Map(originals.map((original) => [original.transaction_id, original]));
  return new Map(
    records.flatMap(({ transaction_id, reverses_transaction_id }) => {
      const original = byId.get(reverses_transaction_id ?? '');
      if (!original) return [];
      const bits = idBits(original.operation_id);
      const isFromCounterparty = idBits(original.transaction_id) === bits;
      return [[transaction_id, { transfer_id: formatId('transfer', bits), isFromCounterparty }] as const];
    }),
  );
}

/** Reads the existing entries among these, by account and sequence. */
async function readEntries(
  named: { account_id: string; sequence: number }[],
  pool: Pool,
): Promise<Map<string, PostedEntry>> {
  if (named.length === 0) return new Map();
  const { rows } = await pool.query<PostedEntry>(
    selectEntries(
      'unnest($1::uuid[], $2::int8[]) as published (account_id, sequence) join entries e using (account_id, sequence) join accounts a using (account_id)',
      ', a.account_type',
    ),
    [uuids(named.map(({ account_id }) => account_id)), named.map(({ sequence }) => BigInt(sequence))],
  );
  const entries = rows.map((row) => ({ ...toEntryRecord(row), account_type: row.account_type }));
  return new Map(entries.map((entry) => [`${entry.account_id}-${entry.sequence}`, entry]));
}

type CompletedData = EventData<'corebanking.transaction.completed.v1'>;

/** When a command is sent again, another writer may execute it, with its own Teller and Vault. */
function ofCustomers(data: CompletedData): CompletedData {
  const { account_id, counterparty_account_id } = data.transaction;
  return {
    ...data,
    entries: data.entries.filter((entry) => [account_id, counterparty_account_id].includes(entry.account_id)),
  };
}

/**
 * A cash operation passes through Teller and Vault, so it has four entries; a transfer has two (contract:
 * double-entry-4).
 */
function countLegs(record: TransactionRecord, { isResent }: EventAudit): number {
  return record.counterparty_account_id === null ? (isResent ? 1 : 4) : 2;
}

/** Returns true for the first copy of an event. Later copies must have the same bytes. */
export function noteCopy(message: ReceivedMessage, { recent, find, isResent = false }: EventAudit): boolean {
  const { key, value } = message;
  // The first copy may have been published by a version before 1.0.0, without this header.
  const { ce_dataschema: _, ...headers } = message.headers;
  const id = headers['ce_id'] ?? '';
  const digest = createHash('sha256')
    .update(JSON.stringify([key, headers]))
    .update(value ?? '')
    .digest('base64');
  const before = recent.get(id);
  if (before !== undefined && before !== digest && !isResent) find(eventRules.repeats, describePlace(message));
  recent.delete(id);
  recent.set(id, digest);
  if (recent.size > remembered) recent.delete(recent.keys().next().value ?? '');
  return before === undefined;
}

export function getPublished(accountId: string, { published }: EventAudit): Published {
  const known = published.get(accountId) ?? { failed: 0n, transfers: 0n };
  published.set(accountId, known);
  return known;
}

/** Notes the number of a change among those of its kind and account, and reports a gap before it. */
export function noteNumber(
  message: ReceivedMessage,
  account_id: string,
  kind: 'sequence' | 'hold_version',
  number: number,
  audit: EventAudit,
): void {
  const published = getPublished(account_id, audit);
  const next = BigInt(number);
  const topic = kind === 'sequence' ? 'transactions' : 'holds';
  const last = published[kind] ?? (audit.headIsGone(topic, message.partition) ? next - 1n : 0n);
  if (next > last + 1n)
    audit.find(eventRules.sequence, { ...describePlace(message), account_id, after: last, [kind]: next });
  if (next > last) published[kind] = next;
}
