import { describe, expect, it } from 'vitest';
import { expectError, newKey, type RestTransaction, type RestTransfer, unknownId } from '../support/client.ts';
import { together, useSharedBank } from '../support/world.ts';

/** Tests the contract of POST /transactions/:transaction_id/reversal. */
const world = useSharedBank();
const { api } = world;

const reverse = (id: string, reason = 'booked by mistake') => api.post(`/transactions/${id}/reversal`, { reason });
const readTransaction = async (id: string) => (await api.get(`/transactions/${id}`)).data<RestTransaction>();

async function reversed(id: string): Promise<RestTransaction> {
  const answer = await reverse(id);
  expect(answer.status, answer.text).toBe(201);
  return answer.data<RestTransaction>();
}

/** Returns account number prefix, direction, and side of each entry of the operation of a transaction. */
async function readFlow(transactionId: string): Promise<string[]> {
  const rows = await world.sql<{ flow: string }>(
    `select substr(a.account_number, 1, 3) || ' ' || e.direction || ' ' || e.side as flow from v_entries e join v_accounts a using (account_id)
     where e.operation_id = (select operation_id from v_transactions where transaction_id = $1)`,
    [transactionId],
  );
  return rows.map(({ flow }) => flow).sort();
}

const turned = (flow: string[]) =>
  flow
    .map((entry) =>
      entry.replace(
        /(credit|debit) (CR|DR)/,
        (_, direction, side) => `${direction === 'credit' ? 'debit' : 'credit'} ${side === 'CR' ? 'DR' : 'CR'}`,
      ),
    )
    .sort();

async function withCash(amount: number) {
  return api.newAccount({ initial_deposit: amount });
}

describe('Reversal', () => {
  it.each([
    ['Deposit', 'credit', 'debit', 10],
    ['Withdrawal', 'debit', 'credit', 10],
  ] as const)(
    'of a %s posts reversed entries with the same type and the opposite direction, linked',
    async (type, direction, other, balance) => {
      // contract: transactions-24
      const { account_id } = await withCash(10);
      const original = await api.transact(account_id, type, 4, { reference: 'R-1' });
      expect(original.direction).toBe(direction);
      const answer = await reverse(original.transaction_id);
      const reversal = answer.data<RestTransaction>();
      expect(reversal).toMatchObject({
        transaction_type: type,
        direction: other,
        amount: 4,
        currency: 'USD',
        account_id,
        status: 'Completed',
        reverses_transaction_id: original.transaction_id,
      });
      expect(answer.header('location')).toContain(`/transactions/${reversal.transaction_id}`);
      expect(await readTransaction(original.transaction_id)).toEqual({
        ...original,
        reversed_by_transaction_id: reversal.transaction_id,
      });
      expect(await readTransaction(reversal.transaction_id)).toEqual(reversal);
      expect(await api.balance(account_id)).toBe(balance);
      expect(await readFlow(reversal.transaction_id)).toEqual(turned(await readFlow(original.transaction_id)));
    },
  );

  it.each(['debit', 'credit'])('of the %s leg of a transfer reverses both legs', async (leg) => {
    // contract: transactions-27
    const [from, to] = [await withCash(10), await withCash(1)];
    const { transfer_id } = await api.transfer(from.account_id, to.account_id, 6);
    const legs = await api.all<RestTransaction>(`/transactions?transfer_id=${transfer_id}`);
    const chosen = legs.find(({ direction }) => direction === leg);
    const reversal = await reversed(chosen?.transaction_id ?? '');
    expect(reversal).toMatchObject({
      transaction_type: 'Transfer',
      account_id: chosen?.account_id,
      reverses_transaction_id: chosen?.transaction_id,
    });
    expect([await api.balance(from.account_id), await api.balance(to.account_id)]).toEqual([10, 1]);
    const undoing = (await api.get(`/transfers/${reversal.transfer_id}`)).data<RestTransfer>();
    expect(undoing).toMatchObject({
      from_account_id: to.account_id,
      to_account_id: from.account_id,
      amount: 6,
      status: 'Completed',
      reverses_transfer_id: transfer_id,
    });
    const listed = await api.all<RestTransfer>(`/transfers?account_id=${from.account_id}`);
    expect(listed).toEqual([
      undoing,
      expect.objectContaining({ transfer_id, reversed_by_transfer_id: undoing.transfer_id }),
    ]);
    for (const original of legs) {
      const now = await readTransaction(original.transaction_id);
      const itsReversal = await readTransaction(now.reversed_by_transaction_id ?? '');
      expect(itsReversal).toMatchObject({
        transfer_id: reversal.transfer_id,
        account_id: original.account_id,
        amount: 6,
        reverses_transaction_id: original.transaction_id,
        status: 'Completed',
      });
      expect(itsReversal.direction).not.toBe(original.direction);
      expectError(await reverse(original.transaction_id), 400, 'already_reversed');
    }
    expect(await readFlow(reversal.transaction_id)).toEqual(['SAV credit CR', 'SAV debit DR']);
  });

  it('of a Loan Payment raises the outstanding principal again', async () => {
    const [payer, loan] = [await withCash(50), await api.newAccount({ account_type: 'Loan', initial_deposit: 30 })];
    const { transfer_id } = await api.transfer(payer.account_id, loan.account_id, 30);
    const [leg] = await api.all<RestTransaction>(`/transactions?transfer_id=${transfer_id}`);
    expect(await reversed(leg?.transaction_id ?? '')).toMatchObject({
      transaction_type: 'Loan Payment',
      direction: 'credit',
    });
    expect([await api.balance(payer.account_id), await api.balance(loan.account_id)]).toEqual([50, 30]);
  });

  it('of an initial deposit and of a loan disbursement', async () => {
    const [account, loan] = [await withCash(20), await api.newAccount({ account_type: 'Loan', initial_deposit: 30 })];
    for (const { account_id } of [account, loan]) {
      const [opening] = await api.all<RestTransaction>(`/transactions?account_id=${account_id}`);
      await reversed(opening?.transaction_id ?? '');
      expect(await api.balance(account_id)).toBe(0);
    }
  });

  it('of a partly repaid disbursement is refused: a Loan does not fall below 0', async () => {
    // contract: transactions-26
    const [payer, loan] = [await withCash(50), await api.newAccount({ account_type: 'Loan', initial_deposit: 30 })];
    const [disbursement] = await api.all<RestTransaction>(`/transactions?account_id=${loan.account_id}`);
    await api.transfer(payer.account_id, loan.account_id, 0.01);
    const answer = await reverse(disbursement?.transaction_id ?? '');
    expect(answer.status).toBe(400);
    expect(['amount_exceeds_outstanding', 'insufficient_funds']).toContain(answer.error.code);
    expect(await api.balance(loan.account_id)).toBe(29.99);
  });

  it('happens at most once: already_reversed names the reversal', async () => {
    // contract: transactions-25
    const { account_id } = await withCash(10);
    const { transaction_id } = await api.transact(account_id, 'Deposit', 1);
    const reversal = await reversed(transaction_id);
    const error = expectError(await reverse(transaction_id), 400, 'already_reversed');
    expect(error.details).toEqual({ reversal_transaction_id: reversal.transaction_id });
  });

  it('happens at most once with 20 concurrent requests', async () => {
    // contract: transactions-25
    const { account_id } = await withCash(100);
    const { transaction_id } = await api.transact(account_id, 'Deposit', 1);
    const answers = await together(20, () => reverse(transaction_id));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    const id = answers.find(({ status }) => status === 201)?.data<RestTransaction>().transaction_id;
    for (const answer of answers)
      if (answer.status !== 201)
        expect(expectError(answer, 400, 'already_reversed').details).toEqual({ reversal_transaction_id: id });
    expect(await api.balance(account_id)).toBe(100);
  });

  it('of both legs of a transfer concurrently posts one reversal', async () => {
    const [from, to] = [await withCash(10), await withCash(10)];
    const { transfer_id } = await api.transfer(from.account_id, to.account_id, 6);
    const legs = await api.all<RestTransaction>(`/transactions?transfer_id=${transfer_id}`);
    const answers = await Promise.all(legs.map(({ transaction_id }) => reverse(transaction_id)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 400]);
    expect([await api.balance(from.account_id), await api.balance(to.account_id)]).toEqual([10, 10]);
  });

  it('of a Failed transaction or of a reversal is not_reversible', async () => {
    // contract: transactions-28
    const { account_id } = await withCash(10);
    const failed = expectError(
      await api.post('/transactions', { account_id, transaction_type: 'Withdrawal', amount: 11 }),
      400,
      'insufficient_funds',
    );
    expectError(await reverse(failed.details?.['transaction_id'] ?? ''), 400, 'not_reversible');
    const nowhere = expectError(
      await api.post('/transactions', { account_id: unknownId('acc'), transaction_type: 'Deposit', amount: 11 }),
      404,
      'account_not_found',
    );
    const unreadable = expectError(
      await api.post('/transactions', { account_id, transaction_type: 'Deposit', amount: 1.001 }),
      400,
      'invalid_amount_precision',
    );
    for (const { details } of [nowhere, unreadable])
      expectError(await reverse(details?.['transaction_id'] ?? ''), 400, 'not_reversible');
    const reversal = await reversed((await api.transact(account_id, 'Deposit', 1)).transaction_id);
    expectError(await reverse(reversal.transaction_id), 400, 'not_reversible');
  });

  it('of an unknown or malformed id is 404 transaction_not_found', async () => {
    for (const id of [unknownId('txn'), unknownId('trf'), 'x'])
      expectError(await reverse(id), 404, 'transaction_not_found');
  });

  it('requires a reason', async () => {
    // contract: transactions-24
    const { account_id } = await withCash(10);
    const { transaction_id } = await api.transact(account_id, 'Deposit', 1);
    for (const body of [{}, { reason: '' }, { reason: null }, { reason: 'r'.repeat(256) }])
      expectError(await api.post(`/transactions/${transaction_id}/reversal`, body), 400, 'validation_failed');
    expectError(
      await api.post(`/transactions/${transaction_id}/reversal`, { reason: 'x', amount: 1 }),
      400,
      'unknown_field',
    );
  });

  it('checks the status, for both accounts of a transfer', async () => {
    // contract: transactions-26
    const [from, to] = [await withCash(10), await withCash(10)];
    const { transaction_id } = await api.transact(from.account_id, 'Deposit', 1);
    const { transfer_id } = await api.transfer(from.account_id, to.account_id, 1);
    const legs = await api.all<RestTransaction>(`/transactions?transfer_id=${transfer_id}`);
    for (const frozen of [from, to]) {
      await api.setStatus(frozen.account_id, 'Frozen', 'fraud');
      for (const leg of legs) expectError(await reverse(leg.transaction_id), 400, 'inactive_account');
      if (frozen === from) expectError(await reverse(transaction_id), 400, 'inactive_account');
      await api.setStatus(frozen.account_id, 'Active');
    }
    await reversed(transaction_id);
  });

  it('checks funds: a spent deposit, or a transfer whose destination has spent it', async () => {
    // contract: transactions-26
    const [from, to] = [await withCash(10), await withCash(0)];
    const [opening] = await api.all<RestTransaction>(`/transactions?account_id=${from.account_id}`);
    const { transfer_id } = await api.transfer(from.account_id, to.account_id, 6);
    const [leg] = await api.all<RestTransaction>(`/transactions?transfer_id=${transfer_id}`);
    await api.transact(to.account_id, 'Withdrawal', 1);
    for (const id of [opening?.transaction_id ?? '', leg?.transaction_id ?? '']) {
      const error = expectError(await reverse(id), 400, 'insufficient_funds');
      const failed = await readTransaction(error.details?.['transaction_id'] ?? '');
      expect(failed).toMatchObject({
        status: 'Failed',
        failure_code: 'insufficient_funds',
        reverses_transaction_id: id,
      });
      expect((await readTransaction(id)).reversed_by_transaction_id).toBeUndefined();
    }
  });

  it('checks limits: the balance would exceed 10^15 - 1 minor units', async () => {
    // contract: transactions-26
    const { account_id } = await withCash(100);
    const { transaction_id } = await api.transact(account_id, 'Withdrawal', 100);
    await api.transact(account_id, 'Deposit', 9_999_999_999_999.99);
    expectError(await reverse(transaction_id), 400, 'balance_limit_exceeded');
  });

  it('is not posted again with the same Idempotency-Key, but returned again', async () => {
    const { account_id } = await withCash(10);
    const { transaction_id } = await api.transact(account_id, 'Deposit', 1);
    const key = newKey();
    const path = `/transactions/${transaction_id}/reversal`;
    const [first, second] = [await api.once(key, path, { reason: 'x' }), await api.once(key, path, { reason: 'x' })];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.text).toBe(first.text);
    expect(second.header('idempotent-replayed')).toBe('true');
    expectError(await api.once(key, path, { reason: 'y' }), 422, 'idempotency_key_reused');
  });

  it('does not change the original transaction and its entries', async () => {
    const { account_id } = await withCash(10);
    const { transaction_id } = await api.transact(account_id, 'Deposit', 1);
    const before = await world.sql('select * from v_entries where account_id = $1 order by sequence', [account_id]);
    await reversed(transaction_id);
    const after = await world.sql('select * from v_entries where account_id = $1 order by sequence', [account_id]);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after).toHaveLength(before.length + 1);
  });
});
