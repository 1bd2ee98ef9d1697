import type { ClientBase, Pool } from 'pg';

/** The major versions of PostgreSQL that are supported: the tests run on the oldest and the newest. */
export const postgresVersions = { oldest: 15, newest: 18 };

/** Throws an error that names the version of the server and the supported ones if it is none of these. */
export async function checkVersion(server: Pick<ClientBase | Pool, 'query'>): Promise<void> {
  const { oldest, newest } = postgresVersions;
  const { rows } = await server.query<{ number: string }>("select current_setting('server_version_num') as number");
  const found = Math.floor(Number(rows[0]?.number) / 10_000);
  if (found < oldest || found > newest) throw new Error(`PostgreSQL ${found} found, ${oldest} to ${newest} needed`);
}
