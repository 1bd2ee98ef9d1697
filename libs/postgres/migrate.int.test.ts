import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { MigrateOptions } from './migrate.ts';
import { migrate } from './migrate.ts';
import type { Pool } from './pool.ts';
import { createPool } from './pool.ts';
import type { TestDatabase } from './test/test-database.ts';
import { createTestDatabase, silent } from './test/test-database.ts';

const files = fileURLToPath(new URL('./test/test-migrations', import.meta.url));

let database: TestDatabase;
let options: MigrateOptions;
let owner: Pool;
let folder: string;

beforeEach(async () => {
  database = await createTestDatabase();
  folder = mkdtempSync(join(tmpdir(), 'migrate-'));
  cpSync(files, folder, { recursive: true });
  owner = createPool({ url: database.url, application_name: 'owner', schema: 'ledger' }, silent);
  options = {
    owner_url: database.url,
    schema: 'ledger',
    role: `${database.name}_ledger`,
    role_password: "p'ss w@rd/%1",
    dir: folder,
    grants: (role) => [`grant select, insert on things to ${role}`],
  };
});

afterEach(async () => {
  await owner.end();
  await database.drop();
  rmSync(folder, { recursive: true });
});

function rolePool(password: string): Pool {
  const url = new URL(database.url);
  url.username = options.role;
  url.password = encodeURIComponent(password);
  return createPool({ url: url.href, application_name: 'service', schema: 'ledger', max: 1 }, silent);
}

/** Returns the result of each statement for the role: ok, or the SQLSTATE. */
async function asRole(password: string, ...statements: string[]): Promise<string[]> {
  const pool = rolePool(password);
  const said: string[] = [];
  for (const statement of statements) {
    said.push(
      await pool.query(statement).then(
        () => 'ok',
        (error: unknown) => String(Reflect.get(error as object, 'code')),
      ),
    );
  }
  await pool.end();
  return said;
}

const applied = async () =>
  (await owner.query<{ name: string }>("select name from migrations where name <> 'outbox' order by id")).rows.map(
    (row) => row.name,
  );

test('three concurrent runs on an empty database migrate it once, and a later run changes nothing', async () => {
  await Promise.all([migrate(options, silent), migrate(options, silent), migrate(options, silent)]);
  expect(await applied()).toEqual(['0001-first', '0002-second']);
  await migrate(options, silent);
  expect((await owner.query('select id, note from things')).rows).toEqual([{ id: 1, note: "{id} it's" }]);
});

test('the role has exactly the granted rights', async () => {
  await migrate(options, silent);
  expect(
    await asRole(
      options.role_password,
      'select * from things',
      'insert into things (id) values (2)',
      'update things set id = 3',
      'delete from things',
      'truncate things',
      'drop table things',
      'create table mine (id int)',
      'delete from migrations',
      'create table public.mine (id int)',
      'select * from migrations',
    ),
  ).toEqual(['ok', 'ok', '42501', '42501', '42501', '42501', '42501', '42501', '42501', 'ok']);
});

test('a changed password is set if a former one is right, an unchanged one is not set again', async () => {
  await migrate(options, silent);
  const stored = async () =>
    (await owner.query<{ rolpassword: string }>('select rolpassword from pg_authid where rolname = $1', [options.role]))
      .rows[0]?.rolpassword;
  const first = await stored();
  await migrate(options, silent);
  expect(await stored()).toBe(first);
  const former_passwords = ['an older one', options.role_password];
  await migrate({ ...options, former_passwords: ['another'] }, silent);
  expect(await stored()).toBe(first);
  await migrate({ ...options, role_password: 'another', former_passwords }, silent);
  expect(await stored()).not.toBe(first);
  expect(await asRole('another', 'select 1')).toEqual(['ok']);
  expect(await asRole(options.role_password, 'select 1')).toEqual(['28P01']);
});

describe('a role with other passwords than those given', () => {
  const lost = { role_password: 'another', former_passwords: ['a third'] };

  test('is refused if there is data, and nothing is changed', async () => {
    await migrate(options, silent);
    writeFileSync(join(folder, '0003-third.sql'), 'create table more (id int);');
    const refused = `the role ${options.role} has another password than DATABASE_PASSWORD: restore the Secret <release>-master`;
    await expect(migrate({ ...options, ...lost }, silent)).rejects.toThrow(refused);
    expect(await applied()).toEqual(['0001-first', '0002-second']);
    expect(await asRole(options.role_password, 'select * from things')).toEqual(['ok']);
  });

  test('gets the new one if there is no data yet', async () => {
    await owner.query(`create role ${options.role} login password 'other'`);
    await migrate({ ...options, ...lost }, silent);
    expect(await asRole('another', 'select * from things')).toEqual(['ok']);
  });

  test('is made anew if a dump was restored without it', async () => {
    await migrate(options, silent);
    await owner.query(`drop owned by ${options.role}`);
    await owner.query(`drop role ${options.role}`);
    await migrate({ ...options, ...lost }, silent);
    expect(await asRole('another', 'select * from things')).toEqual(['ok']);
  });
});

test('a role that may not connect to the database, or not log in, but has the password, may again', async () => {
  await migrate(options, silent);
  await owner.query(`revoke connect on database ${database.name} from public, ${options.role}`);
  await migrate(options, silent);
  expect(await asRole(options.role_password, 'select * from things')).toEqual(['ok']);
  await owner.query(`alter role ${options.role} nologin`);
  await migrate(options, silent);
  expect(await asRole(options.role_password, 'select * from things')).toEqual(['ok']);
});

test('a new file is run; a failed one leaves no changes and is run again after its correction', async () => {
  await migrate(options, silent);
  const third = join(folder, '0003-third.sql');
  writeFileSync(third, 'create table more (id int); select 1/0;');
  await expect(migrate(options, silent)).rejects.toThrow('division by zero');
  expect(await applied()).toEqual(['0001-first', '0002-second']);
  writeFileSync(third, 'create table more (id int);');
  await migrate(options, silent);
  expect(await applied()).toEqual(['0001-first', '0002-second', '0003-third']);
});

test('a file that sorts before those already run is rejected', async () => {
  await migrate(options, silent);
  writeFileSync(join(folder, '0000-late.sql'), 'select 1;');
  await expect(migrate(options, silent)).rejects.toThrow('0000-late');
});

test('other files are ignored', async () => {
  writeFileSync(join(folder, 'README.md'), 'no SQL');
  await migrate(options, silent);
  expect(await applied()).toHaveLength(2);
});

describe('a schema that other files have made is refused by name, and nothing in it is changed:', () => {
  const advice =
    /schema ledger was made by a development version, or by a changed file: its (\S+)\.sql is not .* rm -rf \.local; .*\(docs\/moving-in\.md/;

  async function expectRefused(file: string): Promise<void> {
    writeFileSync(join(folder, '0003-third.sql'), 'create table more (id int);');
    const refused = await migrate({ ...options, role_password: 'another' }, silent).catch(String);
    expect(advice.exec(String(refused))?.[1]).toBe(file);
    expect(await applied()).toEqual(['0001-first', '0002-second']);
    expect(await asRole('another', 'select 1')).toEqual(['28P01']);
  }

  test('a changed file, unless only its line ends are others', async () => {
    await migrate(options, silent);
    const second = join(folder, '0002-second.sql');
    const text = readFileSync(second, 'utf8');
    writeFileSync(second, text.replaceAll('\n', '\r\n'));
    await migrate(options, silent);
    writeFileSync(second, `${text}-- later`);
    await expectRefused('0002-second');
  });

  test('a database from before checksums were recorded', async () => {
    await migrate(options, silent);
    await owner.query('alter table migrations drop column checksum');
    await expectRefused('outbox');
  });

  test('a database of 0.1.0, which has none of the names, or none of the checksums, of this version', async () => {
    await migrate(options, silent);
    for (const name of ['0001-first', '0002-second']) rmSync(join(folder, `${name}.sql`));
    writeFileSync(join(folder, '0001-schema.sql'), 'create table things (id int);');
    const { rows } = await owner.query("delete from migrations where name = 'outbox' returning name, checksum");
    await expectRefused('0001-first');
    await owner.query('insert into migrations (name, checksum) values ($1, $2)', Object.values(rows[0]));
    await owner.query('alter table migrations alter column checksum drop not null');
    await owner.query("update migrations set checksum = null where name <> 'outbox'");
    await expectRefused('0001-first');
  });
});

test('a database with the migrations of a later release is accepted for a rollback, and keeps the rights of that release', async () => {
  const third = join(folder, '0003-third.sql');
  writeFileSync(third, 'create table more (id int);');
  await migrate({ ...options, grants: (role) => [...options.grants(role), `grant select on more to ${role}`] }, silent);
  rmSync(third);
  await migrate(options, silent);
  expect(await applied()).toEqual(['0001-first', '0002-second', '0003-third']);
  expect(await asRole(options.role_password, 'select * from more', 'select * from things')).toEqual(['ok', 'ok']);
});

test('two services can share a database, and two databases a role', async () => {
  const other = await createTestDatabase();
  await Promise.all([
    migrate(options, silent),
    migrate({ ...options, schema: 'accounts', role: `${database.name}_accounts` }, silent),
    migrate({ ...options, owner_url: other.url }, silent),
  ]);
  expect(await asRole(options.role_password, 'select * from things', 'select * from accounts.things')).toEqual([
    'ok',
    '42501',
  ]);
  await other.drop();
});

test('a password that SCRAM would normalize is rejected', async () => {
  await expect(migrate({ ...options, role_password: 'pässword' }, silent)).rejects.toThrow('printable ASCII');
});

test('without the database, or with an owner that cannot log in, migrate rejects', async () => {
  const nowhere = new URL(database.url);
  nowhere.pathname = '/missing_database';
  await expect(migrate({ ...options, owner_url: nowhere.href }, silent)).rejects.toMatchObject({ code: '3D000' });
});
