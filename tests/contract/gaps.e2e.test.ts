import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { toHeaders } from '#libs/contracts/envelope.ts';
import { bucketForKey, bucketOfId } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { commandPartition, topicName } from '#libs/contracts/topics.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { createReplies } from '#libs/service/replies.ts';
import { signedForTest, testKeys } from '#libs/service/test/keys.ts';
import { ledgerCommands } from '#services/ledger/batch/commands.ts';
import { expectError, newKey, type RestTransaction, type RestTransfer, unknownId } from '../support/client.ts';
import { postRaw } from '../support/hostile.ts';
import { publish } from '../support/kafka.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests combinations of rules of the contract that the other files do not cover. */
const world = useBank({ gateways: 2 });
const { api } = world;

describe('Money: 40 characters and an exponent of 30 together', () => {
  const long = [`${'9'.repeat(36)}e30`, `1.${'2'.repeat(34)}e-30`];

  it.each(long)('%s as an amount, the currency being the account’s, is 400', async (n) => {
    const { account_id } = await api.newAccount();
    const answer = await postRaw(
      api,
      '/transactions',
      `{"account_id":"${account_id}","transaction_type":"Deposit","amount":${n}}`,
    );
    expect([answer.status, answer.error.code]).toEqual([
      400,
      n.includes('-') ? 'invalid_amount_precision' : 'amount_too_large',
    ]);
  });

  it.each(long)('%s is valid as min_amount and max_amount', async (n) => {
    expect((await api.get(`/transactions?min_amount=${n}`)).status).toBe(200);
    expect((await api.get(`/transactions?max_amount=${n}`)).status).toBe(200);
  });
});

describe('Transactions: reference', () => {
  it('100 arbitrary characters can be searched for', async () => {
    const { account_id } = await api.newAccount();
    const reference = '\u{1F600}'.repeat(100);
    const { transaction_id } = await api.transact(account_id, 'Deposit', 1, { reference });
    const answer = await api.get(`/transactions?account_id=${account_id}&reference=${encodeURIComponent(reference)}`);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.list<RestTransaction>().map((t) => t.transaction_id)).toEqual([transaction_id]);
  });
});

describe('Idempotency: refusals of a reversal', () => {
  async function refusals(code: string, path: string, other: string): Promise<void> {
    const key = newKey();
    const first = await api.once(key, path, { reason: 'r' });
    expectError(first, 400, code);
    const again = await api.once(key, path, { reason: 'r' });
    expectError(again, 400, code);
    expect(again.header('idempotent-replayed')).toBe('true');
    expectError(await api.once(key, other, { reason: 'r' }), 422, 'idempotency_key_reused');
  }
  const reversal = (id: string) => `/transactions/${id}/reversal`;

  it('not_reversible and already_reversed are outcomes: a repeat returns them, and the key is used', async () => {
    const { account_id } = await api.newAccount();
    const [one, two] = [await api.transact(account_id, 'Deposit', 1), await api.transact(account_id, 'Deposit', 1)];
    const reversed = (await api.post(reversal(one.transaction_id), { reason: 'r' })).data<RestTransaction>();
    await refusals('already_reversed', reversal(one.transaction_id), reversal(two.transaction_id));
    await refusals('not_reversible', reversal(reversed.transaction_id), reversal(two.transaction_id));
  });
});

describe('Ids: unknown ids', () => {
  it('an id that differs only in its last byte is 404', async () => {
    const { account_id } = await api.newAccount();
    const { transaction_id } = await api.transact(account_id, 'Deposit', 1);
    const other = transaction_id.slice(0, -2) + ((bucketOfId(transaction_id) + 1) % 256).toString(16).padStart(2, '0');
    expectError(await api.get(`/transactions/${other}`), 404, 'transaction_not_found');
  });
});

describe('Time-outs: a 202 for an account that does not exist', () => {
  it('GET of that id is never 404, on either gateway; finally it is Failed', async () => {
    const { account_id } = await api.newAccount({ initial_deposit: 10 });
    const ledger = world.bank.process('ledger');
    ledger.kill('SIGSTOP');
    const answer = await api
      .post('/transfers', { from_account_id: account_id, to_account_id: unknownId('acc'), amount: 1 })
      .finally(() => setTimeout(() => ledger.kill('SIGCONT'), 1_000));
    expect(answer.status, answer.text).toBe(202);
    const path = `/transfers/${answer.data<RestTransfer>().transfer_id}`;
    const outcomes = await eventually(async () => {
      const both = await Promise.all([0, 1].map((index) => world.gateway(index).get(path)));
      for (const { status, text } of both) expect([200, 503], text).toContain(status);
      return both.every(({ status, text }) => status === 200 && !text.includes('"Pending"')) && both;
    }, 30_000);
    expect(outcomes.map(({ text }) => text)).toEqual(outcomes.map(() => expect.stringContaining('"Failed"')));
  });
});

describe('Time-outs: outcomes after the reply timeout', () => {
  it('lists of other clients are unchanged; a repeat has the same created_at; already_reversed names the reversal', async () => {
    // contract: envelope-12
    const [mine, theirs] = [await api.newAccount({ initial_deposit: 5 }), await api.newAccount({ initial_deposit: 5 })];
    const boundTo = async (client_id: string) =>
      api.withKey((await api.key({ scopes: ['transactions:read', 'transfers:write'], client_id })).api_key);
    const [a, b] = [await boundTo(mine.client_id), await boundTo(theirs.client_id)];
    const { transaction_id } = await api.transact(mine.account_id, 'Deposit', 1);
    const path = `/transactions/${transaction_id}/reversal`;
    const reversal = (await api.post(path, { reason: 'r' })).data<RestTransaction>();
    const [key, reversalKey] = [newKey(), newKey()];
    const deposit = () =>
      api.once(key, '/transactions', { account_id: mine.account_id, transaction_type: 'Deposit', amount: 1 });
    const ledger = world.bank.process('ledger');
    ledger.kill('SIGSTOP');
    const [foreign, first, second, late] = await Promise.all([
      a.post('/transfers', {
        from_account_id: theirs.account_id,
        to_account_id: mine.account_id,
        amount: 1,
        description: 'from a stranger',
      }),
      deposit(),
      sleep(300).then(deposit),
      api.once(reversalKey, path, { reason: 'r' }),
    ]);
    ledger.kill('SIGCONT');
    expect([foreign.status, first.status, second.status, late.status]).toEqual([202, 202, 202, 504]);
    expect.soft(second.body).toEqual(first.body);
    const replay = await eventually(async () => {
      const answer = await api.once(reversalKey, path, { reason: 'r' });
      return answer.status < 500 && answer;
    });
    expect
      .soft(expectError(replay, 400, 'already_reversed').details)
      .toMatchObject({ reversal_transaction_id: reversal.transaction_id });
    await eventually(
      async () =>
        (await a.get(`/transfers/${foreign.data<RestTransfer>().transfer_id}`)).data<RestTransfer>().status ===
        'Failed',
    );
    expect
      .soft((await b.all<RestTransaction>('/transactions')).map(({ description }) => description))
      .toEqual(['Initial deposit']);
  });
});

describe('Poison', () => {
  it('becomes one dead letter although the database was unavailable', async () => {
    const sent: unknown[] = [];
    const publisher = {
      publish: async (message: unknown) => void sent.push(message),
      publishAll: async () => undefined,
    };
    const terminated = async () => {
      throw new Error('Connection terminated unexpectedly');
    };
    const pool = { connect: terminated, query: async () => ({ rows: [], rowCount: 0 }) };
    const replies = createReplies({ publisher, source: 'test', logger: silent, now: Date.now });
    const { handle } = ledgerCommands({
      pool,
      replies,
      prefix: '',
      keys: testKeys,
      logger: silent,
      wake: () => undefined,
      partitions: () => [0],
    } as never);
    const id = `txn_${'a'.repeat(32)}`;
    const headers = { ce_id: id, ce_type: messageType('reverse_transaction'), ce_time: new Date().toISOString() };
    const good = {
      topic: 'ledger.commands',
      partition: 0,
      offset: 1n,
      key: 'k',
      headers,
      value: Buffer.from(JSON.stringify({ transaction_id: id, reverses_transaction_id: id, reason: 'r' })),
    };
    const batch = [{ ...good, offset: 0n, value: Buffer.from('x') }, good].map(signedForTest) as never;
    for (let attempt = 0; attempt < 3; attempt++) await expect(handle(batch)).rejects.toThrow('terminated');
    expect(sent).toHaveLength(1);
  });

  it('a query that the database rejects does not stop the commands before it', async () => {
    const { account_id } = await api.newAccount();
    const headers = toHeaders({
      message_id: 'q',
      type: messageType('get_transaction'),
      source: 'x',
      time: new Date().toISOString(),
      subject: 'x',
      request_id: 'x',
      actor: 'a\0b',
    });
    const partition = commandPartition(bucketForKey(account_id));
    await publish(world.bank, [
      {
        topic: topicName(world.bank.topic_prefix, 'ledger.commands'),
        partition,
        key: account_id,
        value: JSON.stringify({ transaction_id: unknownId('txn') }),
        headers,
      },
    ]);
    await api.transact(account_id, 'Deposit', 1);
  });
});
