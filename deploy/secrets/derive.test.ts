import { createPrivateKey, createPublicKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { loadConfig } from '#libs/service/config.ts';
import { accountsConfig } from '#services/accounts/config.ts';
import { dashboardConfig } from '#services/dashboard/config.ts';
import { gatewayConfig } from '#services/gateway/config.ts';
import { ledgerConfig } from '#services/ledger/config.ts';
import { webhooksConfig } from '#services/webhooks/config.ts';
import { deriveSecrets, readers } from './derive.ts';

const [old, next] = [
  'c1b7d0f60a9e4b0c8d3f5a7e2b6c9d1e0f3a5b7c9d1e3f5a7b9c1d3e5f7a9b1c',
  '07e3a1d94c6b58f20e9d7c3b1a5f8e6d4c2b0a9f7e5d3c1b8a6f4e2d0c9b7a5f',
];
const configs = {
  gateway: gatewayConfig,
  dashboard: dashboardConfig,
  ledger: ledgerConfig,
  accounts: accountsConfig,
  webhooks: webhooksConfig,
};
const folder = mkdtempSync(join(tmpdir(), 'secrets-'));
afterAll(() => rmSync(folder, { recursive: true }));
const passwordFile = join(folder, 'password');
/** What else the services need in production. */
const given = {
  KAFKA_BROKERS: 'broker:9093',
  KAFKA_SSL_CA: 'system',
  KAFKA_SASL_MECHANISM: 'scram-sha-512',
  DATABASE_URL: `postgres://core_banking_x@db:5432/core_banking?sslmode=verify-full&password_file=${passwordFile}`,
  TRUST_PROXY: 'none',
  API_URL: 'http://gateway',
  PUBLIC_URL: 'https://staff.bank.example',
  JWT_ISSUER: 'https://id.example',
  DASHBOARD_CLIENT: 'dashboard:5be7d2a04c91f83e6d07b1a9',
};

test('a master key gives the same secrets in every version', () => {
  const { gateway, ledger, dashboard, accounts } = deriveSecrets([old]);
  expect(gateway['GATEWAY_MAC_KEYS']).toBe('52281d6649ffbfc63e12656080391e2eb0386351f869f26576c8ce246d25ff25');
  expect(ledger['DATABASE_PASSWORD']).toBe('03408c8e4b898d2f7c262daa1f18a09e05dbf4dd6cb9c0344cd8e8f2c3026563');
  expect(dashboard['SESSION_SECRET']).toBe('1964ea9ea1ba0dad02feb211709389c0471325be011ad4f4fb4755cfda426205');
  expect(accounts['API_KEY_SIGNING_KEY']).toContain('MC4CAQAwBQYDK2VwBCIEIMDmx6XkxxYw8s7+NoF8G6FvIc1tYGJT85Q/qt9lfr1C');
});

describe.each(readers)('the secrets of %s', (reader) => {
  test('are all that it needs, safe for production, and known to it', () => {
    for (const masters of [[old], [old, next], [next, old]]) {
      const { DATABASE_PASSWORD: password = '', ...secrets } = deriveSecrets(masters)[reader];
      writeFileSync(passwordFile, password);
      expect(() => loadConfig(configs[reader], { BANK_MODE: 'production', ...given, ...secrets })).not.toThrow();
      expect(Object.keys(secrets).filter((name) => !Object.hasOwn(configs[reader].shape, name))).toEqual([]);
    }
  });
});

test('each process has only its own: who may sign as whom is as in docs/security.md', () => {
  const secrets = deriveSecrets([old]);
  const holders = (name: string) => readers.filter((reader) => secrets[reader][name] !== undefined);
  expect(holders('GATEWAY_MAC_KEYS')).toEqual(['gateway', 'ledger', 'accounts', 'webhooks']);
  expect(holders('ACCOUNTS_MAC_KEYS')).toEqual(['ledger', 'accounts', 'webhooks']);
  expect(holders('LEDGER_MAC_KEYS')).toEqual(['ledger', 'accounts']);
  expect(holders('WEBHOOKS_MAC_KEYS')).toEqual(['accounts', 'webhooks']);
  expect(holders('WEBHOOK_SECRET_KEYS')).toEqual(['gateway', 'webhooks']);
  expect(holders('API_KEY_PEPPER')).toEqual(['gateway']);
  expect(holders('API_KEY_SIGNING_KEY')).toEqual(['accounts']);
  expect(holders('SESSION_SECRET')).toEqual(['dashboard']);
  const passwords = ['ledger', 'accounts', 'webhooks'].map((one) => secrets[one as 'ledger']['DATABASE_PASSWORD']);
  expect(new Set(passwords).size).toBe(3);
  const values = readers.flatMap((reader) => Object.values(secrets[reader]));
  expect(values.filter((value) => value.includes(old ?? ''))).toEqual([]);
  // Six are shared by design; all others differ.
  expect(new Set(values).size).toBe(new Set(readers.flatMap((reader) => Object.keys(secrets[reader]))).size + 2);
});

test('rotation: the first master key signs and is the password, and what was made with the other is accepted', () => {
  const [before, after] = [deriveSecrets([old ?? '']), deriveSecrets([next ?? '', old ?? ''])];
  for (const [reader, name] of [
    ['gateway', 'GATEWAY_MAC_KEYS'],
    ['gateway', 'API_KEY_PEPPER'],
    ['webhooks', 'WEBHOOK_SECRET_KEYS'],
    ['dashboard', 'SESSION_SECRET'],
    ['ledger', 'DATABASE_PASSWORD'],
  ] as const) {
    const [first, second, ...more] = after[reader][name]?.split(',') ?? [];
    expect([second, more]).toEqual([before[reader][name], []]);
    expect(first).not.toBe(second);
  }
  const publicOf = (pem = '') => createPublicKey(createPrivateKey(pem)).export({ type: 'spki', format: 'pem' });
  expect(after.gateway['API_KEY_PUBLIC_KEYS']).toBe(
    `${publicOf(after.accounts['API_KEY_SIGNING_KEY'])}${publicOf(before.accounts['API_KEY_SIGNING_KEY'])}`,
  );
});
