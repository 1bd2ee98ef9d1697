import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { Replay } from '#libs/contracts/administration.ts';
import type { ReplayedTopic } from '#libs/contracts/topics.ts';
import { writeOutbox } from './outbox.ts';
import { purge } from './relay-read.ts';
import { createRelayHarness, event, fakeBroker, numberOf, range, type SentMessage, until } from './relay-harness.ts';
import { createReplayer, type Replayer, type ReplayerOptions } from './replayer.ts';
import { findReplay, insertReplay, listReplays } from './replays.ts';
import { silent } from './test-database.ts';
import { transaction } from './transaction.ts';

const harness = await createRelayHarness();
const { pool } = harness;
afterEach(() => harness.reset());
afterAll(() => harness.close());

/** Batches of a day in the past, a minute apart from 10:00. */
const at = (minute: number) => `2026-01-02T10:${String(minute).padStart(2, '0')}:00.000Z`;
async function record(minute: number, ...numbers: number[]): Promise<void> {
  const more = { topic: 'transactions', headers: { 'request-id': 'r' } };
  const batch = await harness.write(...numbers.map((n) => event(n, { ...more, key: `acc_${n % 3}` })), event(1000 + numbers.length, { topic: 'balances' }));
  await pool.query('update outbox_batches set created_at = $2, published_at = $2 where batch_id = $1', [batch?.batch_id, at(minute)]);
}

let ids = 0;
async function ask(from: string, to: string, { topic = 'transactions' as ReplayedTopic, account_id = null as string | null } = {}): Promise<Replay> {
  const replay_id = `rpl_${(++ids).toString(16).padStart(32, '0')}`;
  const taken = await transaction(pool, (client) => insertReplay(client, { replay_id, topic, from, to, account_id }, 'tester'));
  if ('refusal' in taken) throw new Error(JSON.stringify(taken.refusal));
  return taken;
}

function replayerWith(publisher: ReplayerOptions['publisher'], more: Partial<ReplayerOptions> = {}): Replayer {
  const replayer = createReplayer({ pool, publisher, topicName: (topic) => `p.${topic}`, partitionsOf: async () => 2, source: 's', logger: silent, pollMs: 20, paceMs: 0, ...more });
  replayer.start();
  harness.onStop(() => replayer.stop());
  return replayer;
}

const ended = async ({ replay_id }: Replay): Promise<Replay> => {
  await until(async () => (await findReplay(pool, replay_id))?.state !== 'running');
  return (await findReplay(pool, replay_id)) as Replay;
};
const isEnd = ({ headers }: SentMessage) => headers['ce_type'] === 'corebanking.replay.ended.v1';
const eventsOf = (sent: SentMessage[], { replay_id }: Replay) => sent.filter((message) => message.headers['replay-id'] === replay_id && !isEnd(message));
const numbersOf = (sent: SentMessage[], replay: Replay) => eventsOf(sent, replay).map(({ value }) => numberOf(value));

describe('a replay', () => {
  test('publishes what was written in the period, as it was, in its order, with an end in each partition', async () => {
    for (const minute of range(0, 30)) await record(minute, minute * 2, minute * 2 + 1);
    const broker = fakeBroker();
    replayerWith(broker, { stepEvents: 7 });
    const replay = await ended(await ask(at(10), at(20)));
    expect(numbersOf(broker.sent, replay)).toEqual(range(20, 40));
    const [first] = broker.sent;
    expect(first).toEqual({
      topic: 'p.transactions.replay', key: 'acc_2', value: '{"n":20}',
      headers: {
        ce_specversion: '1.0', ce_id: '00000000-0000-0000-0000-000000000014', ce_type: 't.v1', ce_source: 's', ce_time: '2026-01-02T03:04:05.678Z', ce_subject: 'acc_2',
        'content-type': 'application/json', 'request-id': 'r', 'replay-id': replay.replay_id,
      },
    });
    expect(replay).toMatchObject({ state: 'completed', failure: null, event_count: 20, first_ce_id: first?.headers['ce_id'], last_ce_id: '00000000-0000-0000-0000-000000000027', requested_by: 'tester' });
    const ends = broker.sent.slice(-2);
    expect(ends.map(({ partition }) => partition)).toEqual([0, 1]);
    expect(JSON.parse(ends[1]?.value ?? '')).toEqual({ replay_id: replay.replay_id, topic: 'transactions', from: at(10), to: at(20), account_id: null, state: 'completed', failure: null, event_count: 20 });
  });

  test('of an account has its events alone; two at once are told apart', async () => {
    for (const minute of range(0, 9)) await record(minute, minute);
    const broker = fakeBroker();
    replayerWith(broker);
    replayerWith(broker);
    const asked = await Promise.all([ask(at(0), at(30), { account_id: 'acc_1' }), ask(at(3), at(30)), ask(at(3), at(30), { topic: 'balances' }), ask(at(50), at(55))]);
    const [ofOne, ofAll, balances, none] = (await Promise.all(asked.map(ended))) as [Replay, Replay, Replay, Replay];
    expect([ofOne, ofAll, balances].map((replay) => numbersOf(broker.sent, replay))).toEqual([[1, 4, 7], range(3, 9), range(3, 9).map(() => 1001)]);
    expect(none).toMatchObject({ state: 'completed', event_count: 0, first_ce_id: null });
    const { items, next } = await listReplays(pool, { limit: 3, order: 'desc' });
    const rest = await listReplays(pool, { limit: 3, order: 'desc', after: next });
    expect([...items, ...rest.items].map(({ replay_id }) => replay_id).sort()).toEqual(asked.map(({ replay_id }) => replay_id).sort());
  });

  test('of transfers has those of both sides', async () => {
    const transfer = (n: number, from: string, to: string) => event(n, { topic: 'transfers', key: `trf_${n}`, payload: JSON.stringify({ n, transfer: { from_account_id: from, to_account_id: to } }) });
    await harness.write(transfer(1, 'acc_1', 'acc_2'), transfer(2, 'acc_2', 'acc_3'), transfer(3, 'acc_3', 'acc_1'));
    const { rows: [written] } = await pool.query<{ at: string }>("update outbox_batches set created_at = '2026-01-02T10:00:30Z' returning created_at as at");
    expect(written?.at).toBe('2026-01-02T10:00:30.000Z');
    const broker = fakeBroker();
    replayerWith(broker);
    const replay = await ended(await ask(at(0), at(1), { topic: 'transfers', account_id: 'acc_1' }));
    expect(numbersOf(broker.sent, replay)).toEqual([1, 3]);
  });

  test('waits for transactions that may still write into its period', async () => {
    await record(0, 1);
    const held = Promise.withResolvers<void>();
    const written = Promise.withResolvers<void>();
    const late = transaction(pool, async (client) => {
      const batch = await writeOutbox(client, 's', [event(2, { topic: 'transactions' })]);
      await client.query('update outbox_batches set created_at = $2 where batch_id = $1', [batch?.batch_id, at(1)]);
      written.resolve();
      await held.promise;
    });
    await written.promise;
    const broker = fakeBroker();
    replayerWith(broker);
    const asked = await ask(at(0), at(2));
    await until(async () => (await pool.query('select from replays where attempts = 1')).rowCount === 1);
    await sleep(300);
    expect(broker.sent).toEqual([]);
    held.resolve();
    await late;
    expect(numbersOf(broker.sent, await ended(asked))).toEqual([1, 2]);
  });
});

describe('what is begun ends', () => {
  test('another process goes on where one died; nothing is missing, and counted once', async () => {
    for (const minute of range(0, 20)) await record(minute, minute);
    const stuck = Promise.withResolvers<never>();
    const broker = fakeBroker();
    // It dies between publishing its third step and noting that.
    let steps = 0;
    const dead = createReplayer({
      pool, topicName: (topic) => topic, partitionsOf: async () => 2, source: 's', logger: silent, pollMs: 20, paceMs: 0, stepEvents: 4, leaseMs: 500,
      publisher: { publishAll: async (messages) => (await broker.publishAll(messages), ++steps === 3 ? stuck.promise : undefined) },
    });
    dead.start();
    const asked = await ask(at(0), at(30));
    await until(() => steps === 3);
    replayerWith(broker, { stepEvents: 4, leaseMs: 500 });
    const replay = await ended(asked);
    const numbers = numbersOf(broker.sent, replay);
    expect([...new Set(numbers)]).toEqual(range(0, 20));
    expect(numbers.length).toBe(22);
    expect(replay).toMatchObject({ state: 'completed', event_count: 20 });
    // Waking up late, it neither counts nor ends anything.
    stuck.reject(new Error('the broker was away'));
    await dead.stop();
    expect(await findReplay(pool, asked.replay_id)).toEqual(replay);
    expect(broker.sent.filter(isEnd)).toHaveLength(2);
  });

  test('a broker that is away is tried again; after the last attempt it has failed, and says so', async () => {
    await record(0, 1);
    let isAway = true;
    const broker = fakeBroker(() => {
      if (isAway) throw new Error('away');
    });
    replayerWith(broker);
    const once = await ask(at(0), at(1));
    await until(async () => (await pool.query('select from replays where attempts = 1 and holder is null')).rowCount === 1);
    isAway = false;
    expect(await ended(once)).toMatchObject({ state: 'completed', event_count: 1 });
    const given = await ask(at(0), at(1));
    await pool.query('update replays set attempts = 20 where ended_at is null');
    expect(await ended(given)).toMatchObject({ state: 'failed', failure: 'nothing could be published in 20 attempts', event_count: 0 });
    await until(() => broker.sent.filter(isEnd).length === 4);
    expect(JSON.parse(broker.sent.at(-1)?.value ?? '')).toMatchObject({ state: 'failed', event_count: 0 });
  });

  test('what deletion overtakes has failed; what it has overtaken already is refused', async () => {
    for (const minute of range(0, 4)) await record(minute, minute);
    const begun = await ask(at(0), at(4));
    await pool.query("update outbox_batches set published_at = clock_timestamp() where created_at >= $1", [at(2)]);
    await purge(pool, 60_000);
    const broker = fakeBroker();
    replayerWith(broker);
    expect(await ended(begun)).toMatchObject({ state: 'failed', failure: expect.stringContaining('deleted') });
    expect(eventsOf(broker.sent, begun)).toEqual([]);
    await expect(ask(at(1), at(4))).rejects.toThrow(/events_expired.*"field":"from".*2026-01-02T10:01:00.001Z/);
    expect(numbersOf(broker.sent, await ended(await ask('2026-01-02T10:01:00.001Z', at(4))))).toEqual([2, 3]);
    await expect(ask(at(1), '2999-01-01T00:00:00.000Z')).rejects.toThrow(/"field":"to"/);
  });
});
