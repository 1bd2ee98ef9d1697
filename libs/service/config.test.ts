import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { passwordsOf } from '#libs/postgres/passwords.ts';
import { ConfigError, databaseUrlConfig, flag, kafkaConfig, loadConfig, processConfig, wholeNumber } from './config.ts';

const folder = mkdtempSync(join(tmpdir(), 'config-'));
afterAll(() => rmSync(folder, { recursive: true }));

const schema = z.object({
  ...processConfig,
  ...kafkaConfig,
  ...databaseUrlConfig,
  RATE: wholeNumber(0, 10),
  ON: flag.prefault('false'),
});
const good = { BANK_MODE: 'trial', KAFKA_BROKERS: 'a:1, b:2,', DATABASE_URL: 'postgres://u:p@h/d', RATE: '3' };

function failure(env: Record<string, string>): string {
  try {
    loadConfig(schema, { BANK_MODE: 'trial', ...env });
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  throw new Error('was accepted');
}

test('values are typed, and missing ones have their default', () => {
  const config = loadConfig(schema, { ...good, ON: 'yes', HEALTH_PORT: '' });
  expect(config).toMatchObject({
    KAFKA_BROKERS: ['a:1', 'b:2'],
    RATE: 3,
    ON: true,
    LOG_LEVEL: 'info',
    HEALTH_PORT: { host: '0.0.0.0', port: 9090 },
    TOPIC_PREFIX: '',
  });
  const at = (HEALTH_PORT: string) => loadConfig(schema, { ...good, HEALTH_PORT }).HEALTH_PORT;
  expect(at('127.0.0.1:1')).toEqual({ host: '127.0.0.1', port: 1 });
  for (const wrong of ['::1:1', '127.0.0.1', '1:', '127.0.0.1:70000'])
    expect(failure({ ...good, HEALTH_PORT: wrong })).toContain('HEALTH_PORT');
});

test('every invalid variable is reported together, without values', () => {
  const message = failure({
    DATABASE_URL: 'mysql://u:topsecret@h/d',
    RATE: '11',
    LOG_LEVEL: 'topsecret',
    ON: 'topsecret',
    HEALTH_PORT: '70000',
  });
  for (const name of ['DATABASE_URL', 'RATE', 'LOG_LEVEL', 'ON', 'HEALTH_PORT'])
    expect(message).toContain(`  ${name}: `);
  expect(message).toContain('  KAFKA_BROKERS: is missing');
  expect(message).not.toContain('topsecret');
  expect(message.split('\n')).toHaveLength(7);
});

test('brokers are named by host and port, without IPv6 addresses', () => {
  expect(loadConfig(schema, { ...good, KAFKA_BROKERS: '127.0.0.1:9092' }).KAFKA_BROKERS).toEqual(['127.0.0.1:9092']);
  for (const brokers of ['broker', 'a:1,[::1]:9092', '::1:9092'])
    expect(failure({ ...good, KAFKA_BROKERS: brokers })).toContain(
      'KAFKA_BROKERS: must be host:port, separated by commas; a host is a name or an IPv4 address',
    );
});

test.each(['1e3', ' 3', '3.0', '0x3', 'NaN', '99999999999999999'])('%j is not a whole number', (text) => {
  expect(failure({ ...good, RATE: text })).toContain('RATE');
});

test('NAME_FILE reads the value from a file, without its final line end', () => {
  const file = join(folder, 'url');
  writeFileSync(file, 'postgres://u:p@h/d\n');
  const { DATABASE_URL: _, ...others } = good;
  expect(loadConfig(schema, { ...others, DATABASE_URL_FILE: file }).DATABASE_URL).toBe('postgres://u:p@h/d');
  expect(failure({ ...good, DATABASE_URL_FILE: file })).toContain('is given twice');
  expect(failure({ ...others, DATABASE_URL_FILE: join(folder, 'none') })).toContain(
    'DATABASE_URL: the file named by DATABASE_URL_FILE cannot be read',
  );
});

test('the password in a password_file, or each of a list, becomes that of the URL, percent-encoded, and is not given twice', () => {
  const file = join(folder, 'password');
  const load = (password: string, env: Record<string, string> = {}) => {
    writeFileSync(file, `${password}\n`);
    return { ...good, DATABASE_URL: `postgres://u@h:5432/d?password_file=${file}&sslmode=verify-full`, ...env };
  };
  const urlOf = (env: Record<string, string>) => loadConfig(schema, env).DATABASE_URL;
  expect(urlOf(load('a/b:c@%d'))).toBe('postgres://u:a%2Fb%3Ac%40%25d@h:5432/d?sslmode=verify-full');
  expect(passwordsOf(new URL(urlOf(load('a%b, c:d,'))))).toEqual(['a%b', 'c:d']);
  expect(urlOf({ ...good, DATABASE_URL: 'postgres://u:a,b@h/d' })).toBe('postgres://u:a,b@h/d');
  const twice = failure(load('topsecret', { DATABASE_URL: `postgres://u:p@h/d?password_file=${file}` }));
  expect(twice).toContain('DATABASE_URL: has two passwords');
  expect(twice).not.toContain('topsecret');
  expect(failure(load('', { DATABASE_URL: `postgres://u@h/d?password_file=${folder}/none` }))).toContain(
    'DATABASE_URL: its password_file cannot be read',
  );
  for (const weak of ['short', 'a5Zk0qLw8Tb1Xs7P,short'])
    expect(failure(load(weak, { BANK_MODE: 'production' }))).toContain(
      'DATABASE_URL: its password has less than 16 characters',
    );
});
