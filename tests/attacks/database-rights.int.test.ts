import { afterAll, beforeAll, expect, it } from 'vitest';
import { checkRights } from '#libs/postgres/check.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { useAccounts } from '#services/accounts/test/harness.ts';
import { useLedger } from '#services/ledger/test/harness.ts';
import { useWebhooks } from '#services/webhooks/test/harness.ts';

/** Tests rights that an attacker with a service's role, or with a connection, must not have. */
const ledger = useLedger();
const accounts = useAccounts();
const webhooks = useWebhooks();
let role: Pool;
let account_id: string;

beforeAll(async () => {
  role = createPool({ url: ledger.serviceUrl, application_name: 'test', schema: 'ledger', max: 2 }, silent);
  account_id = (await ledger.open('Savings', '10')).slice(4);
});
afterAll(() => role.end());

const denied = { code: '42501' };

it('a temporary table cannot replace a table that the check of entries reads', async () => {
  const client = await ledger.owner.connect();
  try {
    await client.query('begin');
    await client.query('create temporary table accounts on commit drop as select * from ledger.accounts');
    await client.query('update pg_temp.accounts set balance_minor = 999, last_sequence = 100 where account_id = $1', [
      account_id,
    ]);
    const forged = `insert into ledger.entries (account_id, sequence, operation_id, transaction_id, direction, side, amount_minor, currency, balance_after_minor, created_at)
      select account_id, 100, operation_id, transaction_id, direction, x.side, amount_minor, currency, 999, created_at
      from ledger.entries, (values ('CR'), ('DR')) as x (side) where account_id = $1 and sequence = 1 and x.side = entries.side limit 1`;
    await expect(client.query(forged, [account_id])).rejects.toMatchObject({ code: '23514' });
  } finally {
    await client.query('rollback');
    client.release();
  }
});

it('in production, a service starts with its own role, and not as an administrator or the owner of its tables', async () => {
  for (const pool of [role, accounts.pool, webhooks.pool]) await checkRights(pool);
  for (const pool of [ledger.owner, accounts.owner, webhooks.owner])
    await expect(checkRights(pool)).rejects.toThrow(/DATABASE_URL: it must have the service's own role/);
  // An owner that is no administrator, and a role that may become the owner.
  const client = await ledger.owner.connect();
  const asRole = { query: (text: string) => client.query(text) } as unknown as Pool;
  try {
    await client.query('begin');
    await client.query(
      'create role weak_owner; create role member in role weak_owner; alter schema ledger owner to weak_owner',
    );
    for (const name of ['weak_owner', 'member']) {
      await client.query(`set local session authorization ${name}`);
      await expect(checkRights(asRole)).rejects.toThrow('not the owner of the tables');
      await client.query('reset session authorization');
    }
  } finally {
    await client.query('rollback');
    client.release();
  }
});

it('every function resolves names in its own schema, for every caller', async () => {
  for (const [owner, schema] of [
    [ledger.owner, 'ledger'],
    [accounts.owner, 'accounts'],
    [webhooks.owner, 'webhooks'],
  ] as const) {
    const { rows } = await owner.query(
      `select proname from pg_proc where pronamespace = $1::regnamespace and prosqlbody is null
        and not exists (select from unnest(proconfig) as setting where setting like 'search_path=%pg_temp')`,
      [schema],
    );
    expect(rows).toEqual([]);
  }
});

it('the services’ roles cannot create temporary tables', async () => {
  // asvs: 13.2.2
  for (const pool of [role, accounts.pool, webhooks.pool])
    await expect(pool.query('create temporary table entries (x int)')).rejects.toMatchObject(denied);
});

it.each([
  'update accounts set currency = currency',
  'update accounts set account_type = account_type',
  'update accounts set client_id = client_id',
  'update accounts set account_number = account_number',
  'update accounts set balance_minor = balance_minor',
  'update accounts set last_sequence = last_sequence',
  'update accounts set last_posted_at = null',
  'update entries set amount_minor = 1',
  'delete from transactions',
  'delete from accounts',
  "insert into accounts (account_id, account_number, account_type, currency, status, balance_minor, created_at) values (gen_random_uuid(), 'X', 'Savings', 'USD', 'Active', 5, now())",
  'update outbox set records = records',
  'delete from outbox_lease',
  'update verifications set requested_by = requested_by',
  'update commands set outcome = outcome',
  'truncate audit_outbox',
])('the role of the ledger cannot run: %s', async (statement) => {
  await expect(role.query(statement)).rejects.toMatchObject(denied);
});

it.each([
  'update clients set client_type = client_type',
  'update accounts set client_id = client_id',
  'update accounts set account_number = account_number',
  "update api_keys set scopes = '{keys:manage}'",
  'update api_keys set client_id = client_id',
  'delete from api_keys',
  'update audit set actor = actor',
  'delete from audit',
  'update commands set fingerprint = fingerprint',
  'update saga_steps set payload = payload',
  'update dead_letters set topic = topic',
  'delete from dead_letters',
  'update waiting_replies set topic = topic',
])('the role of accounts cannot run: %s', async (statement) => {
  await expect(accounts.pool.query(statement)).rejects.toMatchObject(denied);
});

it.each([
  'update events set event = event',
  'update webhooks set client_id = client_id',
  'update webhooks set created_by = created_by',
  'delete from webhooks',
  'update commands set fingerprint = fingerprint',
  'delete from commands',
  'update account_owners set client_id = client_id',
  'update disabled_callers set caller = caller',
  'delete from disabled_callers',
])('the role of webhooks cannot run: %s', async (statement) => {
  await expect(webhooks.pool.query(statement)).rejects.toMatchObject(denied);
});

it('the next migration revokes rights that are no longer granted', async () => {
  const { rows } = await ledger.owner.query(
    "select column_name, privilege_type from information_schema.column_privileges where table_schema = 'ledger' and table_name = 'accounts' and privilege_type = 'UPDATE' and grantee like '%_ledger' order by 1",
  );
  expect(rows.map(({ column_name }) => column_name)).toEqual([
    'active_holds',
    'held_minor',
    'hold_expires_at',
    'hold_version',
    'status',
    'status_version',
  ]);
});
