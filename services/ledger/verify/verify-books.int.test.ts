import { afterAll, beforeAll, expect, it } from 'vitest';
import { formatId, idBits } from '#libs/contracts/ids.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent, type TestDatabase } from '#libs/postgres/test/test-database.ts';
import { runBatch } from '../batch/engine.ts';
import { batchCommand } from '../domain/batches.ts';
import type { Command } from '../domain/decision.ts';
import { ledgerSchema, migrations } from '../schema.ts';
import {
  capture,
  cash,
  opening,
  placing,
  release,
  reversal,
  statusChange,
  testAccount,
  testBits,
  testContext,
  transfer,
} from '../test/test-kit.ts';
import { bookRules, checkBooks } from './verify-books.ts';

/**
 * Tests verify-books. The books are written once. Each violation is planted by the owner, with all triggers disabled, in
 * a transaction that is rolled back. Exactly the named rules must find it; they are several only if several rules imply
 * the same.
 */
const [savings, checking, emptied] = [testAccount(1, 'Savings'), testAccount(2, 'Checking'), testAccount(5, 'Savings')];
const loan = testAccount(3, 'Loan');
let database: TestDatabase;
let pool: Pool;

const item = (amount: number) => ({
  transfer: {
    from_account_id: savings.account_id,
    to_account_id: checking.account_id,
    amount: String(amount),
    currency: null,
    description: null,
  },
});
function testBatch(mode: 'independent' | 'atomic', n: number, items: ReturnType<typeof item>[]): Command {
  const batch_id = formatId('batch', testBits(n));
  return batchCommand({ batch_id, mode, items }, testContext(n, { message_id: batch_id, fingerprint: testBits(n) }));
}
/** The id of the transaction that a posting makes on its first account. */
const recordId = ({ context }: Command) => formatId('transaction', idBits(context.message_id));
/** The last one is refused. */
const batches = [
  testBatch('atomic', 101, [item(0.1), item(0.2)]),
  testBatch('independent', 102, [item(0.3), item(99_999)]),
];

beforeAll(async () => {
  database = await createTestDatabase();
  await migrate(
    { ...migrations, owner_url: database.url, role: `${database.name}_ledger`, role_password: 'test-password' },
    silent,
  );
  pool = createPool({ url: database.url, application_name: 'test', schema: ledgerSchema, max: 2 }, silent);
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
  for (const commands of [openings, movements, [cash('Deposit', savings, '10.50')]]) await runBatch(pool, commands, 0);
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
  await runBatch(pool, [...batches, testBatch('atomic', 103, [item(0.5), item(99_999)])], 1);
  const [deposited, moved] = [cash('Deposit', checking, '11.11'), transfer(savings, checking, '12.12')];
  const later = [
    cash('Deposit', savings, '14.14', { effective_date: new Date(Date.now() - 86_400_000).toISOString().slice(0, 10) }),
    deposited,
    moved,
    reversal(recordId(deposited)),
    reversal(recordId(moved)),
    reversal(recordId(moved)),
    transfer(savings, loan, '13.13'),
    placing(checking, '6', { n: 72, expires_at, context }),
    release(72),
    placing(checking, '99999', { n: 73, expires_at, context }),
    capture(71, { amount: '999' }),
    statusChange(testAccount(4, 'Savings'), 'Frozen'),
    statusChange(testAccount(4, 'Savings'), 'Inactive'),
  ];
  await runBatch(pool, [opening(6, 'Savings', '0')], 0);
  const actor = 'jwt:issuer|person';
  const counting = { counted: [{ currency: 'USD', amount: '3.03' }] };
  const ofTill = (n: number, command: object) =>
    ({ ...command, context: testContext(n, { message_id: `cmd_${testBits(n)}`, actor }) }) as Command;
  const till_id = formatId('till', testBits(80));
  await runBatch(pool, [ofTill(80, { name: 'open_till', data: { ...counting, till_id } })], 0);
  await runBatch(
    pool,
    [
      cash('Deposit', testAccount(6, 'Savings'), '3.03', { actor }),
      cash('Withdrawal', testAccount(6, 'Savings'), '1.01', { actor }),
    ],
    0,
  );
  await runBatch(pool, [ofTill(81, { name: 'close_till', data: { ...counting, till_id, reason: 'spent' } })], 0);
  const { replies } = await runBatch(pool, later, 0);
  expect(replies.map((reply) => (reply.ok ? 'done' : reply.refusal.code))).toEqual([
    ...Array(5).fill('done'),
    'already_reversed',
    ...Array(3).fill('done'),
    'insufficient_funds',
    'amount_exceeds_hold',
    'done',
    'done',
  ]);
});

afterAll(async () => {
  await pool?.end();
  await database?.drop();
});

/** Returns the rules that are violated after this change of the books. */
async function broken(statements: string): Promise<string[]> {
  const client = await pool.connect();
  try {
    await client.query(
      `begin; ${['entries', 'transactions', 'dated_entries', 'holds', 'tills', 'till_postings'].map((table) => `alter table ${table} disable trigger all`).join('; ')}; ${statements}`,
    );
    return (await checkBooks(client)).map(({ rule }) => rule);
  } finally {
    await client.query('rollback');
    client.release();
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
  amounts,
  shapes,
  pairs,
  reversals,
  held,
  captured,
  wholeBatches,
  postingReplies,
  holdReplies,
  accountReplies,
  valueDates,
  ,
  ,
  tillPostings,
  tillFigures,
] = bookRules;

type Legs = [account: string, direction: 'credit' | 'debit', reverses?: string][];
const [customer, other, tellerSlot, vaultSlot] = [account(1), account(2), slot('TLR-USD/1'), slot('VLT-USD/1')];
const paidIn = (of = customer): Legs => [
  [of, 'credit'],
  [tellerSlot, 'credit'],
  [tellerSlot, 'debit'],
  [vaultSlot, 'credit'],
];
const paidOut = (of = customer): Legs => [
  [vaultSlot, 'debit'],
  [tellerSlot, 'credit'],
  [tellerSlot, 'debit'],
  [of, 'debit'],
];
const turnedLeg = (minor: number, direction: string) =>
  `(select transaction_id from transactions where amount_minor = ${minor} and direction = '${direction}' and reverses_transaction_id is not null)`;
const secondBits = (n: number) => `8${testBits(n).slice(1)}`;

/**
 * Posts an operation of one or two transactions with these entries. The trigger of the entries is enabled, so that
 * balances and sequences are right.
 */
function post(n: number, type: string, minor: number, own: Legs, entries: Legs = own): string {
  const transactions = own.map(
    ([of, direction, reverses], i) => `(${i}, ${of}, '${direction}', ${reverses ?? null}::uuid)`,
  );
  const legs = entries.map(([of, direction], i) => `(${i}, ${of}, '${direction}')`);
  return `
    alter table entries enable trigger entries_posted;
    create temp table own_${n} as
      select case i when 0 then '${testBits(n)}'::uuid else '${secondBits(n)}'::uuid end as transaction_id, * from (values ${transactions.join(', ')}) o (i, account_id, direction, reverses);
    insert into transactions (transaction_id, operation_id, account_id, counterparty_account_id, transaction_type, direction, amount_minor, currency, status, reverses_transaction_id, actor, request_id, created_at)
      select transaction_id, '${testBits(n)}', account_id, (select c.account_id from own_${n} c where c.i <> o.i), '${type}', direction, ${minor}, 'USD', 'Completed', reverses, 'a', 'r', now() from own_${n} o;
    insert into entries
      select e.account_id, last_sequence + row_number() over own, '${testBits(n)}', coalesce(o.transaction_id, '${testBits(n)}'), e.direction,
        case when (class = 'liability') = (e.direction = 'credit') then 'CR' else 'DR' end, ${minor}, 'USD',
        balance_minor + sum(case e.direction when 'credit' then ${minor} else ${-minor} end) over own, now()
      from (values ${legs.join(', ')}) e (i, account_id, direction) join accounts a using (account_id) left join own_${n} o using (account_id)
      window own as (partition by e.account_id order by e.i);
    alter table entries disable trigger all;`;
}
const transactionId = (n: number) => `'${testBits(n)}'`;
const reply = (name: string, from: string, to: string) =>
  `update commands set outcome = replace(outcome::text, '${from}', '${to}')::json where name = '${name}'`;
const refusal = (name: string, mark: string) =>
  `update commands set outcome = '{"ok":false,"refusal":{"code":"insufficient_funds","message":"x"}}' where name = '${name}' and outcome::text like '%${mark}%'`;

const violations: [string, (string | undefined)[], string][] = [
  // A missing side also unbalances the trial balance and the Vault, so these two rules are always
  // violated too.
  [
    'an operation with one side',
    [trialBalance, operations, vault, shapes],
    `
    update accounts set balance_minor = 100, last_sequence = 1 where account_id = ${account(4)};
    insert into transactions (transaction_id, operation_id, account_id, transaction_type, direction, amount_minor, currency, status, actor, request_id, created_at)
      select i, i, ${account(4)}, 'Deposit', 'credit', 100, 'USD', 'Completed', 'a', 'r', now() from (select gen_random_uuid() as i) id;
    insert into entries select account_id, 1, operation_id, transaction_id, 'credit', 'CR', 100, 'USD', 100, created_at from transactions where account_id = ${account(4)}`,
  ],
  [
    'two operations that balance only together',
    [operations, shapes, pairs],
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
    'an entry that was posted before the one before it',
    [chain],
    `update entries set created_at = created_at - interval '1 hour' where account_id = ${account(1)} and sequence = 2`,
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
    [sides, amounts],
    `update entries set currency = 'KES' where operation_id = ${operation(2500)}`,
  ],
  [
    'an entry on the side of the other class',
    [sides],
    `update entries set side = case side when 'DR' then 'CR' else 'DR' end where operation_id = ${operation(2500)}`,
  ],
  [
    'an entry of an account that does not exist',
    [sides, shapes, accountReplies],
    `delete from accounts where account_id = ${account(5)}`,
  ],
  [
    'money left with a Teller',
    [teller, shapes],
    `
    create temp table last as select account_id, sequence, amount_minor from entries where account_id = ${slot('TLR-USD/0')} order by sequence desc limit 1;
    update entries e set account_id = ${slot('TLR-USD/1')}, sequence = 3, balance_after_minor = -e.amount_minor from last where e.account_id = last.account_id and e.sequence = last.sequence;
    update accounts set balance_minor = (select amount_minor from last), last_sequence = last_sequence - 1 where account_id = ${slot('TLR-USD/0')};
    update accounts set balance_minor = - (select amount_minor from last), last_sequence = 3 where account_id = ${slot('TLR-USD/1')}`,
  ],
  [
    'cash that did not reach the Vault',
    [teller, vault, shapes],
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
    update entries set sequence = 2, balance_after_minor = 0, created_at = now() where account_id = ${account(5)} and direction = 'credit'`,
  ],
  [
    'a Completed transaction without an entry',
    [transactions],
    `
    insert into transactions (transaction_id, operation_id, account_id, transaction_type, direction, amount_minor, currency, status, actor, request_id, created_at)
      select i, i, ${account(4)}, 'Deposit', 'credit', 100, 'USD', 'Completed', 'a', 'r', now() from (select gen_random_uuid() as i) id`,
  ],
  [
    'a transaction with too many entries',
    [transactions, amounts, shapes],
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
  [
    'a capture without its hold',
    [captured, postingReplies],
    `update transactions set hold_id = null where amount_minor = 400`,
  ],
  [
    'a capture of a hold on another account',
    [captured, postingReplies],
    `update transactions set hold_id = (select hold_id from holds where amount_minor = 900) where amount_minor = 300`,
  ],
  ['a capture of no hold', [captured], `update transactions set hold_id = gen_random_uuid() where amount_minor = 1050`],
  [
    'an entry whose operation differs from that of its transaction',
    [entries],
    `update entries set operation_id = '${testBits(900)}' where operation_id = ${operation(1050)}`,
  ],
  ['a partly posted atomic batch', [wholeBatches], `update transactions set batch_id = null where amount_minor = 20`],
  [
    'a posted atomic batch that was refused',
    [wholeBatches],
    `update transactions set batch_id = '${testBits(103)}' where operation_id = ${operation(2500)}`,
  ],
  [
    'a batch with more transactions than items',
    [wholeBatches],
    `update transactions set batch_id = '${testBits(102)}' where operation_id in (${operation(2500)}, ${operation(3000)})`,
  ],
  [
    'a transaction of a batch that does not exist',
    [wholeBatches],
    `update transactions set batch_id = '${testBits(900)}' where operation_id = ${operation(2500)}`,
  ],
  [
    'an amount that is not that of the entry',
    [amounts],
    'update transactions set amount_minor = 1051 where amount_minor = 1050',
  ],
  [
    'a currency that is not that of the entry',
    [amounts],
    `update transactions set currency = 'KES' where amount_minor = 1050`,
  ],
  [
    'a direction that is not that of the entry',
    [amounts],
    `update transactions set direction = 'credit' where transaction_type = 'Withdrawal' and amount_minor = 500 and status = 'Completed'`,
  ],
  ['a deposit that lowers the balance', [amounts, shapes], post(900, 'Deposit', 77, [[customer, 'credit']], paidOut())],
  ['a deposit as a withdrawal', [shapes], post(900, 'Withdrawal', 77, [[customer, 'credit']], paidIn())],
  [
    'cash of another amount than the customer got',
    [shapes],
    `
    update entries set amount_minor = 900, balance_after_minor = case sequence when 1 then 900 else 0 end where account_id = ${tellerSlot}`,
  ],
  [
    'a second payment of a loan',
    [shapes],
    post(900, 'Withdrawal', 77, [[account(3), 'credit']], [...paidOut().slice(0, 3), [account(3), 'credit']]),
  ],
  [
    'a loan payment between accounts that are not loans',
    [pairs, shapes].toReversed(),
    post(900, 'Loan Payment', 77, [
      [customer, 'debit'],
      [other, 'credit'],
    ]),
  ],
  [
    'a transfer from the account that gets it',
    [pairs],
    post(900, 'Transfer', 77, [
      [customer, 'credit'],
      [other, 'debit'],
    ]),
  ],
  [
    'a transfer whose legs name different accounts',
    [pairs],
    `update transactions set counterparty_account_id = ${account(4)} where transaction_id = ${creditLeg(2500)}`,
  ],
  [
    'a transfer whose legs are of different batches',
    [pairs],
    `update transactions set batch_id = null where amount_minor = 30 and direction = 'credit'`,
  ],
  [
    'a transfer whose second leg has an id of its own',
    [pairs],
    `
    update entries set transaction_id = '${testBits(900)}' where transaction_id = ${creditLeg(2500)};
    update transactions set transaction_id = '${testBits(900)}' where transaction_id = ${creditLeg(2500)}`,
  ],
  [
    'an operation without the transaction that it is named after',
    [pairs],
    `
    update entries set operation_id = '${testBits(900)}' where operation_id = ${operation(1050)};
    update transactions set operation_id = '${testBits(900)}' where operation_id = ${operation(1050)}`,
  ],
  [
    'a refused withdrawal that would have raised the balance',
    [pairs],
    `update transactions set direction = 'credit' where status = 'Failed' and transaction_type = 'Withdrawal'`,
  ],
  [
    'a reversal that books its original again',
    [shapes, reversals],
    post(900, 'Deposit', 1050, [[customer, 'credit', operation(1050)]], paidIn()),
  ],
  [
    'a reversal of another amount',
    [reversals],
    post(900, 'Deposit', 1000, [[customer, 'debit', operation(1050)]], paidOut()),
  ],
  [
    'a reversal on another account',
    [reversals],
    post(900, 'Deposit', 1050, [[other, 'debit', operation(1050)]], paidOut(other)),
  ],
  [
    'a reversal of nothing',
    [reversals],
    post(900, 'Deposit', 77, [[customer, 'debit', transactionId(901)]], paidOut()),
  ],
  [
    'a reversal of a reversal',
    [reversals],
    post(900, 'Transfer', 1212, [
      [customer, 'debit', turnedLeg(1212, 'credit')],
      [other, 'credit', turnedLeg(1212, 'debit')],
    ]),
  ],
  [
    'two reversals of one deposit',
    [reversals],
    `drop index transactions_reversed_once;
    ${post(900, 'Deposit', 1050, [[customer, 'debit', operation(1050)]], paidOut())}
    ${post(901, 'Deposit', 1050, [[customer, 'debit', operation(1050)]], paidOut())}`,
  ],
  [
    'a reversal of the legs of two transfers',
    [reversals],
    `
    ${post(900, 'Transfer', 77, [
      [customer, 'debit'],
      [other, 'credit'],
    ])}
    ${post(901, 'Transfer', 77, [
      [customer, 'debit'],
      [other, 'credit'],
    ])}
    ${post(902, 'Transfer', 77, [
      [customer, 'credit', transactionId(900)],
      [other, 'debit', `'${secondBits(901)}'`],
    ])}`,
  ],
  [
    'a reversal that was answered with another amount',
    [postingReplies],
    reply('reverse_transaction', '"amount":"11.11"', '"amount":"11.12"'),
  ],
  [
    'a reversal that was answered with another original',
    [postingReplies],
    reply('reverse_transaction', '"reverses_transaction_id":"txn_0', '"reverses_transaction_id":"txn_1'),
  ],
  ['a reversal that was refused', [postingReplies], refusal('reverse_transaction', '11.11')],
  [
    'a refusal of a capture that was another',
    [postingReplies],
    reply('capture_hold', 'amount_exceeds_hold', 'hold_not_active'),
  ],
  [
    'a transfer by a capture that was answered with another account',
    [postingReplies],
    reply('capture_hold', '"to_account_id":"acc_0', '"to_account_id":"acc_1'),
  ],
  [
    'a capture that was answered with a hold that it has not taken',
    [postingReplies],
    reply('capture_hold', '"captured_amount":"7.00"', '"captured_amount":"7.01"'),
  ],
  ['a hold that was answered with another amount', [holdReplies], reply('place_hold', '"20.00"', '"20.01"')],
  ['a hold that was refused', [holdReplies], refusal('place_hold', '20.00')],
  [
    'a hold that was released but is not',
    [holdReplies],
    `update holds set status = 'Expired' where amount_minor = 600`,
  ],
  [
    'an opening that was answered with another balance',
    [accountReplies],
    reply('open_ledger_account', '"100.00"', '"150.01"'),
  ],
  [
    'an account with another status than was answered',
    [accountReplies],
    `update accounts set status = 'Active' where account_id = ${account(4)}`,
  ],
  [
    'an account whose status changed without a reply',
    [accountReplies],
    `delete from commands where name = 'change_ledger_account_status' and outcome::text like '%"to_status":"Frozen"%'`,
  ],
  [
    'an entry with another value date than its operation',
    [valueDates],
    `update dated_entries set effective_date = effective_date - 1 where account_id = ${account(1)}`,
  ],
  [
    'an entry without the value date of its operation',
    [valueDates],
    `delete from dated_entries where account_id = ${account(1)}`,
  ],
  [
    'entries with another value date than their transaction',
    [valueDates],
    'update dated_entries set effective_date = effective_date - 1',
  ],
  [
    'a posting that is in a till the other way round',
    [tillPostings, tillFigures],
    "update till_postings set direction = 'in'",
  ],
  ['a posting of another person in a till', [tillPostings], "update tills set actor = 'jwt:issuer|other'"],
  ['a till that was closed with a posting less', [tillFigures], "delete from till_postings where direction = 'out'"],
  [
    'a till whose difference is not what was counted',
    [tillFigures],
    `update tills set balances = replace(balances::text, '"difference":"-2.02"', '"difference":"0.00"')::json`,
  ],
  [
    'a till that was closed with another opening',
    [tillFigures],
    `update tills set opening = replace(opening::text, '3.03', '2.02')::json`,
  ],
  [
    'a till that was closed without a currency that it was opened with',
    [tillFigures],
    `update tills set opening = '[{"currency":"USD","amount":"3.03"},{"currency":"KWD","amount":"0.000"}]'`,
  ],
  ['a value date of no entry', [valueDates], `insert into dated_entries values (${account(1)}, 999, '2026-01-01')`],
];

it('finds nothing in valid books', async () => {
  expect(await broken('')).toEqual([]);
});

it('tests, for every rule, a violation that no other rule finds, unless the rule follows from others', () => {
  const implied = [trialBalance, operations, teller, vault];
  expect(violations.flatMap(([, rules]) => rules)).toEqual(expect.arrayContaining(implied));
  const alone = violations.flatMap(([, rules]) => (rules.length === 1 ? rules : []));
  // closings.int.test.ts tests those about closed days.
  const others = bookRules.filter((rule) => !rule.includes('closed day'));
  expect([...new Set([...implied, ...alone])].sort()).toEqual(others.sort());
});

it.each(violations)('finds %s', async (_, rules, statements) => {
  // A violation that adds or removes a DR entry would otherwise violate the rule on debits too.
  const total = `update accounts a set debits_minor = (select coalesce(sum(amount_minor), 0) from entries e where e.account_id = a.account_id and side = 'DR')`;
  expect(await broken(rules.includes(debits) ? statements : `${statements}; ${total}`)).toEqual(rules);
});
