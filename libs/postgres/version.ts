import type { ClientBase, Pool } from 'pg';

/** The oldest major version of PostgreSQL whose SQL the migrations may use. */
export const oldestPostgres = 18;

/** Throws an error that names both versions if the server is older. */
export async function checkVersion(server: Pick<ClientBase | Pool, 'query'>): Promise<void> {
  const { rows } = await server.query<{ number: string }>("select current_setting('server_version_num') as number");
  const found = Math.floor(Number(rows[0]?.number) / 10_000);
  if (found < oldestPostgres) throw new Error(`PostgreSQL ${found} found, ${oldestPostgres} needed`);
}
