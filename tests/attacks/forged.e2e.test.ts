import { randomBytes, randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseApiKey } from '#libs/contracts/api-key.ts';
import type { DeadLetter } from '#libs/contracts/dead-letters.ts';
import { replyType, source, toHeaders } from '#libs/contracts/envelope.ts';
import type { EventData } from '#libs/contracts/events.ts';
import { bucketForKey, formatId, withBucket } from '#libs/contracts/ids.ts';
import { type MessageData, type MessageName, messages, messageType } from '#libs/contracts/messages.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import { commandPartition, type TopicName, topicName } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { testKeys, testMacSecrets } from '#libs/service/test/keys.ts';
import { startReceiver } from '../../services/webhooks/test/receiver.ts';
import { Api, type RestAccount, type RestTransaction } from '../support/client.ts';
import { again, caughtUp, createTestKafka, publish, readTopic } from '../support/kafka.ts';
import { scrape } from '../support/metrics.ts';
import { eventually, useBank } from '../support/world.ts';

/** The attacker can write to the broker and has read every message. No message of the attacker may have an effect. */
// The keys are being rotated: gateways sign with a new key, and the previous one is still accepted.
const world = useBank({
  webhooks: 1,
  env: { GATEWAY_MAC_KEYS: `a new MAC key of gateways for this test,${testMacSecrets.gateway}` },
});
const { api } = world;
const officer = 'jwt:https://issuer.example|officer';

let account: RestAccount;
beforeAll(async () => {
  account = await api.newAccount({ initial_deposit: 100 });
  await api.transact(account.account_id, 'Deposit', 1);
});

const freshId = (kind: 'transaction' | 'transition') =>
  formatId(kind, withBucket(randomBytes(16).toString('hex'), account.account_id));

function forged<N extends MessageName>(
  name: N,
  id: string,
  data: MessageData<N>,
  headers: Record<string, string> = {},
): OutgoingMessage {
  const now = Date.now();
  const context = {
    message_id: id,
    type: messageType(name),
    source: source.gateway,
    subject: account.account_id,
    request_id: id,
    actor: officer,
    staff: 'true',
  };
  const times = { time: new Date(now).toISOString(), deadline: new Date(now + 30_000).toISOString() };
  return at(messages[name].topic, {
    headers: { ...toHeaders({ ...context, ...times }), ...headers },
    value: JSON.stringify(data),
  });
}

function at(topic: TopicName, message: Pick<OutgoingMessage, 'headers' | 'value'>): OutgoingMessage {
  return {
    ...message,
    topic: topicName(world.bank.topic_prefix, topic),
    partition: commandPartition(bucketForKey(account.account_id)),
    key: account.account_id,
  };
}

function deposit(headers: Record<string, string> = {}): OutgoingMessage {
  const transaction_id = freshId('transaction');
  const data = {
    transaction_id,
    account_id: account.account_id,
    transaction_type: 'Deposit' as const,
    amount: '1000',
    currency: null,
    description: null,
    reference: null,
  };
  return forged('create_transaction', transaction_id, data, headers);
}

/** Returns the newest authentic message of that type. */
async function authentic(topic: TopicName, type: string): Promise<ReceivedMessage> {
  const found = (await readTopic(world.bank, topic)).findLast(({ headers }) => headers['ce_type'] === type);
  if (!found) throw new Error(`there is no ${type} on ${topic}`);
  return found;
}

const attack = (...messages: OutgoingMessage[]) => publish(world.bank, messages, { asTheyAre: true });

/** Publishes the message unchanged and returns the reason of its dead letter. */
async function deadLetterCode(topic: TopicName, message: OutgoingMessage): Promise<string | undefined> {
  const mark = randomBytes(8).toString('hex');
  await attack({ ...message, headers: { ...message.headers, 'dlq-test': mark } });
  const letter = await eventually(async () =>
    (await readTopic(world.bank, `${topic}.dlq` as TopicName)).find(({ headers }) => headers['dlq-test'] === mark),
  );
  return letter.headers['dlq-code'];
}

describe('Forged commands', () => {
  it('a deposit in an officer’s name is not executed, but becomes a dead letter and is counted', async () => {
    // asvs: 13.2.1
    const before = await api.balance(account.account_id);
    const message = deposit();
    await attack(message);
    await caughtUp(world.bank, 'ledger');
    expect((await api.get(`/transactions/${message.headers['ce_id']}`)).status).toBe(404);
    expect(await api.balance(account.account_id)).toBe(before);
    expect(await deadLetterCode('ledger.commands', deposit())).toBe('not_authentic');
    const metrics = await scrape(world.bank.process('ledger'));
    expect(
      metrics.value('corebanking_dead_letters_total', { topic: 'ledger.commands', code: 'not_authentic' }),
    ).toBeGreaterThan(0);
  });

  it('an API key created by a forged command does not exist', async () => {
    const key_id = formatId('key', randomBytes(16).toString('hex'));
    const data = {
      key_id,
      name: 'forged',
      scopes: [...scopes],
      environment: 'test' as const,
      client_id: null,
      expires_at: '2999-01-01T00:00:00.000Z',
      secret_hash: randomBytes(32).toString('hex'),
    };
    await attack(forged('create_api_key', key_id, data));
    await caughtUp(world.bank, 'accounts');
    expect((await api.get(`/admin/api-keys/${key_id}`)).status).toBe(404);
  });
});

describe('Forged events', () => {
  it('are neither delivered by webhooks nor in GET /events, but counted; the events of the bank go on', async () => {
    // contract: webhooks-26
    // asvs: 13.2.1
    const { url, received, stop } = await startReceiver();
    try {
      const { webhook_id } = (await api.post('/webhooks', { url, event_types: ['*'] })).data<{ webhook_id: string }>();
      const first = await api.transact(account.account_id, 'Deposit', 2);
      const about = (id: string) => received.filter(({ body }) => body.includes(id));
      await eventually(async () => about(first.transaction_id).length > 0);
      const known = await authentic('transactions', 'corebanking.transaction.completed.v1');
      const { mac: _, ...unsigned } = known.headers;
      const ids = Array.from({ length: 4 }, () => freshId('transaction'));
      const value = (id: string) =>
        String(known.value).replaceAll(/"transaction_id":"[^"]+"/g, `"transaction_id":"${id}"`);
      const headers = { ...unsigned, ce_id: randomUUID() };
      const strangers = {
        ...again(known),
        value: value(ids[2] as string),
        headers: { ...headers, ce_id: randomUUID() },
      };
      testKeys.sign('gateway', strangers);
      await attack(
        { ...again(known), value: value(ids[0] as string), headers },
        { ...again(known), value: value(ids[1] as string), headers: { ...known.headers, ce_id: randomUUID() } },
        strangers,
        {
          ...again(known),
          topic: topicName(world.bank.topic_prefix, 'transfers'),
          headers: { ...headers, ce_id: randomUUID() },
          value: value(ids[3] as string),
        },
      );
      await caughtUp(world.bank, 'webhooks-events', undefined, 'transactions');
      await caughtUp(world.bank, 'webhooks-events', undefined, 'transfers');
      const last = await api.transact(account.account_id, 'Deposit', 3);
      await eventually(async () => about(last.transaction_id).length > 0);
      expect(ids.flatMap(about)).toEqual([]);
      const { text } = await api.get(`/events?account_id=${account.account_id}&limit=500`);
      expect(text).toContain(last.transaction_id);
      expect(ids.filter((id) => text.includes(id))).toEqual([]);
      const metrics = await scrape(world.bank.process('webhooks'));
      expect(metrics.value('corebanking_webhooks_forged_events_total')).toBeGreaterThanOrEqual(4);
      await api.send('DELETE', `/webhooks/${webhook_id}`);
    } finally {
      await stop();
    }
  });
});

describe('Forged positions of the ledger', () => {
  it('do not stop a ledger that starts, which posts at once', async () => {
    // asvs: 13.2.1
    const [position] = (await readTopic(world.bank, 'ledger.position')).slice(-1) as [ReceivedMessage];
    const { mac, ...known } = JSON.parse(String(position.value)) as { batch_id: string; mac: string };
    const junk = [
      { ...known, batch_id: String(Number(known.batch_id) + 100_000), mac },
      { ...known, mac: 'ledger/x:y' },
      'no position',
    ];
    await attack(
      ...junk.map((value) => ({
        ...again(position),
        value: typeof value === 'string' ? value : JSON.stringify(value),
      })),
      { ...again(position), value: null },
    );
    const ledger = world.bank.process('ledger');
    await ledger.startWith({});
    await eventually(async () => (await fetch(ledger.health_url)).status === 200, 30_000);
    const before = await api.balance(account.account_id);
    await api.transact(account.account_id, 'Deposit', 4);
    expect(await api.balance(account.account_id)).toBe(before + 4);
  });
});

describe('Forged states of API keys', () => {
  it('do not add a scope to a key, and do not reactivate a revoked one', async () => {
    // asvs: 13.2.1
    const { api_key, key_id } = await api.key({ scopes: ['accounts:read'] });
    const low = new Api(
      () => world.bank.base_urls[0] as string,
      () => ({ 'x-api-key': api_key }),
    );
    const states = async () =>
      (await readTopic(world.bank, 'api-keys')).filter(({ key }) =>
        key?.startsWith(parseApiKey(api_key)?.key_id ?? '-'),
      );
    const [known] = (await states()) as [ReceivedMessage];
    const refused = async () =>
      (await scrape(world.bank.process('gateway'))).value('corebanking_gateway_forged_key_states_total');
    let forgeries = 0;
    const forge = async (version: number) => {
      const state = {
        ...(JSON.parse(String(known.value)) as EventData<'corebanking.api_key.v1'>),
        scopes: [...scopes],
        revoked_at: null,
        version,
      };
      await attack({ ...again(known), value: JSON.stringify(state) });
      forgeries += 1;
      // Other states may be in another partition, so only this tells that the gateway has read it.
      await eventually(async () => (await refused()) === forgeries);
    };
    expect((await low.get('/admin/api-keys')).status).toBe(403);
    await forge(100);
    expect((await low.get('/admin/api-keys')).status).toBe(403);
    expect((await api.post(`/admin/api-keys/${key_id}/revocation`)).status).toBe(200);
    await forge(200);
    expect((await low.get('/accounts')).status).toBe(401);
    expect(await refused()).toBe(2);
  });
});

describe('Older signed states of API keys', () => {
  it('do not make a revoked key valid again at the start of a gateway, although the topic contains nothing newer', async () => {
    // contract: permission-41
    const { api_key, key_id } = await api.key({ scopes: ['accounts:read'] });
    const revoked = api.withKey(api_key);
    const states = (await readTopic(world.bank, 'api-keys')).filter(({ key }) => key?.startsWith(key_id));
    expect((await revoked.get('/accounts')).status).toBe(200);
    expect((await api.post(`/admin/api-keys/${key_id}/revocation`)).status).toBe(200);
    // What compaction leaves after tombstones of all newer records, or a restored topic: here, nothing at all.
    const name = topicName(world.bank.topic_prefix, 'api-keys');
    const configEntries = [{ name: 'cleanup.policy', value: 'compact,delete' }];
    await createTestKafka(world.bank).withAdmin(async (admin) => {
      await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name, configEntries }] });
      // The broker takes a moment to know that records may be deleted.
      await eventually(() =>
        admin.deleteTopicRecords({ topic: name, partitions: [{ partition: 0, offset: '-1' }] }).then(() => true),
      );
    });
    await attack(...states.map(again), { ...again(states[0] as ReceivedMessage), key: `${key_id}/2`, value: null });
    expect((await revoked.get('/accounts')).status).toBe(401);
    await world.bank.process('gateway').restart();
    // It got all states from accounts again: neither is this key valid, nor are the others unknown.
    expect((await revoked.get('/accounts')).status).toBe(401);
    expect((await api.get('/accounts?limit=1')).status).toBe(200);
  });
});

describe('Changed authentic messages', () => {
  const changes: Record<string, (message: ReceivedMessage) => Partial<OutgoingMessage>> = {
    'another amount': ({ value }) => ({
      value: JSON.stringify({ ...(JSON.parse(String(value)) as object), amount: '1000' }),
    }),
    'another actor': ({ headers }) => ({ headers: { ...headers, actor: officer } }),
    'as staff': ({ headers }) => ({ headers: { ...headers, staff: 'true' } }),
    'not bound to its client': ({ headers: { 'bound-client-id': _, ...headers } }) => ({ headers }),
    'a later deadline': ({ headers }) => ({ headers: { ...headers, deadline: '2999-01-01T00:00:00.000Z' } }),
    'a renewed deadline': ({ headers }) => ({
      headers: { ...headers, 'renewed-deadline': '2999-01-01T00:00:00.000Z', 'renewal-mac': headers['mac'] ?? '' },
    }),
    'no MAC': ({ headers: { mac: _, ...headers } }) => ({ headers }),
    'the MAC of another message': ({ headers }) => ({
      headers: { ...headers, mac: headers['mac']?.replace(/.$/, (last) => (last === 'A' ? 'E' : 'A')) ?? '' },
    }),
  };

  it('become dead letters with a reason of their own, and get no reply', async () => {
    const { client_id, account_id } = account;
    const { api_key } = await api.key({ scopes: ['transfers:write', 'accounts:read'], client_id });
    const bound = new Api(
      () => world.bank.base_urls[0] as string,
      () => ({ 'x-api-key': api_key }),
    );
    const other = await api.newAccount();
    await bound.transfer(account_id, other.account_id, 1);
    const known = await authentic('ledger.commands', messageType('create_transfer'));
    const before = await api.balance(account_id);
    for (const [name, change] of Object.entries(changes))
      expect(await deadLetterCode('ledger.commands', { ...again(known), ...change(known) }), name).toBe(
        'not_authentic',
      );
    await attack(again(known));
    await caughtUp(world.bank, 'ledger');
    expect(await api.balance(account_id)).toBe(before);
    expect(
      (await readTopic(world.bank, 'ledger.commands.dlq')).filter(
        ({ headers }) => headers['dlq-code'] !== 'not_authentic',
      ),
    ).toEqual([]);
  });

  it('a message signed by one service is not accepted as another service’s', async () => {
    const { account_id } = account;
    const byGateway = forged('change_ledger_account_status', freshId('transition'), {
      transition_id: freshId('transition'),
      account_id,
      status: 'Frozen',
    });
    testKeys.sign('gateway', byGateway);
    const byLedger = deposit();
    testKeys.sign('ledger', byLedger);
    for (const message of [byGateway, byLedger])
      expect(await deadLetterCode('ledger.commands', message)).toBe('not_authentic');
    // accounts sends only approved commands.
    for (const signer of ['ledger', 'accounts'] as const) {
      const key = forged('revoke_api_key', randomBytes(16).toString('hex'), {
        key_id: formatId('key', randomBytes(16).toString('hex')),
      });
      testKeys.sign(signer, key);
      expect(await deadLetterCode('accounts.commands', key)).toBe('not_authentic');
    }
    expect((await api.get(`/accounts/${account_id}`)).data<RestAccount>().status).toBe('Active');
  });

  it('a query that no gateway sent gets no reply', async () => {
    const query = forged(
      'list_transactions',
      'qry_forged',
      { limit: 500, order: 'asc' },
      {
        'reply-topic': topicName(world.bank.topic_prefix, 'replies'),
        'reply-partition': '1',
        'correlation-id': 'forged',
      },
    );
    expect(await deadLetterCode('ledger.queries', query)).toBe('not_authentic');
    expect(
      (await readTopic(world.bank, 'replies')).filter(({ headers }) => headers['correlation-id'] === 'forged'),
    ).toEqual([]);
  });
});

describe('Forged steps of sagas', () => {
  it('a forged reply of the ledger and a reply to another step do not end a saga', async () => {
    const reply = {
      ce_specversion: '1.0',
      ce_type: replyType,
      ce_source: source.ledger,
      ce_time: new Date().toISOString(),
      ce_id: freshId('transition'),
      'correlation-id': freshId('transition'),
    };
    const value = '{"ok":false,"refusal":{"code":"inactive_account","message":"no"}}';
    const byGateway = at('accounts.commands', { headers: reply, value });
    testKeys.sign('gateway', byGateway);
    for (const message of [at('accounts.commands', { headers: reply, value }), byGateway])
      expect(await deadLetterCode('accounts.commands', message)).toBe('not_authentic');
    const step = await authentic('ledger.commands', messageType('open_ledger_account'));
    expect(
      await deadLetterCode('ledger.commands', {
        ...again(step),
        headers: { ...step.headers, 'correlation-id': freshId('transition') },
      }),
    ).toBe('bad_reply_topic');
  });
});

describe('Dead letters', () => {
  it('a redriven forgery becomes a dead letter again, also with a new deadline', async () => {
    const message = deposit();
    await attack(message);
    const find = (state: string) =>
      eventually(async () =>
        (await api.all<DeadLetter>(`/admin/dead-letters?state=${state}`)).find(
          ({ request_id }) => request_id === message.headers['ce_id'],
        ),
      );
    const before = await api.balance(account.account_id);
    for (const renew_deadline of [false, true]) {
      const { dead_letter_id } = await find('open');
      expect((await api.post(`/admin/dead-letters/${dead_letter_id}/redrive`, { renew_deadline })).status).toBe(200);
    }
    expect(await find('open')).toMatchObject({ code: 'not_authentic' });
    expect(await api.balance(account.account_id)).toBe(before);
  });

  it('an expired command of a gateway is executed when accounts redrives it with a new deadline', async () => {
    const message = deposit({
      'reply-topic': 'nowhere',
      'reply-partition': '0',
      'correlation-id': 'c',
      deadline: new Date(Date.now() - 1000).toISOString(),
    });
    testKeys.sign('gateway', message);
    await attack(message);
    const letter = await eventually(async () =>
      (await api.all<DeadLetter>('/admin/dead-letters?state=open')).find(
        ({ request_id }) => request_id === message.headers['ce_id'],
      ),
    );
    expect(letter.code).toBe('bad_reply_topic');
    await api.post(`/admin/dead-letters/${letter.dead_letter_id}/redrive`, { renew_deadline: true });
    const done = await eventually(async () => {
      const answer = await api.get(`/transactions/${message.headers['ce_id']}`);
      return answer.status === 200 && answer.data<RestTransaction>();
    });
    expect(done).toMatchObject({ status: 'Completed', amount: 1000 });
  });
});

describe('A ledger without the key with which the gateways sign, as after a rotation in the wrong order', () => {
  it('is not ready and names the key; commands wait for it, and every 202 gets its outcome', async () => {
    const ledger = world.bank.process('ledger');
    // Of an account of its own, because letters of the tests before may still arrive.
    const { account_id } = await api.newAccount();
    const letters = async () =>
      (await readTopic(world.bank, 'ledger.commands.dlq')).filter(({ value }) => value?.includes(account_id));
    await ledger.startWith({ GATEWAY_MAC_KEYS: testMacSecrets.gateway });
    const body = { account_id, transaction_type: 'Deposit', amount: 7 };
    // Before the ledger takes its partitions again, the gateway may know that it does not answer.
    const accepted = await eventually(async () => {
      const answer = await api.post('/transactions', body);
      return answer.status === 202 && answer;
    }, 30_000);
    await eventually(async () => {
      const answer = await fetch(ledger.health_url);
      return answer.status === 503 && /gateway\/[\w-]{8}, which is not in GATEWAY_MAC_KEYS/.test(await answer.text());
    });
    expect(await letters()).toEqual([]);
    await ledger.startWith({});
    const found = await eventually(async () => {
      const answer = await api.get(accepted.header('location') ?? '');
      expect(answer.status, answer.text).not.toBe(404);
      return (
        answer.status === 200 && answer.data<RestTransaction>().status !== 'Pending' && answer.data<RestTransaction>()
      );
    }, 30_000);
    // A slow machine may need longer than its deadline.
    if (found.status === 'Failed') expect(found.failure_code).toBe('deadline_exceeded');
    expect(await letters()).toEqual([]);
  });
});
