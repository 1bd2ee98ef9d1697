import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Batch, ItemResult } from '#libs/contracts/batches.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import type { Transfer } from '#libs/contracts/transfers.ts';
import {
  type Answer,
  type Api,
  expectError,
  newKey,
  type RestAccount,
  type RestTransaction,
  type RestTransfer,
  unknownId,
} from '../support/client.ts';
import { caughtUp, readTopic } from '../support/kafka.ts';
import { eventually, together, useBank } from '../support/world.ts';

/** Tests the contract of batches. Repeats go to the other gateway. */
const world = useBank({ gateways: 2, ledgers: 2, env: { SPREAD_COMMANDS: 'true' } });
const { api } = world;

const deposit = (account: { account_id: string }, amount: number, rest: object = {}) => ({
  transaction: { account_id: account.account_id, transaction_type: 'Deposit', amount, ...rest },
});
const withdrawal = (account: { account_id: string }, amount: number) => ({
  transaction: { account_id: account.account_id, transaction_type: 'Withdrawal', amount },
});
const transfer = (from: { account_id: string }, to: { account_id: string }, amount: number, rest: object = {}) => ({
  transfer: { from_account_id: from.account_id, to_account_id: to.account_id, amount, ...rest },
});

const post = (mode: string, items: unknown, key = newKey(), caller: Api = api) =>
  caller.once(key, '/batches', { mode, items });
const readBalance = (account: RestAccount) => api.balance(account.account_id);
const statuses = ({ results }: Batch) => results.map(({ status, error }) => error?.code ?? status);
const accounts = (count: number, amount: number) =>
  together(count, () => api.newAccount({ initial_deposit: amount }), 10);

function expectField(answer: Answer, status: number, code: string, field: string): void {
  expect(expectError(answer, status, code).errors?.[0]?.field).toBe(field);
}

function done(answer: Answer): Batch {
  expect(answer.status, answer.text).toBe(200);
  return answer.data<Batch>();
}

describe('independent: each item is decided as if it had been sent alone', () => {
  it('results are in the order of the items, each with its transaction or transfer, or its error', async () => {
    // contract: batches-4, batches-6, batches-7
    const [a, b, frozen] = [
      await api.newAccount({ initial_deposit: 10 }),
      await api.newAccount(),
      await api.newAccount({ status: 'Frozen' }),
    ] as const;
    const nobody = { account_id: unknownId('acc') };
    const answer = await post('independent', [
      deposit(a, 5, { description: 'pay', reference: 'R-7' }),
      transfer(a, b, 15),
      transfer(a, b, 0.01),
      deposit(frozen, 1),
      deposit(nobody, 1),
      transfer(b, b, 1),
    ]);
    const batch = done(answer);
    expect(batch).toMatchObject({
      batch_id: expect.stringMatching(/^bat_[0-9a-f]{32}$/),
      mode: 'independent',
      status: 'Completed',
      counts: { completed: 2, failed: 4, pending: 0 },
    });
    expect(batch.results.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(statuses(batch)).toEqual([
      'Completed',
      'Completed',
      'insufficient_funds',
      'inactive_account',
      'account_not_found',
      'same_account',
    ]);
    expect(batch.results[0]?.transaction).toMatchObject({
      account_id: a.account_id,
      amount: 5,
      description: 'pay',
      reference: 'R-7',
      status: 'Completed',
      direction: 'credit',
      batch_id: batch.batch_id,
    });
    expect(batch.results[4]).toMatchObject({
      status: 'Failed',
      transaction: { status: 'Failed', failure_code: 'account_not_found' },
      error: { code: 'account_not_found', message: expect.stringContaining('not found') },
    });
    expect(batch.results[5]).toMatchObject({
      status: 'Failed',
      transfer: { status: 'Failed', failure_code: 'same_account', batch_id: batch.batch_id },
    });
    expect(batch.results[3]?.error?.message).toMatch(/^Inactive Account: /);
  });

  it('everything that an item creates can be read by its id and found by the key of the batch', async () => {
    // contract: batches-12
    const [a, b] = (await accounts(2, 10)) as [RestAccount, RestAccount];
    const key = newKey();
    const batch = done(await post('independent', [deposit(a, 1), transfer(a, b, 2), transfer(a, b, 100)], key));
    const [one, two, three] = batch.results;
    expect((await api.get(`/transactions/${one?.transaction?.transaction_id}`)).data()).toEqual(one?.transaction);
    expect((await api.get(`/transfers/${two?.transfer?.transfer_id}`)).data()).toEqual(two?.transfer);
    expect((await api.get(`/transfers/${three?.transfer?.transfer_id}`)).data()).toEqual(three?.transfer);
    const found = await api.all<RestTransaction & Transaction>(`/transactions?idempotency_key=${key}`);
    expect(found.map(({ batch_id }) => batch_id)).toEqual([
      batch.batch_id,
      batch.batch_id,
      batch.batch_id,
      batch.batch_id,
    ]);
    expect((await api.all<Transfer>(`/transfers?account_id=${a.account_id}`)).map(({ batch_id }) => batch_id)).toEqual([
      batch.batch_id,
      batch.batch_id,
    ]);
    expect(await api.transact(a.account_id, 'Deposit', 1)).not.toHaveProperty('batch_id');
  });

  it('items can have external_id and metadata, as single requests can', async () => {
    const [a, b] = (await accounts(2, 10)) as [RestAccount, RestAccount];
    const external_id = newKey();
    const [one, two] = done(
      await post('independent', [
        deposit(a, 1, { external_id, metadata: { shop: '7' } }),
        transfer(a, b, 1, { metadata: { shop: '8' } }),
      ]),
    ).results;
    expect([one?.transaction, two?.transfer]).toMatchObject([
      { external_id, metadata: { shop: '7' } },
      { metadata: { shop: '8' } },
    ]);
    expect(
      (await api.get(`/transactions?external_id=${external_id}`))
        .list<Transaction>()
        .map(({ transaction_id }) => transaction_id),
    ).toEqual([one?.transaction?.transaction_id]);
  });

  it('the batch itself can have them too; GET /batches finds it by its external_id', async () => {
    // contract: batches-13, batches-14
    const [a, b] = (await accounts(2, 10)) as [RestAccount, RestAccount];
    const euros = await api.newAccount({ currency: 'EUR' });
    const names = { external_id: newKey(), metadata: { file_name: 'wages.csv' } };
    const items = [deposit(a, 1.5), transfer(a, b, 2), transfer(a, b, 100), deposit(euros, 0.1), deposit(euros, 0.2)];
    const key = newKey();
    const first = await api.once(key, '/batches', { mode: 'independent', items, ...names });
    const { results, ...batch } = done(first);
    expect(batch).toMatchObject({
      ...names,
      counts: { completed: 4, failed: 1, pending: 0 },
      totals: [
        { currency: 'EUR', amount: 0.3 },
        { currency: 'USD', amount: 3.5 },
      ],
      created_at: results[0]?.transaction?.created_at,
    });
    const again = await world.gateway(1).once(key, '/batches', { mode: 'independent', items, ...names });
    expect([again.text, again.header('idempotent-replayed')]).toEqual([first.text, 'true']);
    expectError(await api.once(key, '/batches', { mode: 'independent', items }), 422, 'idempotency_key_reused');
    const refused = await api.once(newKey(), '/batches', { mode: 'atomic', items, ...names });
    const { batch_id } = expectError(refused, 400, 'batch_refused').details as { batch_id: string };
    expect(await api.all(`/batches?external_id=${names.external_id}`)).toEqual([
      expect.objectContaining({
        ...names,
        batch_id,
        mode: 'atomic',
        status: 'Refused',
        counts: { completed: 0, failed: 5, pending: 0 },
        totals: [],
        actor: batch.actor,
      }),
      batch,
    ]);
    expect((await api.get('/batches?limit=2')).list<Batch>().map((each) => each.batch_id)).toEqual([
      batch_id,
      batch.batch_id,
    ]);
  });

  it('events are those of single requests, with the batch_id', async () => {
    const [a, b] = (await accounts(2, 10)) as [RestAccount, RestAccount];
    const batch = done(await post('independent', [transfer(a, b, 3)]));
    const id = batch.results[0]?.transfer?.transfer_id ?? '';
    const events = await eventually(async () => {
      const all = [...(await readTopic(world.bank, 'transactions')), ...(await readTopic(world.bank, 'transfers'))].map(
        ({ headers, value }) => ({ type: headers['ce_type'], ...JSON.parse(String(value)) }),
      );
      const own = all.filter(({ transaction, transfer: moved }) => (transaction ?? moved).transfer_id === id);
      return own.length === 3 && own;
    }, 20_000);
    expect(events.map(({ type }) => type)).toEqual([
      'corebanking.transaction.completed.v1',
      'corebanking.transaction.completed.v1',
      'corebanking.transfer.completed.v1',
    ]);
    expect(events.map(({ transaction, transfer: moved }) => (transaction ?? moved).batch_id)).toEqual([
      batch.batch_id,
      batch.batch_id,
      batch.batch_id,
    ]);
    expect(events[0]).toMatchObject({ sequence: 2, balance_after: expect.any(String), entries: [{}, {}] });
  });

  it('1,000 items of one account are accepted, 1,001 are refused', async () => {
    // contract: batches-1
    const payer = await api.newAccount({ initial_deposit: 1000 });
    const paid = (await accounts(5, 0)) as RestAccount[];
    const items = Array.from({ length: 1000 }, (_, i) => transfer(payer, paid[i % 5] as RestAccount, 1));
    const batch = done(await post('independent', items));
    expect(batch.counts).toEqual({ completed: 1000, failed: 0, pending: 0 });
    expect([await readBalance(payer), ...(await Promise.all(paid.map(readBalance)))]).toEqual([
      0, 200, 200, 200, 200, 200,
    ]);
    expectField(await post('independent', [...items, items[0]]), 400, 'validation_failed', 'items');
  });
});

describe('atomic: all or nothing, decided in the order of the items', () => {
  it('each item depends on the preceding ones, with accounts in all partitions', async () => {
    // contract: batches-10
    const chain = (await accounts(20, 0)) as RestAccount[];
    const [first, last] = [chain[0] as RestAccount, chain.at(-1) as RestAccount];
    const items = [
      deposit(first, 7),
      ...chain.slice(1).map((to, i) => transfer(chain[i] as RestAccount, to, 7)),
      withdrawal(last, 2),
    ];
    const batch = done(await post('atomic', items));
    expect(batch).toMatchObject({
      mode: 'atomic',
      status: 'Completed',
      counts: { completed: 21, failed: 0, pending: 0 },
    });
    expect([await readBalance(first), await readBalance(last)]).toEqual([0, 5]);
    expect(batch.results[20]?.transaction).toMatchObject({ status: 'Completed', batch_id: batch.batch_id });
    expect((await api.get(`/transactions/${batch.results[20]?.transaction?.transaction_id}`)).data()).toEqual(
      batch.results[20]?.transaction,
    );
  });

  it('one refusal posts nothing, names every refused item, and is stored under the key', async () => {
    // contract: batches-11
    const [a, b] = (await accounts(2, 10)) as [RestAccount, RestAccount];
    const key = newKey();
    const items = [
      transfer(a, b, 4),
      transfer(a, b, 7),
      deposit({ account_id: unknownId('acc') }, 1),
      transfer(a, b, 6),
      transfer(b, b, 1),
    ];
    const refused = await post('atomic', items, key);
    expectError(refused, 400, 'batch_refused');
    expect(refused.error.errors).toEqual([
      {
        field: 'items[1].transfer',
        code: 'insufficient_funds',
        message: expect.stringContaining('Insufficient Funds'),
      },
      { field: 'items[2].transaction', code: 'account_not_found', message: expect.stringContaining('not found') },
      { field: 'items[4].transfer', code: 'same_account', message: expect.any(String) },
    ]);
    expect([await readBalance(a), await readBalance(b)]).toEqual([10, 10]);
    expect(await api.all(`/transactions?idempotency_key=${key}`)).toEqual([]);
    // The batch stays refused even though the reason no longer exists.
    await api.transact(a.account_id, 'Deposit', 100);
    const again = await world.gateway(1).once(key, '/batches', { mode: 'atomic', items });
    expect([again.status, again.text.replace(/"request_id":"[^"]*"/, ''), again.header('idempotent-replayed')]).toEqual(
      [400, refused.text.replace(/"request_id":"[^"]*"/, ''), 'true'],
    );
    const { batch_id } = refused.error.details as { batch_id: string };
    const read = await api.get(`/batches/${batch_id}`);
    expect([read.status, read.error.code, read.error.errors]).toEqual([400, 'batch_refused', refused.error.errors]);
  });

  it('500 items are accepted, 501 are not', async () => {
    // contract: batches-1
    const [a, b] = (await accounts(2, 500)) as [RestAccount, RestAccount];
    const items = Array.from({ length: 500 }, () => transfer(a, b, 1));
    expect(done(await post('atomic', items)).counts.completed).toBe(500);
    expect([await readBalance(a), await readBalance(b)]).toEqual([0, 1000]);
    expectField(await post('atomic', [...items, items[0]]), 400, 'validation_failed', 'items');
  });
});

describe.each(['independent', 'atomic'])('%s: executed once', (mode) => {
  it('a repeat gets the same body, posts nothing, and is marked as a repeat', async () => {
    const [a, b] = (await accounts(2, 10)) as [RestAccount, RestAccount];
    const [key, items] = [newKey(), [deposit(a, 5), transfer(a, b, 1), transfer(b, a, 1)]];
    const first = await post(mode, items, key);
    const second = await world.gateway(1).once(key, '/batches', { items: JSON.parse(JSON.stringify(items)), mode });
    expect([done(second), second.header('idempotent-replayed'), first.header('idempotent-replayed')]).toEqual([
      done(first),
      'true',
      null,
    ]);
    expect([await readBalance(a), await readBalance(b)]).toEqual([15, 10]);
    const { batch_id } = first.data<Batch>();
    expect(done(await api.get(`/batches/${batch_id}`))).toEqual(done(first));
  });

  it('concurrent repeats to two gateways get the same outcome', async () => {
    const some = (await accounts(6, 10)) as RestAccount[];
    const key = newKey();
    const items = some.map((from, i) => transfer(from, some[(i + 1) % 6] as RestAccount, i + 1));
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => world.gateway(i % 2).once(key, '/batches', { mode, items })),
    );
    const outcomes = answers.map((answer) => done(answer));
    const pairs = outcomes.map(({ batch_id, results }) => ({
      batch_id,
      results: results.map((result) => (result.transfer as RestTransfer & Transfer).transfer_id),
    }));
    expect(new Set(pairs.map((pair) => JSON.stringify(pair))).size).toBe(1);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect((await Promise.all(some.map(readBalance))).reduce((sum, balance) => sum + balance)).toBe(60);
    expect(await Promise.all(some.map(readBalance))).toEqual([15, 9, 9, 9, 9, 9]);
  });

  it('a different body with the same key is refused, even if its items are valid, and posts nothing', async () => {
    const some = (await accounts(6, 10)) as RestAccount[];
    const key = newKey();
    done(await post(mode, [deposit(some[0] as RestAccount, 1)], key));
    for (const items of [
      [deposit(some[0] as RestAccount, 2)],
      some.map((account) => deposit(account, 1)),
      some.slice(3).map((account) => deposit(account, 1)),
    ]) {
      expectError(await world.gateway(1).once(key, '/batches', { mode, items }), 422, 'idempotency_key_reused');
    }
    expect(await Promise.all(some.map(readBalance))).toEqual([11, 10, 10, 10, 10, 10]);
  });

  it('of two bodies sent concurrently with one key, exactly one is posted, completely', async () => {
    const some = (await accounts(12, 10)) as RestAccount[];
    const bodies = [some.slice(0, 6), some.slice(6)].map((group) => group.map((account) => deposit(account, 1)));
    const key = newKey();
    const answers = await Promise.all(
      bodies.map((items, i) => world.gateway(i).once(key, '/batches', { mode, items })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422]);
    const won = answers.findIndex(({ status }) => status === 200);
    expect(await Promise.all(some.map(readBalance))).toEqual(some.map((_, i) => (Math.floor(i / 6) === won ? 11 : 10)));
  });
});

describe('refused before anything is published', () => {
  it('a missing Idempotency-Key, before validation', async () => {
    // contract: batches-2
    expectError(await api.post('/batches', { mode: 'nonsense' }), 400, 'missing_idempotency_key');
  });

  it('an invalid item, by its name', async () => {
    // contract: batches-4
    const [a, b] = (await accounts(2, 10)) as [RestAccount, RestAccount];
    const key = newKey();
    const refused = await post(
      'independent',
      [
        deposit(a, 1),
        transfer(a, b, 1),
        transfer(a, b, 1),
        transfer(a, b, -1),
        { transaction: { ...deposit(a, 1).transaction, colour: 'red' } },
        {},
        { ...deposit(a, 1), ...transfer(a, b, 1) },
      ],
      key,
    );
    expectError(refused, 400, 'validation_failed');
    expect(refused.error.errors?.map(({ field, code }) => [field, code])).toEqual([
      ['items[3].transfer.amount', 'invalid_amount'],
      ['items[4].transaction.colour', 'unknown_field'],
      ['items[5]', 'validation_failed'],
      ['items[6]', 'validation_failed'],
    ]);
    expectField(
      await post('atomic', [transfer(a, b, 1, { amount: 10.005, currency: 'USD' })]),
      400,
      'invalid_amount_precision',
      'items[0].transfer.amount',
    );
    expectField(
      await post('independent', [deposit(a, 1), deposit({ account_id: 'nope' }, 1)]),
      404,
      'account_not_found',
      'items[1].transaction.account_id',
    );
    expectField(await post('independent', []), 400, 'validation_failed', 'items');
    expectField(await post('both', [deposit(a, 1)]), 400, 'validation_failed', 'mode');
    expect([await readBalance(a), await readBalance(b), await api.all(`/transactions?idempotency_key=${key}`)]).toEqual(
      [10, 10, []],
    );
  });

  it('a body of more than 1 MiB; one just below it is accepted', async () => {
    // contract: errors-13, batches-1
    const a = await api.newAccount();
    const body = JSON.stringify({ mode: 'independent', items: [deposit(a, 1)] });
    const sent = (bytes: number) =>
      api.send('POST', '/batches', {
        raw: body + ' '.repeat(bytes - body.length),
        headers: { 'idempotency-key': newKey() },
      });
    expect((await sent(1024 * 1024)).status).toBe(200);
    expectError(await sent(1024 * 1024 + 1), 413, 'body_too_large');
    expectError(await api.send('POST', '/transactions', { raw: body + ' '.repeat(65 * 1024) }), 413, 'body_too_large');
  });

  it('but 1,000 items with the longest texts are accepted, because they fit into the topics', async () => {
    const a = await api.newAccount();
    const items = Array.from({ length: 1000 }, () =>
      deposit(a, 1, { description: 'ж'.repeat(255), reference: 'r'.repeat(100) }),
    );
    const { batch_id } = done(await post('independent', items));
    // On a slow machine they are Pending at first.
    await eventually(async () => {
      const { status, counts } = done(await api.get(`/batches/${batch_id}`));
      return status === 'Completed' && counts.completed === 1000;
    });
  });

  it('a batch whose items need scopes that the caller lacks', async () => {
    // contract: batches-3
    const [a, b] = (await accounts(2, 10)) as [RestAccount, RestAccount];
    const teller = api.withKey((await api.key({ scopes: ['transactions:write'] })).api_key);
    const payer = api.withKey((await api.key({ scopes: ['transfers:write'] })).api_key);
    expect(done(await post('independent', [deposit(a, 1)], newKey(), teller)).counts.completed).toBe(1);
    expect(done(await post('independent', [transfer(a, b, 1)], newKey(), payer)).counts.completed).toBe(1);
    expectError(
      await post('independent', [deposit(a, 1), transfer(a, b, 1)], newKey(), teller),
      403,
      'insufficient_scope',
    );
    expectError(await post('atomic', [deposit(a, 1), transfer(a, b, 1)], newKey(), payer), 403, 'insufficient_scope');
    const { batch_id } = done(await post('independent', [deposit(a, 1)]));
    expectError(await teller.get(`/batches/${batch_id}`), 403, 'insufficient_scope');
  });
});

describe('GET /batches/:batch_id', () => {
  it('an unknown and a malformed id are 404', async () => {
    expectError(await api.get(`/batches/${unknownId('bat')}`), 404, 'batch_not_found');
    expectError(await api.get('/batches/nope'), 404, 'batch_not_found');
  });
});

describe('a bound credential', () => {
  it('pays only from its own accounts, gets one error for the accounts of others, and sees only its own batches', async () => {
    const [own, other] = [
      await api.newAccount({ initial_deposit: 10 }),
      await api.newAccount({ initial_deposit: 10 }),
    ] as const;
    const frozen = await api.newAccount({ status: 'Frozen' });
    const bound = api.withKey(
      (await api.key({ scopes: ['transfers:write', 'transactions:read'], client_id: own.client_id })).api_key,
    );
    const batch = done(
      await post(
        'independent',
        [transfer(own, other, 1), transfer(other, own, 1), transfer(own, frozen, 1)],
        newKey(),
        bound,
      ),
    );
    expect(statuses(batch)).toEqual(['Completed', 'account_not_found', 'destination_refused']);
    expectError(await post('atomic', [deposit(own, 1)], newKey(), bound), 403, 'insufficient_scope');
    expectError(
      await post('independent', [transfer(own, other, 1, { external_id: 'x' })], newKey(), bound),
      403,
      'insufficient_scope',
    );
    expect(done(await bound.get(`/batches/${batch.batch_id}`))).toEqual(batch);
    const named = (names: object) =>
      bound.once(newKey(), '/batches', { mode: 'atomic', items: [transfer(own, other, 1)], ...names });
    expectError(await named({ external_id: 'x' }), 403, 'insufficient_scope');
    const noted = done(await named({ metadata: { app: '7' } }));
    const theirs = done(await post('independent', [transfer(other, own, 1)]));
    expectError(await bound.get(`/batches/${theirs.batch_id}`), 404, 'batch_not_found');
    const stranger = api.withKey(
      (await api.key({ scopes: ['transactions:read'], client_id: other.client_id })).api_key,
    );
    expectError(await stranger.get(`/batches/${batch.batch_id}`), 404, 'batch_not_found');
    expect(await stranger.all('/batches')).toEqual([]);
    expect(await bound.all<Batch>('/batches')).toMatchObject([
      { batch_id: noted.batch_id, metadata: { app: '7' } },
      { batch_id: batch.batch_id, counts: { completed: 1, failed: 2 } },
    ]);
  });
});

describe('a ledger that does not reply', () => {
  it('the batch is Pending after the reply timeout, and GET returns the outcome later', async () => {
    // contract: batches-8
    const some = (await accounts(8, 10)) as RestAccount[];
    const items = some.map((account, i) => transfer(account, some[(i + 1) % 8] as RestAccount, 1));
    const key = newKey();
    for (const name of ['ledger', 'ledger-2']) world.bank.process(name).kill('SIGSTOP');
    let answer: Answer;
    let asked: Answer;
    try {
      answer = await post('independent', items, key);
      asked = await api.get(`/batches/${answer.data<Batch>().batch_id}`);
    } finally {
      for (const name of ['ledger', 'ledger-2']) world.bank.process(name).kill('SIGCONT');
    }
    const batch = done(answer);
    expect(batch).toMatchObject({ status: 'Pending', counts: { completed: 0, failed: 0, pending: 8 } });
    expect(batch.results[0]).toMatchObject({
      index: 0,
      status: 'Pending',
      transfer: { from_account_id: some[0]?.account_id, amount: 1, status: 'Pending', batch_id: batch.batch_id },
    });
    expect(asked.status).toBe(503);
    const later = await eventually(async () => {
      const found = await api.get(`/batches/${batch.batch_id}`);
      expect(found.status, found.text).not.toBe(404);
      return found.status === 200 && found.data<Batch>().status === 'Completed' && found.data<Batch>();
    }, 30_000);
    expect(later.counts).toEqual({ completed: 8, failed: 0, pending: 0 });
    const ids = (results: ItemResult[]) => results.map((result) => result.transfer?.transfer_id);
    expect(ids(later.results)).toEqual(ids(batch.results));
    expect(later.results[0]?.transfer?.created_at).toBe(batch.results[0]?.transfer?.created_at);
    const repeated = await world.gateway(1).once(key, '/batches', { mode: 'independent', items });
    expect([done(repeated), repeated.header('idempotent-replayed')]).toEqual([later, 'true']);
    await caughtUp(world.bank, 'ledger-batches', 30_000, 'ledger.batches');
    expect(await Promise.all(some.map(readBalance))).toEqual(some.map(() => 10));
  });
});

describe('Reversal', () => {
  it('of a Pending item of a batch waits for its outcome', async () => {
    const { account_id } = await api.newAccount();
    const holder = await world.pool.connect();
    let item: RestTransaction | undefined;
    let reversal: Promise<Answer> | undefined;
    try {
      await holder.query('begin');
      await holder.query('set local idle_in_transaction_session_timeout = 0');
      await holder.query('select from accounts where account_id = $1::uuid for update', [account_id.slice(4)]);
      const items = [{ transaction: { account_id, transaction_type: 'Deposit', amount: 4 } }];
      const batch = await api.once(newKey(), '/batches', { mode: 'independent', items });
      item = batch.data<{ results: { transaction: RestTransaction }[] }>().results[0]?.transaction;
      expect(item?.status).toBe('Pending');
      reversal = api.post(`/transactions/${item?.transaction_id}/reversal`, { reason: 'x' });
      // The reversal does not wait for the account, so without the outcome it would be refused immediately.
      await sleep(1_000);
    } finally {
      await holder.query('rollback');
      holder.release();
    }
    const answer = await reversal;
    expect(answer?.status, answer?.text).toBe(201);
    expect(answer?.data<RestTransaction>().reverses_transaction_id).toBe(item?.transaction_id);
  });
});
