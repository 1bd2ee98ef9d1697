import { randomUUID } from 'node:crypto';
import pg from 'pg';
import pino from 'pino';

export interface TestDatabase {
  /** The owner's URL of the new database. */
  url: string;
  name: string;
  drop(): Promise<void>;
}

export const silent = pino({ level: 'silent' });

async function withOwner<T>(fn: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: serverUrl(), connectionTimeoutMillis: 5000 });
  await client.connect();
  try {
    return await fn(client);
  } finally {
    await client.end();
  }
}

function serverUrl(): string {
  const url = process.env['DATABASE_URL'];
  if (url === undefined) throw new Error('DATABASE_URL is not set: the tests of libs/postgres need a server');
  return url;
}

/**
 * For tests: creates a database on the server of DATABASE_URL, whose role must be a superuser. It is a copy of
 * `template`, which must have no connections.
 */
export async function createTestDatabase(template = 'template1'): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '').slice(0, 16)}`;
  await withOwner((client) => client.query(`create database ${name} template ${template}`));
  const url = new URL(serverUrl());
  url.pathname = `/${name}`;
  return {
    url: url.href,
    name,
    async drop() {
      await withOwner(async (client) => {
        await client.query(`drop database if exists ${name} with (force)`);
        const roles = await client.query<{ rolname: string }>(
          `select rolname from pg_roles where rolname like '${name}%'`,
        );
        for (const role of roles.rows) await client.query(`drop role if exists ${pg.escapeIdentifier(role.rolname)}`);
      });
    },
  };
}
