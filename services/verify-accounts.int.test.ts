import { afterAll, beforeAll, expect, it } from 'vitest';
import { formatId } from '#libs/contracts/ids.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent, type TestDatabase } from '#libs/postgres/test/test-database.ts';
import { migrations as accountsMigrations } from './accounts/schema.ts';
import { runBatch } from './ledger/batch/engine.ts';
import { migrations as ledgerMigrations } from './ledger/schema.ts';
import { opening, statusChange, testAccount, testBits } from './ledger/test/test-kit.ts';
import { accountRules, checkAccounts } from './verify-accounts.ts';

/**
 * Tests the rules that relate accounts to the ledger. Both schemas are written once. Each violation is planted in a
 * transaction that is rolled back, and found by one rule.
 */
let database: TestDatabase;
let pool: Pool;

const [first, second, refused] = [1, 2, 3].map((n) => formatId('account', testBits(n)));
const reply = (n: number, balance: string) => {
  const { account_id, account_number, client_id } = testAccount(n, 'Savings');
  const account = { account_id, client_id, account_number, account_type: 'Savings', currency: 'USD', balance };
  return JSON.stringify({ ok: true, data: account });
};

beforeAll(async () => {
  database = await createTestDatabase();
  for (const migrations of [ledgerMigrations, accountsMigrations]) {
    const role = `${database.name}_${migrations.schema}`;
    await migrate({ ...migrations, owner_url: database.url, role, role_password: 'test-password' }, silent);
  }
  const connect = (schema: string) =>
    createPool({ url: database.url, application_name: 'test', schema, max: 2 }, silent);
  const ledger = connect('ledger');
  pool = connect('accounts');
  const frozen = statusChange(testAccount(2, 'Savings'), 'Frozen');
  await runBatch(ledger, [opening(1, 'Savings', '150'), opening(2, 'Savings', '0'), frozen], 0);
  await ledger.end();
  await pool.query(
    `insert into clients (client_id, client_type, first_name, last_name, email, contact_number, created_at, updated_at)
     select 'cli_' || lpad(n || '00', 32, '0'), 'Retail', 'A', 'B', 'a@b.c', '+1', now(), now() from generate_series(1, 3) n`,
  );
  await pool.query(
    `insert into accounts (account_id, client_id, account_number, account_type, currency, status, status_version, state, created_at, updated_at)
     select 'acc_' || lpad(n || '00', 32, '0'), 'cli_' || lpad(n || '00', 32, '0'), 'SAV-' || lpad(n::text, 10, '0'), 'Savings', 'USD', s, v, state, now(), now()
     from (values (1, 'Active', 1, 'open'), (2, 'Frozen', 2, 'open'), (3, 'Active', 0, 'refused')) a (n, s, v, state)`,
  );
  await pool.query(`insert into commands (command_id, reply) values ($1, $2), ($3, $4), ($5, $6), ($7, $8)`, [
    first,
    reply(1, '150.00'),
    second,
    reply(2, '0.00'),
    refused,
    JSON.stringify({ ok: false, refusal: { code: 'duplicate_account_number', message: '\u0000' } }),
    'cmd_1',
    JSON.stringify({ ok: true, data: { client_id: testAccount(1, 'Savings').client_id, client_type: 'Retail' } }),
  ]);
});
afterAll(async () => {
  await pool?.end();
  await database?.drop();
});

const [masters, replies] = accountRules as [string, string];
const violations: [string, string, string][] = [
  [
    'another owner',
    masters,
    `update accounts set client_id = 'cli_' || lpad('300', 32, '0') where account_id = '${second}';
    update commands set reply = replace(reply::text, '"client_id":"cli_${testBits(2)}"', '"client_id":"cli_${testBits(3)}"')::json`,
  ],
  [
    'another number',
    masters,
    `update ledger.accounts set account_number = 'SAV-9999' where account_id = '${testBits(1)}'`,
  ],
  ['another type', masters, `update ledger.accounts set account_type = 'Checking' where account_id = '${testBits(1)}'`],
  ['another currency', masters, `update ledger.accounts set currency = 'KES' where account_id = '${testBits(1)}'`],
  ['another status', masters, `update accounts set status = 'Active' where account_id = '${second}'`],
  [
    'a status that the ledger never had',
    masters,
    `update accounts set status_version = 3 where account_id = '${second}'`,
  ],
  [
    'an old status, although no reply is awaited',
    masters,
    `update accounts set status = 'Active', status_version = 1 where account_id = '${second}'`,
  ],
  ['an account that only accounts has', masters, `delete from ledger.accounts where account_id = '${testBits(2)}'`],
  [
    'an account that only the ledger has',
    masters,
    `delete from commands; delete from accounts where account_id = '${second}'`,
  ],
  [
    'an account that the ledger opened and accounts refused',
    masters,
    `delete from commands; update accounts set state = 'refused' where account_id = '${second}'`,
  ],
  [
    'an opening that was answered with another balance',
    replies,
    `update commands set reply = replace(reply::text, '150.00', '150.01')::json`,
  ],
  [
    'an opening that was answered with another number',
    replies,
    `update commands set reply = replace(reply::text, 'SAV-0000000001', 'SAV-0000000004')::json`,
  ],
  [
    'an account that was answered and is not there',
    replies,
    `update commands set command_id = 'cmd_2', reply = replace(reply::text, '${second}', 'acc_${testBits(9)}')::json where command_id = '${second}'`,
  ],
  [
    'an open account whose opening was answered as refused',
    replies,
    `update commands set reply = (select reply from commands where command_id = '${refused}') where command_id = '${first}'`,
  ],
  [
    'a client that was answered with another type',
    replies,
    `update commands set reply = replace(reply::text, 'Retail', 'Corporate')::json`,
  ],
];

async function broken(statements: string): Promise<string[]> {
  const client = await pool.connect();
  try {
    // Without the triggers that refuse such changes.
    await client.query(`begin; set local session_replication_role = replica; ${statements}`);
    return (await checkAccounts(client)).map(({ rule }) => rule);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

it('finds nothing in valid accounts, also while the reply to a change of status is awaited', async () => {
  expect(await broken('')).toEqual([]);
  expect(
    await broken(
      `insert into saga_steps (step_id, message, account_id, payload, context, detail, next_attempt_at) values ('x', 'change_ledger_account_status', '${second}', '{}', '{}', '{}', now());
       update accounts set status = 'Active', status_version = 1 where account_id = '${second}'`,
    ),
  ).toEqual([]);
});

it('tests a violation of every rule', () => {
  expect([...new Set(violations.map(([, rule]) => rule))]).toEqual(accountRules);
});

it.each(violations)('finds %s', async (_, rule, statements) => {
  expect(await broken(statements)).toEqual([rule]);
});
