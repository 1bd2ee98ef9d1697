import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { replyType, source, toHeaders } from '#libs/contracts/envelope.ts';
import { bucketForKey } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { commandPartition, type TopicName, topicName } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { type RestAccount, unknownId } from '../support/client.ts';
import { again, caughtUp, publish, readTopic } from '../support/kafka.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests poison messages: each becomes one dead letter with its bytes unchanged, and its partition continues. */
const world = useBank();
const { api } = world;

let account: RestAccount;
let good: ReceivedMessage;
beforeAll(async () => {
  account = await api.newAccount();
  await api.transact(account.account_id, 'Deposit', 1);
  good = (await readTopic(world.bank, 'ledger.commands')).find(
    ({ headers }) => headers['ce_type'] === messageType('create_transaction'),
  ) as ReceivedMessage;
});

const without = (headers: Record<string, string>, ...names: string[]) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));

/** Poison messages by name, made from a valid command. */
function poisons(): Record<string, Poison> {
  const { headers, value } = good;
  const fresh = { ...headers, ce_id: unknownId('txn') };
  const withData = (changes: object) => JSON.stringify({ ...(JSON.parse(String(value)) as object), ...changes });
  return {
    'non-JSON': { value: 'this is no JSON {', headers: fresh },
    'bytes that are not text': { value: Buffer.from([0xff, 0x00, 0xfe, 0x80, 0x0a]), headers: fresh },
    'an empty value': { value: '', headers: fresh },
    'a null value': { value: null, headers: fresh },
    'a type of the other service': {
      value: JSON.stringify({ client_id: unknownId('cli') }),
      headers: { ...fresh, ce_type: messageType('get_client') },
    },
    'no headers at all': { value, headers: {} },
    'no ce_id': { value, headers: without(fresh, 'ce_id') },
    'no ce_time': { value, headers: without(fresh, 'ce_time') },
    'a malformed ce_time': { value, headers: { ...fresh, ce_time: 'yesterday' } },
    'a malformed deadline': { value, headers: { ...fresh, deadline: 'soon' } },
    '200 KB of nothing': { value: 'x'.repeat(200 * 1024), headers: fresh },
    '200 KB of JSON': { value: withData({ description: 'x'.repeat(200 * 1024), amount: 'much' }), headers: fresh },
    'an invalid reply topic': {
      value: withData({ transaction_id: fresh.ce_id }),
      headers: { ...fresh, 'reply-topic': `${world.bank.topic_prefix}balances` },
    },
    'a reply topic that does not exist': {
      value: withData({ transaction_id: fresh.ce_id }),
      headers: { ...fresh, 'reply-topic': 'nowhere' },
    },
    'a reply partition that does not exist': {
      value: withData({ transaction_id: fresh.ce_id }),
      headers: { ...fresh, 'reply-partition': '640' },
    },
    'a reply partition that is not a number': {
      value: withData({ transaction_id: fresh.ce_id }),
      headers: { ...fresh, 'reply-partition': 'x' },
    },
    'a negative amount': { value: withData({ transaction_id: fresh.ce_id, amount: '-5' }), headers: fresh },
    'a number as amount': { value: withData({ transaction_id: fresh.ce_id, amount: 5 }), headers: fresh },
    'an unknown currency': { value: withData({ transaction_id: fresh.ce_id, currency: 'XXX' }), headers: fresh },
    'an invalid id': { value: withData({ transaction_id: "txn_'; drop table entries" }), headers: fresh },
    'a list': { value: '[]', headers: fresh },
  };
}

type Poison = Pick<OutgoingMessage, 'value' | 'headers'>;

/** Returns the same messages, each marked with its name, which identifies its dead letter. */
function marked(named: Record<string, Poison>): (Poison & { name: string })[] {
  return Object.entries(named).map(([name, { value, headers }]) => ({
    name,
    value,
    headers: { ...headers, 'x-test': name },
  }));
}

const partition = () => commandPartition(bucketForKey(account.account_id));
const testName = ({ headers }: ReceivedMessage) => headers['x-test'] ?? '';

/**
 * Publishes poison messages to the account's partition; resolves with their dead letters when all
 * have arrived.
 */
async function poisoned(topic: TopicName, poison: (Poison & { name: string })[]): Promise<ReceivedMessage[]> {
  await publish(
    world.bank,
    poison.map(({ value, headers }) => ({
      topic: topicName(world.bank.topic_prefix, topic),
      partition: partition(),
      key: account.account_id,
      value,
      headers,
    })),
  );
  const names = new Set(poison.map(({ name }) => name));
  return eventually(async () => {
    const letters = (await readTopic(world.bank, `${topic}.dlq` as TopicName)).filter((letter) =>
      names.has(testName(letter)),
    );
    return letters.length >= poison.length && letters;
  });
}

/** Expects one dead letter for each poison message, with bytes, key, and headers unchanged. */
function expectDeadLetter(
  letters: ReceivedMessage[],
  topic: TopicName,
  { name, value, headers }: Poison & { name: string },
): void {
  const own = letters.filter((letter) => testName(letter) === name);
  expect(own, name).toHaveLength(1);
  const [letter] = own as [ReceivedMessage];
  expect(letter.value === null ? null : letter.value.toString('hex')).toBe(
    value === null ? null : Buffer.from(value).toString('hex'),
  );
  expect(letter.key).toBe(account.account_id);
  // The MAC is that of the published message.
  expect(letter.headers).toMatchObject(without(headers, 'mac'));
  expect(letter.headers).toMatchObject({
    'dlq-topic': topicName(world.bank.topic_prefix, topic),
    'dlq-partition': String(partition()),
    'dlq-offset': expect.stringMatching(/^\d+$/),
    'dlq-reason': expect.any(String),
    'dlq-code': expect.stringMatching(/^[a-z_]+$/),
    'dlq-time': expect.stringMatching(/Z$/),
  });
}

describe('Poison on ledger.commands', () => {
  it('all kinds together with valid commands become one dead letter each, and the partition continues', async () => {
    const before = await api.balance(account.account_id);
    const all = marked(poisons());
    const topic = topicName(world.bank.topic_prefix, 'ledger.commands');
    const bad = all.map(({ value, headers }) => ({
      topic,
      partition: partition(),
      key: account.account_id,
      value,
      headers,
    }));
    const deposits = Promise.all(all.map(() => api.transact(account.account_id, 'Deposit', 1)));
    await publish(
      world.bank,
      bad.flatMap((message) => [message, again(good)]),
    );
    await deposits;
    await api.transact(account.account_id, 'Deposit', 1);
    await caughtUp(world.bank, 'ledger');
    const letters = await readTopic(world.bank, 'ledger.commands.dlq');
    expect(letters.map(testName).sort()).toEqual(all.map(({ name }) => name).sort());
    for (const poison of all) expectDeadLetter(letters, 'ledger.commands', poison);
    expect(await api.balance(account.account_id)).toBe(before + all.length + 1);
    await world.expectBooksInOrder();
  });

  it('the code is the reason: bad_reply_topic for a reply topic that services must not write to', async () => {
    const letters = await readTopic(world.bank, 'ledger.commands.dlq');
    const deadLetterCode = (name: string) => letters.find((letter) => testName(letter) === name)?.headers['dlq-code'];
    expect(
      ['an invalid reply topic', 'a reply topic that does not exist', 'a reply partition that does not exist'].map(
        deadLetterCode,
      ),
    ).toEqual(Array(3).fill('bad_reply_topic'));
    expect([deadLetterCode('non-JSON'), deadLetterCode('a type of the other service')]).toEqual([
      'malformed_json',
      'unknown_type',
    ]);
  });

  it('a type that no version here knows waits for one that does, for 5 s; without a MAC it is poison at once', async () => {
    const unknown = { ...good.headers, ce_type: 'corebanking.command.print_money.v1' };
    const before = (await readTopic(world.bank, 'ledger.commands.dlq')).length;
    const message = {
      topic: topicName(world.bank.topic_prefix, 'ledger.commands'),
      partition: partition(),
      key: account.account_id,
      value: good.value,
    };
    await publish(world.bank, [{ ...message, headers: without(unknown, 'mac') }], { asTheyAre: true });
    const codes = async () =>
      (await readTopic(world.bank, 'ledger.commands.dlq')).slice(before).map(({ headers }) => headers['dlq-code']);
    await eventually(async () => (await codes()).length === 1);
    await publish(world.bank, [{ ...message, headers: unknown }]);
    const deposit = api.once('waits', '/transactions', {
      account_id: account.account_id,
      transaction_type: 'Deposit',
      amount: 1,
    });
    await sleep(2_000);
    expect(await codes()).toEqual(['not_authentic']);
    await eventually(async () => (await codes()).length === 2, 60_000);
    expect(await codes()).toEqual(['not_authentic', 'unknown_type']);
    expect([201, 202]).toContain((await deposit).status);
    await api.transact(account.account_id, 'Deposit', 1);
  });
});

describe.each(['accounts.commands', 'ledger.queries', 'accounts.queries'] as const)('Poison on %s', (topic) => {
  const kinds = [
    'non-JSON',
    'a null value',
    'no headers at all',
    '200 KB of nothing',
    'a reply topic that does not exist',
  ];

  it('each becomes one dead letter, and the following messages are processed', async () => {
    const poison = marked(poisons()).filter(({ name }) => kinds.includes(name));
    const letters = await poisoned(topic, poison);
    expect(letters).toHaveLength(kinds.length);
    for (const one of poison) expectDeadLetter(letters, topic, one);
    await api.newAccount({ initial_deposit: 1 });
    expect(await api.balance(account.account_id)).toBeGreaterThan(0);
    expect((await api.get('/clients')).status).toBe(200);
  });
});

describe('Poison: invalid replies of the ledger, on accounts.commands', () => {
  const reply = (correlation_id: string) =>
    toHeaders({
      message_id: correlation_id,
      type: replyType,
      source: source.ledger,
      time: new Date().toISOString(),
      subject: '',
      request_id: '',
      actor: '',
      correlation_id,
    });

  it('a malformed reply is a dead letter; an unexpected one is ignored', async () => {
    const bad = marked({ 'malformed reply': { value: '{"ok":"perhaps"}', headers: reply(unknownId('acc')) } });
    for (const one of bad) expectDeadLetter(await poisoned('accounts.commands', bad), 'accounts.commands', one);
    const topic = topicName(world.bank.topic_prefix, 'accounts.commands');
    await publish(world.bank, [
      {
        topic,
        partition: 0,
        key: null,
        value: '{"ok":true,"data":{}}',
        headers: { ...reply(unknownId('acc')), 'x-test': 'stray reply' },
      },
    ]);
    await caughtUp(world.bank, 'accounts');
    expect(
      (await readTopic(world.bank, 'accounts.commands.dlq')).filter((letter) => testName(letter) === 'stray reply'),
    ).toEqual([]);
    await api.newAccount({ initial_deposit: 1 });
  });
});
