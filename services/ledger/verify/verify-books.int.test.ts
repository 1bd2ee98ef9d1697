import { afterAll, beforeAll, expect, it } from 'vitest';
import { idOf } from '#libs/contracts/ids.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent, type TestDatabase } from '#libs/postgres/test/test-database.ts';
import { runBatch } from '../batch/engine.ts';
import { batchCommand } from '../domain/batches.ts';
import type { Command } from '../domain/decision.ts';
import { ledgerSchema, migrations } from '../schema.ts';
import { accountOf, bitsOf, capture, cash, contextOf, opening, placing, transfer } from '../test/test-kit.ts';
import { bookRules, verifyBooks } from './verify-books.ts';

/**
 * Tests verify-books. The books are written once. Each violation is planted in a copy of them, by the owner
 * with all triggers disabled. Exactly the named rules must find it; they are several only if several rules
 * imply the same.
 */
const [savings, checking, emptied] = [accountOf(1, 'Savings'), accountOf(2, 'Checking'), accountOf(5, 'Savings')];
let template: TestDatabase;

const item = (amount: number) => ({
  transfer: {
    from_account_id: savings.account_id,
    to_account_id: checking.account_id,
    amount: String(amount),
    currency: null,
    description: null,
  },
});
function batchOf(mode: 'independent' | 'atomic', n: number, items: ReturnType<typeof item>[]): Command {
  const batch_id = idOf('batch', bitsOf(n));
  return batchCommand({ batch_id, mode, items }, contextOf(n, { message_id: batch_id, fingerprint: bitsOf(n) }));
}
/** The last one is refused. */
const batches = [
  batchOf('atomic', 101, [item(0.1), item(0.2)]),
  batchOf('independent', 102, [item(0.3), item(99_999)]),
];

const connect = ({ url }: TestDatabase): Pool =>
  createPool({ url, application_name: 'test', schema: ledgerSchema, max: 2 }, silent);

beforeAll(async () => {
  template = await createTestDatabase();
  await migrate(
    { ...migrations, owner_url: template.url, role: `${template.name}_ledger`, role_password: 'test-password' },
    silent,
  );
  const pool = connect(template);
  try {
    const openings = [
      opening(1, 'Savings', '100'),
      opening(2, 'Checking', '0'),
      opening(3, 'Loan', '40'),
      opening(4, 'Savings', '0'),
      opening(5, 'Savings', '5'),
    ];
    const movements = [
      cash('Withdrawal', emptied, '5'),
      transfer(savings, checking, '25'),
      transfer(savings, checking, '30'),
      cash('Withdrawal', savings, '5000'),
    ];
    for (const commands of [openings, movements, [cash('Deposit', savings, '10.50')]])
      await runBatch(pool, commands, 0);
    await runBatch(pool, [cash('Deposit', savings, '7')], 1);
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const context = { time: new Date().toISOString() };
    const holds = [
      placing(checking, '20', { n: 70, expires_at, context }),
      placing(checking, '9', { n: 71, expires_at, context }),
      capture(70, { amount: '4', final: false }),
      capture(70, { amount: '3', to: savings, final: false }),
    ];
    await runBatch(pool, holds, 0);
    await runBatch(pool, [...batches, batchOf('atomic', 103, [item(0.5), item(99_999)])], 1);
  } finally {
    await pool.end();
  }
});

afterAll(() => template?.drop());

/** Returns the rules that are violated after this change of the books. */
async function broken(statements: string): Promise<string[]> {
  const copy = await createTestDatabase(template.name);
  const pool = connect(copy);
  try {
    await pool.query(
      `alter table entries disable trigger all; alter table transactions disable trigger all; ${statements}`,
    );
    return (await verifyBooks(pool)).map(({ rule }) => rule);
  } finally {
    await pool.end();
    await copy.drop();
  }
}

const account = (n: number) =>
  `(select account_id from accounts where account_number = 'SAV-${String(n).padStart(10, '0')}')`;
const slot = (number: string) => `(select account_id from accounts where account_number = '${number}')`;
/** The operation of the transfer or deposit with this amount in minor units. */
const operation = (minor: number) =>
  `(select operation_id from transactions where amount_minor = ${minor} and status = 'Completed' limit 1)`;
const creditLeg = (minor: number) =>
  `(select transaction_id from transactions where amount_minor = ${minor} and direction = 'credit')`;
const [
  trialBalance,
  operations,
  balances,
  debits,
  chain,
  counts,
  sides,
  teller,
  vault,
  belowZero,
  transactions,
  entries,
  held,
  captured,
  wholeBatches,
] = bookRules;

const violations: [string, (string | undefined)[], string][] = [
  // A missing side also unbalances the trial balance and the Vault, so these two rules are always
  // violated too.
  [
    'an operation with one side',
    [trialBalance, operations, vault],
    `
    update accounts set balance_minor = 100, last_sequence = 1 where account_id = ${account(4)};
    insert into transactions (transaction_id, operation_id, account_id, transaction_type, direction, amount_minor, currency, status, actor, request_id, created_at)
      select i, i, ${account(4)}, 'Deposit', 'credit', 100, 'USD', 'Completed', 'a', 'r', now() from (select gen_random_uuid() as i) id;
    insert into entries select account_id, 1, operation_id, transaction_id, 'credit', 'CR', 100, 'USD', 100, created_at from transactions where account_id = ${account(4)}`,
  ],
  [
    'two operations that balance only together',
    [operations],
    `
    create temp table legs as select operation_id, transaction_id from transactions where transaction_id in (${creditLeg(2500)}, ${creditLeg(3000)});
    create temp table exchanged as select a.transaction_id, b.operation_id from legs a join legs b on a.transaction_id <> b.transaction_id;
    update transactions t set operation_id = x.operation_id from exchanged x where x.transaction_id = t.transaction_id;
    update entries e set operation_id = x.operation_id from exchanged x where x.transaction_id = e.transaction_id`,
  ],
  [
    'balances that are not the sums of their entries',
    [balances],
    `
    update accounts set balance_minor = balance_minor + 1 where account_id = ${account(1)};
    update accounts set balance_minor = balance_minor - 1 where account_id = ${account(2)}`,
  ],
  [
    'a wrong balance_after',
    [chain],
    `update entries set balance_after_minor = balance_after_minor + 1 where account_id = ${account(1)} and sequence = 2`,
  ],
  [
    'an account whose debit total is too low',
    [debits],
    `update accounts set debits_minor = debits_minor - 1 where account_id = ${account(5)}`,
  ],
  [
    'a gap in the sequence',
    [chain],
    `
    update entries set sequence = 1009 where account_id = ${account(1)} and sequence = 2;
    update entries set balance_after_minor = (select balance_minor from accounts where account_id = ${account(1)}) where account_id = ${account(1)} and sequence = (select last_sequence from accounts where account_id = ${account(1)})`,
  ],
  [
    "more entries than the account's last sequence",
    [counts],
    `update accounts set last_sequence = 3 where account_id = ${account(5)}`,
  ],
  [
    'an entry in another currency',
    [sides],
    `update entries set currency = 'KES' where operation_id = ${operation(2500)}`,
  ],
  [
    'an entry on the side of the other class',
    [sides],
    `update entries set side = case side when 'DR' then 'CR' else 'DR' end where operation_id = ${operation(2500)}`,
  ],
  ['an entry of an account that does not exist', [sides], `delete from accounts where account_id = ${account(5)}`],
  [
    'money left with a Teller',
    [teller],
    `
    create temp table last as select account_id, sequence, amount_minor from entries where account_id = ${slot('TLR-USD/0')} order by sequence desc limit 1;
    update entries e set account_id = ${slot('TLR-USD/1')}, sequence = 3, balance_after_minor = -e.amount_minor from last where e.account_id = last.account_id and e.sequence = last.sequence;
    update accounts set balance_minor = (select amount_minor from last), last_sequence = last_sequence - 1 where account_id = ${slot('TLR-USD/0')};
    update accounts set balance_minor = - (select amount_minor from last), last_sequence = 3 where account_id = ${slot('TLR-USD/1')}`,
  ],
  [
    'cash that did not reach the Vault',
    [teller, vault],
    `
    delete from entries where account_id = ${slot('VLT-USD/1')} or (account_id = ${slot('TLR-USD/1')} and sequence = 2);
    update accounts set balance_minor = 0, last_sequence = 0 where account_id = ${slot('VLT-USD/1')};
    update accounts set balance_minor = 700, last_sequence = 1 where account_id = ${slot('TLR-USD/1')}`,
  ],
  [
    'a customer with a negative balance in between',
    [belowZero],
    `
    update entries set sequence = 3 where account_id = ${account(5)} and direction = 'credit';
    update entries set sequence = 1, balance_after_minor = -500 where account_id = ${account(5)} and direction = 'debit';
    update entries set sequence = 2, balance_after_minor = 0 where account_id = ${account(5)} and direction = 'credit'`,
  ],
  [
    'a Completed transaction without an entry',
    [transactions],
    `
    insert into transactions (transaction_id, operation_id, account_id, transaction_type, direction, amount_minor, currency, status, actor, request_id, created_at)
      select gen_random_uuid(), gen_random_uuid(), ${account(4)}, 'Deposit', 'credit', 100, 'USD', 'Completed', 'a', 'r', now()`,
  ],
  [
    'a transaction with too many entries',
    [transactions],
    `
    update accounts set last_sequence = 4 where account_id = ${account(5)};
    insert into entries select account_id, 3, operation_id, transaction_id, 'credit', 'CR', 100, currency, 100, created_at from entries where account_id = ${account(5)} and sequence = 2;
    insert into entries select account_id, 4, operation_id, transaction_id, 'debit', 'DR', 100, currency, 0, created_at from entries where account_id = ${account(5)} and sequence = 2`,
  ],
  [
    'an entry without a transaction',
    [entries],
    `update entries set transaction_id = gen_random_uuid() where account_id = ${slot('TLR-USD/1')} and sequence = 1`,
  ],
  [
    'an account whose held amount is less than its holds',
    [held],
    `update accounts set held_minor = held_minor - 1 where account_id = ${account(2)}`,
  ],
  [
    'an account whose held amount is zero despite its holds',
    [held],
    `update accounts set held_minor = 0, active_holds = 0, hold_expires_at = null where account_id = ${account(2)}`,
  ],
  [
    'an account without the expiry of its next hold',
    [held],
    `update accounts set hold_expires_at = hold_expires_at + interval '1 second' where account_id = ${account(2)}`,
  ],
  [
    'an account with fewer Active holds than it counts',
    [held],
    `update accounts set active_holds = 3 where account_id = ${account(2)}`,
  ],
  [
    'an account with a held amount but no hold',
    [held],
    `update accounts set held_minor = 1, active_holds = 1, hold_expires_at = now() where account_id = ${account(1)}`,
  ],
  [
    'a hold without an account',
    [held],
    `
    insert into holds select gen_random_uuid(), gen_random_uuid(), amount_minor, 0, currency, status, null, null, actor, request_id, null, null, expires_at, created_at, updated_at from holds where amount_minor = 900`,
  ],
  [
    'a hold that has captured more than its operations',
    [captured],
    `
    update holds set captured_minor = captured_minor + 100 where amount_minor = 2000; update accounts set held_minor = held_minor - 100 where account_id = ${account(2)}`,
  ],
  ['a capture without its hold', [captured], `update transactions set hold_id = null where amount_minor = 400`],
  [
    'a capture of a hold on another account',
    [captured],
    `update transactions set hold_id = (select hold_id from holds where amount_minor = 900) where amount_minor = 300`,
  ],
  ['a capture of no hold', [captured], `update transactions set hold_id = gen_random_uuid() where amount_minor = 1050`],
  [
    'an entry whose operation differs from that of its transaction',
    [entries],
    `update transactions set operation_id = gen_random_uuid() where operation_id = ${operation(1050)}`,
  ],
  ['a partly posted atomic batch', [wholeBatches], `update transactions set batch_id = null where amount_minor = 20`],
  [
    'a posted atomic batch that was refused',
    [wholeBatches],
    `update transactions set batch_id = '${bitsOf(103)}' where operation_id = ${operation(2500)}`,
  ],
  [
    'a batch with more transactions than items',
    [wholeBatches],
    `update transactions set batch_id = '${bitsOf(102)}' where operation_id in (${operation(2500)}, ${operation(3000)})`,
  ],
  [
    'a transaction of a batch that does not exist',
    [wholeBatches],
    `update transactions set batch_id = gen_random_uuid() where operation_id = ${operation(2500)}`,
  ],
];

it('finds nothing in valid books', async () => {
  expect(await broken('')).toEqual([]);
});

it('tests a violation of every rule', () => {
  expect([...new Set(violations.flatMap(([, rules]) => rules))].sort()).toEqual(bookRules.toSorted());
});

it.each(violations)('finds %s', async (_, rules, statements) => {
  // A violation that adds or removes a DR entry would otherwise violate the rule on debits too.
  const total = `update accounts a set debits_minor = (select coalesce(sum(amount_minor), 0) from entries e where e.account_id = a.account_id and side = 'DR')`;
  expect(await broken(rules.includes(debits) ? statements : `${statements}; ${total}`)).toEqual(rules);
});
