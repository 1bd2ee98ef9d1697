import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrate } from '#libs/postgres/migrate.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { createPool } from '#libs/postgres/pool.ts';
import type { TestDatabase } from '#libs/postgres/test/test-database.ts';
import { createTestDatabase, silent } from '#libs/postgres/test/test-database.ts';
import { migrateAccounts, migrationsDir, schema } from '../schema.ts';
import { auditRules, checkAudit } from './verify-audit.ts';

/** Records that were linked by their details themselves, before migration 0013. */
let database: TestDatabase;
let pool: Pool;
let old: string;

beforeAll(async () => {
  database = await createTestDatabase();
  old = await mkdtemp(join(tmpdir(), 'migrations-'));
  for (const name of await readdir(migrationsDir))
    if (name < '0013') await cp(join(migrationsDir, name), join(old, name));
  const options = { owner_url: database.url, role: `${database.name}_accounts`, role_password: 'only-for-tests' };
  await migrate({ ...options, schema, dir: old, grants: () => [] }, silent);
  pool = createPool({ url: database.url, application_name: 'test', schema, max: 2 }, silent);
  await pool.query(
    `insert into audit select 'aud_' || n, now(), 'jwt:x|alice', 'update_client', 'cli_1', 'success', 'r', jsonb_build_object('before', 'Ada ' || n), null
     from generate_series(1, 20) as n`,
  );
  const before = await pool.query<{ hash: string }>(
    "select encode(hash, 'hex') as hash from audit_chain order by sequence desc limit 1",
  );
  await migrateAccounts(options, silent);
  await pool.query(
    `insert into audit (audit_id, created_at, actor, action, resource_id, outcome, request_id, details)
     values ('aud_later', now(), 'jwt:x|alice', 'erase_client', 'cli_1', 'success', 'r', '{}')`,
  );
  // The heads that were published are links still.
  expect(
    (await pool.query("select from audit_chain where hash = decode($1, 'hex')", [before.rows[0]?.hash])).rowCount,
  ).toBe(1);
});
afterAll(async () => {
  await pool?.end();
  await database?.drop();
  if (old) await rm(old, { recursive: true });
});

/** The findings where the owner does this, past the triggers; nothing of it stays. */
async function found(statement: string) {
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query('alter table audit disable trigger all');
    await client.query(statement);
    return await checkAudit(client);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

const erase =
  "update audit set details = jsonb_build_object('erased_by', 'aud_later'), salt = null where audit_id = 'aud_7'";

test('hold as before, and each has a second link, by which it holds after its details are erased', async () => {
  expect(await found('select')).toEqual([]);
  expect((await pool.query('select count(*)::int as links from audit_chain')).rows).toEqual([{ links: 41 }]);
  expect(await found(erase)).toEqual([]);
});

test.each([
  ['details', `update audit set details = '{"before": "Bob"}' where audit_id = 'aud_7'`],
  ['salt', `update audit set salt = gen_random_uuid() where audit_id = 'aud_7'`],
  ['who, of an erased one', `${erase}; update audit set actor = 'jwt:x|bob' where audit_id = 'aud_7'`],
  [
    'details that name no erasure',
    `${erase}; update audit set details = '{"erased_by": "aud_3"}' where audit_id = 'aud_7'`,
  ],
])('a change of %s is found', async (_what, statement) => {
  const findings = await found(statement);
  expect(findings.map(({ rule }) => rule)).toEqual([auditRules.records]);
  expect(findings[0]?.rows[0]).toMatchObject({ audit_id: 'aud_7' });
});
