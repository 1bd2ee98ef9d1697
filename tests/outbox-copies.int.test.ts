import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { migrate } from '#libs/postgres/migrate.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent } from '#libs/postgres/test-database.ts';
import { migrateAccounts } from '#services/accounts/schema.ts';
import { grants, ledgerSchema, migrationsDir } from '#services/ledger/migrate.ts';

/** What a schema's outbox is, without the schema's name. */
const catalog = `select c.relname, c.relkind::text, c.reloptions::text, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull, a.attidentity::text,
    pg_get_expr(d.adbin, d.adrelid) as default_value, replace(pg_get_indexdef(c.oid), $1::text || '.', '') as index,
    (select array_agg(conname || ' ' || pg_get_constraintdef(con.oid) order by conname) from pg_constraint con where con.conrelid = c.oid) as constraints
  from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
  where n.nspname = $1 and (c.relname like 'outbox%' or c.relname like 'replays%') and c.relkind in ('r', 'i') order by c.relname, a.attnum`;

it('the outbox of each service is the one that the relay is written for, after all migrations', async () => {
  const database = await createTestDatabase();
  const pool = createPool({ url: database.url, application_name: 'test', schema: 'original', max: 1, statement_timeout_ms: 60_000 }, silent);
  try {
    await migrate({ owner_url: database.url, schema: ledgerSchema, role: `${database.name}_ledger`, role_password: 'test-password', dir: migrationsDir, grants }, silent);
    await migrateAccounts({ owner_url: database.url, role: `${database.name}_accounts`, role_password: 'test-password' }, silent);
    await pool.query('create schema original');
    await pool.query(readFileSync(join(import.meta.dirname, '..', 'libs', 'postgres', 'outbox.sql'), 'utf8'));
    const outboxOf = async (schema: string) => (await pool.query(catalog, [schema])).rows;
    const original = await outboxOf('original');
    expect(original.length).toBeGreaterThan(15);
    expect(await outboxOf('ledger')).toEqual(original);
    expect(await outboxOf('accounts')).toEqual(original);
  } finally {
    await pool.end();
    await database.drop();
  }
});
