import { type Pool, PooledSessionError } from './pool.ts';

/** Whether the session's role is an administrator, or could become the owner of the schema or of a table in it. */
const rights = `select rolsuper or rolbypassrls or rolcreaterole or rolreplication as is_administrator,
    exists (select from pg_namespace n where nspname = current_schema() and (pg_has_role(nspowner, 'member')
      or exists (select from pg_class where relnamespace = n.oid and pg_has_role(relowner, 'member')))) as is_owner
  from pg_roles where rolname = session_user`;

/**
 * Rejects if the service would have more rights than its own role: an administrator or the owner of the tables can change
 * what is posted. An unreachable database is not an error.
 */
export async function checkRights(pool: Pool): Promise<void> {
  const found = await pool.query<{ is_administrator: boolean; is_owner: boolean }>(rights).catch(() => undefined);
  const [row] = found?.rows ?? [];
  if (!row?.is_administrator && !row?.is_owner) return;
  const what = row.is_administrator ? 'an administrator of the database' : 'the owner of the tables';
  throw new Error(
    `DATABASE_URL: it must have the service's own role (that of its migration), not ${what}, who could change what is posted`,
  );
}

/**
 * Connects once to verify the database settings. Rejects, naming the setting, if the failure is permanent: an untrusted
 * certificate, rejected credentials, or an unknown database. An unreachable database is not an error, because its users
 * retry until it is reachable.
 */
export async function checkDatabase(pool: Pool): Promise<void> {
  try {
    await pool.query('select');
  } catch (error) {
    const fault = databaseFault(error);
    if (fault !== undefined) throw new Error(`DATABASE_URL: ${fault}`, { cause: error });
  }
}

/** Returns why the database rejects the connection, or undefined if the failure may be temporary. */
function databaseFault(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { message } = error;
  const code = String((error as { code?: unknown }).code ?? '');
  // PgBouncer rejects session settings unless it is configured to ignore them.
  if (error instanceof PooledSessionError || /unsupported startup parameter/.test(message)) {
    return `it leads to a connection pooler (${message}): it must lead to Postgres itself, or to a proxy that passes connections through`;
  }
  if (/^28/.test(code)) return `the database rejects the login (${message})`;
  if (code === '3D000') return message;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `the certificate of the server is for another name (${message})`;
  if (/CERT|VERIFY|ISSUER/.test(code))
    return `the certificate of the server is not trusted (${message}): sslrootcert must name the file of the CA that signed it`;
  if (/does not support SSL/.test(message)) return 'the server does not speak TLS';
  if (code === 'ENOENT' || code === 'EACCES') return `sslrootcert, sslcert or sslkey cannot be read (${code})`;
  return undefined;
}
