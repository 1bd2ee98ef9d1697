import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { accountsConfig } from '#services/accounts/config.ts';
import { gatewayConfig } from '#services/gateway/config.ts';
import { ConfigError, databaseConfig, kafkaConfig, kafkaOptions, loadConfig } from './config.ts';

const random = (bytes: number) => randomBytes(bytes).toString('base64url');
const good: Record<string, string> = {
  NODE_ENV: 'production',
  KAFKA_BROKERS: 'broker:9093',
  KAFKA_SSL: 'true',
  DATABASE_URL: `postgres://ledger:${random(24)}@db/bank?sslmode=verify-full&sslrootcert=/etc/ca.pem`,
  JWT_ISSUER: 'https://issuer.example',
  JWT_AUDIENCE: 'core-banking',
  JWKS_URL: 'https://issuer.example/jwks',
  API_KEY_PEPPER: random(32),
  IDEMPOTENCY_SECRET: random(32),
};
const all = z.object({ ...gatewayConfig.shape, ...databaseConfig, MIGRATION_DATABASE_URL: z.string().optional(), SERVICE_ROLE_PASSWORD: z.string().optional() });

/** The lines of the one error, by variable. */
function problems(changed: Record<string, string | undefined>): Record<string, string> {
  try {
    loadConfig(all, { ...good, ...changed });
    return {};
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    const lines = (error as Error).message.split('\n').slice(1).map((line) => /^ {2}(\w+): (.*)$/.exec(line)?.slice(1) ?? ['?', line]);
    return Object.fromEntries(lines) as Record<string, string>;
  }
}

test('what is safe is taken, with the defaults of everything else', () => {
  expect(problems({})).toEqual({});
  expect(problems({ KAFKA_SASL_PASSWORD: random(12), SERVICE_ROLE_PASSWORD: random(24), MIGRATION_DATABASE_URL: 'postgres://owner@db/bank?sslmode=verify-full', TRUST_PROXY: '10.0.0.0/8,::1' })).toEqual({});
});

test.each<[string, string | undefined, RegExp]>([
  ['KAFKA_SSL', undefined, /plain text to Kafka/],
  ['KAFKA_SSL', 'false', /plain text to Kafka/],
  ['KAFKA_SASL_PASSWORD', 'short', /less than 16/],
  ['DATABASE_URL', 'postgres://u@db/bank', /verify-full/],
  ['DATABASE_URL', 'postgres://u@db/bank?sslmode=require', /verify-full/],
  ['DATABASE_URL', 'postgres://u@db/bank?sslmode=verify-ca', /verify-full/],
  ['DATABASE_URL', 'postgres://u@db/bank?sslmode=verify-full&sslmode=disable', /verify-full/],
  ['DATABASE_URL', 'postgres://u@db/bank?sslmode=verify-full&ssl=false', /verify-full/],
  ['DATABASE_URL', 'postgres://u:postgres@db/bank?sslmode=verify-full', /password has less than 16/],
  ['MIGRATION_DATABASE_URL', 'postgres://u@db/bank', /verify-full/],
  ['SERVICE_ROLE_PASSWORD', 'short and sweet', /less than 32.*openssl rand/],
  ['JWT_ISSUER', 'http://issuer.example', /https/],
  ['JWKS_URL', 'http://issuer.example/jwks', /https/],
  ['JWT_HS256_SECRET', random(32), /must not be set/],
  ['API_KEY_PEPPER', 'a pepper of sixteen', /less than 32.*openssl rand/],
  ['API_KEY_PEPPER', 'a'.repeat(64), /repeats itself/],
  ['API_KEY_PEPPER', '0123abcdef'.repeat(5), /repeats itself/],
  ['API_KEY_PEPPER', `${random(20)}-change-me-${random(20)}`, /everybody tries/],
  ['IDEMPOTENCY_SECRET', 'correct horse battery', /less than 32/],
  ['IDEMPOTENCY_SECRET', good['API_KEY_PEPPER'], /must differ/],
  ['SESSION_SECRET', 'correct horse battery', /less than 32/],
  ['DASHBOARD_CLIENT_SECRET', 'correct horse battery', /issuer/],
  ['PUBLIC_URL', 'http://bank.example', /https/],
  ['TRUST_PROXY', '0.0.0.0/0', /name the proxies/],
  ['TRUST_PROXY', '10.0.0.1, ::/0', /name the proxies/],
])('%s=%s is refused, by name and with the way out', (name, value, reason) => {
  const found = problems({ [name]: value });
  expect(Object.keys(found)).toEqual([name]);
  expect(found[name]).toMatch(reason);
  if (value !== undefined && value.length > 5) expect(found[name]).not.toContain(value);
});

test('a secret of chance is taken, though a digit comes four times in a row', () => {
  expect(problems({ API_KEY_PEPPER: '9d1c5f00008e2b7a64c3f1e95b0d7a2846cf13e8b95d720a4c6e1f8b3d5a7092' })).toEqual({});
});

test('all at once in one error, once each, beside what is wrong anywhere', () => {
  const found = problems({ KAFKA_BROKERS: undefined, KAFKA_SSL: 'maybe', DATABASE_URL: 'mysql://x', JWKS_URL: 'http://i', API_KEY_PEPPER: 'short', IDEMPOTENCY_SECRET: 'x'.repeat(40) });
  expect(Object.keys(found).sort()).toEqual(['API_KEY_PEPPER', 'DATABASE_URL', 'IDEMPOTENCY_SECRET', 'JWKS_URL', 'KAFKA_BROKERS', 'KAFKA_SSL']);
});

test('only the variables that a process reads are its business', () => {
  const { API_KEY_PEPPER: _, ...others } = good;
  expect(() => loadConfig(accountsConfig, { ...others, JWKS_URL: 'http://i' })).not.toThrow();
});

test.each([undefined, 'development', 'test'])('NODE_ENV=%s asks for nothing of it', (environment) => {
  expect(() => loadConfig(all, { ...good, NODE_ENV: environment, KAFKA_SSL: undefined, DATABASE_URL: 'postgres://u:p@db/bank', API_KEY_PEPPER: 'a pepper of sixteen' })).not.toThrow();
});

const certificate = '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----';

test('TLS to Kafka takes a CA, and a certificate of our own with its key', () => {
  const load = (env: Record<string, string>) => kafkaOptions(loadConfig(z.object(kafkaConfig), { KAFKA_BROKERS: 'b:1', ...env }), 'me');
  expect(load({})).toEqual({ brokers: ['b:1'], client_id: 'me', as_published: false, ssl: false });
  expect(load({ KAFKAJS_AS_PUBLISHED: '1' }).as_published).toBe(true);
  expect(load({ KAFKA_SSL: 'true' }).ssl).toEqual({});
  expect(load({ KAFKA_SSL: 'true', KAFKA_SSL_CA: certificate }).ssl).toEqual({ ca: certificate });
  const key = '-----BEGIN EC PRIVATE KEY-----';
  expect(load({ KAFKA_SSL: 'true', KAFKA_SSL_CERT: certificate, KAFKA_SSL_KEY: key }).ssl).toEqual({ cert: certificate, key });
  expect(load({ KAFKA_SASL_MECHANISM: 'scram-sha-512', KAFKA_SASL_USERNAME: 'u', KAFKA_SASL_PASSWORD: 'p' }).sasl).toEqual({ mechanism: 'scram-sha-512', username: 'u', password: 'p' });
  expect(() => load({ KAFKA_SSL: 'true', KAFKA_SSL_CA: '/etc/ca.pem' })).toThrow('KAFKA_SSL_CA: must be PEM text');
  expect(() => load({ KAFKA_SSL_CA: certificate })).toThrow('need KAFKA_SSL=true');
  expect(() => load({ KAFKA_SSL: 'true', KAFKA_SSL_CERT: certificate })).toThrow('belong together');
  expect(() => load({ KAFKA_SASL_MECHANISM: 'plain', KAFKA_SASL_USERNAME: 'u' })).toThrow('belong together');
});
