/**
 * The job `secrets` of docker-compose.yml: makes missing secrets, at the first start all of them. Each folder under
 * /run/secrets is a volume, and each container mounts only those that it needs; only this job mounts the master key.
 * `down --volumes` deletes them together with the data.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OWNER } from '../../tools/local/infra.ts';
import { postgresUrl } from '../../tools/local/postgres.ts';
import { deriveSecrets } from '../secrets/derive.ts';

const folder = '/run/secrets';

/**
 * Returns the content of the file, which is created if it is missing. Every user of its volume can read the file,
 * because containers run as different users.
 */
function kept(file: string, value: string): string {
  const path = join(folder, file);
  if (existsSync(path)) return readFileSync(path, 'utf8');
  writeFileSync(`${path}.new`, value, { mode: 0o444 });
  renameSync(`${path}.new`, path);
  return value;
}

const secret = (file: string, bytes = 32): string => kept(file, randomBytes(bytes).toString('hex'));
const databaseUrl = (user: string, password = ''): string => postgresUrl(5432, user, password, OWNER, 'postgres');

secret('postgres/superuser_password');
kept('migrations/database_url', databaseUrl(OWNER, secret('postgres/owner_password')));
for (const [service, { DATABASE_PASSWORD, ...others }] of Object.entries(deriveSecrets([secret('master/keys')]))) {
  for (const [name, value] of Object.entries(others)) kept(`${service}/${name.toLowerCase()}`, value);
  if (DATABASE_PASSWORD === undefined) continue;
  const url = kept(`${service}/database_url`, databaseUrl(`${OWNER}_${service}`, DATABASE_PASSWORD));
  kept(`migrations/${service}_database_url`, url);
}
kept('dashboard/client', `dashboard:${secret('identity-provider/client_secret')}`);
// The password is short enough to type.
secret('identity-provider/user_password', 8);
