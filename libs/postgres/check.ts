import { type Pool, PooledSessionError } from './pool.ts';

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
