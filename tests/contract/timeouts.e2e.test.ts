import { beforeAll, describe, expect, it } from 'vitest';
import { parseApiKey } from '#libs/contracts/api-key.ts';
import type { DeadLetter } from '#libs/contracts/dead-letters.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { source, toHeaders } from '#libs/contracts/envelope.ts';
import { bucketForKey, formatId, withBucket } from '#libs/contracts/ids.ts';
import { messages, messageType } from '#libs/contracts/messages.ts';
import { NumberText } from '#libs/contracts/money.ts';
import { commandPartition, topicName } from '#libs/contracts/topics.ts';
import { derivedBits, fingerprint } from '#services/gateway/api/ids.ts';
import {
  type Answer,
  expectError,
  newKey,
  type RestAccount,
  type RestTransaction,
  type RestTransfer,
  retail,
  unknownId,
} from '../support/client.ts';
import { caughtUp, publish } from '../support/kafka.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests the contract of time-outs. A service hangs (SIGSTOP) or is stopped for a while. */
const world = useBank({ gateways: 2 });
const { api } = world;

/** What the decision adds to a Pending posting: without an effective date in the request, the bank's day at the decision. */
const completed = {
  status: 'Completed',
  currency: 'USD',
  effective_date: expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/) as string,
};

const isDone = (answer: Answer) => answer.status === 200 && answer.data<RestTransaction>().status !== 'Pending';
const untilOutcome = <T>(path: string) =>
  eventually(async () => {
    const answer = await api.get(path);
    expect(answer.status, answer.text).not.toBe(404);
    return isDone(answer) && answer.data<T>();
  }, 20_000);

/** Runs `use` while the service hangs. */
async function whileHanging<T>(name: string, use: () => Promise<T>): Promise<T> {
  world.bank.process(name).kill('SIGSTOP');
  try {
    return await use();
  } finally {
    world.bank.process(name).kill('SIGCONT');
  }
}

/**
 * Resolves when both gateways have received a response of the service, so that their breakers are
 * closed.
 */
async function untilAnswering(): Promise<void> {
  await eventually(async () => {
    const answers = await Promise.all([0, 1].map((gateway) => world.gateway(gateway).get('/accounts?limit=1')));
    return answers.every(({ status }) => status === 200);
  }, 20_000);
}

describe('Time-outs: the ledger does not reply', () => {
  let account: RestAccount;
  let other: RestAccount;
  let frozen: RestAccount;
  const made: Record<string, Answer> = {};
  const asked: Record<string, Answer> = {};
  const key = newKey();
  const crossed = newKey();
  let waitedMs = 0;

  beforeAll(async () => {
    [account, other, frozen] = [
      await api.newAccount({ initial_deposit: 100 }),
      await api.newAccount(),
      await api.newAccount({ status: 'Frozen' }),
    ];
    await whileHanging('ledger', async () => {
      const begun = Date.now();
      const { account_id } = account;
      const [deposit, transfer, refused, unknown, opening, first, second] = await Promise.all([
        api.once(key, '/transactions', {
          account_id,
          transaction_type: 'Deposit',
          amount: 5,
          description: 'late',
          reference: 'R',
        }),
        api.post('/transfers', { from_account_id: account_id, to_account_id: other.account_id, amount: 7 }),
        api.post('/transactions', { account_id: frozen.account_id, transaction_type: 'Deposit', amount: 5 }),
        api.post('/transfers', { from_account_id: account_id, to_account_id: unknownId('acc'), amount: 7 }),
        api.post('/accounts', { client_id: account.client_id, account_type: 'Current', currency: 'USD' }),
        api.once(crossed, '/transactions', { account_id, transaction_type: 'Deposit', amount: 1 }),
        api.once(crossed, '/transactions', { account_id: other.account_id, transaction_type: 'Deposit', amount: 1 }),
      ]);
      waitedMs = Date.now() - begun;
      Object.assign(made, { deposit, transfer, refused, unknown, opening, first, second });
      const { transaction_id } = deposit.body as RestTransaction;
      const [own, foreign, balance, list, one] = await Promise.all([
        world.gateway(0).get(`/transactions/${transaction_id}`),
        world.gateway(1).get(`/transactions/${transaction_id}`),
        api.get(`/accounts/number/${account.account_number}/balance`),
        api.get('/accounts'),
        api.get(`/accounts/${account_id}`),
      ]);
      Object.assign(asked, { own, foreign, balance, list, one });
    });
    await untilAnswering();
  });

  it('without a reply within 5 s, POST /transactions is 202 with status Pending, Location, and Retry-After', () => {
    // contract: envelope-3, idempotency-15
    const answer = made['deposit'] as Answer;
    expect(answer.status).toBe(202);
    const pending = answer.body as RestTransaction;
    expect(pending).toMatchObject({
      account_id: account.account_id,
      transaction_type: 'Deposit',
      amount: 5,
      description: 'late',
      reference: 'R',
      status: 'Pending',
    });
    expect(answer.header('location')).toContain(`/transactions/${pending.transaction_id}`);
    expect(Number(answer.header('retry-after'))).toBeGreaterThan(0);
    expect(waitedMs).toBeGreaterThan(4000);
    expect(waitedMs).toBeLessThan(9000);
  });

  it('POST /transfers is 202 with a Pending Transfer in data', () => {
    // contract: idempotency-15
    const answer = made['transfer'] as Answer;
    expect(answer.status).toBe(202);
    expect(answer.data()).toMatchObject({
      from_account_id: account.account_id,
      to_account_id: other.account_id,
      amount: 7,
      status: 'Pending',
      transfer_id: expect.stringMatching(/^trf_/),
    });
    expect(answer.header('location')).toContain(answer.data<RestTransfer>().transfer_id);
  });

  it('POST /accounts is 504 outcome_unknown with the resource id', async () => {
    // contract: idempotency-19
    const { details, message } = expectError(made['opening'] as Answer, 504, 'outcome_unknown');
    const id = details?.['account_id'] ?? '';
    expect(message).toContain(id);
    await eventually(async () => (await api.get(`/accounts/${id}`)).status === 200);
  });

  it('after a 202, GET of that id is never 404 on any gateway: Pending, or 503 if it cannot know', () => {
    // contract: idempotency-17
    for (const answer of [asked['own'], asked['foreign']] as Answer[]) {
      if (answer.status === 200) expect(answer.data()).toMatchObject({ status: 'Pending' });
      else expectError(answer, 503, 'service_unavailable');
    }
  });

  it('if the balance by number cannot be read, the response is exactly 500 with its message', () => {
    expectError(asked['balance'] as Answer, 500, 'internal_error', /an error occurred while fetching the balance/i);
  });

  it('without a reply of the ledger, the list of accounts and a single one are 503 with Retry-After', () => {
    for (const answer of [asked['list'], asked['one']] as Answer[]) {
      expectError(answer, 503, 'service_unavailable');
      expect(answer.header('retry-after')).not.toBeNull();
    }
  });

  it('a later GET returns the outcome: Pending becomes Completed, with the same created_at', async () => {
    // contract: envelope-12, transactions-9
    const pending = (made['deposit'] as Answer).body as RestTransaction;
    expect(await untilOutcome(`/transactions/${pending.transaction_id}`)).toEqual({ ...pending, ...completed });
    const transfer = (made['transfer'] as Answer).data<RestTransfer>();
    expect(await untilOutcome(`/transfers/${transfer.transfer_id}`)).toEqual({ ...transfer, ...completed });
  });

  it('Pending becomes Failed if the transaction was refused', async () => {
    // contract: idempotency-18
    const { transaction_id } = (made['refused'] as Answer).body as RestTransaction;
    expect(await untilOutcome(`/transactions/${transaction_id}`)).toMatchObject({
      status: 'Failed',
      failure_code: 'inactive_account',
    });
  });

  it('account_not_found is also stored after a 202, as a Transfer with status Failed', async () => {
    // contract: idempotency-18
    const answer = made['unknown'] as Answer;
    expect(answer.status).toBe(202);
    expect(await untilOutcome(`/transfers/${answer.data<RestTransfer>().transfer_id}`)).toMatchObject({
      status: 'Failed',
      failure_code: 'account_not_found',
    });
  });

  it('a repeat of a 202 returns the outcome as soon as there is one', async () => {
    // contract: idempotency-2
    const pending = (made['deposit'] as Answer).body as RestTransaction;
    await untilOutcome(`/transactions/${pending.transaction_id}`);
    const answer = await world.gateway(1).once(key, '/transactions', {
      account_id: account.account_id,
      transaction_type: 'Deposit',
      amount: 5,
      description: 'late',
      reference: 'R',
    });
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({ ...pending, ...completed });
    expect(answer.header('idempotent-replayed')).toBe('true');
  });

  it('a key used for two accounts meanwhile posts one operation, and neither id is 404', async () => {
    const ids = [made['first'], made['second']].map(
      (answer) => ((answer as Answer).body as RestTransaction).transaction_id,
    );
    const answers = await Promise.all(
      ids.flatMap((id) => [0, 1].map((gateway) => world.gateway(gateway).get(`/transactions/${id}`))),
    );
    expect(answers.map(({ status }) => status)).not.toContain(404);
    expect(await api.all(`/transactions?idempotency_key=${crossed}&status=Completed`)).toHaveLength(1);
  });

  it('each operation was posted once', async () => {
    const sent = await api.all<RestTransaction>(
      `/transactions?account_id=${account.account_id}&order=asc&status=Completed`,
    );
    expect(sent.map(({ transaction_type, amount }) => [transaction_type, amount]).slice(0, 1)).toEqual([
      ['Deposit', 100],
    ]);
    expect(sent.filter(({ amount }) => amount === 5)).toHaveLength(1);
    expect(sent.filter(({ amount }) => amount === 7)).toHaveLength(1);
    expect((await api.balance(other.account_id)) + (await api.balance(account.account_id))).toBe(106);
  });
});

describe('Time-outs: after a 202 no gateway responds 404', () => {
  const everywhere = (path: string) => Promise.all([0, 1].map((gateway) => world.gateway(gateway).get(path)));
  let account_id: string;
  beforeAll(async () => {
    ({ account_id } = await api.newAccount({ initial_deposit: 100 }));
  });

  it('a random well-formed id is 404 on both gateways', async () => {
    for (const [kind, path] of [
      ['transaction', 'transactions/txn'],
      ['transfer', 'transfers/trf'],
    ] as const) {
      for (const answer of await everywhere(`/${path}_${unknownId('txn').slice(4)}`))
        expectError(answer, 404, `${kind}_not_found`);
    }
  });

  it('if the reply is lost, both gateways show the outcome', async () => {
    const to = unknownId('acc');
    const transfer_id = formatId('transfer', withBucket(unknownId('trf').slice(4), account_id));
    const now = Date.now();
    const headers = toHeaders({
      message_id: transfer_id,
      type: messageType('create_transfer'),
      source: source.gateway,
      time: new Date(now).toISOString(),
      subject: account_id,
      request_id: 'lost',
      actor: 'key:x',
      deadline: new Date(now + 30_000).toISOString(),
    });
    const value = JSON.stringify({
      transfer_id,
      from_account_id: account_id,
      to_account_id: to,
      amount: '7',
      currency: null,
      description: null,
    });
    await publish(world.bank, [
      {
        topic: topicName(world.bank.topic_prefix, 'ledger.commands'),
        partition: commandPartition(bucketForKey(account_id)),
        key: account_id,
        value,
        headers,
      },
    ]);
    for (const answer of await everywhere(`/transfers/${transfer_id}`))
      expect(answer.data()).toMatchObject({ to_account_id: to, status: 'Failed', failure_code: 'account_not_found' });
  });

  it.each([
    ['redriven', { renew_deadline: true }, { status: 'Completed' }],
    ['dropped', {}, { status: 'Failed', failure_code: 'deadline_exceeded' }],
  ] as const)(
    'if the command becomes a dead letter, both gateways respond 503 until it is %s, then with the outcome',
    async (state, body, outcome) => {
      // contract: idempotency-21
      await world.sql(`create function refuse_late() returns trigger language plpgsql as $$ begin
      if new.description = 'poison' then raise exception 'no' using errcode = 'check_violation'; end if; return new; end $$`);
      await world.sql(
        'create trigger refuse_late before insert on transactions for each row execute function refuse_late()',
      );
      const pending = await whileHanging('ledger', () =>
        api.post('/transactions', { account_id, transaction_type: 'Deposit', amount: 3, description: 'poison' }),
      );
      expect(pending.status).toBe(202);
      const path = pending.header('location') ?? '';
      await untilAnswering();
      const letter = await eventually(
        async () => (await api.all<DeadLetter>('/admin/dead-letters?state=open')).find(({ key }) => key === account_id),
        20_000,
      );
      for (const answer of await everywhere(path)) expectError(answer, 503, 'service_unavailable', /dead-lettered/);
      // A ledger that hung for longer than its session receives the command twice.
      await caughtUp(world.bank, 'ledger');
      await world.sql('drop trigger refuse_late on transactions');
      await world.sql('drop function refuse_late');
      expect(
        (
          await api.post(
            `/admin/dead-letters/${letter.dead_letter_id}/${state === 'redriven' ? 'redrive' : 'drop'}`,
            body,
          )
        ).data(),
      ).toMatchObject({ state });
      await eventually(async () => (await everywhere(path)).every(({ status }) => status === 200), 20_000);
      for (const answer of await everywhere(path))
        expect(answer.data()).toMatchObject({ account_id, amount: 3, ...outcome });
    },
  );
});

describe('Time-outs: accounts does not reply', () => {
  it('POST /clients is 504 outcome_unknown; a repeat with the same key returns the same outcome', async () => {
    // contract: idempotency-19
    const key = newKey();
    const answer = await whileHanging('accounts', () => api.once(key, '/clients', retail()));
    const error = expectError(answer, 504, 'outcome_unknown', /Idempotency-Key/);
    await untilAnswering();
    const again = await eventually(async () => {
      const repeat = await world.gateway(1).once(key, '/clients', retail());
      return repeat.status === 201 && repeat;
    });
    expect(again.data()).toMatchObject({ client_id: error.details?.['client_id'] });
  });

  it('postings do not depend on it', async () => {
    const account = await api.newAccount();
    await whileHanging('accounts', async () => {
      await api.transact(account.account_id, 'Deposit', 1);
      expect((await api.get(`/accounts/number/${account.account_number}/balance`)).data()).toMatchObject({
        balance: 1,
      });
    });
    await untilAnswering();
  });
});

describe('Deadline', () => {
  const accepted = Date.now() - 60_000;
  const at = (ms: number) => new Date(accepted + ms).toISOString();

  /**
   * Publishes a command as a gateway would have a minute ago, for this bank’s own API key and an
   * Idempotency-Key.
   */
  async function publishLate(
    name: 'create_transaction' | 'create_client',
    route: string,
    key: string,
    body: unknown,
    of: (bits: string) => { id: string; subject: string; data: object },
  ): Promise<string> {
    const actor = `key:${parseApiKey(world.bank.api_key)?.key_id}`;
    const { id, subject, data } = of(derivedBits(actor, route, key));
    const headers = toHeaders({
      message_id: id,
      type: messageType(name),
      source: source.gateway,
      time: at(0),
      subject,
      request_id: 'late',
      actor,
      deadline: at(30_000),
      reply_by: at(5000),
      idempotency_key: key,
      fingerprint: fingerprint({}, body),
    });
    const topic = topicName(world.bank.topic_prefix, messages[name].topic);
    await publish(world.bank, [
      { topic, partition: commandPartition(bucketForKey(subject)), key: subject, value: JSON.stringify(data), headers },
    ]);
    return id;
  }

  it('a transaction that is processed after its deadline is recorded as Failed with deadline_exceeded, and replayed as 409', async () => {
    // contract: idempotency-12
    const { account_id } = await api.newAccount();
    const key = newKey();
    const body = { account_id, transaction_type: 'Deposit', currency: 'USD' };
    const parsed = endpoints.create_transaction.body.parse({ ...body, amount: new NumberText('5') });
    const id = await publishLate('create_transaction', 'POST /transactions', key, parsed, (bits) => {
      const transaction_id = formatId('transaction', withBucket(bits, account_id));
      return {
        id: transaction_id,
        subject: account_id,
        data: { ...parsed, transaction_id, description: null, reference: null },
      };
    });
    expect(await untilOutcome(`/transactions/${id}`)).toMatchObject({
      status: 'Failed',
      failure_code: 'deadline_exceeded',
      created_at: at(0),
    });
    const answer = await api.once(key, '/transactions', { ...body, amount: 5 });
    expectError(answer, 409, 'deadline_exceeded');
    expect(answer.header('idempotent-replayed')).toBe('true');
    expect(await api.balance(account_id)).toBe(0);
  });

  it('a client that was requested too long ago is not created, and replayed as 409', async () => {
    // contract: idempotency-12
    const key = newKey();
    const id = await publishLate(
      'create_client',
      'POST /clients',
      key,
      endpoints.create_client.body.parse(retail()),
      (bits) => {
        const client_id = formatId('client', bits);
        return { id: client_id, subject: client_id, data: { client_id, client: retail() } };
      },
    );
    await caughtUp(world.bank, 'accounts');
    expectError(await api.once(key, '/clients', retail()), 409, 'deadline_exceeded');
    expectError(await api.get(`/clients/${id}`), 404, 'client_not_found');
  });

  it('a saga that has begun is completed, even after the deadline', async () => {
    // contract: idempotency-13
    const { client_id } = await api.client();
    const key = newKey();
    const body = { client_id, account_type: 'Savings', currency: 'USD', initial_deposit: 9 };
    await world.bank.process('ledger').stop();
    expectError(await api.once(key, '/accounts', body), 504, 'outcome_unknown');
    await world.bank.process('ledger').restart();
    await untilAnswering();
    const [account] = await eventually(async () => {
      const accounts = (await api.get(`/accounts?client_id=${client_id}`)).list<RestAccount>();
      return accounts.length > 0 && accounts;
    });
    expect(account).toMatchObject({ balance: 9 });
    const again = await api.once(key, '/accounts', body);
    expect([again.status, again.data()]).toEqual([201, account]);
  });
});
