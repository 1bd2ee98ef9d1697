import { describe, expect, it } from 'vitest';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { verifyAudit } from '#services/accounts/audit/verify-audit.ts';
import { verifyAccounts } from '#services/verify-accounts.ts';
import { staffEnv } from '../support/staff.ts';
import { eventually, useBank } from '../support/world.ts';
import { type Answers, readAnswer, readText, releases } from './recording.ts';

/**
 * This version on the database of each release: it is migrated, its books hold, what was under way goes on, and the API answers as
 * it did.
 */
/** Rows that exist only for moments. */
const passing = ['ledger.audit_outbox'];
/** An approval expires after a day. */
const absent = ['accounts.approvals: Expired'];

/** A key lives a year at most, and the database lets nobody extend it. */
const longerLife = (apiKey: string): string => `alter table accounts.api_keys disable trigger extending;
  update accounts.api_keys set expires_at = now() + interval '1 day' where key_id = 'key_${apiKey.split('_')[2]}';
  alter table accounts.api_keys enable trigger extending;`;

/** Nobody listens there, unlike at the ports of the recorded bank. */
const nobody = "update webhooks.webhooks set url = 'http://127.0.0.1:9/' where status = 'Active';";

describe.each(releases)('the database of release %s', (release) => {
  const { apiKey, asked } = JSON.parse(readText(release, 'answers.json')) as Answers;
  const credential = apiKey.join('_');
  const world = useBank({
    webhooks: 1,
    env: { ...staffEnv, FOUR_EYES: 'all', FOUR_EYES_LIMITS: 'USD:1000', RETENTION_YEARS: '0' },
    dump: `${readText(release, 'dump.sql.gz')}\n${longerLife(credential)}\n${nobody}`,
  });

  it('has rows in every table', () => {
    const dump = readText(release, 'dump.sql.gz');
    const tables = [...dump.matchAll(/^CREATE TABLE (\w+\.\w+) \(/gm)].map(([, name]) => name ?? '');
    expect(tables.length).toBeGreaterThan(30);
    const filled = new Set([...dump.matchAll(/^INSERT INTO (\w+\.\w+) /gm)].map(([, name]) => name));
    expect(tables.filter((name) => !filled.has(name))).toEqual(passing);
  });

  it('has every value that a column may have', () => {
    const dump = readText(release, 'dump.sql.gz');
    const missing: string[] = [];
    for (const [, table, columns = ''] of dump.matchAll(/^CREATE TABLE (\w+\.\w+) \(\n([\s\S]*?)^\)/gm)) {
      const rows = dump.split('\n').filter((line) => line.startsWith(`INSERT INTO ${table} `));
      for (const [, values = ''] of columns.matchAll(/ = ANY \(\(?ARRAY\[([^\]]*)\]/g))
        for (const [, value] of values.matchAll(/'([^']*)'/g))
          if (!rows.some((row) => row.includes(`'${value}'`))) missing.push(`${table}: ${value}`);
    }
    expect(missing).toEqual(absent);
  });

  it('gives the same answers, and repeats are recognized', async () => {
    const caller = world.api.withKey(credential);
    await eventually(async () => (await caller.get('/clients?limit=1')).status === 200, 60_000);
    for (const { path, key, body, answer } of asked) {
      const again = await (key === undefined ? caller.get(path) : caller.once(key, path, body));
      // Fields may have been added since.
      expect.soft([readAnswer(again.text)], path).toMatchObject([answer]);
    }
    expect(asked.length).toBeGreaterThan(50);
  });

  it('finishes the opening that was under way, and the books hold', async () => {
    await eventually(async () => (await world.sql('select from accounts.saga_steps')).length === 0, 60_000);
    expect(await world.sql("select state from accounts.accounts where state = 'opening'")).toEqual([]);
    const pool = createPool(
      { url: world.bank.database_url, application_name: 'test', schema: 'accounts', max: 2 },
      silent,
    );
    try {
      expect([...(await verifyAccounts(pool)), ...(await verifyAudit(pool))]).toEqual([]);
    } finally {
      await pool.end();
    }
    await world.expectBooksInOrder();
  });
});
