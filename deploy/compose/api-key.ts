/**
 * The job `api-key` of docker-compose.yml. At the first start it creates an API key with every
 * scope and stores it in its volume; at each start it prints the key with the other data that
 * callers need.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { loadConfig, url } from '#libs/service/config.ts';
import { runToEnd } from '../../tools/local/child.ts';
import { createConnection, summary } from '../../tools/local/connection.ts';
import { PROJECT, writeAtomically } from '../../tools/local/local-dir.ts';

const file = '/run/secrets/api-key/api_key';

const keyConfig = z.object({
  BASE_URL: url('http').describe('The URL at which callers reach the gateways'),
  DASHBOARD_URL: url('http').describe('The URL at which browsers reach the dashboard'),
  JWT_ISSUER: url('http').describe('The URL at which callers reach the identity provider'),
  IDP_CLIENT_SECRET: z.string().describe('The secret of its clients'),
  IDP_USER_PASSWORD: z.string().describe('The password of its users'),
});

async function makeKey(): Promise<string> {
  const { code, stdout, stderr } = await runToEnd(
    process.execPath,
    [join(PROJECT, 'services', 'accounts', 'bootstrap-key.ts'), '--test'],
    { env: { ...process.env, LOG_LEVEL: 'warn' }, timeoutMs: 60_000 },
  );
  if (code !== 0) throw new Error(stderr.trim());
  const key = stdout.trim();
  writeAtomically(file, key);
  return key;
}

try {
  const config = loadConfig(keyConfig);
  const api_key = existsSync(file) ? readFileSync(file, 'utf8') : await makeKey();
  const nothing = { kafka_brokers: '', database_url: '', services: [] };
  process.stdout.write(
    summary(
      createConnection({
        ...nothing,
        base_url: config.BASE_URL,
        dashboard_url: `${config.DASHBOARD_URL}/admin`,
        issuer: config.JWT_ISSUER,
        api_key,
        client_secret: config.IDP_CLIENT_SECRET,
        dashboard_password: config.IDP_USER_PASSWORD,
      }),
    ),
  );
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
