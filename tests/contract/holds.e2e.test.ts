import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { Hold } from '#libs/contracts/holds.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
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
import { readTopics } from '../support/kafka.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { eventually, together, useBank } from '../support/world.ts';

/** Tests the contract of holds. Repeats go to the other gateway. */
const world = useBank({ gateways: 2, env: { ...staffEnv, FOUR_EYES: 'post_above', FOUR_EYES_LIMITS: 'USD:1000' } });
const { api } = world;

type RestHold = Omit<Hold, 'amount' | 'captured_amount'> & { amount: number; captured_amount: number };
interface Captured {
  hold: RestHold;
  transaction?: RestTransaction;
  transfer?: RestTransfer;
}

const place = (account_id: string, amount: number, rest: object = {}) =>
  api.post(`/accounts/${account_id}/holds`, { amount, ...rest });
const capture = (hold_id: string, body?: object) =>
  api.send('POST', `/holds/${hold_id}/capture`, body === undefined ? {} : { body });
const release = (hold_id: string) => api.send('POST', `/holds/${hold_id}/release`);
const readAccount = async (id: string) => (await api.get(`/accounts/${id}`)).data<RestAccount>();
const figures = async (id: string) => {
  const { balance, available_balance } = await readAccount(id);
  return [balance, available_balance];
};
const readHold = async (id: string) => (await api.get(`/holds/${id}`)).data<RestHold>();
async function placed(account_id: string, amount: number, rest: object = {}): Promise<RestHold> {
  const answer = await place(account_id, amount, rest);
  expect(answer.status, answer.text).toBe(201);
  return answer.data<RestHold>();
}
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const day = 86_400_000;

describe('Holds: placing', () => {
  it('responds 201 with the Hold and its Location; the available balance falls, balance and books do not change', async () => {
    // contract: holds-1, holds-3
    const account = await api.newAccount({ initial_deposit: 100 });
    expect(account).toMatchObject({ balance: 100, available_balance: 100 });
    const { account_id } = account;
    const entries = await api.entries(account_id);
    const answer = await place(account_id, 60.5, { currency: 'USD', description: 'Hotel', reference: 'AUTH-7' });
    const hold = answer.data<RestHold>();
    expect(hold).toEqual({
      hold_id: expect.stringMatching(/^hld_[0-9a-f]{32}$/),
      account_id,
      amount: 60.5,
      captured_amount: 0,
      currency: 'USD',
      status: 'Active',
      description: 'Hotel',
      reference: 'AUTH-7',
      expires_at: expect.any(String),
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect([answer.status, answer.header('location')]).toEqual([201, `/holds/${hold.hold_id}`]);
    expect(Date.parse(hold.expires_at) - Date.parse(hold.created_at)).toBe(7 * day);
    expect(await readHold(hold.hold_id)).toEqual(hold);
    expect(await figures(account_id)).toEqual([100, 39.5]);
    expect((await api.get(`/accounts?client_id=${account.client_id}`)).list()).toMatchObject([
      { balance: 100, available_balance: 39.5 },
    ]);
    expect((await api.get(`/accounts/number/${account.account_number}/balance`)).data()).toEqual({
      account_id,
      account_number: account.account_number,
      balance: 100,
      currency: 'USD',
    });
    expect(await api.entries(account_id)).toEqual(entries);
  });

  it('expires_at is at most 31 days ahead; amounts, currencies, and texts follow the rules of transactions', async () => {
    // contract: holds-2
    const { account_id } = await api.newAccount({ initial_deposit: 100, currency: 'EUR' });
    expect(Date.parse((await placed(account_id, 1, { expires_at: inMs(30 * day) })).expires_at)).toBeGreaterThan(
      Date.now() + 29 * day,
    );
    expect((await placed(account_id, 1, { expires_at: inMs(2 * day).replace('Z', '+00:00') })).expires_at).toMatch(
      /Z$/,
    );
    const refused: [string, object, RegExp?][] = [
      ['validation_failed', { expires_at: inMs(-1000) }, /expires_at/],
      ['validation_failed', { expires_at: inMs(32 * day) }, /31 days/],
      ['validation_failed', { expires_at: 'tomorrow' }],
      ['validation_failed', { amount: null }],
      ['invalid_amount', { amount: 0 }],
      ['invalid_amount', { amount: '5' }],
      ['invalid_amount_precision', { amount: 1.001 }],
      ['amount_too_large', { amount: 1e13, currency: 'EUR' }],
      ['unsupported_currency', { currency: 'eur' }],
      ['currency_mismatch', { currency: 'USD' }],
      ['validation_failed', { description: 'd'.repeat(256) }],
      ['validation_failed', { reference: 'r'.repeat(101) }],
      ['unknown_field', { final: true }],
    ];
    for (const [code, fields, message] of refused) expectError(await place(account_id, 1, fields), 400, code, message);
  });

  it('requires an Active account that is not a Loan, and refuses in the order of a withdrawal', async () => {
    // contract: holds-5
    const [loan, frozen, poor] = [
      await api.newAccount({ account_type: 'Loan', initial_deposit: 50, status: 'Frozen' }),
      await api.newAccount({ initial_deposit: 50, status: 'Inactive' }),
      await api.newAccount(),
    ];
    expectError(
      await place(loan.account_id, 1, { currency: 'EUR' }),
      400,
      'invalid_account_type',
      /^Invalid Account Type/,
    );
    expectError(await place(frozen.account_id, 1, { currency: 'EUR' }), 400, 'inactive_account', /^Inactive Account/);
    expectError(await place(poor.account_id, 1), 400, 'insufficient_funds', /^Insufficient Funds/);
    for (const id of [unknownId('acc'), 'x', '..%2f']) expectError(await place(id, 1), 404, 'account_not_found');
    expect(await figures(loan.account_id)).toEqual([50, 50]);
  });

  it('withdrawals, transfers, reversals, and further holds are limited by the available balance', async () => {
    // contract: holds-4
    const [a, b] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount()];
    const deposit = await api.transact(a.account_id, 'Deposit', 50);
    await placed(a.account_id, 110);
    expectError(
      await api.post('/transactions', { account_id: a.account_id, transaction_type: 'Withdrawal', amount: 40.01 }),
      400,
      'insufficient_funds',
    );
    expectError(
      await api.post('/transfers', { from_account_id: a.account_id, to_account_id: b.account_id, amount: 40.01 }),
      400,
      'insufficient_funds',
    );
    expectError(
      await api.post(`/transactions/${deposit.transaction_id}/reversal`, { reason: 'x' }),
      400,
      'insufficient_funds',
    );
    expectError(await place(a.account_id, 40.01), 400, 'insufficient_funds');
    await api.transfer(a.account_id, b.account_id, 40);
    expect(await figures(a.account_id)).toEqual([110, 0]);
  });
});

describe('Holds: capture', () => {
  it('without to_account_id posts a Withdrawal of the remaining amount', async () => {
    // contract: holds-7, holds-12
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    const { hold_id } = await placed(account_id, 60, { description: 'Hotel', reference: 'AUTH-7' });
    const answer = await capture(hold_id);
    const { hold, transaction, transfer } = answer.data<Captured>();
    expect([answer.status, answer.header('location'), transfer]).toEqual([
      201,
      `/transactions/${transaction?.transaction_id}`,
      undefined,
    ]);
    expect(transaction).toMatchObject({
      account_id,
      transaction_type: 'Withdrawal',
      amount: 60,
      currency: 'USD',
      status: 'Completed',
      direction: 'debit',
      hold_id,
      reference: 'AUTH-7',
      description: 'Hotel',
    });
    expect((await api.get(answer.header('location') ?? '')).data()).toEqual(transaction);
    expect(hold).toMatchObject({ hold_id, status: 'Captured', amount: 60, captured_amount: 60 });
    expect([await readHold(hold_id), await figures(account_id)]).toEqual([hold, [40, 40]]);
  });

  it('with to_account_id posts a Transfer; final is true by default and releases the rest', async () => {
    // contract: holds-7, holds-8, holds-12
    const [a, b] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount()];
    const { hold_id } = await placed(a.account_id, 60, { reference: 'AUTH-8' });
    const answer = await capture(hold_id, { amount: 45.5, to_account_id: b.account_id, description: 'Room 3' });
    const { hold, transaction, transfer } = answer.data<Captured>();
    expect([answer.status, answer.header('location'), transaction]).toEqual([
      201,
      `/transfers/${transfer?.transfer_id}`,
      undefined,
    ]);
    expect(transfer).toMatchObject({
      from_account_id: a.account_id,
      to_account_id: b.account_id,
      amount: 45.5,
      hold_id,
      description: 'Room 3',
      status: 'Completed',
    });
    expect((await api.get(answer.header('location') ?? '')).data()).toEqual(transfer);
    expect(hold).toMatchObject({ status: 'Captured', captured_amount: 45.5 });
    for (const { account_id } of [a, b]) {
      const [leg] = (
        await api.get(`/transactions?account_id=${account_id}&transaction_type=Transfer`)
      ).list<RestTransaction>();
      expect(leg).toMatchObject({
        transfer_id: transfer?.transfer_id,
        hold_id,
        reference: 'AUTH-8',
        description: 'Room 3',
      });
    }
    expect((await api.get(`/transfers?account_id=${b.account_id}`)).list()).toEqual([transfer]);
    expect([await figures(a.account_id), await figures(b.account_id)]).toEqual([
      [54.5, 54.5],
      [45.5, 45.5],
    ]);
  });

  it('final: false keeps the rest held, but a hold without a remaining amount is Captured; more than the rest is amount_exceeds_hold', async () => {
    // contract: holds-8, holds-9, holds-14
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    const { hold_id } = await placed(account_id, 60);
    expect((await capture(hold_id, { amount: 20, final: false })).data<Captured>().hold).toMatchObject({
      status: 'Active',
      captured_amount: 20,
    });
    expect(await figures(account_id)).toEqual([80, 40]);
    const { details } = expectError(
      await capture(hold_id, { amount: 40.01 }),
      400,
      'amount_exceeds_hold',
      /^Amount Exceeds Hold/,
    );
    expect((await api.get(`/transactions/${details?.['transaction_id']}`)).data()).toMatchObject({
      status: 'Failed',
      failure_code: 'amount_exceeds_hold',
      hold_id,
      amount: 40.01,
    });
    expect((await capture(hold_id, { final: false })).data<Captured>().hold).toMatchObject({
      status: 'Captured',
      captured_amount: 60,
    });
    expectError(await capture(hold_id), 400, 'hold_not_active', /Captured/);
    expectError(await release(hold_id), 400, 'hold_not_active');
    expect(await figures(account_id)).toEqual([40, 40]);
  });

  it('a freeze takes precedence: the capture is refused, and the hold stays and can be released', async () => {
    // contract: holds-10, holds-14
    const [a, b] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount()];
    const { hold_id } = await placed(a.account_id, 60);
    await api.setStatus(a.account_id, 'Frozen', 'fraud');
    for (const body of [{}, { to_account_id: b.account_id }]) {
      const { details } = expectError(await capture(hold_id, body), 400, 'inactive_account');
      expect((await api.get(`/transactions/${details?.['transaction_id']}`)).data()).toMatchObject({
        status: 'Failed',
        hold_id,
        failure_code: 'inactive_account',
      });
    }
    expect((await api.get(`/transfers?account_id=${a.account_id}&status=Failed`)).list()).toMatchObject([
      { status: 'Failed', hold_id },
    ]);
    expect([(await readHold(hold_id)).status, await figures(a.account_id)]).toEqual(['Active', [100, 40]]);
    expect((await release(hold_id)).data()).toMatchObject({ status: 'Released' });
    expect(await figures(a.account_id)).toEqual([100, 100]);
  });

  it('checks the hold first, then the rules of a posting', async () => {
    // contract: holds-11
    const [a, b] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount({ status: 'Frozen' })];
    const { hold_id } = await placed(a.account_id, 60);
    for (const id of [unknownId('hld'), 'x']) {
      expectError(await capture(id), 404, 'hold_not_found');
      expectError(await release(id), 404, 'hold_not_found');
      expectError(await api.get(`/holds/${id}`), 404, 'hold_not_found');
    }
    expectError(await capture(hold_id, { amount: 61, to_account_id: unknownId('acc') }), 400, 'amount_exceeds_hold');
    expectError(await capture(hold_id, { to_account_id: unknownId('acc') }), 404, 'account_not_found', /to_account_id/);
    expectError(await capture(hold_id, { to_account_id: a.account_id }), 400, 'same_account');
    expectError(await capture(hold_id, { to_account_id: b.account_id }), 400, 'inactive_account');
    expectError(await capture(hold_id, { amount: 1.001 }), 400, 'invalid_amount_precision');
    expectError(await capture(hold_id, { amount: -1 }), 400, 'invalid_amount');
    expectError(await capture(hold_id, { final: 'no', currency: 'USD' }), 400, 'validation_failed', /final/);
    expect((await readHold(hold_id)).status).toBe('Active');
  });

  it('a reversed capture leaves the hold Captured', async () => {
    // contract: holds-13
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    const { hold_id } = await placed(account_id, 60);
    const { transaction } = (await capture(hold_id)).data<Captured>();
    const reversal = (
      await api.post(`/transactions/${transaction?.transaction_id}/reversal`, { reason: 'x' })
    ).data<RestTransaction>();
    expect(reversal).not.toHaveProperty('hold_id');
    expect([await readHold(hold_id), await figures(account_id)]).toMatchObject([
      { status: 'Captured', captured_amount: 60 },
      [100, 100],
    ]);
  });
});

describe('Holds: reading', () => {
  it('GET /accounts/:account_id/holds lists newest first, by page, and filters by status', async () => {
    // contract: holds-18
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await placed(account_id, i + 1)).hold_id);
    await release(ids[1] ?? '');
    await capture(ids[3] ?? '');
    const path = `/accounts/${account_id}/holds`;
    expect((await api.all<RestHold>(`${path}?limit=2`)).map(({ hold_id }) => hold_id)).toEqual(ids.toReversed());
    const having = async (status: string) =>
      (await api.get(`${path}?status=${status}`)).list<RestHold>().map(({ hold_id }) => hold_id);
    expect([
      await having('Released'),
      await having('Captured'),
      await having('Expired'),
      await having('Active'),
    ]).toEqual([[ids[1]], [ids[3]], [], [ids[4], ids[2], ids[0]]]);
    expectError(await api.get(`${path}?status=Gone`), 400, 'validation_failed');
    expectError(await api.get(`/accounts/${unknownId('acc')}/holds`), 404, 'account_not_found');
  });
});

describe('Holds: external_id and metadata', () => {
  it('a hold and its capture each have their own; holds can be filtered by them; missing ones are omitted', async () => {
    // contract: names-6
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    const names = { external_id: 'booking 7', metadata: { z: 'last first', a: 'ü' } };
    const { hold_id } = await placed(account_id, 10, names);
    const plain = await placed(account_id, 5);
    expect(plain).not.toHaveProperty('external_id');
    expect(plain).not.toHaveProperty('metadata');
    expect(await readHold(hold_id)).toMatchObject(names);
    expect((await api.get(`/accounts/${account_id}/holds?external_id=booking%207`)).list()).toMatchObject([
      { hold_id },
    ]);
    const { hold, transaction } = (
      await capture(hold_id, { external_id: 'folio 9', metadata: { room: '3' } })
    ).data<Captured>();
    expect(hold).toMatchObject(names);
    expect(transaction).toMatchObject({ external_id: 'folio 9', metadata: { room: '3' } });
    expect((await api.get('/transactions?external_id=folio%209')).list()).toMatchObject([
      { transaction_id: transaction?.transaction_id, hold_id },
    ]);
    const bare = (await capture(plain.hold_id)).data<Captured>();
    expect(JSON.stringify(bare)).not.toMatch(/external_id|metadata/);
    const told = await eventually(async () => {
      const own = ((await readTopics(world.bank, ['holds'])).get('holds') ?? []).filter(
        ({ key }) => key === account_id,
      );
      return own.length >= 4 && own;
    }, 20_000);
    expect(
      told.map((message) => (JSON.parse(message.value?.toString() ?? '') as { hold: Hold }).hold.external_id),
    ).toEqual(['booking 7', undefined, 'booking 7', undefined]);
    expectError(await place(account_id, 1, { external_id: '' }), 400, 'validation_failed');
    expectError(await place(account_id, 1, { metadata: { A: 'x' } }), 400, 'validation_failed');
  });
});

describe('Holds: expiry', () => {
  it('from expires_at on a hold reserves nothing; it is Expired, with its event, within 10 s', async () => {
    // contract: holds-15
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    const expires_at = inMs(4_000);
    const { hold_id } = await placed(account_id, 60, { expires_at });
    expect(await figures(account_id)).toEqual([100, 40]);
    await sleep(Date.parse(expires_at) - Date.now() + 100);
    expect([await figures(account_id), await readHold(hold_id)]).toMatchObject([
      [100, 100],
      { status: 'Expired', updated_at: expires_at },
    ]);
    expectError(await capture(hold_id), 400, 'hold_not_active', /Expired/);
    const quiet = await api.newAccount({ initial_deposit: 100 });
    const untouched = await placed(quiet.account_id, 60, { expires_at: inMs(3_000) });
    const recorded = await eventually(
      async () =>
        (
          await world.sql<{ status: string; late_s: number }>(
            "select status, extract(epoch from clock_timestamp() - expires_at)::float8 as late_s from v_holds where hold_id = $1 and status = 'Expired'",
            [untouched.hold_id],
          )
        )[0],
      20_000,
    );
    expect(recorded.late_s).toBeLessThan(10);
  });

  it('the database rejects a balance below the held amount', async () => {
    // contract: holds-16
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    await placed(account_id, 60);
    await expect(
      world.sql('update accounts set balance_minor = 5999 where account_id = $1', [account_id.slice(4)]),
    ).rejects.toMatchObject({ constraint: 'customer_balance_covers_holds' });
  });
});

describe('Holds: scopes', () => {
  const keyWith = async (...scopes: string[]) => api.withKey((await api.key({ scopes })).api_key);

  it('holds:write allows placing and releasing; a capture also requires transactions:write for cash, transfers:write for a transfer', async () => {
    // contract: holds-19
    const [a, b] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount()];
    const [bare, cash, moves] = [
      await keyWith('holds:write'),
      await keyWith('holds:write', 'transactions:write'),
      await keyWith('holds:write', 'transfers:write'),
    ];
    const path = `/accounts/${a.account_id}/holds`;
    const [first, second] = [
      (await bare.post(path, { amount: 10 })).data<RestHold>(),
      (await bare.post(path, { amount: 10 })).data<RestHold>(),
    ];
    const to = { to_account_id: b.account_id };
    const at = (caller: Api, { hold_id }: RestHold, body: object = {}): Promise<Answer> =>
      caller.post(`/holds/${hold_id}/capture`, body);
    for (const [caller, body] of [
      [bare, {}],
      [bare, to],
      [cash, to],
      [moves, {}],
    ] as const)
      expectError(await at(caller, first, body), 403, 'insufficient_scope');
    expect([(await at(cash, first)).status, (await at(moves, second, to)).status]).toEqual([201, 201]);
    const without = await keyWith('transactions:write', 'transfers:write', 'transactions:read');
    expectError(await without.post(path, { amount: 1 }), 403, 'insufficient_scope', /holds:write/);
    expectError(await without.post(`/holds/${first.hold_id}/release`), 403, 'insufficient_scope');
    expect((await without.get(path)).list()).toHaveLength(2);
  });

  it('holds:write is not available to bound credentials, which can read the holds of their own client', async () => {
    const [own, other] = [await api.newAccount({ initial_deposit: 10 }), await api.newAccount({ initial_deposit: 10 })];
    expectError(
      await api.post('/admin/api-keys', { name: 'x', scopes: ['holds:write'], client_id: own.client_id }),
      400,
      'validation_failed',
      /holds:write/,
    );
    const [mine, foreign] = [await placed(own.account_id, 1), await placed(other.account_id, 1)];
    const bound = api.withKey((await api.key({ scopes: ['transactions:read'], client_id: own.client_id })).api_key);
    expect((await bound.get(`/holds/${mine.hold_id}`)).data()).toEqual(mine);
    expect((await bound.get(`/accounts/${own.account_id}/holds`)).list()).toEqual([mine]);
    expectError(await bound.get(`/holds/${foreign.hold_id}`), 404, 'hold_not_found');
    expectError(await bound.get(`/accounts/${other.account_id}/holds`), 404, 'account_not_found');
  });
});

describe('Holds: idempotency', () => {
  function expectReplay(first: Answer, second: Answer): void {
    expect({ status: second.status, text: second.text, location: second.header('location') }).toEqual({
      status: first.status,
      text: first.text,
      location: first.header('location'),
    });
    expect([first.header('idempotent-replayed'), second.header('idempotent-replayed')]).toEqual([null, 'true']);
  }
  const twice = async (path: string, body: object = {}): Promise<[Answer, Answer]> => {
    const key = newKey();
    return [await world.gateway(0).once(key, path, body), await world.gateway(1).once(key, path, body)];
  };

  it('a repeat gets the same response, also for refusals; a different body is refused', async () => {
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    const path = `/accounts/${account_id}/holds`;
    const key = newKey();
    const first = await api.once(key, path, { amount: 60 });
    const [shortKey, short] = [newKey(), { amount: 1, expires_at: inMs(3_000) }];
    const brief = await api.once(shortKey, path, short);
    const { hold_id } = first.data<RestHold>();
    expectReplay(...(await twice(`/holds/${hold_id}/capture`, { amount: 10, final: false })));
    expectReplay(...(await twice(`/holds/${hold_id}/release`)));
    expectReplay(first, await world.gateway(1).once(key, path, { amount: 60.0 }));
    await sleep(Math.max(0, Date.parse(short.expires_at) - Date.now()) + 100);
    expectReplay(brief, await world.gateway(1).once(shortKey, path, short));
    expectError(await world.gateway(1).once(key, path, { amount: 61 }), 422, 'idempotency_key_reused');
    for (const [refused, body] of [
      [path, { amount: 999 }],
      [`/holds/${hold_id}/capture`, {}],
      [`/holds/${hold_id}/release`, {}],
      [`/holds/${unknownId('hld')}/capture`, {}],
    ] as const) {
      const [one, two] = await twice(refused, body);
      expect([two.status, two.error.code, two.error.details, two.header('idempotent-replayed')]).toEqual([
        one.status,
        one.error.code,
        one.error.details,
        'true',
      ]);
    }
    expect(await figures(account_id)).toEqual([90, 90]);
  });

  it('concurrent repeats all get the same outcome', async () => {
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    const keys = [newKey(), newKey()];
    const rivals = await together(20, (i) =>
      world.gateway(i % 2).once(keys[0] ?? '', `/accounts/${account_id}/holds`, { amount: 60 }),
    );
    const { hold_id } = rivals[0]?.data<RestHold>() as RestHold;
    const captures = await together(20, (i) =>
      world.gateway(i % 2).once(keys[1] ?? '', `/holds/${hold_id}/capture`, { amount: 20, final: false }),
    );
    for (const answers of [rivals, captures]) {
      expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
      expect(answers.filter((answer) => answer.header('idempotent-replayed') === null)).toHaveLength(1);
    }
    expect(await figures(account_id)).toEqual([80, 40]);
  });

  it('concurrent captures and withdrawals never take more than the balance', async () => {
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    const { hold_id } = await placed(account_id, 50);
    const answers = await together(40, (i) =>
      i % 2
        ? capture(hold_id, { amount: 5, final: false })
        : api.post('/transactions', { account_id, transaction_type: 'Withdrawal', amount: 5 }),
    );
    const done = answers.map(({ status }, i) => (status === 201 ? (i % 2 ? 'captured' : 'withdrawn') : 'refused'));
    expect([
      done.filter((what) => what === 'captured').length,
      done.filter((what) => what === 'withdrawn').length,
    ]).toEqual([10, 10]);
    expect(await figures(account_id)).toEqual([0, 0]);
  });

  it('without a reply in time the response is 504 with the id, and a repeat gets the outcome', async () => {
    // contract: holds-20
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    const { hold_id } = await placed(account_id, 10);
    const other = await placed(account_id, 10);
    const requests: [string, string, object][] = [
      [newKey(), `/accounts/${account_id}/holds`, { amount: 1 }],
      [newKey(), `/holds/${hold_id}/capture`, {}],
      [newKey(), `/holds/${other.hold_id}/release`, {}],
    ];
    const ledger = world.bank.process('ledger');
    ledger.kill('SIGSTOP');
    const unknown = await Promise.all(requests.map(([key, path, body]) => api.once(key, path, body))).finally(() =>
      ledger.kill('SIGCONT'),
    );
    for (const answer of unknown) expectError(answer, 504, 'outcome_unknown', /same Idempotency-Key/);
    expect(unknown.map(({ error }) => Object.keys(error.details ?? {}))).toEqual([
      ['hold_id'],
      ['transaction_id', 'hold_id'],
      ['hold_id'],
    ]);
    const told = await eventually(async () => {
      const answers = await Promise.all(requests.map(([key, path, body]) => world.gateway(1).once(key, path, body)));
      return answers.every(({ status }) => status < 500) && answers;
    }, 20_000);
    expect(told.map(({ status }) => status)).toEqual([201, 201, 200]);
    expect(told[0]?.data<RestHold>().hold_id).toBe(unknown[0]?.error.details?.['hold_id']);
    expect(told[1]?.data<Captured>().transaction?.transaction_id).toBe(unknown[1]?.error.details?.['transaction_id']);
    expect(await figures(account_id)).toEqual([90, 89]);
  });
});

describe('Holds: events', () => {
  it('the topic holds has all events, keyed by account, in order and without gaps; balances has the available balance', async () => {
    const [a, b] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount()];
    const first = await placed(a.account_id, 60);
    const { transfer } = (
      await capture(first.hold_id, { amount: 20, to_account_id: b.account_id, final: false })
    ).data<Captured>();
    await release(first.hold_id);
    const second = await placed(a.account_id, 5);
    const { transaction } = (await capture(second.hold_id)).data<Captured>();
    const told = async () => {
      const read = await readTopics(world.bank, ['holds', 'balances', 'transactions']);
      const own = (topic: 'holds' | 'balances' | 'transactions') =>
        (read.get(topic) ?? []).filter(({ key }) => key === a.account_id);
      return (
        own('holds').length >= 5 && {
          holds: own('holds'),
          balances: own('balances'),
          transactions: own('transactions'),
        }
      );
    };
    const { holds, balances, transactions } = await eventually(told, 20_000);
    const data = (message: ReceivedMessage) =>
      JSON.parse(message.value?.toString() ?? '') as {
        hold: Hold;
        hold_version: number;
        available_balance: string;
        balance: string;
        transaction: { hold_id?: string };
      };
    expect(
      holds.map((message) => [message.headers['ce_type'], data(message).hold_version, data(message).hold.status]),
    ).toEqual([
      ['corebanking.hold.placed.v1', 1, 'Active'],
      ['corebanking.hold.captured.v1', 2, 'Active'],
      ['corebanking.hold.released.v1', 3, 'Released'],
      ['corebanking.hold.placed.v1', 4, 'Active'],
      ['corebanking.hold.captured.v1', 5, 'Captured'],
    ]);
    expect(data(holds[1] as ReceivedMessage)).toMatchObject({
      amount: '20.00',
      transfer_id: transfer?.transfer_id,
      hold: { hold_id: first.hold_id, captured_amount: '20.00' },
    });
    expect(data(holds[4] as ReceivedMessage)).toMatchObject({
      amount: '5.00',
      transaction_id: transaction?.transaction_id,
    });
    expect(new Set(holds.map(({ headers }) => headers['ce_id'])).size).toBe(5);
    expect(data(balances.at(-1) as ReceivedMessage)).toMatchObject({
      balance: '75.00',
      available_balance: '75.00',
      hold_version: 5,
    });
    expect(transactions.map((message) => data(message).transaction.hold_id)).toEqual([
      undefined,
      first.hold_id,
      second.hold_id,
    ]);
  });
});

describe('Holds: staff', () => {
  let alice: Api;
  let bob: Api;
  beforeAll(() => {
    alice = api.withToken(staffToken(world.bank, 'alice'));
    bob = api.withToken(staffToken(world.bank, 'bob'));
  });

  it('changes and reads by staff are audited', async () => {
    const { account_id } = await api.newAccount({ initial_deposit: 100 });
    const { hold_id } = (await alice.post(`/accounts/${account_id}/holds`, { amount: 10 })).data<RestHold>();
    await alice.get(`/holds/${hold_id}`);
    const { transaction } = (
      await alice.post(`/holds/${hold_id}/capture`, { amount: 4, final: false })
    ).data<Captured>();
    await alice.post(`/holds/${hold_id}/release`);
    const recorded = (resource: string, action: string) =>
      eventually(
        async () => (await api.get(`/admin/audit?resource_id=${resource}&action=${action}`)).list<AuditRecord>()[0],
      );
    const actor = `jwt:${world.bank.issuer}|alice`;
    expect(await recorded(hold_id, 'place_hold')).toMatchObject({
      actor,
      outcome: 'success',
      details: { account_id, amount: '10' },
    });
    expect(await recorded(transaction?.transaction_id ?? '', 'capture_hold')).toMatchObject({
      actor,
      outcome: 'success',
      details: { hold_id, amount: '4.00', final: false },
    });
    expect(await recorded(hold_id, 'release_hold')).toMatchObject({ actor, outcome: 'success' });
    expect(await recorded(hold_id, 'get_hold')).toMatchObject({ actor });
  });

  it('post_above applies to the captured amount, which is the rest by default', async () => {
    // contract: four-eyes-3
    const [a, b] = [await api.newAccount({ initial_deposit: 5000 }), await api.newAccount()];
    const { hold_id } = await placed(a.account_id, 3000);
    // Somebody who has posted nothing else that day.
    const carla = api.withToken(staffToken(world.bank, 'carla'));
    expect((await carla.post(`/holds/${hold_id}/capture`, { amount: 1000, final: false })).status).toBe(201);
    const asked = await carla.post(`/holds/${hold_id}/capture`, { to_account_id: b.account_id });
    const approval = asked.data<{ approval_id: string; action: string; summary: string }>();
    expect([asked.status, approval.action, approval.summary]).toEqual([
      202,
      'post_above',
      `Capture what is left of hold ${hold_id}`,
    ]);
    expect(await figures(a.account_id)).toEqual([4000, 2000]);
    const approved = await bob.post(`/admin/approvals/${approval.approval_id}/approval`);
    expect(approved.data()).toMatchObject({
      status: 'Approved',
      outcome: {
        status: 'success',
        data: {
          hold: { status: 'Captured', captured_amount: 3000 },
          transfer: { amount: 2000, to_account_id: b.account_id },
        },
      },
    });
    expect([await figures(a.account_id), await figures(b.account_id)]).toEqual([
      [2000, 2000],
      [2000, 2000],
    ]);
    expectError(await alice.post(`/holds/${unknownId('hld')}/capture`), 404, 'hold_not_found');
  });
});
