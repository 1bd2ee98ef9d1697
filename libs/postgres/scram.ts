import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';

const iterations = 4096;

/**
 * Returns the verifier that CREATE ROLE … PASSWORD stores for a password (RFC 5803). With it, the password itself does
 * not appear in the server's log or in pg_stat_statements. Throws a RangeError unless the password is printable ASCII,
 * which SASLprep leaves unchanged.
 */
export function scramVerifier(password: string): string {
  if (!/^[\x20-\x7e]+$/.test(password)) throw new RangeError('a database password must be printable ASCII');
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const clientKey = createHmac('sha256', salted).update('Client Key').digest();
  const storedKey = createHash('sha256').update(clientKey).digest('base64');
  const serverKey = createHmac('sha256', salted).update('Server Key').digest('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}
