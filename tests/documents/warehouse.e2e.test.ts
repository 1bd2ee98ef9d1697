import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readerRole } from '#libs/postgres/migrate.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { have } from '../support/programs.ts';
import { together, useBank } from '../support/world.ts';

/**
 * Runs examples/warehouse as a downstream team would: with only the reader role, and with packages
 * from PyPI.
 */
const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');

describe.runIf(have('Python'))('the warehouse example', () => {
  const world = useBank();
  const { api } = world;
  const folder = mkdtempSync(join(tmpdir(), 'warehouse-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const settings = { packages: join(folder, 'packages'), warehouse: join(folder, 'warehouse'), url: '' };

  async function warehouse(command: string): Promise<string> {
    const { stdout } = await run('python3', [join(root, 'examples/warehouse/warehouse.py'), command], {
      env: {
        ...process.env,
        PYTHONPATH: settings.packages,
        WAREHOUSE: settings.warehouse,
        LEDGER_URL: settings.url,
        KAFKA_BROKERS: world.bank.kafka_brokers,
        TOPIC_PREFIX: world.bank.topic_prefix,
      },
    });
    return stdout.trim();
  }

  /** Creates a login of the warehouse with only the rights of the reader role. */
  async function logIn(): Promise<string> {
    const url = new URL(world.bank.database_url);
    const [{ role } = { role: '' }] = await world.sql<{ role: string }>(
      `select grantee as role from information_schema.role_table_grants
       where table_schema = 'ledger' and table_name = 'commands' and privilege_type = 'INSERT' and grantee <> current_user`,
    );
    const [name, password] = [`${role.slice(0, 40)}_warehouse`, 'of-the-warehouse'];
    await world.sql(`create role ${name} login password '${password}' in role ${readerRole(role)}`);
    url.username = name;
    url.password = password;
    return url.href;
  }

  beforeAll(async () => {
    const packages = ['duckdb==2.0.0', 'confluent-kafka==2.16.1', 'psycopg[binary]==3.3.9'];
    await run('python3', ['-m', 'pip', 'install', '--quiet', '--target', settings.packages, ...packages]);
    settings.url = await logIn();
  }, 300_000);

  it('loads a snapshot, follows the events, proves that every account matches the ledger, and finds missing events', async () => {
    const accounts = await together(4, (i) =>
      api.newAccount({ initial_deposit: 100, currency: i === 3 ? 'JPY' : 'USD' }),
    );
    const id = (i: number) => accounts[i % 3]?.account_id ?? '';
    const move = () => together(30, (i) => api.transfer(id(i), id(i + 1), 0.25), 5);
    await move();
    await warehouse('load');
    await move();
    const loan = await api.newAccount({ account_type: 'Loan', initial_deposit: 50 });
    await api.transfer(id(0), loan.account_id, 20);
    // These are both sides of each posting: customer accounts, and Vault and Teller in both currencies.
    expect(await warehouse('prove')).toMatch(/^\d+ accounts, 0 differ$/);
    await api.transact(accounts[3]?.account_id ?? '', 'Deposit', 7);
    await warehouse('follow');
    expect(await warehouse('prove')).toMatch(/, 0 differ$/);
    const parts = readdirSync(join(settings.warehouse, 'entries')).sort();
    expect(parts).toHaveLength(3);
    rmSync(join(settings.warehouse, 'entries', parts[1] ?? ''));
    await expect(warehouse('prove')).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/accounts, 3 differ/) as string,
    });
  }, 300_000);

  it('its role can read only the views', async () => {
    const db = createPool({ url: settings.url, application_name: 'warehouse', schema: 'ledger', max: 1 }, silent);
    try {
      const outcome = (text: string) =>
        db.query(text).then(
          () => 'ok',
          ({ code }: { code: string }) => code,
        );
      for (const view of ['v_accounts', 'v_entries', 'v_transactions', 'v_holds'])
        expect([view, await outcome(`select * from ledger.${view} limit 1`)]).toEqual([view, 'ok']);
      for (const text of [
        'select * from ledger.accounts',
        'select * from ledger.outbox',
        'select * from accounts.clients',
        'delete from ledger.v_accounts',
        'update ledger.v_accounts set balance_minor = 0',
        'create table ledger.mine (id int)',
        'create temporary table mine (id int)',
      ])
        expect([text, await outcome(text)]).toEqual([text, '42501']);
    } finally {
      await db.end();
    }
  });
});
