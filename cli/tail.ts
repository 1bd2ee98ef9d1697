import { Argument, type Command, Option } from 'commander';
import { type EventTopic, eventTopics, topicName } from '#libs/contracts/topics.ts';
import type { Follower } from '#libs/kafka/consume/follow.ts';
import { withTimeout } from '#libs/kafka/wait.ts';
import { Failure, moment, openKafka, print, say, wholeNumber } from './api.ts';

export interface Event {
  topic: string;
  partition: number;
  offset: number;
  key: string | null;
  headers: Record<string, string>;
  data: unknown;
}

const startTimeoutMs = 20_000;

/**
 * Follows topics, and resolves when everything that they contained at the start has been read.
 * Throws a Failure if no brokers are set or none responds.
 */
export async function followEvents(
  topics: readonly EventTopic[],
  from: 'beginning' | 'end' | Date,
  take: (event: Event) => void,
): Promise<{ stop(): Promise<void> }> {
  const opened = await openKafka();
  if (opened === undefined)
    throw new Failure(
      2,
      'KAFKA_BROKERS is not set: with BANK_URL, events are read from the brokers that it names (and TOPIC_PREFIX)',
    );
  const { kafka, prefix, logger } = opened;
  const [{ follow }, { parseJson }] = await Promise.all([
    import('#libs/kafka/consume/follow.ts'),
    import('#libs/contracts/exchange.ts'),
  ]);
  const followers: Follower[] = topics.map((topic) =>
    follow(kafka, {
      topic: topicName(prefix, topic),
      from: from === 'beginning' ? 'oldest' : from,
      logger,
      onMessage: (key, value, headers, { partition, offset }) =>
        take({ topic, partition, offset: Number(offset), key, headers, data: parseJson(value) ?? null }),
    }),
  );
  const stop = async () => void (await Promise.all(followers.map((follower) => follower.stop())));
  try {
    const started = Promise.all(followers.map((follower) => follower.start()));
    await withTimeout(started, startTimeoutMs, 'reading the topics');
  } catch (error) {
    await stop();
    throw new Failure(3, `no answer from the brokers: ${(error as Error).message}`);
  }
  return { stop };
}

interface TailOptions {
  fromBeginning?: true;
  from?: Date;
  account?: string;
  count?: number;
  json?: true;
}

const since = new Option('--from <time>', 'also earlier events, from this time on (ISO 8601)')
  .argParser(moment)
  .conflicts('fromBeginning');

/** `bank tail <topic>`: events as they are published, until Ctrl-C. */
export function addTail(command: Command): void {
  command
    .addArgument(new Argument('<topic>', 'the topic').choices(eventTopics))
    .option('--from-beginning', 'start with the oldest event')
    .addOption(since)
    .option('--account <account_id>', 'only events that contain this account')
    .option('--count <number>', 'stop after this many events', wholeNumber(1, 999_999_999))
    .option('--json', 'one JSON object per line: topic, partition, offset, key, headers, data')
    .addHelpText(
      'after',
      `
Examples:
  bank tail transactions
  bank tail balances --from-beginning --json | jq .data
  bank tail transfers --from 2026-01-31T00:00:00Z`,
    )
    .action(tail);
}

async function tail(
  topic: EventTopic,
  { fromBeginning, from, account, count = Infinity, json }: TailOptions,
): Promise<void> {
  const enough = Promise.withResolvers<void>();
  let shown = 0;
  const following = await followEvents([topic], fromBeginning ? 'beginning' : (from ?? 'end'), (event) => {
    if (
      shown >= count ||
      (account !== undefined && event.key !== account && !JSON.stringify(event.data).includes(account))
    )
      return;
    if (json) process.stdout.write(`${JSON.stringify(event)}\n`);
    else print(eventLine(event));
    shown += 1;
    if (shown >= count) enough.resolve();
  });
  say(`following ${topic} …`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => enough.resolve());
  await enough.promise;
  await following.stop();
}

/** Formats an event as one line of text. */
export function eventLine({ headers, key, data }: Event): string {
  const type = (headers['ce_type'] ?? '').replace(/^corebanking\./, '').replace(/\.v\d+$/, '');
  return [headers['ce_time'] ?? '', type.padEnd(22), key ?? '', summary(data)].join('  ');
}

function summary(data: unknown): string {
  const { transaction, transfer, account, ...rest } = (data ?? {}) as Record<
    string,
    Record<string, unknown> | undefined
  >;
  const one = transaction ?? transfer ?? account;
  const own =
    one === undefined ? rest : { ...one, ...('balance_after' in rest ? { balance_after: rest['balance_after'] } : {}) };
  const told = [
    'transaction_type',
    'account_number',
    'account_type',
    'amount',
    'currency',
    'direction',
    'status',
    'failure_code',
    'balance_after',
    'balance',
    'from_status',
    'to_status',
    'reason',
    'client_type',
    'action',
    'outcome',
  ];
  return told.flatMap((name) => (own[name] === undefined || own[name] === null ? [] : [String(own[name])])).join(' ');
}
