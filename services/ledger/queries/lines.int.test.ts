import { describe, expect, it } from 'vitest';
import { formatId } from '#libs/contracts/ids.ts';
import type { MessageData, MessageName, MessageResult } from '#libs/contracts/messages.ts';
import { messages } from '#libs/contracts/messages.ts';
import type { Transfer } from '#libs/contracts/transfers.ts';
import { type LedgerHarness, useLedger } from '../test/harness.ts';
import { balanceStatement } from './balance.ts';

/** Tests the contract for statement lines, balances at a time, and reversals as transfers. */
const ledger = useLedger();

const ask = async <N extends MessageName>(name: N, data: MessageData<N>, bound?: string): Promise<MessageResult<N>> => {
  const reply = await ledger.ask({ name, data } as unknown as Parameters<LedgerHarness['ask']>[0], {
    bound_client_id: bound,
  });
  if (!reply.ok) throw new Error(JSON.stringify(reply.refusal));
  return messages[name].result.parse(reply.data) as MessageResult<N>;
};
const page = { limit: 100, order: 'desc' as const };
async function readOwner(account_id: string): Promise<string> {
  const { rows } = await ledger.owner.query<{ client_id: string }>(
    'select client_id from accounts where account_id = $1',
    [account_id.slice(4)],
  );
  return formatId('client', (rows[0]?.client_id ?? '').replaceAll('-', ''));
}
const idOfPosted = (command: { data: object }): string => Object.values(command.data)[0] as string;

describe('lines', () => {
  it('show the posting, the other account, and the transfer, the same in a statement and in the list', async () => {
    // contract: accounts-25
    const [account_id, other] = [await ledger.open('Savings', '100'), await ledger.open('Checking', '0')];
    const transfer = ledger.transfer(account_id, other, '25');
    await ledger.book([ledger.cash('Deposit', account_id, '1', { reference: 'R-1' }), transfer]);
    const { items } = await ask('list_entries', { account_id, ...page });
    expect(items).toMatchObject([
      {
        sequence: 3,
        transaction_type: 'Transfer',
        description: null,
        reference: null,
        counterparty_account_id: other,
        counterparty_account_number: `N-${other}`,
        transfer_id: idOfPosted(transfer),
      },
      { sequence: 2, transaction_type: 'Deposit', description: null, reference: 'R-1' },
      { sequence: 1, transaction_type: 'Deposit', description: 'Initial deposit', reference: null },
    ]);
    for (const line of items.slice(1))
      for (const field of ['counterparty_account_id', 'counterparty_account_number', 'transfer_id'])
        expect(line).not.toHaveProperty(field);
    expect((await ask('get_statement', { account_id, limit: 100 })).item.entries).toEqual(items.toReversed());
  });

  it('hide the reason of staff for a reversal from a bound caller', async () => {
    const account_id = await ledger.open('Savings', '100');
    const deposit = ledger.cash('Deposit', account_id, '5');
    await ledger.book([deposit]);
    await ledger.book([ledger.reversal(idOfPosted(deposit))]);
    const described = async (bound?: string) => [
      (await ask('list_entries', { account_id, ...page }, bound)).items[0]?.description,
      (await ask('get_statement', { account_id, limit: 9 }, bound)).item.entries[2]?.description,
    ];
    expect(await described()).toEqual(['mistake', 'mistake']);
    const owner = await readOwner(account_id);
    expect(await described(owner)).toEqual([null, null]);
    const { items } = await ask('list_entries', { account_id, ...page }, owner);
    const original = idOfPosted(deposit);
    expect(items.map((line) => line.reverses_transaction_id)).toEqual([original, undefined, undefined]);
    const reversal = items[0]?.transaction_id;
    expect(items.map((line) => line.reversed_by_transaction_id)).toEqual([undefined, reversal, undefined]);
    const { item } = await ask('get_statement', { account_id, limit: 9 }, owner);
    expect(item.entries).toEqual(items.toReversed().map((line) => expect.objectContaining(line)));
  });
});

describe('the balance at a time', () => {
  it('is the balance after the last entry posted before that time, or the current balance without a time', async () => {
    const account_id = await ledger.open('Savings', '100');
    for (const amount of ['1', '2', '3']) {
      await ledger.book([ledger.cash('Deposit', account_id, amount)]);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const { items } = await ask('list_entries', { account_id, ...page, order: 'asc' });
    const known = { account_id, account_number: `N-${account_id}`, currency: 'USD' };
    const at = (sequence: number, ms = 0) =>
      new Date(Date.parse(items[sequence - 1]?.created_at ?? '') + ms).toISOString();
    for (const [sequence, balance] of [
      [0, '0.00'],
      [1, '100.00'],
      [2, '101.00'],
      [3, '103.00'],
    ] as const) {
      expect(await ask('get_account_balance', { account_id, at: at(sequence + 1) })).toEqual({
        ...known,
        balance,
        sequence,
        at: at(sequence + 1),
      });
    }
    expect(await ask('get_account_balance', { account_id, at: at(2, 1) })).toMatchObject({
      balance: '101.00',
      sequence: 2,
    });
    expect(await ask('get_account_balance', { account_id, at: '1999-01-01T00:00:00.000Z' })).toMatchObject({
      balance: '0.00',
      sequence: 0,
    });
    const now = await ask('get_account_balance', { account_id });
    expect(now).toEqual({
      ...known,
      balance: '106.00',
      available_balance: '106.00',
      sequence: 4,
      at: expect.stringMatching(/Z$/),
    });
    expect((now.at ?? '') > at(4)).toBe(true);
  });

  it('is refused for the future, and not found for callers who cannot see the account', async () => {
    // contract: accounts-29
    const account_id = await ledger.open('Savings', '1');
    await expect(ask('get_account_balance', { account_id, at: '2999-01-01T00:00:00.000Z' })).rejects.toThrow(
      /"field":"at","code":"validation_failed"/,
    );
    await expect(ask('get_account_balance', { account_id }, formatId('client', 'f'.repeat(32)))).rejects.toThrow(
      'account_not_found',
    );
    await expect(ask('get_account_balance', { account_id: 'acc_x' })).rejects.toThrow('account_not_found');
    expect(await ask('get_account_balance', { account_id }, await readOwner(account_id))).toMatchObject({
      balance: '1.00',
    });
  });

  it('needs a few index lookups, however many entries the account has', async () => {
    // contract: accounts-29
    const account_id = await ledger.open('Savings', '0');
    for (const trigger of ['entries_posted', 'entries_append_only'])
      await ledger.owner.query(`alter table entries disable trigger ${trigger}`);
    await ledger.owner.query(
      `insert into entries select $1::uuid, n, md5('o' || n)::uuid, md5('t' || n)::uuid, 'credit', 'CR', 1, 'USD', n, timestamptz '2020-01-01Z' + n * interval '1 minute' from generate_series(1, 50000) n`,
      [account_id.slice(4)],
    );
    await ledger.owner.query('update accounts set last_sequence = 50000, balance_minor = 50000 where account_id = $1', [
      account_id.slice(4),
    ]);
    for (const trigger of ['entries_posted', 'entries_append_only'])
      await ledger.owner.query(`alter table entries enable always trigger ${trigger}`);
    await ledger.owner.query('analyze entries');
    const at = new Date(Date.parse('2020-01-01T00:00:00Z') + 31_415 * 60_000 + 1).toISOString();
    expect(await ask('get_account_balance', { account_id, at })).toMatchObject({ balance: '314.15', sequence: 31_415 });
    const plan = await ledger.reads.query(`explain (analyze, buffers, format json) ${balanceStatement}`, [
      account_id.slice(4),
      null,
      at,
    ]);
    const root = plan.rows[0]['QUERY PLAN'][0].Plan;
    expect(root['Shared Hit Blocks'] + root['Shared Read Blocks']).toBeLessThan(150);
  });
});

describe('the reversal of a transfer', () => {
  const readTransfers = async (account_id: string, bound?: string) =>
    (await ask('list_transfers', { account_id, ...page }, bound)).items;

  for (const type of ['Checking', 'Loan'] as const)
    for (const leg of ['source', 'destination'])
      it(`to a ${type} account, named by the leg on its ${leg}, is a Transfer with source and destination exchanged`, async () => {
        // contract: transactions-27
        const [from, to] = [await ledger.open('Savings', '100'), await ledger.open(type, '50')];
        const command = ledger.transfer(from, to, '7');
        await ledger.book([command]);
        const transfer_id = idOfPosted(command);
        const { items: legs } = await ask('list_transactions', { transfer_id, ...page });
        const named =
          legs.find(({ account_id }) => account_id === (leg === 'source' ? from : to))?.transaction_id ?? '';
        await ledger.book([ledger.reversal(named)]);
        const [reversal, original] = (await readTransfers(from)) as [Transfer, Transfer];
        expect(reversal).toMatchObject({
          from_account_id: to,
          to_account_id: from,
          amount: '7.00',
          status: 'Completed',
          description: 'mistake',
          reverses_transfer_id: transfer_id,
        });
        expect(original).toMatchObject({
          transfer_id,
          from_account_id: from,
          to_account_id: to,
          reversed_by_transfer_id: reversal.transfer_id,
        });
        expect([reversal.reversed_by_transfer_id, original.reverses_transfer_id]).toEqual([undefined, undefined]);
        expect(await readTransfers(to)).toEqual([reversal, original]);
        const everybodys = (await ask('list_transfers', page)).items.filter((transfer) =>
          [reversal.transfer_id, transfer_id].includes(transfer.transfer_id),
        );
        expect(everybodys).toEqual([reversal, original]);
        for (const each of [reversal, original])
          expect(await ask('get_transfer', { transfer_id: each.transfer_id })).toEqual(each);
        const { items: turned } = await ask('list_transactions', { transfer_id: reversal.transfer_id, ...page });
        expect(
          turned.map(({ transfer_id: id, reverses_transaction_id }) => [id, reverses_transaction_id]).sort(),
        ).toEqual(legs.map(({ transaction_id }) => [reversal.transfer_id, transaction_id]).sort());
        expect((await ask('list_entries', { account_id: from, ...page })).items[0]).toMatchObject({
          transfer_id: reversal.transfer_id,
          counterparty_account_id: to,
        });
        const { rows } = await ledger.owner.query<{ transfer_id: string }>(
          'select transfer_id from v_transactions where reverses_transaction_id = $1',
          [named],
        );
        expect(rows).toEqual([{ transfer_id: reversal.transfer_id }]);
        for (const hidden of await readTransfers(from, await readOwner(from))) expect(hidden.description).toBeNull();
      });

  it('a refused one is Failed', async () => {
    const [from, to] = [await ledger.open('Savings', '100'), await ledger.open('Checking', '0')];
    const command = ledger.transfer(from, to, '7');
    await ledger.book([command, ledger.cash('Withdrawal', to, '7')]);
    const {
      items: [leg],
    } = await ask('list_transactions', { transfer_id: idOfPosted(command), account_id: from, ...page });
    await ledger.book([ledger.reversal(leg?.transaction_id ?? '')]);
    const [failed] = (await ask('list_transfers', { account_id: from, status: 'Failed', ...page })).items;
    expect(failed).toMatchObject({
      from_account_id: to,
      to_account_id: from,
      failure_code: 'insufficient_funds',
      reverses_transfer_id: idOfPosted(command),
    });
    expect(await ask('get_transfer', { transfer_id: failed?.transfer_id ?? '' })).toEqual(failed);
    expect((await ask('get_transfer', { transfer_id: idOfPosted(command) })).reversed_by_transfer_id).toBeUndefined();
  });

  it('of a deposit is not a Transfer', async () => {
    const account_id = await ledger.open('Savings', '0');
    const deposit = ledger.cash('Deposit', account_id, '5');
    await ledger.book([deposit]);
    await ledger.book([ledger.reversal(idOfPosted(deposit))]);
    expect(await readTransfers(account_id)).toEqual([]);
  });
});
