import { generateKeyPairSync, hash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { approvalActions } from '#libs/contracts/approvals.ts';
import { accountsConfig } from '#services/accounts/config.ts';
import { dashboardConfig } from '#services/dashboard/config.ts';
import { gatewayConfig } from '#services/gateway/config.ts';
import { webhooksConfig } from '#services/webhooks/config.ts';
import { ConfigError, databaseUrlConfig, kafkaConfig, kafkaOptions, loadConfig } from './config.ts';
import { macConfig } from './signing.ts';

const random = (bytes: number) => randomBytes(bytes).toString('base64url');
const databasePassword = random(24);
const twice = random(32);
const keyPair = generateKeyPairSync('ed25519', {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const certificate = '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----';
const clientKey = `-----BEGIN EC PRIVATE KEY-----\nMA==\n-----END EC PRIVATE KEY-----\n${certificate}`;
const good: Record<string, string> = {
  BANK_MODE: 'production',
  KAFKA_BROKERS: 'broker:9093',
  KAFKA_SSL_CA: 'system',
  KAFKA_SASL_MECHANISM: 'scram-sha-512',
  DATABASE_URL: `postgres://ledger:${databasePassword}@db/bank?sslmode=verify-full&sslrootcert=/etc/ca.pem`,
  JWT_ISSUER: 'https://issuer.example',
  JWT_AUDIENCE: 'core-banking',
  JWKS_URL: 'https://issuer.example/jwks',
  JWT_WHOLE_BANK_CLIENTS: 'back-office',
  API_KEY_PEPPER: random(32),
  GATEWAY_MAC_KEYS: random(32),
  ACCOUNTS_MAC_KEYS: random(32),
  LEDGER_MAC_KEYS: random(32),
  WEBHOOKS_MAC_KEYS: random(32),
  WEBHOOK_SECRET_KEYS: random(32),
  API_KEY_PUBLIC_KEYS: keyPair.publicKey,
  API_KEY_SIGNING_KEY: keyPair.privateKey,
  API_URL: 'http://gateway',
  TRUST_PROXY: '192.0.2.0/24',
  PUBLIC_URL: 'https://staff.bank.example',
  DASHBOARD_CLIENT: `dashboard:${random(32)}`,
  SESSION_SECRET: random(32),
};
const all = z.object({
  ...dashboardConfig.shape,
  ...gatewayConfig.shape,
  ...webhooksConfig.shape,
  ...macConfig,
  ...databaseUrlConfig,
  RETENTION_YEARS: accountsConfig.shape.RETENTION_YEARS,
  MIGRATION_DATABASE_URL: z.string().optional(),
});

/** The lines of the error, by variable. */
function problems(changed: Record<string, string | undefined>): Record<string, string> {
  try {
    loadConfig(all, { ...good, ...changed });
    return {};
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    const lines = (error as Error).message
      .split('\n')
      .slice(1)
      .filter((line) => !line.startsWith('  ('))
      .map((line) => /^ {2}(\w+): (.*)$/.exec(line)?.slice(1) ?? ['?', line]);
    return Object.fromEntries(lines) as Record<string, string>;
  }
}

const folder = mkdtempSync(join(tmpdir(), 'production-'));
afterAll(() => rmSync(folder, { recursive: true }));
const passwordFile = join(folder, 'password');
writeFileSync(passwordFile, random(24));

test('safe values are accepted, with the defaults of everything else', () => {
  expect(problems({})).toEqual({});
  expect(
    problems({
      KAFKA_SASL_PASSWORD: random(12),
      MIGRATION_DATABASE_URL: `postgres://owner@db/bank?sslmode=verify-full&password_file=${passwordFile}`,
      TRUST_PROXY: '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7,::1',
    }),
  ).toEqual({});
  expect(problems({ TRUST_PROXY: 'loopback, linklocal, uniquelocal' })).toEqual({});
  expect(problems({ TRUST_PROXY: 'none' })).toEqual({});
  expect(problems({ FOUR_EYES: 'none', FOUR_EYES_OFF_REASON: 'one branch with one employee' })).toEqual({});
  expect(
    problems({
      FOUR_EYES: approvalActions.join(),
      FOUR_EYES_LIMITS: 'USD:100000000000 VND:500000000',
    }),
  ).toEqual({});
  for (const LOG_LEVEL of ['trace', 'debug', 'info', 'warn']) expect(problems({ LOG_LEVEL })).toEqual({});
  for (const NODE_OPTIONS of [
    '--max-semi-space-size=16',
    '--max-old-space-size 4096 --enable-source-maps',
    '"--use-system-ca" --dns_result_order=ipv4first --no-warnings',
  ])
    expect(problems({ NODE_OPTIONS })).toEqual({});
  expect(problems({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' })).toEqual({});
  expect(
    problems({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer x',
    }),
  ).toEqual({});
  for (const secret of [
    randomBytes(32).toString('hex'),
    randomBytes(32).toString('base64'),
    randomBytes(48).toString('hex'),
  ])
    expect(problems({ API_KEY_PEPPER: secret, SESSION_SECRET: `${random(32)},${random(32)}` })).toEqual({});
  // A pepper from before this rule can be rotated.
  expect(problems({ API_KEY_PEPPER: `${good['API_KEY_PEPPER']},Equity Bank Kenya Ltd. Nairobi 2026!` })).toEqual({});
  expect(
    problems({ WEBHOOK_ALLOW_NETWORKS: '10.0.0.0/8,172.16.0.0/12,fc00::/8,64:ff9b::a01:0/112,2002:a01::/32' }),
  ).toEqual({});
  // The networks of a large content delivery network.
  expect(problems({ TRUST_PROXY: '104.16.0.0/13,172.64.0.0/13,2400:cb00::/32,2606:4700::/32,2a06:98c0::/29' })).toEqual(
    {},
  );
  expect(problems({ KAFKA_SASL_MECHANISM: undefined, KAFKA_SSL_KEY: clientKey })).toEqual({});
  expect(problems({ JWT_ISSUER: undefined, JWKS_URL: undefined, JWT_WHOLE_BANK_CLIENTS: undefined })).toEqual({});
  expect(problems({ JWT_WHOLE_BANK_CLIENTS: '*' })).toEqual({});
});

test.each<[string, string | undefined, RegExp]>([
  ['KAFKA_SSL_CA', undefined, /unencrypted connections to Kafka/],
  ['KAFKA_SSL_CA', 'false', /must be system, or PEM/],
  ['KAFKA_SASL_MECHANISM', undefined, /login.*KAFKA_SSL_KEY/],
  ['KAFKA_SASL_PASSWORD', 'short', /less than 16/],
  ['JWT_WHOLE_BANK_CLIENTS', undefined, /azp.*\*/],
  ['RATE_LIMIT_PER_MINUTE', '0', /limit/],
  ['RATE_LIMIT_PER_MINUTE', '-0', /limit/],
  ['RATE_LIMIT_PER_MINUTE', '1000001', /limit/],
  ['AUTH_FAILURES_PER_MINUTE', '0', /limit/],
  ['AUTH_FAILURES_PER_MINUTE', '10001', /limit/],
  ['DATABASE_URL', 'postgres://u@db/bank', /verify-full/],
  ['DATABASE_URL', 'postgres://u@db/bank?sslmode=require', /verify-full/],
  ['DATABASE_URL', 'postgres://u@db/bank?sslmode=verify-ca', /verify-full/],
  ['DATABASE_URL', 'postgres://u@db/bank?sslmode=verify-full&sslmode=disable', /verify-full/],
  ['DATABASE_URL', 'postgres://u@db/bank?sslmode=verify-full&ssl=false', /verify-full/],
  ['DATABASE_URL', 'postgres://u@db/bank?sslmode=verify-full&password=a', /no parameters but sslmode/],
  ['DATABASE_URL', 'postgres://u@db/bank?sslmode=verify-full&host=other', /no parameters but sslmode/],
  ['DATABASE_URL', 'postgres://u@db/bank?sslmode=verify-full&options=-c%20synchronous_commit%3Doff', /no parameters/],
  ['DATABASE_URL', 'postgres://u:100%@db/bank?sslmode=verify-full', /percent-encoded/],
  ['DATABASE_URL', ' Postgres://u:postgres@db/bank?sslmode=verify-full', /password has less than 16/],
  ['DATABASE_URL', 'postgres://u:postgres@db/bank?sslmode=verify-full', /password has less than 16/],
  ['MIGRATION_DATABASE_URL', 'postgres://u@db/bank', /verify-full/],
  ['JWT_ISSUER', 'http://issuer.example', /https/],
  ['JWKS_URL', 'http://issuer.example/jwks', /https/],
  ['API_KEY_PEPPER', 'a pepper of sixteen', /less than 32.*openssl rand/],
  ['API_KEY_PEPPER', 'a'.repeat(64), /repeats itself/],
  ['API_KEY_PEPPER', '0123abcdef'.repeat(5), /repeats itself/],
  ['API_KEY_PEPPER', `${random(20)}-change-me-${random(20)}`, /easily guessed/],
  ['API_KEY_PEPPER', 'abcdefghijklmnopqrstuvwxyzabcdefghij', /easily guessed/],
  ['GATEWAY_MAC_KEYS', ` ${good['API_KEY_PEPPER']}\n`, /must differ from API_KEY_PEPPER/],
  ['SESSION_SECRET', `${twice},${twice}`, /same secret twice/],
  ['GATEWAY_MAC_KEYS', `${twice}, ${twice}`, /same secret twice/],
  ['NODE_TLS_REJECT_UNAUTHORIZED', '0', /no certificate/],
  ['GATEWAY_MAC_KEYS', good['API_KEY_PEPPER'], /must differ from API_KEY_PEPPER/],
  ['SESSION_SECRET', good['API_KEY_PEPPER'], /must differ/],
  ['DASHBOARD_CLIENT', `dashboard:${good['API_KEY_PEPPER']}`, /must differ/],
  ['KAFKA_SASL_PASSWORD', databasePassword, /must differ from DATABASE_URL/],
  ['SESSION_SECRET', 'correct horse battery', /less than 32/],
  ['GATEWAY_MAC_KEYS', undefined, /is missing/],
  ['GATEWAY_MAC_KEYS', 'short', /at least 32/],
  ['GATEWAY_MAC_KEYS', 'refused:gateway/0123abcd', /at least one key/],
  ['GATEWAY_MAC_KEYS', `${random(32)},refused:gateway/0123`, /at least 32/],
  ['ACCOUNTS_MAC_KEYS', `${random(32)},${'0123abcdef'.repeat(5)}`, /repeats itself/],
  ['API_KEY_PUBLIC_KEYS', undefined, /is missing/],
  ['API_KEY_PUBLIC_KEYS', keyPair.privateKey, /PEM/],
  ['DASHBOARD_CLIENT', 'dashboard:correct horse battery', /issuer/],
  ['SESSION_SECRET', `password:${random(32)}`, /easily guessed/],
  ['DASHBOARD_CLIENT', random(32), /must be id:secret/],
  ['PUBLIC_URL', 'http://bank.example', /https/],
  ['TRUST_PROXY', undefined, /in front of this process, or be none/],
  ['TRUST_PROXY', 'none, 192.0.2.1', /address or network/],
  ['TRUST_PROXY', '0.0.0.0/0', /name the proxies/],
  ['TRUST_PROXY', '10.0.0.1, ::/0', /name the proxies/],
  ['TRUST_PROXY', '0.0.0.0/1,128.0.0.0/1', /name the proxies/],
  ['TRUST_PROXY', '0.0.0.0/1,128.0.0.0/2,192.0.0.0/3,224.0.0.0/3', /name the proxies/],
  ['TRUST_PROXY', '::/1,8000::/1', /name the proxies/],
  ['TRUST_PROXY', '::ffff:0:0/96', /name the proxies/],
  ['TRUST_PROXY', '::ffff:0.0.0.0/97,::ffff:128.0.0.0/97', /name the proxies/],
  ['TRUST_PROXY', Array.from({ length: 64 }, (_, i) => `${4 * i}.0.0.0/8`).join(), /name the proxies/],
  ['TRUST_PROXY', '2001:db8::/7', /name the proxies/],
  ['TRUST_PROXY', '2a00::/12', /name the proxies/],
  ['TRUST_PROXY', '10.0.0.0/8,3.0.0.0/8', /name the proxies/],
  ['TRUST_PROXY', Array.from({ length: 255 }, (_, i) => `${i}.0.0.0/15`).join(), /name the proxies/],
  ['TRUST_PROXY', '0.0.0.0/0.0.0.0', /address or network/],
  ['TRUST_PROXY', 'true', /address or network/],
  ['RETENTION_YEARS', '0', /law/],
  ['FOUR_EYES', 'none', /FOUR_EYES_OFF_REASON.*reverse, unfreeze, .*webhook/],
  ['FOUR_EYES', 'reverse', /FOUR_EYES_OFF_REASON.*unfreeze/],
  ['FOUR_EYES', approvalActions.filter((action) => action !== 'client_contact').join(), /approve client_contact$/],
  ['FOUR_EYES_LIMITS', 'USD:9999999999999', /FOUR_EYES_OFF_REASON.*so high/],
  ['FOUR_EYES_LIMITS', 'KES:1000, JPY:99999999999999', /FOUR_EYES_OFF_REASON.*so high/],
  ['FOUR_EYES_OFF_REASON', 'no', /at least 10/],
  ['LOG_LEVEL', 'silent', /warn or lower/],
  ['LOG_LEVEL', 'fatal', /warn or lower/],
  ['LOG_LEVEL', 'error', /warn or lower/],
  ['KEY_MAX_LIFETIME_DAYS', '3650', /1 to 730/],
  ['NODE_DEBUG', 'http,tls', /credentials/],
  ...[
    '--insecure-http-parser',
    '--insecure_http_parser',
    '--max-old-space-size=4096 --inspect=0.0.0.0:9229',
    '"--inspect-brk"',
    '--inspect-port=1',
    '--inspect-wait',
    '--experimental-network-inspection',
    '--tls-keylog=/tmp/keys',
    '--tls-min-v1.0',
    '--tls-min-v1.1',
    '--tls_min_v1.0',
    '--tls-max-v1.2',
    '--tls-cipher-list=NULL',
    '--openssl-legacy-provider',
    '--openssl-config=/tmp/x',
    '--security-revert=CVE-2024-27983',
    '-r /tmp/x.js',
    '--require=/tmp/x.js',
    '--import=data:text/javascript,1',
    '--experimental-loader=/tmp/x.js',
    '--trace-tls',
    '--unhandled-rejections=none',
    '--heapsnapshot-signal=SIGUSR2',
    '--report-on-signal',
  ].map((options): [string, string, RegExp] => ['NODE_OPTIONS', options, /must not contain -/]),
  ['API_KEY_PEPPER', '0102030405060708091011121314151617', /64 hex digits/],
  ['API_KEY_PEPPER', 'asdfghjklzxcvbnm-.qwertzuiopü1234', /64 hex digits/],
  ['API_KEY_PEPPER', 'the quick brown fox jumps over it', /64 hex digits/],
  ['API_KEY_PEPPER', 'Equity Bank Kenya Ltd. Nairobi 2026!', /64 hex digits/],
  ['API_KEY_PEPPER', 'p4ssw0rd-p4ssw0rt-s3cr3t-for-bank!!', /64 hex digits/],
  ['API_KEY_PEPPER', 'correct-horse-battery-staple-correct-horse-batteries', /not base64 of random/],
  ['API_KEY_PEPPER', hash('sha256', ''), /hash of a word/],
  ['API_KEY_PEPPER', hash('sha256', 'changeme'), /hash of a word/],
  ['API_KEY_PEPPER', hash('sha256', 'test\n', 'base64'), /hash of a word/],
  ['API_KEY_PEPPER', Buffer.from(Array.from({ length: 32 }, (_, i) => i)).toString('hex'), /repeats itself/],
  [
    'API_KEY_PEPPER',
    Buffer.from(Array.from({ length: 32 }, (_, i) => 255 - 7 * i)).toString('base64'),
    /repeats itself/,
  ],
  ['API_KEY_PEPPER', Buffer.from('the quick brown fox jumps over the dog').toString('base64'), /is text/],
  ['API_KEY_PEPPER', randomBytes(24).toString('hex'), /not base64 of random/],
  ['SESSION_SECRET', `${random(32)},the quick brown fox jumps over it`, /64 hex digits/],
  ['GATEWAY_MAC_KEYS', `${random(32)},asdfghjklzxcvbnm-.qwertzuiopü1234`, /64 hex|at least 32/],
  ['DATABASE_URL', good['DATABASE_URL']?.replace('ledger:', 'postgres:'), /own role/],
  ['DATABASE_URL', good['DATABASE_URL']?.replace('ledger:', 'Admin:'), /own role/],
  ['LEDGER_MAC_KEYS', `${random(32)},${'0123abcdef'.repeat(5)}`, /repeats itself/],
  ['API_KEY_PEPPER', `${good['API_KEY_PEPPER']},a pepper of sixteen`, /less than 32/],
  ['WEBHOOKS_MAC_KEYS', 'short', /at least 32/],
  ['WEBHOOK_SECRET_KEYS', undefined, /missing/],
  ['WEBHOOK_SECRET_KEYS', `${random(32)},${'0123abcdef'.repeat(5)}`, /repeats itself/],
  ['WEBHOOK_ALLOW_NETWORKS', '10.0.0.0/8,127.0.0.0/16', /loopback/],
  ['WEBHOOK_ALLOW_NETWORKS', '0.0.0.0/0', /loopback/],
  ['WEBHOOK_ALLOW_NETWORKS', '::1', /loopback/],
  ['WEBHOOK_ALLOW_NETWORKS', '169.254.169.254', /link-local/],
  ['WEBHOOK_ALLOW_NETWORKS', '0.0.0.0', /loopback/],
  ['WEBHOOK_ALLOW_NETWORKS', '::', /loopback/],
  ['WEBHOOK_ALLOW_NETWORKS', '168.63.129.16', /metadata/],
  ['WEBHOOK_ALLOW_NETWORKS', 'fd00::/8', /metadata/],
  ['WEBHOOK_ALLOW_NETWORKS', 'fd00:ec2::23', /metadata/],
  ['WEBHOOK_ALLOW_NETWORKS', 'fd20:ce::254', /metadata/],
  ['WEBHOOK_ALLOW_NETWORKS', '::ffff:169.254.169.254', /link-local/],
  ['WEBHOOK_ALLOW_NETWORKS', '::ffff:a9fe:0/112', /link-local/],
  ['WEBHOOK_ALLOW_NETWORKS', '64:ff9b::a9fe:a9fe', /NAT64/],
  ['WEBHOOK_ALLOW_NETWORKS', '64:ff9b::169.254.169.254', /NAT64/],
  ['WEBHOOK_ALLOW_NETWORKS', '64:ff9b::/96', /NAT64/],
  ['WEBHOOK_ALLOW_NETWORKS', '64:ff9b::7f00:1', /NAT64/],
  ['WEBHOOK_ALLOW_NETWORKS', '64:ff9b:1::/48', /NAT64/],
  ['WEBHOOK_ALLOW_NETWORKS', '2002::/16', /6to4/],
  ['WEBHOOK_ALLOW_NETWORKS', '2002:a9fe:a9fe::1', /6to4/],
  ['WEBHOOK_ALLOW_NETWORKS', '2002:7f00:1::/48', /6to4/],
  ['WEBHOOK_ALLOW_NETWORKS', '2001::/32', /Teredo/],
  ['WEBHOOK_ALLOW_NETWORKS', '::ffff:0:a9fe:a9fe', /link-local/],
  ['WEBHOOK_ALLOW_NETWORKS', '::a9fe:a9fe', /link-local/],
])('%s=%s is refused by name, with advice', (name, value, reason) => {
  // contract: permission-12, permission-21
  // asvs: 12.3.1, 13.2.3, 16.3.3
  const found = problems({ [name]: value });
  expect(Object.keys(found)).toEqual([name]);
  expect(found[name]).toMatch(reason);
  if (value !== undefined && value.length > 5 && name !== 'NODE_OPTIONS') expect(found[name]).not.toContain(value);
});

test('credentials are not sent to a collector without TLS', () => {
  const OTEL_EXPORTER_OTLP_HEADERS = 'authorization=Bearer x';
  for (const OTEL_EXPORTER_OTLP_ENDPOINT of ['http://collector:4318', 'HTTP://collector'])
    expect(problems({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS })).toEqual({
      OTEL_EXPORTER_OTLP_HEADERS: expect.stringMatching(/credentials/),
    });
  const ofTraces = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: OTEL_EXPORTER_OTLP_HEADERS,
  };
  expect(Object.keys(problems(ofTraces))).toEqual(['OTEL_EXPORTER_OTLP_TRACES_HEADERS']);
});

test('no service has the MAC key of another service as its own', () => {
  const shared = random(32);
  expect(Object.keys(problems({ GATEWAY_MAC_KEYS: shared, ACCOUNTS_MAC_KEYS: shared }))).toEqual(['ACCOUNTS_MAC_KEYS']);
  expect(
    Object.keys(
      problems({ GATEWAY_MAC_KEYS: `${shared},${random(32)}`, ACCOUNTS_MAC_KEYS: `${random(32)},${shared}` }),
    ),
  ).toEqual(['ACCOUNTS_MAC_KEYS']);
});

test('a random secret is accepted although a digit occurs four times in a row', () => {
  expect(problems({ API_KEY_PEPPER: '9d1c5f00008e2b7a64c3f1e95b0d7a2846cf13e8b95d720a4c6e1f8b3d5a7092' })).toEqual({});
});

test('all violations are reported together, once each, with other invalid variables', () => {
  const found = problems({
    KAFKA_BROKERS: undefined,
    KAFKA_SSL_CA: 'maybe',
    DATABASE_URL: 'mysql://x',
    JWKS_URL: 'http://i',
    API_KEY_PEPPER: 'short',
    SESSION_SECRET: 'x'.repeat(40),
  });
  expect(Object.keys(found).sort()).toEqual([
    'API_KEY_PEPPER',
    'DATABASE_URL',
    'JWKS_URL',
    'KAFKA_BROKERS',
    'KAFKA_SSL_CA',
    'SESSION_SECRET',
  ]);
});

test('only variables that a process reads are checked', () => {
  const { API_KEY_PEPPER: _, ...others } = good;
  expect(() => loadConfig(accountsConfig, { ...others, JWKS_URL: 'http://i' })).not.toThrow();
});

const unsafe = {
  KAFKA_SSL_CA: undefined,
  DATABASE_URL: 'postgres://u:p@db/bank',
  API_KEY_PEPPER: 'a pepper of sixteen',
};

test('BANK_MODE=trial has no such requirements', () => {
  expect(problems({ ...unsafe, BANK_MODE: 'trial' })).toEqual({});
});

test.each([undefined, '', 'production'])('BANK_MODE=%j is production', (mode) => {
  expect(Object.keys(problems({ ...unsafe, BANK_MODE: mode, NODE_ENV: 'test' })).sort()).toEqual([
    'API_KEY_PEPPER',
    'DATABASE_URL',
    'KAFKA_SSL_CA',
  ]);
});

test.each(['Trial', 'trial ', 'test', 'development'])('BANK_MODE=%j is refused, and like production', (mode) => {
  expect(Object.keys(problems({ ...unsafe, BANK_MODE: mode }))).toEqual(
    expect.arrayContaining(['BANK_MODE', 'DATABASE_URL']),
  );
});

test('a tool without brokers needs no login for them', () => {
  const tool = z.object({ ...kafkaConfig, KAFKA_BROKERS: kafkaConfig.KAFKA_BROKERS.optional() });
  expect(() => loadConfig(tool, { BANK_MODE: 'production' })).not.toThrow();
  expect(() => loadConfig(tool, { BANK_MODE: 'production', KAFKA_BROKERS: 'b:1' })).toThrow('KAFKA_SSL_CA');
});

test('TLS to Kafka accepts a CA, and a client certificate with its key', () => {
  const load = (env: Record<string, string>) =>
    kafkaOptions(loadConfig(z.object(kafkaConfig), { BANK_MODE: 'trial', KAFKA_BROKERS: 'b:1', ...env }), 'me');
  expect(load({})).toEqual({ brokers: ['b:1'], client_id: 'me', ssl: false });
  expect(load({ KAFKA_SSL_CA: 'system' }).ssl).toEqual({});
  expect(load({ KAFKA_SSL_CA: certificate }).ssl).toEqual({ ca: certificate });
  expect(load({ KAFKA_SSL_CA: 'system', KAFKA_SSL_KEY: clientKey }).ssl).toEqual({ cert: clientKey, key: clientKey });
  expect(
    load({ KAFKA_SASL_MECHANISM: 'scram-sha-512', KAFKA_SASL_USERNAME: 'u', KAFKA_SASL_PASSWORD: 'p' }).sasl,
  ).toEqual({ mechanism: 'scram-sha-512', username: 'u', password: 'p' });
  expect(() => load({ KAFKA_SSL_CA: '/etc/ca.pem' })).toThrow('KAFKA_SSL_CA: must be system, or PEM text');
  expect(() => load({ KAFKA_SSL_KEY: clientKey })).toThrow('KAFKA_SSL_KEY requires KAFKA_SSL_CA');
  const [keyOnly = ''] = clientKey.split(certificate);
  expect(() => load({ KAFKA_SSL_CA: 'system', KAFKA_SSL_KEY: keyOnly })).toThrow('must also contain the certificate');
  expect(() => load({ KAFKA_SASL_MECHANISM: 'plain', KAFKA_SASL_USERNAME: 'u' })).toThrow('must be set together');
});
