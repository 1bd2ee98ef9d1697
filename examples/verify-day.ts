import { createHash, randomUUID } from 'node:crypto';
import kafkajs from 'kafkajs';

/**
 * Verifies a closed day from the topics `days` and `transactions` alone, with a Kafka client and a hash function, and
 * nothing of the bank's: rebuilds the line of each account and the totals from the events, and hashes the lines.
 * Topics compressed with zstd need a codec of kafkajs. Arguments: the day. Settings: KAFKA_BROKERS, TOPIC_PREFIX, GROUP_PREFIX. Exit code 1: something is not as it was closed,
 * or a topic no longer has all of the day; 3: a topic cannot be read.
 */
const { KAFKA_BROKERS: brokers, TOPIC_PREFIX: prefix = '', GROUP_PREFIX: groups = '' } = process.env;
const [date = ''] = process.argv.slice(2);
if (brokers === undefined || !/^\d{4}-\d\d-\d\d$/.test(date)) {
  console.error('usage: KAFKA_BROKERS=… verify-day.ts 2026-01-31');
  process.exit(2);
}
const kafka = new kafkajs.Kafka({ brokers: brokers.split(','), logLevel: kafkajs.logLevel.NOTHING });
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

type Total = Record<'currency' | 'class' | 'opening' | 'debits' | 'credits' | 'closing', string> &
  Record<'entry_count' | 'operation_count', number>;
interface Line {
  account_id: string;
  account_number: string;
  opening: string;
}
interface Day extends Record<'date' | 'accounts_sha256' | 'previous_hash' | 'hash', string> {
  totals: Total[];
  last_sequences: Record<string, number>;
  system_accounts: Line[];
}
interface Entry extends Record<'account_id' | 'direction' | 'side' | 'amount' | 'currency' | 'effective_date', string> {
  sequence: number;
}
interface Posted {
  transaction: { account_id: string; transfer_id?: string };
  account_number: string;
  sequence: number;
  balance_after: string;
  entries: Entry[];
}

/** Without a message for this long, a topic cannot be read. */
const silenceMs = 30_000;

/**
 * Reads a topic from a time to the offset before `end` of each partition. Returns the partitions of which messages were
 * deleted, and none from before that time remains.
 */
async function read<T>(
  topic: string,
  type: string,
  from: number,
  end: (partition: number, high: number) => number,
  take: (data: T) => void,
): Promise<number[]> {
  const admin = kafka.admin();
  const consumer = kafka.consumer({ groupId: `${groups}verify-day-${randomUUID()}` });
  await Promise.all([admin.connect(), consumer.connect()]);
  const offsets = await admin.fetchTopicOffsets(topic);
  const ends = new Map(offsets.map((one) => [one.partition, end(one.partition, Number(one.high))]));
  const starts = await admin.fetchTopicOffsetsByTimestamp(topic, from);
  const open = new Set(
    starts.filter((one) => Number(one.offset) < (ends.get(one.partition) ?? 0)).map((one) => one.partition),
  );
  await admin.disconnect();
  const done = Promise.withResolvers<void>();
  done.promise.catch(() => undefined);
  // Without a codec, for example, the consumer ends, and says so only here.
  consumer.on(consumer.events.CRASH, ({ payload }) => void (payload.restart || done.reject(payload.error)));
  let timer = setTimeout(() => undefined);
  const hear = () => {
    clearTimeout(timer);
    timer = setTimeout(() => done.reject(new Error(`no message arrived for ${silenceMs} ms`)), silenceMs);
  };
  hear();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      hear();
      const [offset, last] = [Number(message.offset), (ends.get(partition) ?? 0) - 1];
      if (offset <= last && String(message.headers?.['ce_type']) === type) take(JSON.parse(String(message.value)));
      if (offset >= last) open.delete(partition);
      if (open.size === 0) done.resolve();
    },
  });
  for (const { partition, offset } of starts) consumer.seek({ topic, partition, offset });
  if (open.size > 0)
    await done.promise.catch((error: Error) => {
      console.error(`the topic ${topic} cannot be read: ${error.message}`);
      process.exit(3);
    });
  clearTimeout(timer);
  await consumer.disconnect();
  const lows = new Map(offsets.map((one) => [one.partition, Number(one.low)]));
  return starts
    .filter(({ partition, offset }) => Number(offset) > 0 && Number(offset) === lows.get(partition))
    .map(({ partition }) => partition);
}

/** Amounts in minor units: all amounts of a currency have the same number of decimal places. */
const digits = new Map<string, number>();
const minor = (text: string) => BigInt(text.replace('.', ''));
const decimal = (amount: bigint, currency: string) => {
  const places = digits.get(currency) ?? 0;
  const text = (amount < 0n ? -amount : amount).toString().padStart(places + 1, '0');
  return (amount < 0n ? '-' : '') + (places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`);
};

// An event may come again, also after those of later days. A Map keeps the order of the first ones.
const byDate = new Map<string, Day>();
await read<Day>(
  `${prefix}days`,
  'corebanking.day.closed.v1',
  0,
  (_, high) => high,
  (day) => {
    if (!byDate.has(day.date)) byDate.set(day.date, day);
  },
);
const days = [...byDate.values()];
const day = byDate.get(date);
if (day === undefined) throw new Error(`the topic days has no closing of ${date}`);

interface Account {
  number: string;
  currency: string;
  class: string;
  last: number;
  before: bigint;
  sum: bigint;
  count: number;
  first: number;
  highest: number;
}
const accounts = new Map<string, Account>();
const totals = new Map<string, { debits: bigint; credits: bigint; entries: number; operations: number }>();
const system = new Map(day.system_accounts.map((line) => [line.account_id, line]));

function add(
  { account_id, sequence, direction, side, amount, currency, effective_date }: Entry,
  { account_number, balance_after }: Posted,
): void {
  digits.set(currency, amount.split('.')[1]?.length ?? 0);
  const [sign, units] = [direction === 'credit' ? 1n : -1n, minor(amount)];
  const line = system.get(account_id);
  // What an account had before its first event here was all of earlier days.
  const had = () => minor(line ? line.opening : balance_after) - (line ? 0n : sign * units);
  const account = accounts.get(account_id) ?? {
    number: line?.account_number ?? account_number,
    currency,
    class: (direction === 'credit') === (side === 'CR') ? 'liability' : 'asset',
    last: 0,
    before: had(),
    sum: 0n,
    count: 0,
    first: sequence,
    highest: sequence,
  };
  accounts.set(account_id, account);
  if (effective_date < date && !line) account.before += sign * units;
  if (effective_date !== date) return;
  const total = totals.get(`${currency} ${account.class}`) ?? { debits: 0n, credits: 0n, entries: 0, operations: 0 };
  totals.set(`${currency} ${account.class}`, total);
  total[side === 'DR' ? 'debits' : 'credits'] += units;
  total.entries += 1;
  account.first = account.count === 0 ? sequence : Math.min(account.first, sequence);
  account.highest = account.count === 0 ? sequence : Math.max(account.highest, sequence);
  account.sum += sign * units;
  account.count += 1;
}

// A day begins at most 14 hours before it does in UTC. Earlier events are of earlier days.
const begin = Date.parse(date) - 15 * 3_600_000;
const end = (partition: number, high: number) => Math.min((day.last_sequences[partition] ?? -1) + 1, high);
const starting = await read<Posted>(
  `${prefix}transactions`,
  'corebanking.transaction.completed.v1',
  begin,
  end,
  (event) => {
    const { transaction, sequence, entries } = event;
    const own = transaction.account_id;
    if (sequence <= (accounts.get(own)?.last ?? 0)) return; // delivered again
    // A transfer has an event for each of its two accounts, a cash operation one, in which Teller and Vault are, too.
    const isTransfer = transaction.transfer_id !== undefined;
    for (const entry of entries) if (!isTransfer || entry.account_id === own) add(entry, event);
    const account = accounts.get(own);
    if (account) account.last = sequence;
    if (entries[0]?.effective_date !== date || (isTransfer && entries[0].account_id !== own)) return;
    const classes = new Set(
      entries.map(
        (one) => `${one.currency} ${(one.direction === 'credit') === (one.side === 'CR') ? 'liability' : 'asset'}`,
      ),
    );
    for (const name of classes) {
      const total = totals.get(name) ?? { debits: 0n, credits: 0n, entries: 0, operations: 0 };
      totals.set(name, total);
      total.operations += 1;
    }
  },
);

const late = starting.filter((partition) => Number(day.last_sequences[partition]) >= 0);
let isAsClosed = true;
function check(what: string, is: boolean, isRead = late.length === 0): void {
  console.log(`${what}: ${is ? 'as closed' : isRead ? 'NOT as closed' : 'unknown'}`);
  isAsClosed &&= is;
}

const previous = days[days.indexOf(day) - 1];
for (const total of day.totals) {
  const { currency, class: ofClass, debits, credits, opening, closing, entry_count, operation_count } = total;
  const own = totals.get(`${currency} ${ofClass}`) ?? { debits: 0n, credits: 0n, entries: 0, operations: 0 };
  const change = ofClass === 'liability' ? own.credits - own.debits : own.debits - own.credits;
  const before = previous?.totals.find((one) => one.currency === currency && one.class === ofClass);
  const is =
    own.debits === minor(debits) &&
    own.credits === minor(credits) &&
    own.entries === entry_count &&
    own.operations === operation_count &&
    minor(opening) + change === minor(closing) &&
    (!previous || minor(before?.closing ?? '0') === minor(opening));
  check(
    `${date} ${currency} ${ofClass}: debits ${debits}, credits ${credits}, entries ${entry_count}, from ${opening} to ${closing}`,
    is,
  );
}
const lines = [...accounts]
  .filter(([, { count }]) => count > 0)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([account_id, { number, currency, class: ofClass, before, sum, count, first, highest }]) =>
    JSON.stringify({
      account_id,
      account_number: number,
      currency,
      class: ofClass,
      opening: decimal(before, currency),
      closing: decimal(before + sum, currency),
      sum: decimal(sum, currency),
      count,
      first_sequence: first,
      last_sequence: highest,
    }),
  );
const accounts_sha256 = sha256(lines.map((line) => `${line}\n`).join(''));
check(`${date} ${lines.length} accounts, SHA-256 ${accounts_sha256}`, accounts_sha256 === day.accounts_sha256);
const isChained = days.every((one, at) => {
  const isLink = at === 0 || one.previous_hash === days[at - 1]?.hash;
  return isLink && one.hash === sha256(one.previous_hash + one.accounts_sha256);
});
check(`${days.length} days in a chain, ${days[0]?.date} to ${days.at(-1)?.date}`, isChained, true);
if (!isAsClosed && late.length > 0)
  console.error(
    `the topic transactions may no longer have all of ${date}: it begins later in partitions ${late.join(', ')}, because older events are deleted`,
  );
process.exit(isAsClosed ? 0 : 1);
