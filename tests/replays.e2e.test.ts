import { beforeAll, describe, expect, it } from 'vitest';
import type { Replay } from '#libs/contracts/administration.ts';
import type { EventData } from '#libs/contracts/events.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume.ts';
import type { Answer, RestAccount } from './support/client.ts';
import { countMessages, kafkaOf, readTopic } from './support/kafka.ts';
import { eventually, together, useBank } from './support/world.ts';

/** Consumers that were away longer than a topic keeps, and new ones: brought up to date by `balances` and a replay. */
const world = useBank({ ledgers: 2 });
const { api } = world;

type Booked = EventData<'corebanking.transaction.completed.v1'>;
let accounts: RestAccount[];
const id = (i: number) => accounts[i % 3]?.account_id ?? '';
const begin = new Date(Date.now() - 60_000).toISOString();

const published = () =>
  eventually(async () => (await world.sql('select 1 from ledger.outbox_batches where published_at is null union all select 1 from accounts.outbox_batches where published_at is null')).length === 0);
const work = async (count: number) => {
  await together(count, (i) => (i % 2 === 0 ? api.post('/transfers', { from_account_id: id(i), to_account_id: id(i + 1), amount: 1 }) : api.post('/transactions', { account_id: id(i), transaction_type: 'Deposit', amount: 2 })));
  await published();
};
const ask = (body: object) => api.post('/admin/replays', { topic: 'transactions', from: begin, ...body });
const ended = (answer: Answer): Promise<Replay> => {
  expect(answer.status, answer.text).toBe(201);
  return eventually(async () => {
    const replay = (await api.get(answer.header('location') ?? '')).data<Replay>();
    return replay.state !== 'running' && replay;
  }, 20_000);
};
const isEnd = ({ headers }: ReceivedMessage) => headers['ce_type'] === 'corebanking.replay.ended.v1';
const sideOf = async (replay: Replay) => (await readTopic(world.bank, replay.side_topic as 'transactions.replay')).filter(({ headers }) => headers['replay-id'] === replay.replay_id);
const idOf = ({ headers }: ReceivedMessage) => headers['ce_id'] ?? '';
/** A message without what says where and when it came. */
const bare = ({ key, value, headers: { 'replay-id': _, ...headers } }: ReceivedMessage) => ({ key, value: String(value), headers });
const byId = (messages: ReceivedMessage[]) => [...new Map(messages.map((message) => [idOf(message), bare(message)]))].sort(([a], [b]) => (a < b ? -1 : 1));

beforeAll(async () => {
  const { client_id } = await api.client();
  accounts = await together(3, () => api.account(client_id, { initial_deposit: 100 }));
  await work(20);
});

describe('POST /admin/replays', () => {
  it('publishes into the side topic what the live one has, though the ledger that began dies', async () => {
    const live = await readTopic(world.bank, 'transactions');
    const answer = await ask({});
    expect(answer.data()).toMatchObject({ topic: 'transactions', side_topic: 'transactions.replay', from: begin, account_id: null, state: 'running', event_count: 0 });
    world.bank.process('ledger').kill('SIGKILL');
    const replay = await ended(answer);
    await world.bank.process('ledger').restart();
    const side = await sideOf(replay);
    expect(byId(side.filter((message) => !isEnd(message)))).toEqual(byId(live));
    expect(replay).toMatchObject({ state: 'completed', event_count: byId(live).length });
    const ends = side.filter(isEnd);
    expect(ends.map(({ partition }) => partition).sort()).toEqual([0, 1, 2]);
    for (const { partition, offset } of ends) expect(side.filter((message) => message.partition === partition && message.offset > offset)).toEqual([]);
    expect(await countMessages(world.bank, 'transactions')).toBe(BigInt(live.length));
  });

  it('of one account, of topics of both services, each told apart; all are listed, newest first', async () => {
    const answers = [await ask({ account_id: id(1) }), await ask({ topic: 'transfers', account_id: id(1) }), await ask({ topic: 'accounts' }), await ask({ topic: 'clients' }), await ask({ topic: 'audit' }), await ask({ topic: 'balances' })];
    const replays = await Promise.all(answers.map(ended));
    const told = await Promise.all(replays.map(async (replay) => (await sideOf(replay)).filter((message) => !isEnd(message))));
    expect(replays.map(({ state, event_count }) => [state, event_count])).toEqual(told.map((messages) => ['completed', byId(messages).length]));
    expect(new Set(told[0]?.map(({ key }) => key))).toEqual(new Set([id(1)]));
    expect(told[1]?.length).toBeGreaterThan(0);
    expect(told[1]?.every(({ value }) => String(value).includes(id(1)))).toBe(true);
    expect(byId(told[2] ?? [])).toEqual(byId(await readTopic(world.bank, 'accounts')));
    const listed = await api.all<Replay>('/admin/replays?limit=2');
    expect(listed.map(({ replay_id }) => replay_id).slice(0, 6)).toEqual(replays.map(({ replay_id }) => replay_id).reverse());
    expect(listed).toHaveLength(7);
    expect((await api.all<Replay>('/admin/replays?order=asc')).reverse()).toEqual(listed);
  });

  it('is one replay for one Idempotency-Key, and names what is wrong by field', async () => {
    const body = { topic: 'clients', from: begin, to: new Date().toISOString() };
    for (const request of [body, { ...body, topic: 'balances', to: undefined }]) {
      const first = await api.once(`key-${request.topic}`, '/admin/replays', request);
      await ended(first);
      const again = await api.once(`key-${request.topic}`, '/admin/replays', request);
      expect([again.status, again.header('idempotent-replayed'), again.data()]).toEqual([201, 'true', first.data()]);
      expect((await api.once(`key-${request.topic}`, '/admin/replays', { ...request, from: new Date(0).toISOString() })).error.code).toBe('idempotency_key_reused');
    }
    const wrong = async (body: object) => (await api.post('/admin/replays', body)).error.errors?.map(({ field }) => field);
    expect(await wrong({ topic: 'replies' })).toEqual(['topic', 'from']);
    expect(await wrong({ topic: 'clients', from: begin, to: begin, account_id: id(0) })).toEqual(['to', 'account_id']);
    for (const topic of ['transactions', 'clients']) expect(await wrong({ topic, from: begin, to: '2999-01-01' })).toEqual(['to']);
    for (const topic of ['transactions', 'accounts']) expect((await ask({ topic, account_id: `acc_${'0'.repeat(32)}` })).error.code).toBe('account_not_found');
    for (const unknown of [`rpl_${'0'.repeat(32)}`, 'x']) expect((await api.get(`/admin/replays/${unknown}`)).error.code).toBe('replay_not_found');
  });
});

/** What a consumer keeps of each account: what it has seen up to, without a gap, and the sum of that. */
function keeper() {
  const known = new Map<string, { sequence: number; balance: string }>();
  const gaps = new Set<string>();
  return {
    known,
    gaps,
    take(messages: ReceivedMessage[]) {
      for (const { headers, value } of messages) {
        if (headers['ce_type'] !== 'corebanking.transaction.completed.v1') continue;
        const { transaction: { account_id }, sequence, balance_after: balance } = JSON.parse(String(value)) as Booked;
        const next = (known.get(account_id)?.sequence ?? 0) + 1;
        if (sequence === next) known.set(account_id, { sequence, balance });
        else if (sequence > next) gaps.add(account_id);
      }
    },
  };
}

async function snapshot() {
  const latest = new Map<string, { sequence: number; balance: string }>();
  for (const { key, value } of await readTopic(world.bank, 'balances')) {
    const { sequence, balance } = JSON.parse(String(value)) as EventData<'corebanking.balance.v1'>;
    latest.set(key ?? '', { sequence, balance });
  }
  return latest;
}
const sorted = (known: Map<string, unknown>) => [...known].sort(([a], [b]) => (a < b ? -1 : 1));

describe('a consumer', () => {
  it('that was away longer than the topic keeps finds what it missed by sequence, and gets it by a replay', async () => {
    const consumer = keeper();
    const seen = await readTopic(world.bank, 'transactions');
    consumer.take(seen);
    const lastSeen = seen.map(({ headers }) => headers['ce_time'] ?? '').sort().at(-1) ?? '';
    await work(30);
    // Retention deletes everything it has not seen.
    const topic = topicName(world.bank.topic_prefix, 'transactions');
    await kafkaOf(world.bank).withAdmin(async (admin) => {
      const partitions = (await admin.fetchTopicOffsets(topic)).map(({ partition, high }) => ({ partition, offset: high }));
      await admin.deleteTopicRecords({ topic, partitions });
    });
    await work(3);
    consumer.take(await readTopic(world.bank, 'transactions'));
    expect(consumer.gaps.size).toBeGreaterThan(0);
    const present = await snapshot();
    expect(sorted(consumer.known)).not.toEqual(sorted(present));
    // Some minutes earlier than the last event seen: what is known is known by its sequence.
    const replay = await ended(await ask({ from: new Date(Date.parse(lastSeen) - 60_000).toISOString() }));
    consumer.take(await sideOf(replay));
    consumer.take(await readTopic(world.bank, 'transactions'));
    expect(sorted(consumer.known)).toEqual(sorted(present));
    for (const { account_id } of accounts) expect(Number(consumer.known.get(account_id)?.balance)).toBe(await api.balance(account_id));
  });

  it('that is new begins with the present state, and goes on where that ends', async () => {
    const consumer = keeper();
    for (const [account_id, state] of await snapshot()) consumer.known.set(account_id, state);
    await work(10);
    consumer.take(await readTopic(world.bank, 'transactions'));
    expect([consumer.gaps.size, sorted(consumer.known)]).toEqual([0, sorted(await snapshot())]);
  });
});

describe('with EVENTS_PUBLISHED_BY=debezium', () => {
  it('events are given to the connector, and all else goes on', async () => {
    for (const process of world.bank.processes.filter(({ name }) => name.startsWith('ledger') || name === 'accounts')) await process.startWith({ EVENTS_PUBLISHED_BY: 'debezium' });
    const before = await Promise.all((['transactions', 'balances', 'accounts', 'audit'] as const).map((topic) => countMessages(world.bank, topic)));
    // A saga through both outboxes, a key through the compacted topic, an audit record from the ledger to accounts.
    const account = await eventually(async () => {
      const answer = await api.once('debezium', '/accounts', { client_id: accounts[0]?.client_id, account_type: 'Savings', currency: 'USD', initial_deposit: 5 });
      return answer.status === 201 && answer.data<RestAccount>();
    }, 30_000);
    const { api_key } = await api.key({ scopes: ['accounts:read'] });
    expect((await api.withKey(api_key).get(`/accounts/${account.account_id}`)).status).toBe(200);
    await published();
    expect(await world.sql("select type, aggregateid from ledger.outbox_events where aggregatetype = 'transactions'")).toEqual([{ type: 'corebanking.transaction.completed.v1', aggregateid: account.account_id }]);
    expect(await Promise.all((['transactions', 'balances', 'accounts', 'audit'] as const).map((topic) => countMessages(world.bank, topic)))).toEqual(before);
    expect(await ended(await ask({ account_id: account.account_id }))).toMatchObject({ state: 'completed', event_count: 1 });
  });
});
