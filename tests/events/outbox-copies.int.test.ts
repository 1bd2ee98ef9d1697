import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { migrate } from '#libs/postgres/migrate.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent } from '#libs/postgres/test/test-database.ts';
import { migrateAccounts } from '#services/accounts/schema.ts';
import { grants, ledgerSchema, migrationsDir } from '#services/ledger/migrate.ts';

/** What a schema's outbox is, without the schema's name. */
const catalog = `select c.relname, c.relkind::text, c.reloptions::text, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull, a.attidentity::text,
    pg_get_expr(d.adbin, d.adrelid) as default_value, replace(pg_get_indexdef(c.oid), $1::text || '.', '') as index,
    (select array_agg(conname || ' ' || pg_get_constraintdef(con.oid) order by conname) from pg_constraint con where con.conrelid = c.oid) as constraints
  from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
  where n.nspname = $1 and c.relname like 'outbox%' and c.relkind in ('r', 'i') order by c.relname, a.attnum`;

it('the outbox of each service is the one that the relay is written for, after all migrations', async () => {
  const database = await createTestDatabase();
  const pool = createPool(
    { url: database.url, application_name: 'test', schema: 'original', max: 1, statement_timeout_ms: 60_000 },
    silent,
  );
  try {
    await migrate(
      {
        owner_url: database.url,
        schema: ledgerSchema,
        role: `${database.name}_ledger`,
        role_password: 'test-password',
        dir: migrationsDir,
        grants,
      },
      silent,
    );
    await migrateAccounts(
      { owner_url: database.url, role: `${database.name}_accounts`, role_password: 'test-password' },
      silent,
    );
    await pool.query('create schema original');
    await pool.query(
      readFileSync(join(import.meta.dirname, '..', '..', 'libs', 'postgres', 'outbox', 'outbox.sql'), 'utf8'),
    );
    const outboxOf = async (schema: string) => (await pool.query(catalog, [schema])).rows;
    const original = await outboxOf('original');
    expect(original.length).toBeGreaterThan(10);
    expect(await outboxOf('ledger')).toEqual(original);
    expect(await outboxOf('accounts')).toEqual(original);
  } finally {
    await pool.end();
    await database.drop();
  }
});

/** Rows as the versions before 0006 wrote them. */
const rowsBefore = `insert into outbox_batches (size, published_at) values (2, now()), (1, null);
  insert into outbox (batch_id, position, id, aggregatetype, aggregateid, type, time, headers, payload, "partition") values
    (1, 1, '00000000-0000-0000-0000-000000000002', 'replies', null, 't', '2026-01-02T03:04:05.678Z', '{}', null, 7),
    (1, 0, '00000000-0000-0000-0000-000000000001', 'transactions', 'acc_1', 't', '2026-01-02T03:04:05.678Z', '{"request-id":"r \\"1\\""}', E'{ "n":1.00, "text":"Ü\\\\u0000\\n" }', null),
    (2, 0, '00000000-0000-0000-0000-000000000003', 'balances', 'acc_2', 't', '2026-01-02T03:04:05.678Z', '{}', '{"n":3}', null)`;

it('messages that an older version wrote are kept, whether published or not', async () => {
  const database = await createTestDatabase();
  const pool = createPool(
    { url: database.url, application_name: 'test', schema: ledgerSchema, max: 1, statement_timeout_ms: 60_000 },
    silent,
  );
  const before = mkdtempSync(join(tmpdir(), 'core-banking-migrations-'));
  const options = {
    owner_url: database.url,
    schema: ledgerSchema,
    role: `${database.name}_ledger`,
    role_password: 'test-password',
    grants,
  };
  try {
    for (const file of readdirSync(migrationsDir).filter((name) => name < '0006'))
      copyFileSync(join(migrationsDir, file), join(before, file));
    await migrate({ ...options, dir: before, grants: () => [] }, silent);
    await pool.query(rowsBefore);
    await migrate({ ...options, dir: migrationsDir }, silent);
    const common = { type: 't', time: '2026-01-02T03:04:05.678Z', headers: {} };
    expect(await readOutbox(pool)).toEqual([
      {
        ...common,
        batch_id: 1n,
        is_published: true,
        id: '00000000-0000-0000-0000-000000000001',
        topic: 'transactions',
        key: 'acc_1',
        headers: { 'request-id': 'r "1"' },
        payload: '{ "n":1.00, "text":"Ü\\u0000\n" }',
      },
      {
        ...common,
        batch_id: 1n,
        is_published: true,
        id: '00000000-0000-0000-0000-000000000002',
        topic: 'replies',
        key: null,
        payload: null,
        partition: 7,
      },
      {
        ...common,
        batch_id: 2n,
        is_published: false,
        id: '00000000-0000-0000-0000-000000000003',
        topic: 'balances',
        key: 'acc_2',
        payload: '{"n":3}',
      },
    ]);
    // A process of such a version does nothing rather than write what nobody would publish.
    await expect(pool.query(rowsBefore)).rejects.toThrow('column "position" of relation "outbox" does not exist');
  } finally {
    await pool.end();
    await database.drop();
    rmSync(before, { recursive: true });
  }
});
