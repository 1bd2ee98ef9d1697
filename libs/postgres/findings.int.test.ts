import { afterAll, expect, it } from 'vitest';
import { findBroken } from './findings.ts';
import { createPool } from './pool.ts';
import { createTestDatabase, silent } from './test/test-database.ts';
import { transaction } from './transaction.ts';

const database = await createTestDatabase();
const pool = createPool({ url: database.url, application_name: 'findings', schema: 'public' }, silent);
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const paidOnce = `select p.id, count(e.n) as entries from payments p left join entries e on e.account = p.account and e.payment = p.id
  group by p.id having count(e.n) <> 1`;
/** Nine tenths of 60,000 payments belong to one account. */
const tables = `create temp table payments on commit drop as
    select md5(n::text)::uuid as id, case when n % 10 = 0 then n else 0 end as account from generate_series(1, 60000) n;
  create temp table entries on commit drop as select account, row_number() over () as n, id as payment from payments;
  alter table payments add primary key (id);
  alter table entries add primary key (account, n);
  analyze payments, entries`;

it('a rule without violations uses the plan for all rows, not the one that is fast for the first row', async () => {
  await transaction(pool, async (client) => {
    await client.query(tables);
    expect(await findBroken(client, { paidOnce })).toEqual([]);
    await client.query('delete from entries where n <= 25');
    const [finding] = await findBroken(client, { paidOnce });
    expect(finding).toMatchObject({ rule: 'paidOnce', rows: { length: 20 } });
    expect(finding?.rows[0]).toMatchObject({ entries: 0n });
  });
});
