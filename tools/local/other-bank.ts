import pino from 'pino';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { checkVersion } from '#libs/postgres/version.ts';
import { type BankSettings, roleName, roleUrl } from './bank.ts';

const kinds = ['ledger', 'accounts', 'webhooks'] as const;

/**
 * Throws an error if the server is too old, or if services with other passwords are connected to the database: the
 * migrations would replace their passwords, and that bank could not connect any more.
 */
export async function refuseUnusable(settings: BankSettings): Promise<void> {
  const roles = kinds.map((kind) => roleName(settings, kind));
  const connected = await query(settings.ownerUrl, async (pool) => {
    await checkVersion(pool);
    return (await pool.query('select from pg_stat_activity where usename = any($1) limit 1', [roles])).rowCount;
  });
  if (connected === 0) return;
  // Sessions of this bank may remain for a moment after its processes were killed.
  const own = await query(roleUrl(settings, 'ledger'), (pool) => pool.query('select')).catch(() => undefined);
  if (own === undefined)
    throw new Error('the services of another bank are connected to this database. Stop them, or use another database');
}

async function query<T>(url: string, use: (pool: Pool) => Promise<T>): Promise<T> {
  const pool = createPool({ url, application_name: 'npm start', schema: 'public', max: 1 }, pino({ level: 'silent' }));
  try {
    return await use(pool);
  } finally {
    await pool.end();
  }
}
