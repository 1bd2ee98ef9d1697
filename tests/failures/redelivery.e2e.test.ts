import { beforeAll, describe, expect, it } from 'vitest';
import { topicName } from '#libs/contracts/topics.ts';
import {
  type Answer,
  newKey,
  newPhone,
  type RestAccount,
  type RestTransaction,
  retail,
  unknownId,
} from '../support/client.ts';
import { again, caughtUp, countMessages, createTestKafka, publish, readTopic } from '../support/kafka.ts';
import { eventually, together, useBank } from '../support/world.ts';

/** Tests at-least-once delivery: messages that are delivered again or interrupted take effect once. */
const world = useBank({ ledgers: 2, env: { SPREAD_COMMANDS: 'true' } });
const { api } = world;

/** Returns everything that a second delivery could change, in both schemas, as text. */
async function everything(): Promise<Record<string, string[]>> {
  const rows = async (view: string, order: string) =>
    (await world.sql<{ row: string }>(`select row_to_json(t)::text as row from ${view} t order by ${order}`)).map(
      ({ row }) => row,
    );
  return {
    entries: await rows('v_entries', 'account_id, sequence'),
    // A batch creates slots of Teller and Vault before it is known to be a repeat. They are then empty.
    'ledger accounts': await rows(
      '(select * from v_accounts where client_id is not null or last_sequence > 0)',
      'account_id',
    ),
    transactions: await rows('v_transactions', 'transaction_id'),
    clients: await rows('accounts.clients', 'client_id'),
    accounts: await rows('accounts.accounts', 'account_id'),
    'status transitions': await rows('accounts.status_transitions', 'transition_id'),
    'API keys': await rows('(select key_id, version, revoked_at, expires_at from accounts.api_keys)', 'key_id'),
  };
}

async function eventCounts(): Promise<unknown> {
  const topics = ['transactions', 'transfers', 'accounts', 'clients', 'balances'] as const;
  return Promise.all(topics.map(async (topic) => [topic, await countMessages(world.bank, topic)]));
}

/** Every kind of command, including refusals. */
async function liveThroughADay(): Promise<void> {
  const client = await api.client({ ussd_phone_number: newPhone(), ussd_status: 'active' });
  const [savings, current] = [
    await api.account(client.client_id, { initial_deposit: 100 }),
    await api.account(client.client_id, { account_type: 'Current' }),
  ];
  const loan = await api.account(client.client_id, { account_type: 'Loan', initial_deposit: 50 });
  const deposit = await api.transact(savings.account_id, 'Deposit', 10);
  await api.once(newKey(), '/transactions', {
    account_id: savings.account_id,
    transaction_type: 'Withdrawal',
    amount: 5,
  });
  await api.post('/transactions', { account_id: savings.account_id, transaction_type: 'Withdrawal', amount: 5000 });
  await api.transfer(savings.account_id, current.account_id, 20);
  await api.transfer(savings.account_id, loan.account_id, 20);
  await api.post(`/transactions/${deposit.transaction_id}/reversal`, { reason: 'x' });
  await api.setStatus(current.account_id, 'Frozen', 'fraud');
  await api.post('/transfers', { from_account_id: savings.account_id, to_account_id: current.account_id, amount: 1 });
  await api.setStatus(current.account_id, 'Active');
  await api.transact(current.account_id, 'Withdrawal', 1);
  await api.patch(`/clients/${client.client_id}`, { address: 'elsewhere' });
  const key = await api.key({ scopes: ['clients:read'] });
  await api.post(`/admin/api-keys/${key.key_id}/rotation`);
  await api.post(`/admin/api-keys/${key.key_id}/revocation`);
}

async function settled(): Promise<void> {
  await Promise.all([caughtUp(world.bank, 'ledger'), caughtUp(world.bank, 'accounts')]);
  await eventually(world.isPublished);
}

describe('Every command consumed twice', () => {
  let before: Record<string, string[]>;
  let events: unknown;
  beforeAll(async () => {
    await Promise.all([liveThroughADay(), liveThroughADay()]);
    await settled();
    [before, events] = [await everything(), await eventCounts()];
  });

  it.each(['ledger.commands', 'accounts.commands'] as const)(
    '%s again, byte for byte, in order: no effect',
    async (topic) => {
      const messages = await readTopic(world.bank, topic);
      expect(messages.length).toBeGreaterThan(10);
      await publish(world.bank, messages.map(again));
      await settled();
      expect(await everything()).toEqual(before);
      expect(await eventCounts()).toEqual(events);
    },
  );

  it('both topics again, in reverse order: no effect', async () => {
    const messages = [
      ...(await readTopic(world.bank, 'ledger.commands')),
      ...(await readTopic(world.bank, 'accounts.commands')),
    ];
    await publish(world.bank, messages.map(again).reverse());
    await settled();
    expect(await everything()).toEqual(before);
    await world.expectBooksInOrder();
  });

  it('none of them became a dead letter', async () => {
    expect([
      await countMessages(world.bank, 'ledger.commands.dlq'),
      await countMessages(world.bank, 'accounts.commands.dlq'),
    ]).toEqual([0n, 0n]);
  });
});

describe('Consumer group offsets reset to 0', () => {
  it.each([
    ['ledger', ['ledger', 'ledger-2']],
    ['accounts', ['accounts']],
  ] as const)('%s reads everything again: no effect', async (group, names) => {
    await liveThroughADay();
    await settled();
    const before = await everything();
    await Promise.all(names.map((name) => world.bank.process(name).stop()));
    const groupId = `${world.bank.topic_prefix}${group}`;
    const topic = topicName(world.bank.topic_prefix, `${group}.commands`);
    await createTestKafka(world.bank).withAdmin((admin) => admin.resetOffsets({ groupId, topic, earliest: true }));
    await Promise.all(names.map((name) => world.bank.process(name).restart()));
    await settled();
    expect(await everything()).toEqual(before);
    await world.expectBooksInOrder();
    await api.newAccount({ initial_deposit: 1 });
  });
});

describe('A saga step whose message was lost', () => {
  it('is sent again by accounts, and the account is opened with its deposit once', async () => {
    const { client_id } = await api.client();
    const key = newKey();
    const open = () =>
      api.once(key, '/accounts', { client_id, account_type: 'Savings', currency: 'USD', initial_deposit: 7 });
    await settled();
    await Promise.all(['ledger', 'ledger-2'].map((name) => world.bank.process(name).stop()));
    expect((await open()).status).toBe(504);
    await eventually(
      async () =>
        (
          await world.sql(
            'select 1 from accounts.saga_steps s join accounts.outbox_batches on published_at > s.created_at',
          )
        ).length > 0,
    );
    // The ledgers will start reading after that message.
    const topic = topicName(world.bank.topic_prefix, 'ledger.commands');
    await createTestKafka(world.bank).withAdmin((admin) =>
      admin.resetOffsets({ groupId: `${world.bank.topic_prefix}ledger`, topic, earliest: false }),
    );
    await Promise.all(['ledger', 'ledger-2'].map((name) => world.bank.process(name).restart()));
    const opened = await eventually(async () => {
      const answer = await open();
      return answer.status === 201 && answer.data<RestAccount>();
    }, 60_000);
    expect(await api.balance(opened.account_id)).toBe(7);
    expect(await api.entries(opened.account_id)).toHaveLength(1);
  });
});

describe('Refusals that were not stored', () => {
  it('can be stored as Failed when they are delivered again, because they are late: no entry, no balance', async () => {
    const account = await api.newAccount({ initial_deposit: 10 });
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 1);
    await api.post(`/transactions/${transaction_id}/reversal`, { reason: 'x' });
    expect((await api.post(`/transactions/${transaction_id}/reversal`, { reason: 'again' })).status).toBe(400);
    expect(
      (
        await api.post('/transfers', {
          from_account_id: account.account_id,
          to_account_id: unknownId('acc'),
          amount: 1,
        })
      ).status,
    ).toBe(404);
    await settled();
    const before = await everything();
    await publish(world.bank, (await readTopic(world.bank, 'ledger.commands')).map(again));
    await settled();
    const after = await everything();
    const added = after['transactions']?.filter((row) => !before['transactions']?.includes(row)) ?? [];
    expect(added.filter((row) => !row.includes('"status":"Failed"'))).toEqual([]);
    expect({ ...after, transactions: after['transactions']?.filter((row) => !added.includes(row)) }).toEqual(before);
  });
});

describe('kill -9 under load', () => {
  interface Write {
    path: string;
    key: string;
    body: object;
    answers: Answer[];
  }

  const send = async (write: Write) => {
    const answer = await api.once(write.key, write.path, write.body);
    write.answers.push(answer);
    return answer;
  };

  /** Repeats a write with its key until it has an outcome. */
  const untilDecided = (write: Write) =>
    eventually(async () => {
      const answer = await send(write);
      return (answer.status === 201 || answer.status === 400) && answer;
    }, 40_000);

  async function untilReady(name: string): Promise<void> {
    await world.bank.process(name).restart();
  }

  it('of the ledgers: after the restart every acknowledged operation exists once, and every key has one outcome', async () => {
    const accounts = await together(8, () => api.newAccount({ initial_deposit: 100 }));
    const id = (i: number) => accounts[i % 8]?.account_id ?? '';
    const writes: Write[] = Array.from({ length: 400 }, (_, i) => {
      const isTransfer = i % 4 === 0;
      const body = isTransfer
        ? { from_account_id: id(i), to_account_id: id(i + 3), amount: 2 }
        : { account_id: id(i), transaction_type: i % 4 === 1 ? 'Withdrawal' : 'Deposit', amount: 1 };
      return { path: isTransfer ? '/transfers' : '/transactions', key: newKey(), body, answers: [] };
    });
    const load = together(20, async (lane) => {
      for (let i = lane; i < writes.length; i += 20) await send(writes[i] as Write);
    });
    await eventually(async () => writes.filter(({ answers }) => answers.length > 0).length > 60);
    for (const name of ['ledger', 'ledger-2']) world.bank.process(name).kill('SIGKILL');
    await Promise.all(['ledger', 'ledger-2'].map(untilReady));
    await load;
    const outcomes = await Promise.all(writes.map(untilDecided));
    for (const [i, { answers, key, path }] of writes.entries()) {
      const acknowledged = answers.filter(({ status }) => status === 201 || status === 400);
      const bodies = acknowledged.map(({ status, text }) =>
        status === 201 ? text : text.replace(/"request_id":"[^"]*"/, ''),
      );
      expect(new Set(bodies).size, JSON.stringify(answers.map(({ status, text }) => [status, text]))).toBe(1);
      for (const answer of answers) expect([201, 202, 400, 503, 504], answer.text).toContain(answer.status);
      const kept = await world.sql<{ status: string }>('select status from v_transactions where idempotency_key = $1', [
        key,
      ]);
      const legs = outcomes[i]?.status === 201 && path === '/transfers' ? 2 : 1;
      expect(kept.map(({ status }) => status)).toEqual(
        Array(legs).fill(outcomes[i]?.status === 201 ? 'Completed' : 'Failed'),
      );
    }
    const expected = outcomes.reduce(
      (sum, { status }, i) => sum + (status !== 201 || i % 4 === 0 ? 0 : i % 4 === 1 ? -1 : 1),
      800,
    );
    const balances = await Promise.all(accounts.map(({ account_id }) => api.balance(account_id)));
    expect(balances.reduce((sum, balance) => sum + balance)).toBe(expected);
    await world.expectBooksInOrder();
  });

  it('of accounts: each opening has one outcome, and its deposit is posted once', async () => {
    const { client_id } = await api.client();
    const openings: Write[] = Array.from({ length: 60 }, (_, i) => ({
      path: '/accounts',
      key: newKey(),
      body: { client_id, account_type: 'Savings', currency: 'USD', initial_deposit: i + 1 },
      answers: [],
    }));
    const load = together(20, async (lane) => {
      for (let i = lane; i < openings.length; i += 20) await send(openings[i] as Write);
    });
    await eventually(async () => openings.some(({ answers }) => answers.length > 0));
    world.bank.process('accounts').kill('SIGKILL');
    await untilReady('accounts');
    await load;
    const outcomes = await Promise.all(openings.map(untilDecided));
    const accounts = outcomes.map((answer) => answer.data<RestAccount>());
    expect(accounts.map(({ balance }) => balance)).toEqual(openings.map((_, i) => i + 1));
    const listed = await api.all<RestAccount>(`/accounts?client_id=${client_id}`);
    expect(listed.map(({ account_id }) => account_id).sort()).toEqual(
      accounts.map(({ account_id }) => account_id).sort(),
    );
    for (const { account_id, balance } of listed) {
      const transactions = (await api.get(`/transactions?account_id=${account_id}`)).list<RestTransaction>();
      expect(transactions.map(({ amount }) => amount)).toEqual([balance]);
    }
    await world.expectBooksInOrder();
  });

  it('of the gateway: its commands are processed once, and a repeated request gets that outcome', async () => {
    const account = await api.newAccount();
    const writes: Write[] = Array.from({ length: 60 }, () => ({
      path: '/transactions',
      key: newKey(),
      body: { account_id: account.account_id, transaction_type: 'Deposit', amount: 1 },
      answers: [],
    }));
    const load = Promise.allSettled(writes.map(send));
    await new Promise((resolve) => {
      setTimeout(resolve, 30);
    });
    world.bank.process('gateway').kill('SIGKILL');
    await untilReady('gateway');
    await load;
    const outcomes = await Promise.all(writes.map(untilDecided));
    expect(outcomes.map(({ status }) => status)).toEqual(Array(60).fill(201));
    expect(await api.balance(account.account_id)).toBe(60);
    expect((await api.post('/clients', retail())).status).toBe(201);
    await world.expectBooksInOrder();
  });
});
