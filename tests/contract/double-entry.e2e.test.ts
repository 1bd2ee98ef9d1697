import { beforeAll, describe, expect, it } from 'vitest';
import { type RestAccount, type RestEntry, type RestTransaction, retail } from '../support/client.ts';
import { useBank } from '../support/world.ts';

/** Tests the contract of double entry, and of reading for staff and auditors. */
const world = useBank({ ledgers: 2, env: { SPREAD_COMMANDS: 'true' } });
const { api } = world;

interface Row {
  account: string;
  direction: string;
  side: string;
  amount_minor: bigint;
  sequence: bigint;
}

/** Returns the entries of the operation of a transaction, with only the prefix of account numbers. */
function readEntries(transactionId: string): Promise<Row[]> {
  return world.sql<Row>(
    `select substr(a.account_number, 1, 3) as account, e.direction, e.side, e.amount_minor, e.sequence from v_entries e join v_accounts a using (account_id)
     where e.operation_id = (select operation_id from v_transactions where transaction_id = $1) order by 1, 2, 3`,
    [transactionId],
  );
}

const flow = (rows: Row[]) => rows.map(({ account, direction, side }) => `${account} ${direction}/${side}`);

describe('Double entry: operation | entries (direction / side)', () => {
  let account: RestAccount;
  let loan: RestAccount;
  beforeAll(async () => {
    account = await api.newAccount({ account_type: 'Checking' });
    loan = await api.newAccount({ account_type: 'Loan', initial_deposit: 500 });
  });

  it('Deposit', async () => {
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 300);
    expect(flow(await readEntries(transaction_id))).toEqual([
      'CHK credit/CR',
      'TLR credit/DR',
      'TLR debit/CR',
      'VLT credit/DR',
    ]);
  });

  it('Withdrawal', async () => {
    const { transaction_id } = await api.transact(account.account_id, 'Withdrawal', 10);
    expect(flow(await readEntries(transaction_id))).toEqual([
      'CHK debit/DR',
      'TLR credit/DR',
      'TLR debit/CR',
      'VLT debit/CR',
    ]);
  });

  it('Transfer', async () => {
    const other = await api.newAccount({ account_type: 'Current' });
    const { transfer_id } = await api.transfer(account.account_id, other.account_id, 10);
    const [leg] = await api.all<RestTransaction>(`/transactions?transfer_id=${transfer_id}`);
    expect(flow(await readEntries(leg?.transaction_id ?? ''))).toEqual(['CHK debit/DR', 'CUR credit/CR']);
  });

  it('Loan opened', async () => {
    const [disbursement] = await api.all<RestTransaction>(`/transactions?account_id=${loan.account_id}`);
    expect(flow(await readEntries(disbursement?.transaction_id ?? ''))).toEqual([
      'LOA credit/DR',
      'TLR credit/DR',
      'TLR debit/CR',
      'VLT debit/CR',
    ]);
  });

  it('Loan Payment', async () => {
    const { transfer_id } = await api.transfer(account.account_id, loan.account_id, 10);
    const [leg] = await api.all<RestTransaction>(`/transactions?transfer_id=${transfer_id}`);
    expect(flow(await readEntries(leg?.transaction_id ?? ''))).toEqual(['CHK debit/DR', 'LOA debit/CR']);
  });

  it('every operation has ΣDR = ΣCR per currency, and leaves Teller at 0', async () => {
    // contract: double-entry-5, double-entry-8
    expect(
      await world.sql(
        "select operation_id from v_entries group by operation_id, currency having sum(case side when 'DR' then amount_minor else -amount_minor end) <> 0",
      ),
    ).toEqual([]);
    expect(
      await world.sql("select * from v_accounts where account_number like 'TLR-%' and balance_minor <> 0"),
    ).toEqual([]);
  });

  it('GET /accounts/:account_id/entries shows the same entries as the views, without gaps', async () => {
    // contract: double-entry-6
    const entries = (await api.entries(account.account_id)).reverse();
    expect(entries.map(({ sequence }) => sequence)).toEqual(entries.map((_, i) => i + 1));
    const rows = await world.sql<{
      entry_id: string;
      operation_id: string;
      amount_minor: bigint;
      balance_after_minor: bigint;
    }>(
      'select entry_id, operation_id, amount_minor, balance_after_minor from v_entries where account_id = $1 order by sequence',
      [account.account_id],
    );
    const minor = (value: number) => BigInt(Math.round(value * 100));
    expect(
      entries.map(({ entry_id, operation_id, amount, balance_after }: RestEntry) => ({
        entry_id,
        operation_id,
        amount_minor: minor(amount),
        balance_after_minor: minor(balance_after),
      })),
    ).toEqual(rows);
    let balance = 0n;
    for (const [i, { direction }] of entries.entries()) {
      balance += direction === 'credit' ? (rows[i]?.amount_minor ?? 0n) : -(rows[i]?.amount_minor ?? 0n);
      expect(rows[i]?.balance_after_minor).toBe(balance);
    }
  });
});

describe('Double entry: Vault and Teller', () => {
  it('each currency has one Teller and one Vault, created at first use; REST shows the sums of their slots', async () => {
    // contract: double-entry-7, double-entry-9, double-entry-15
    expect((await api.get('/admin/system-accounts')).text).not.toContain('VLT-NOK');
    const accounts = await Promise.all(
      Array.from({ length: 12 }, () => api.newAccount({ currency: 'NOK', initial_deposit: 1.5 })),
    );
    const loan = await api.newAccount({ currency: 'NOK', account_type: 'Loan', initial_deposit: 20 });
    const system = (await api.get('/admin/system-accounts')).list<{
      account_id: string;
      account_number: string;
      kind: string;
      currency: string;
      balance: number;
      slots: { account_number: string; balance: number }[];
    }>();
    const ours = system.filter(({ currency }) => currency === 'NOK');
    expect(ours.map(({ kind, account_number, balance }) => [kind, account_number, balance]).sort()).toEqual([
      ['Teller', 'TLR-NOK', 0],
      ['Vault', 'VLT-NOK', accounts.length * 1.5 - loan.balance],
    ]);
    for (const account of ours) {
      expect(Object.keys(account).sort()).toEqual([
        'account_id',
        'account_number',
        'balance',
        'currency',
        'kind',
        'slots',
      ]);
      expect(account.slots.reduce((sum, slot) => sum + slot.balance * 100, 0)).toBe(account.balance * 100);
      for (const slot of account.slots)
        expect(slot.account_number).toMatch(new RegExp(`^${account.account_number}/\\d+$`));
    }
  });

  it('a loan is not refused for lack of cash: the Vault can be negative, customers cannot', async () => {
    // contract: double-entry-10
    await api.newAccount({ currency: 'DKK', account_type: 'Loan', initial_deposit: 1000 });
    const system = (await api.get('/admin/system-accounts')).list<{
      kind: string;
      currency: string;
      balance: number;
    }>();
    expect(system.find(({ kind, currency }) => kind === 'Vault' && currency === 'DKK')?.balance).toBe(-1000);
  });
});

describe('Reading for staff and auditors', () => {
  it('GET /admin/trial-balance: totals match and assets equal liabilities, per currency', async () => {
    // contract: double-entry-5, double-entry-14
    await api.newAccount({ currency: 'EUR', initial_deposit: 10.25 });
    const rows = (await api.get('/admin/trial-balance')).list<Record<string, number>>();
    expect(rows.map(({ currency }) => currency)).toEqual(expect.arrayContaining(['USD', 'EUR', 'NOK']));
    for (const row of rows) {
      expect(Object.keys(row).sort()).toEqual([
        'assets',
        'credit_total',
        'currency',
        'debit_total',
        'difference',
        'liabilities',
      ]);
      expect(row['debit_total']).toBe(row['credit_total']);
      expect(row['assets']).toBe(row['liabilities']);
      expect(row['difference']).toBe(0);
    }
    expect(rows.find((row) => String(row['currency']) === 'EUR')).toMatchObject({
      debit_total: 20.5,
      credit_total: 20.5,
      assets: 10.25,
      liabilities: 10.25,
    });
  });

  it('the views have the columns of the contract', async () => {
    // contract: double-entry-16, money-2
    const columns = {
      v_accounts:
        'account_id account_number account_type class currency status client_id balance_minor last_sequence created_at held_minor',
      v_entries:
        'entry_id operation_id transaction_id account_id sequence direction side amount_minor currency balance_after_minor created_at effective_date',
      v_holds:
        'hold_id account_id amount_minor captured_minor currency status description reference actor request_id expires_at created_at updated_at external_id metadata',
      v_transactions:
        'transaction_id operation_id account_id counterparty_account_id transfer_id transaction_type direction amount_minor currency description reference status failure_code reverses_transaction_id idempotency_key actor request_id created_at external_id metadata hold_id batch_id metadata_client_id effective_date',
    };
    for (const [view, names] of Object.entries(columns)) {
      const rows = await world.sql<{ name: string }>(
        "select column_name as name from information_schema.columns where table_schema = 'ledger' and table_name = $1",
        [view],
      );
      expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(names.split(' ')));
    }
  });

  it('v_accounts and v_transactions match REST', async () => {
    // contract: double-entry-16
    const account = await api.newAccount({ initial_deposit: 12.5, status: 'Inactive' });
    expect(
      await world.sql(
        'select account_number, class, currency, status, balance_minor, last_sequence from v_accounts where account_id = $1',
        [account.account_id],
      ),
    ).toEqual([
      {
        account_number: account.account_number,
        class: 'liability',
        currency: 'USD',
        status: 'Inactive',
        balance_minor: 1250n,
        last_sequence: 1n,
      },
    ]);
    const [opening] = await api.all<RestTransaction>(`/transactions?account_id=${account.account_id}`);
    expect(
      await world.sql(
        'select transaction_id, transaction_type, amount_minor, status from v_transactions where account_id = $1',
        [account.account_id],
      ),
    ).toEqual([
      {
        transaction_id: opening?.transaction_id,
        transaction_type: 'Deposit',
        amount_minor: 1250n,
        status: 'Completed',
      },
    ]);
  });
});

describe('Double entry: enforced by the database', () => {
  const uuid = (id: string) => id.slice(-32);
  let account: RestAccount;
  beforeAll(async () => {
    account = await api.newAccount({ initial_deposit: 10 });
  });

  it.each([
    'update ledger.entries set amount_minor = amount_minor + 1',
    'delete from ledger.entries',
    'truncate ledger.entries',
    'truncate ledger.entries cascade',
    'delete from ledger.transactions',
    "update ledger.transactions set status = 'Failed'",
    "update ledger.transactions set description = '(erased)'",
  ])('entries are append-only, even for the owner: %s', async (statement) => {
    // contract: double-entry-11
    await expect(world.sql(statement)).rejects.toThrow(/append-only/);
  });

  const entry = (direction: string, side: string, operation: string) =>
    `('${uuid(account.account_id)}', 2, '${operation}', '${operation}', '${direction}', '${side}', 100, 'USD', 1100, now())`;
  const insert = (values: string) =>
    `insert into ledger.entries (account_id, sequence, operation_id, transaction_id, direction, side, amount_minor, currency, balance_after_minor, created_at) values ${values}`;

  it('inserting an operation that does not balance is refused', async () => {
    // contract: double-entry-12
    await expect(world.sql(insert(entry('credit', 'CR', 'a'.repeat(32))))).rejects.toThrow(/balance/);
  });

  it('a CHECK constraint refuses a negative customer balance', async () => {
    // contract: double-entry-13
    await expect(
      world.sql('update ledger.accounts set balance_minor = -1 where account_id = $1', [uuid(account.account_id)]),
    ).rejects.toThrow(/check constraint/);
  });

  it('the service’s role can neither change entries nor read the other schema', async () => {
    const [role] = await world.sql<{ name: string }>(
      "select rolname as name from pg_roles where rolname = current_database() || '_ledger'",
    );
    const may = async (table: string, right: string) =>
      (
        await world.sql<{ may: boolean }>('select has_table_privilege($1, $2, $3) as may', [role?.name, table, right])
      )[0]?.may;
    expect(await may('ledger.entries', 'select')).toBe(true);
    for (const right of ['update', 'delete', 'truncate']) expect(await may('ledger.entries', right)).toBe(false);
    const schema = await world.sql<{ may: boolean }>("select has_schema_privilege($1, 'accounts', 'usage') as may", [
      role?.name,
    ]);
    expect(schema).toEqual([{ may: false }]);
  });

  it('the books balance after these refusals', async () => {
    await api.post('/clients', retail());
    await world.expectBooksInOrder();
  });
});
