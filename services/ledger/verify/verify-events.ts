import type { Logger } from 'pino';
import { topicName } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { readToEnd } from '#libs/kafka/consume/read-to-end.ts';
import { topicRanges } from '#libs/kafka/topics.ts';
import type { Finding } from '#libs/postgres/findings.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import { unpackEvents } from '#libs/postgres/outbox/outbox-messages.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { isListed } from '../domain/records.ts';
import { prefixed } from '../rows.ts';
import { checkBatches, countDecidedBatches, wholeBank } from './batch-checks.ts';
import {
  type ComparedTopic,
  checkBalances,
  checkOperations,
  type EventAudit,
  eventRules,
  type Published,
} from './event-checks.ts';
import { checkHolds } from './hold-checks.ts';

const compared = ['transactions', 'transfers', 'holds', 'batches', 'balances'] as const satisfies ComparedTopic[];
const shownRows = 20;
const accountsAtOnce = 2000;
const idleMs = 60_000;
/** A long timeout, because whole tables are read. */
const query_timeout = 3_600_000;

/**
 * Compares the events on the broker with the books while postings continue. The books are those of one
 * snapshot, taken before the end offsets of the topics are read, so everything that it shows as published
 * precedes those offsets. Memory grows only with the number of accounts. If retention has deleted the beginning
 * of a topic, missing events there are not reported. Needs two connections. Throws if the topics cannot be read
 * to their end. `isResent`: commands were sent again after a restore, so copies of their events have other posting times.
 */
export async function verifyEvents(
  pool: Pool,
  kafka: KafkaClient,
  prefix: string,
  logger: Logger,
  isResent = false,
): Promise<Finding[]> {
  const found = new Map<string, Finding['rows']>();
  const find = (rule: string, row: Record<string, unknown>) => {
    const rows = found.get(rule) ?? [];
    if (rows.length < shownRows) found.set(rule, [...rows, row]);
  };
  await transaction(
    pool,
    async (snapshot) => {
      await snapshot.query('set local statement_timeout = 0');
      await snapshot.query('set local idle_in_transaction_session_timeout = 0');
      const pending = await readPending(snapshot);
      const topics = new Map(compared.map((name) => [topicName(prefix, name), name]));
      const ranges = new Map(
        await Promise.all([...topics].map(async ([topic, name]) => [name, await topicRanges(kafka, topic)] as const)),
      );
      const cut = (name: ComparedTopic, partition?: number) =>
        (ranges.get(name) ?? []).some(
          (range) => range.low > 0n && (partition === undefined || range.partition === partition),
        );
      const audit: EventAudit = {
        pool,
        snapshot,
        find,
        isResent,
        published: new Map(),
        recent: new Map(),
        headIsGone: cut,
      };
      const take = (messages: ReceivedMessage[]) => checkAll(messages, prefix, audit);
      await readToEnd(kafka, { topics: [...topics.keys()], take, idleMs, logger });
      await compareAccounts(snapshot, pending, audit);
      await compareBatches(snapshot, pending, audit);
    },
    'read only snapshot',
  );
  return Object.values(eventRules).flatMap((rule) => (found.has(rule) ? [{ rule, rows: found.get(rule) ?? [] }] : []));
}

/**
 * Compares these events with the books: not whether events are missing. Posting times may differ, because commands may
 * have been sent again after a restore.
 */
export async function compareWithBooks(messages: ReceivedMessage[], pool: Pool, prefix: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  const find = (rule: string, row: Record<string, unknown>) => void findings.push({ rule, rows: [row] });
  const nothing = { published: new Map(), recent: new Map(), headIsGone: () => true };
  await checkAll(messages, prefix, { pool, snapshot: pool, find, isResent: true, ...nothing });
  const ofBooks: string[] = [eventRules.form, eventRules.committed, eventRules.same];
  return findings.filter(({ rule }) => ofBooks.includes(rule));
}

async function checkAll(messages: ReceivedMessage[], prefix: string, audit: EventAudit): Promise<void> {
  const of = (name: ComparedTopic) => messages.filter(({ topic }) => topic === topicName(prefix, name));
  await checkOperations('transactions', of('transactions'), audit);
  await checkOperations('transfers', of('transfers'), audit);
  await checkHolds(of('holds'), audit);
  await checkBatches(of('batches'), audit);
  await checkBalances(of('balances'), audit);
}

interface Counts {
  completed: bigint;
  failed: bigint;
  transfers: bigint;
  holds: bigint;
  batches: bigint;
  balances: bigint;
}

const none: Counts = { completed: 0n, failed: 0n, transfers: 0n, holds: 0n, batches: 0n, balances: 0n };

const batchesAtOnce = 100;

/** Counts events that are unpublished in the outbox, by account; those of batches for the whole bank. */
async function readPending(snapshot: Queries): Promise<Map<string, Counts>> {
  const pending = new Map<string, Counts>();
  for (let last = 0n; ; ) {
    const { rows } = await snapshot.query<{ batch_id: bigint; records: Buffer }>({
      text: `select batch_id, records from outbox_batches join outbox using (batch_id) where published_at is null and batch_id > $1 order by batch_id limit ${batchesAtOnce}`,
      values: [last],
      query_timeout,
    });
    for (const { records } of rows) for (const event of unpackEvents(records)) count(event, pending);
    last = rows.at(-1)?.batch_id ?? last;
    if (rows.length < batchesAtOnce) return pending;
  }
}

function count({ topic, key, type, payload }: OutboxEvent, pending: Map<string, Counts>): void {
  const of = (accountId: string, what: keyof Counts) => {
    const counts = pending.get(accountId) ?? { ...none };
    counts[what] += 1n;
    pending.set(accountId, counts);
  };
  if (type === 'corebanking.transaction.completed.v1') of(key ?? '', 'completed');
  else if (type === 'corebanking.transaction.failed.v1') of(key ?? '', 'failed');
  else if (topic === 'batches') of(wholeBank, topic);
  else if (topic === 'holds' || topic === 'balances') of(key ?? '', topic);
  else if (type === 'corebanking.transfer.completed.v1')
    of((JSON.parse(payload ?? '') as { transfer: { from_account_id: string } }).transfer.from_account_id, 'transfers');
}

const postedAccounts = `declare posted no scroll cursor for
  select a.account_id, a.last_sequence, a.status_version, a.hold_version, coalesce(t.failed, 0) as failed, coalesce(t.transfers, 0) as transfers from accounts a left join (
    select account_id, count(*) filter (where status = 'Failed' and ${isListed('failure_code')}) as failed,
      count(*) filter (where status = 'Completed' and transaction_id = operation_id and reverses_transaction_id is null and transaction_type in ('Transfer', 'Loan Payment')) as transfers
    from transactions group by account_id
  ) t using (account_id) where a.client_id is not null`;

/** Everything that the snapshot contains about an account must have been published or be in the outbox. */
async function compareAccounts(
  snapshot: Queries,
  pending: Map<string, Counts>,
  { published, find, headIsGone }: EventAudit,
): Promise<void> {
  const cut = {
    transactions: headIsGone('transactions'),
    transfers: headIsGone('transfers'),
    holds: headIsGone('holds'),
  };
  await snapshot.query(postedAccounts);
  for (;;) {
    const { rows } = await snapshot.query<{
      account_id: string;
      last_sequence: bigint;
      status_version: number;
      hold_version: bigint;
      failed: bigint;
      transfers: bigint;
    }>({ text: `fetch ${accountsAtOnce} from posted`, query_timeout });
    for (const row of rows) {
      const account_id = prefixed('acc', row.account_id);
      const known: Published = published.get(account_id) ?? { failed: 0n, transfers: 0n };
      const waits = pending.get(account_id) ?? none;
      const missing = (kind: string, posted: bigint, seen: bigint, waiting: bigint) => {
        if (seen + waiting < posted)
          find(eventRules.missing, { account_id, of: kind, posted, published: seen, in_outbox: waiting });
      };
      if (!cut.transactions || known.sequence !== undefined)
        missing('Completed transactions', row.last_sequence, known.sequence ?? 0n, waits.completed);
      if (!cut.transactions) missing('Failed transactions', row.failed, known.failed, waits.failed);
      if (!cut.transfers) missing('transfers', row.transfers, known.transfers, waits.transfers);
      if (!cut.holds || known.hold_version !== undefined)
        missing('changes of holds', row.hold_version, known.hold_version ?? 0n, waits.holds);
      const isOld =
        (known.balance ?? -1n) < row.last_sequence ||
        (known.status ?? 0) < row.status_version ||
        (known.held ?? 0n) < row.hold_version;
      if (waits.balances === 0n && isOld) {
        find(eventRules.balances, {
          account_id,
          last_sequence: row.last_sequence,
          last_published: known.balance ?? null,
        });
      }
    }
    if (rows.length < accountsAtOnce) return;
  }
}

/** Every batch of which the snapshot contains all decisions must have its event. */
async function compareBatches(
  snapshot: Queries,
  pending: Map<string, Counts>,
  { published, find, headIsGone }: EventAudit,
): Promise<void> {
  if (headIsGone('batches')) return;
  const decided = await countDecidedBatches(snapshot);
  const [seen, waiting] = [published.get(wholeBank)?.batches ?? 0n, (pending.get(wholeBank) ?? none).batches];
  if (seen + waiting < decided)
    find(eventRules.missing, { of: 'decided batches', posted: decided, published: seen, in_outbox: waiting });
}
