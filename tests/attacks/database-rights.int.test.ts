import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkRights } from '#libs/postgres/check.ts';
import { readSweep } from '#libs/postgres/outbox/relay-read.ts';
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

it('a relay may write when it swept', async () => {
  for (const pool of [role, accounts.pool, webhooks.pool]) await expect(readSweep(pool, 0)).resolves.toBeDefined();
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
    'minimum_balance_minor',
    'out_day',
    'out_minor',
    'per_day_out_minor',
    'per_transaction_minor',
    'status',
    'status_version',
  ]);
});

describe('What is final does not change, also by the service’s own role', () => {
  const hash = 'md5(random()::text) || md5(random()::text)';
  const keyColumns = 'key_id, family_id, name, scopes, environment, secret_hash, created_at, created_by, expires_at';
  const key = (id: string, more = '', values = '') =>
    `insert into api_keys (${keyColumns}${more}) values ('${id}', '${id}', 'x', '{accounts:read}', 'test', ${hash}, now(), 'x', now() + interval '1 day'${values})`;
  const approval = (id: string, status: string, values: string) =>
    `insert into approvals (approval_id, action, summary, request, scopes, command, context, requested_by, requested_at, expires_at, status, decided_by, decided_at, reason, outcome, key_claimed_at)
     values ('${id}', 'create_key', 'x', '{}', '{}', '{}', '{}', 'asker', now(), now() + interval '1 day', '${status}', ${values})`;
  const created = (keyId: string) => `'{"status": "success", "data": {"key_id": "${keyId}"}}'`;

  beforeAll(async () => {
    for (const statement of [
      key('key_revoked', ', revoked_at, version, expiry_told', ', now(), 2, true'),
      key('key_valid'),
      key('key_unread'),
      key('key_claimed'),
      key('key_used', ', last_used_at', ', now()'),
      approval('apr_waiting', 'Waiting', 'null, null, null, null, null'),
      approval('apr_rejected', 'Rejected', "'bob', now(), 'no', null, null"),
      approval('apr_unread', 'Approved', `'bob', now(), null, ${created('key_unread')}, null`),
      approval('apr_used', 'Approved', `'bob', now(), null, ${created('key_used')}, null`),
      approval('apr_claimed', 'Approved', `'bob', now(), null, ${created('key_claimed')}, now()`),
      `insert into clients (client_id, client_type, first_name, last_name, email, contact_number, erased_at, created_at, updated_at)
       values ('cli_erased', 'Retail', '(erased)', '(erased)', '(erased)', '(erased)', now(), now(), now())`,
      `insert into accounts (account_id, client_id, account_number, account_type, currency, status, status_version, state, created_at, updated_at)
       values ('acc_refused', 'cli_erased', 'SAV-1', 'Savings', 'USD', 'Active', 0, 'refused', now(), now()),
              ('acc_open', 'cli_erased', 'SAV-2', 'Savings', 'USD', 'Frozen', 7, 'open', now(), now())`,
      `insert into dead_letters (dead_letter_id, topic, "partition", "offset", source_topic, size_bytes, dead_at, state, decided_by, decided_at)
       values ('dlt_dropped', 'x', 0, 0, 'x', 1, now(), 'dropped', 'bob', now())`,
      `insert into commands (command_id, reply) values ('cmd_decided', '{"ok": true}'), ('cmd_open', null)`,
    ])
      await accounts.owner.query(statement);
    await ledger.owner.query(
      `insert into holds (hold_id, account_id, amount_minor, captured_minor, currency, status, actor, request_id, expires_at, created_at, updated_at)
       values (gen_random_uuid(), $1, 5, 0, 'USD', 'Released', 'x', 'x', now(), now(), now())`,
      [account_id],
    );
    await webhooks.owner.query(
      `insert into webhooks (webhook_id, url, event_types, status, secret, created_by, url_set_by, secret_set_by, created_at, updated_at)
       values ('whk_deleted', 'https://example.org', '{*}', 'Deleted', 'x', 'x', 'x', 'x', now(), now())`,
    );
  });

  it.each([
    ['a revocation', "update api_keys set revoked_at = null, version = 3 where key_id = 'key_revoked'"],
    ['its time', "update api_keys set revoked_at = now() + interval '1 s', version = 3 where key_id = 'key_revoked'"],
    ['a later expiry', "update api_keys set expires_at = '2099-01-01', version = 2 where key_id = 'key_valid'"],
    ['an older version', "update api_keys set version = 1 where key_id = 'key_revoked'"],
    ['that an expiry was told', "update api_keys set expiry_told = false where key_id = 'key_revoked'"],
    ['the secret of a key', `update api_keys set secret_hash = ${hash}, version = 2 where key_id = 'key_valid'`],
    ['a claimed secret', `update api_keys set secret_hash = ${hash}, version = 2 where key_id = 'key_claimed'`],
    ['a used secret', `update api_keys set secret_hash = ${hash}, version = 2 where key_id = 'key_used'`],
    ['a rejection', "update approvals set status = 'Approved' where approval_id = 'apr_rejected'"],
    ['who decided', "update approvals set decided_by = 'carol' where approval_id = 'apr_rejected'"],
    ['why', "update approvals set reason = 'yes' where approval_id = 'apr_rejected'"],
    ['an outcome', `update approvals set outcome = '{"status": "error"}' where approval_id = 'apr_unread'`],
    ['that a key was shown', "update approvals set key_claimed_at = null where approval_id = 'apr_claimed'"],
    ['an erasure', "update clients set erased_at = null where client_id = 'cli_erased'"],
    ['erased data', "update clients set email = 'ada@example.org' where client_id = 'cli_erased'"],
    ['erased metadata', `update clients set client_metadata = '{"a": "b"}' where client_id = 'cli_erased'`],
    ['a refused opening', "update accounts set state = 'open' where account_id = 'acc_refused'"],
    ['an older status', "update accounts set status = 'Active', status_version = 6 where account_id = 'acc_open'"],
    [
      'a dropped dead letter',
      "update dead_letters set state = 'open', decided_by = null, decided_at = null where dead_letter_id = 'dlt_dropped'",
    ],
    ['a decided command', "delete from commands where command_id = 'cmd_decided'"],
    ['its reply', "update commands set reply = null where command_id = 'cmd_decided'"],
  ])('accounts: %s', async (_, statement) => {
    // contract: permission-40
    await expect(accounts.pool.query(statement)).rejects.toMatchObject({ code: '23001' });
    await expect(accounts.owner.query(statement)).rejects.toMatchObject({ code: '23001' });
  });

  it('ledger: a hold that has ended', async () => {
    await expect(role.query("update holds set status = 'Active' where status = 'Released'")).rejects.toMatchObject({
      code: '23001',
    });
  });

  it('webhooks: a deleted webhook', async () => {
    const statement = "update webhooks set status = 'Active' where webhook_id = 'whk_deleted'";
    await expect(webhooks.pool.query(statement)).rejects.toMatchObject({ code: '23001' });
  });

  it.each([
    "update api_keys set revoked_at = now(), version = 2 where key_id = 'key_valid'",
    "update api_keys set expires_at = expires_at - interval '1 hour', version = version + 1 where key_id = 'key_used'",
    "update api_keys set last_used_at = now() where key_id = 'key_used'",
    `update api_keys set secret_hash = ${hash}, version = 2 where key_id = 'key_unread'`,
    "update approvals set status = 'Rejected', decided_by = 'bob', decided_at = now() where approval_id = 'apr_waiting'",
    "update approvals set key_claimed_at = now() where approval_id = 'apr_unread'",
    "update accounts set status = 'Active', status_version = 8 where account_id = 'acc_open'",
    "delete from commands where command_id = 'cmd_open'",
  ])('what is not final does: %s', async (statement) => {
    expect((await accounts.pool.query(statement)).rowCount).toBe(1);
  });
});
