import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { testMacSecrets } from '#libs/service/test/keys.ts';
import { verifyBooks } from '#services/ledger/verify/verify-books.ts';
import type { BankSettings, ServiceKind } from '../../tools/local/bank.ts';
import {
  createTopics,
  makeApiKey,
  migrateService,
  newKeyPair,
  roleUrl,
  signingEnvironment,
  startService,
} from '../../tools/local/bank.ts';
import type { Child } from '../../tools/local/child.ts';
import { runToEnd } from '../../tools/local/child.ts';
import { chooseKafkaWay } from '../../tools/local/infra.ts';
import { startKafka } from '../../tools/local/kafka.ts';
import { logTail } from '../../tools/local/log-file.ts';
import { freePort } from '../../tools/local/ports.ts';
import { postgresUrl, startPostgres } from '../../tools/local/postgres.ts';
import { awaitReady } from '../../tools/local/ready.ts';
import { createAuthority } from '../support/certificates.ts';
import { Api } from '../support/client.ts';

/**
 * A bank in production mode except for its single broker. The broker accepts only SASL over TLS
 * (SCRAM-SHA-512), and Postgres uses TLS; both belong to this file and have certificates of its own
 * CA for the address 127.0.0.1 and no name.
 */
const dir = mkdtempSync(join(tmpdir(), 'core-banking-tls-'));
const secret = () => randomBytes(32).toString('base64url');
const user = { name: 'bank', password: secret() };
const owner = { name: 'core_banking', password: secret() };
const authority = createAuthority(dir);
const stranger = createAuthority(dir, 'stranger');
const children: Child[] = [];
const logs: Record<string, string> = {};
let settings: BankSettings;
let gatewayPort = 0;
let databaseUrl = '';
let apiKey = '';

const log = (name: string) => (logs[name] = join(dir, `${name}.log`));

async function startServers(): Promise<{ kafka: number; postgres: number }> {
  const { cert, key, both } = authority.sign('server', ['IP:127.0.0.1']);
  const [kafka, broker, controller, postgres] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const started = await Promise.all([
    startKafka({
      dir: join(dir, 'kafka'),
      log: log('kafka'),
      ports: { client: kafka, broker, controller },
      way: 'java',
      users: { [user.name]: user.password },
      settings: {
        'listener.security.protocol.map': 'CLIENT:SASL_SSL,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT',
        'sasl.enabled.mechanisms': 'SCRAM-SHA-512',
        'listener.name.client.scram-sha-512.sasl.jaas.config':
          'org.apache.kafka.common.security.scram.ScramLoginModule required;',
        'broker.session.timeout.ms': '18000',
        'ssl.keystore.type': 'PEM',
        'ssl.keystore.location': both,
      },
    }),
    startPostgres({
      dir: join(dir, 'postgres'),
      log: log('postgres'),
      port: postgres,
      superuserPassword: secret(),
      owner,
      durable: false,
      settings: { ssl: 'on', ssl_cert_file: cert, ssl_key_file: key },
    }),
  ]);
  children.push(...started);
  return { kafka, postgres };
}

async function startOne(kind: ServiceKind): Promise<void> {
  const healthPort = await freePort();
  const child = startService(
    { kind, name: kind, healthPort, log: log(kind), ...(kind === 'gateway' ? { port: gatewayPort } : {}) },
    settings,
  );
  children.push(child);
  await awaitReady({ url: `http://127.0.0.1:${healthPort}/readyz` }, 60_000, () =>
    child.running() ? undefined : `${kind} died`,
  ).catch((error: Error) => {
    throw new Error(`${error.message}\n${logTail(logs[kind] ?? '', 20)}`);
  });
}

beforeAll(async () => {
  mkdirSync(join(dir, 'kafka'));
  expect(chooseKafkaWay(), 'the broker of this test needs Java').toBe('java');
  const ports = await startServers();
  databaseUrl = `${postgresUrl(ports.postgres, owner.name, owner.password, owner.name)}?sslmode=verify-full&sslrootcert=${encodeURIComponent(authority.ca)}`;
  settings = {
    brokers: `127.0.0.1:${ports.kafka}`,
    topicPrefix: '',
    ownerUrl: databaseUrl,
    rolePasswords: { ledger: secret(), accounts: secret(), webhooks: secret() },
    issuer: '',
    apiKeyPepper: secret(),
    webhookSecretKey: secret(),
    signing: { mac: testMacSecrets, keyPair: newKeyPair() },
    env: {
      // A single broker cannot hold three replicas, which production mode requires.
      BANK_MODE: 'trial',
      KAFKA_SSL_CA_FILE: authority.ca,
      KAFKA_SASL_MECHANISM: 'scram-sha-512',
      KAFKA_SASL_USERNAME: user.name,
      KAFKA_SASL_PASSWORD: user.password,
      // Without an issuer, this bank accepts only API keys.
      JWKS_URL: '',
      JWT_AUDIENCE: '',
    },
  };
  gatewayPort = await freePort();
  await Promise.all([migrateService('ledger', settings), migrateService('accounts', settings), createTopics(settings)]);
  await Promise.all([
    startOne('ledger'),
    startOne('accounts'),
    startOne('gateway'),
    makeApiKey(settings).then((key) => (apiKey = key)),
  ]);
  await awaitReady({ url: `http://127.0.0.1:${gatewayPort}/`, headers: { 'x-api-key': apiKey } }, 30_000);
}, 240_000);

afterAll(async () => {
  await Promise.all(children.slice(2).map((child) => child.stop(10_000)));
  await Promise.all(children.slice(0, 2).map((child) => child.stop(10_000)));
  rmSync(dir, { recursive: true, force: true });
});

test('a bank runs over TLS: an account, a deposit, a transfer, and books that balance', async () => {
  // asvs: 12.3.1
  const api = new Api(
    () => `http://127.0.0.1:${gatewayPort}`,
    () => ({ 'x-api-key': apiKey }),
  );
  const from = await api.newAccount({ initial_deposit: 100 });
  const to = await api.newAccount();
  await api.transact(from.account_id, 'Deposit', 20.5);
  await api.transfer(from.account_id, to.account_id, 120.5);
  expect([await api.balance(from.account_id), await api.balance(to.account_id)]).toEqual([0, 120.5]);
  const pool = createPool(
    { url: databaseUrl, application_name: 'test', schema: 'ledger', max: 3 },
    pino({ level: 'silent' }),
  );
  try {
    expect(await verifyBooks(pool)).toEqual([]);
    const { rows } = await pool.query<{ plain: bigint }>(
      "select count(*) as plain from pg_stat_ssl join pg_stat_activity using (pid) where backend_type = 'client backend' and not ssl",
    );
    expect(rows).toEqual([{ plain: 0n }]);
    // These are several queries, pipelined on one connection over TLS.
    const ask = (n: number) => `select ${n} as n`;
    const answers = await transaction(pool, (client) =>
      Promise.all([1, 2].map((n) => client.query<{ n: number }>(ask(n)))),
    );
    const seen = answers.map(({ rows: [row] }) => row?.n);
    expect(seen).toEqual([1, 2]);
  } finally {
    await pool.end();
  }
});

/** Returns the output of a service that cannot start. */
async function startFailure(kind: ServiceKind, env: Record<string, string>): Promise<string> {
  const { gateway, accounts, ledger, webhooks } = {
    gateway: secret(),
    accounts: secret(),
    ledger: secret(),
    webhooks: secret(),
  };
  const base: Record<string, string | undefined> = {
    ...process.env,
    ...settings.env,
    // The MAC keys of tests are sentences.
    ...signingEnvironment(kind, { ...settings.signing, mac: { gateway, accounts, ledger, webhooks } }),
    BANK_MODE: 'production',
    NODE_OPTIONS: '',
    TRUST_PROXY: 'none',
    KAFKA_BROKERS: settings.brokers,
    HEALTH_PORT: '0',
    PORT: '0',
    LOG_LEVEL: 'warn',
    DATABASE_URL: kind === 'gateway' || kind === 'dashboard' ? databaseUrl : roleUrl(settings, kind),
    API_KEY_PEPPER: settings.apiKeyPepper,
    WEBHOOK_SECRET_KEYS: settings.webhookSecretKey,
  };
  const { code, stdout, stderr } = await runToEnd(process.execPath, [`services/${kind}/main.ts`], {
    cwd: join(import.meta.dirname, '..', '..'),
    env: { ...base, ...env } as Record<string, string>,
    timeoutMs: 60_000,
  });
  expect(code).toBe(1);
  return stdout + stderr;
}

const withUrl = (change: (url: URL) => void): string => {
  const url = new URL(databaseUrl);
  change(url);
  return url.href;
};

describe('an untrusted server or a failed login ends the start; the message names the setting and no secret', () => {
  test.each<[string, ServiceKind, () => Record<string, string>, RegExp]>([
    [
      'a CA that did not sign the broker’s certificate',
      'gateway',
      () => ({ KAFKA_SSL_CA_FILE: stranger.ca }),
      /gateway cannot start: KAFKA_SSL_CA: the certificate of the broker is not trusted/,
    ],
    [
      'a host name that is not in the broker’s certificate',
      'ledger',
      () => ({ KAFKA_BROKERS: settings.brokers.replace('127.0.0.1', 'localhost') }),
      /ledger cannot start: KAFKA_BROKERS: .* for another name/,
    ],
    [
      'a wrong password for the broker',
      'accounts',
      () => ({ KAFKA_SASL_PASSWORD: `${user.password}x` }),
      /accounts cannot start: KAFKA_SASL_USERNAME or KAFKA_SASL_PASSWORD: the broker rejects the login/,
    ],
    [
      'an unknown user at the broker',
      'gateway',
      () => ({ KAFKA_SASL_MECHANISM: 'plain' }),
      /gateway cannot start: KAFKA_SASL_MECHANISM/,
    ],
    [
      'a CA that did not sign the database’s certificate',
      'ledger',
      () => ({ DATABASE_URL: withUrl((url) => url.searchParams.set('sslrootcert', stranger.ca)) }),
      /ledger cannot start: DATABASE_URL: .* is not trusted .*sslrootcert/,
    ],
    [
      'a host name that is not in the database’s certificate',
      'accounts',
      () => ({ DATABASE_URL: withUrl((url) => (url.hostname = 'localhost')) }),
      /accounts cannot start: DATABASE_URL: .* for another name/,
    ],
    [
      'a wrong password for the database',
      'ledger',
      () => ({ DATABASE_URL: withUrl((url) => (url.password = 'wrongwrongwrong7Zk')) }),
      /ledger cannot start: DATABASE_URL: the database rejects the login/,
    ],
    ['topics with a single replica', 'ledger', () => ({}), /topics that may be lost with a single broker/],
    [
      'no login at the broker',
      'accounts',
      () => ({ KAFKA_SASL_MECHANISM: '', KAFKA_SASL_USERNAME: '', KAFKA_SASL_PASSWORD: '' }),
      /KAFKA_SASL_MECHANISM: must be set/,
    ],
    [
      'the owner of the tables as the role',
      'ledger',
      () => ({ DATABASE_URL: databaseUrl }),
      /ledger cannot start: DATABASE_URL: .*own role .*, not (an administrator|the owner)/,
    ],
    ['plain text', 'gateway', () => ({ KAFKA_SSL_CA_FILE: '' }), /KAFKA_SSL_CA: must be system, or/],
    [
      'a database without certificate verification',
      'accounts',
      () => ({ DATABASE_URL: withUrl((url) => url.searchParams.set('sslmode', 'require')) }),
      /DATABASE_URL: must have \?sslmode=verify-full/,
    ],
  ])('%s', async (_what, kind, env, expected) => {
    const output = await startFailure(kind, env());
    expect(output).toMatch(expected);
    for (const hidden of [user.password, owner.password, 'wrongwrong', settings.apiKeyPepper])
      expect(output).not.toContain(hidden);
  });
});
