/**
 * The job `secrets` of docker-compose.yml: generates missing secrets, at the first start all of
 * them. Each folder under /run/secrets is a volume, and each container mounts only those that it
 * needs. `down --volumes` deletes them together with the data.
 */
import { createPublicKey, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newKeyPair } from '../../tools/local/bank.ts';
import { OWNER } from '../../tools/local/infra.ts';
import { postgresUrl } from '../../tools/local/postgres.ts';

const folder = '/run/secrets';

/**
 * Returns the content of the file, which is created if it is missing. Every user of its volume can read the file,
 * because containers run as different users.
 */
function kept(file: string, make: () => string): string {
  const path = join(folder, file);
  if (existsSync(path)) return readFileSync(path, 'utf8');
  const value = make();
  writeFileSync(`${path}.new`, value, { mode: 0o444 });
  renameSync(`${path}.new`, path);
  return value;
}

const secret = (file: string, bytes = 32): string => kept(file, () => randomBytes(bytes).toString('hex'));
const databaseUrl = (user: string, password: string): string => postgresUrl(5432, user, password, OWNER, 'postgres');

secret('postgres/superuser_password');
const owner = secret('postgres/owner_password');
kept('migrations/database_url', () => databaseUrl(OWNER, owner));
for (const service of ['ledger', 'accounts', 'webhooks']) {
  const password = secret(`migrations/${service}_password`);
  kept(`${service}/database_url`, () => databaseUrl(`${OWNER}_${service}`, password));
}
secret('gateway/api_key_pepper');
secret('dashboard/session_secret');
const readers = {
  gateway: ['accounts', 'ledger', 'webhooks'],
  accounts: ['accounts', 'ledger', 'webhooks'],
  ledger: ['accounts', 'ledger'],
  webhooks: ['accounts'],
};
for (const [signer, ofSigner] of Object.entries(readers)) {
  const key = secret(`${signer}/${signer}_mac_keys`);
  for (const reader of ofSigner) kept(`${reader}/${signer}_mac_keys`, () => key);
}
const sealing = secret('gateway/webhook_secret_keys');
kept('webhooks/webhook_secret_keys', () => sealing);
const signingKey = kept('accounts/api_key_signing_key', () => newKeyPair().privateKey);
kept('gateway/api_key_public_keys', () =>
  createPublicKey(signingKey).export({ type: 'spki', format: 'pem' }).toString(),
);
const client = secret('identity-provider/client_secret');
kept('dashboard/client_secret', () => client);
// The password is short enough to type.
secret('identity-provider/user_password', 8);
