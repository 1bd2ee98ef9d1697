import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { hashApiKey, makeApiKey } from '#libs/contracts/api-key.ts';
import type { EventData } from '#libs/contracts/events.ts';
import { createApiKeys } from './api-keys.ts';

const pepper = 'a pepper of sixteen';
const keyId = `key_${'1'.repeat(32)}`;
const apiKey = makeApiKey('live', keyId);

function setUp() {
  const clock = { now: Date.parse('2026-01-01T00:00:00.000Z') };
  const uses: string[] = [];
  const keys = createApiKeys({
    peppers: [pepper],
    environments: ['live'],
    logger: pino({ level: 'silent' }),
    onUse: (id, at) => uses.push(`${id} ${at.toISOString()}`),
    now: () => clock.now,
  });
  const state = (changes: Partial<EventData<'corebanking.api_key.v1'>> = {}) => ({
    key_id: keyId,
    family_id: `key_${'0'.repeat(32)}`,
    secret_hash: hashApiKey(pepper, apiKey),
    scopes: ['accounts:read'],
    environment: 'live' as const,
    client_id: null,
    expires_at: '2026-06-01T00:00:00.000Z',
    revoked_at: null,
    version: 1,
    ...changes,
  });
  const take = (changes?: Partial<EventData<'corebanking.api_key.v1'>>) =>
    keys.take(keyId, Buffer.from(JSON.stringify(state(changes))));
  return { clock, keys, uses, take };
}

test('a known key identifies its caller by its family', () => {
  const { keys, take } = setUp();
  expect(keys.find(apiKey)).toBeUndefined();
  take({ client_id: 'cli_1' });
  expect(keys.find(apiKey)).toMatchObject({ actor: `key:key_${'0'.repeat(32)}`, boundClientId: 'cli_1', keyId });
  expect(keys.find(apiKey)?.scopes).toEqual(new Set(['accounts:read']));
});

test('a wrong secret, another pepper, a typing error, and other texts are unknown', () => {
  const { keys, take } = setUp();
  take();
  for (const text of [
    '',
    'x',
    makeApiKey('live', keyId),
    `${apiKey} `,
    apiKey.slice(0, -1),
    apiKey.replace('live', 'test'),
    `${apiKey}, ${apiKey}`,
  ])
    expect(keys.find(text)).toBeUndefined();
  take({ secret_hash: hashApiKey('another pepper here', apiKey), version: 2 });
  expect(keys.find(apiKey)).toBeUndefined();
});

test('while the pepper is rotated, keys with the previous one remain valid', () => {
  const [before, after] = [hashApiKey('the pepper before', apiKey), hashApiKey(pepper, apiKey)];
  const rotating = createApiKeys({
    peppers: [pepper, 'the pepper before'],
    environments: ['live'],

    logger: pino({ level: 'silent' }),
    onUse: () => undefined,
    now: () => Date.parse('2026-01-01T00:00:00.000Z'),
  });
  for (const [version, secret_hash] of [before, after].entries()) {
    const state = {
      key_id: keyId,
      family_id: keyId,
      secret_hash,
      scopes: [],
      environment: 'live',
      client_id: null,
      expires_at: '2026-06-01T00:00:00.000Z',
      revoked_at: null,
      version,
    };
    rotating.take(keyId, Buffer.from(JSON.stringify(state)));
    expect(rotating.find(apiKey)).toMatchObject({ keyId });
    expect(rotating.find(makeApiKey('live', keyId))).toBeUndefined();
  }
});

test('a test key works only if the environments include test', () => {
  // contract: permission-21
  for (const [environments, expected] of [
    [['live'], false],
    [['live', 'test'], true],
    [['test'], true],
  ] as const) {
    const keys = createApiKeys({
      peppers: [pepper],
      environments,
      logger: pino({ level: 'silent' }),
      onUse: () => undefined,
      now: () => Date.parse('2026-01-01T00:00:00.000Z'),
    });
    const ofATest = makeApiKey('test', keyId);
    const state = {
      key_id: keyId,
      family_id: keyId,
      secret_hash: hashApiKey(pepper, ofATest),
      scopes: [],
      environment: 'test',
      client_id: null,
      expires_at: '2026-06-01T00:00:00.000Z',
      revoked_at: null,
      version: 1,
    };
    keys.take(keyId, Buffer.from(JSON.stringify(state)));
    expect(keys.find(ofATest) !== undefined).toBe(expected);
  }
});

test('a secret is compared once and in constant time, whether its key is known or not', () => {
  // contract: permission-13
  const { keys, take } = setUp();
  take();
  const { timingSafeEqual } = crypto;
  const compared: string[][] = [];
  crypto.timingSafeEqual = (...both) => {
    compared.push(both.map(String));
    return timingSafeEqual(...both);
  };
  syncBuiltinESMExports();
  try {
    const hash = hashApiKey(pepper, apiKey);
    const [wrong, unknown] = [makeApiKey('live', keyId), makeApiKey('live', `key_${'2'.repeat(32)}`)];
    for (const text of [apiKey, wrong, unknown]) keys.find(text);
    expect(compared.map(([given]) => given)).toEqual([apiKey, wrong, unknown].map((text) => hashApiKey(pepper, text)));
    expect(compared.map(([, known]) => known)).toEqual([hash, hash, hashApiKey(pepper, '')]);
  } finally {
    crypto.timingSafeEqual = timingSafeEqual;
    syncBuiltinESMExports();
  }
});

test('expired and revoked keys are unknown; an older version never returns', () => {
  const { clock, keys, take } = setUp();
  take({ version: 3 });
  clock.now = Date.parse('2026-06-01T00:00:00.000Z') - 1;
  expect(keys.find(apiKey)).toBeDefined();
  clock.now += 1;
  expect(keys.find(apiKey)).toBeUndefined();
  clock.now -= 1000;
  take({ version: 4, revoked_at: '2026-02-01T00:00:00.000Z' });
  take({ version: 3 });
  expect(keys.find(apiKey)).toBeUndefined();
  // Nor does a tombstone reactivate a revoked key or change it.
  keys.take(keyId, null);
  expect([keys.find(apiKey), keys.environment(keyId)]).toEqual([undefined, 'live']);
});

test('a key that was verified before has the rights of its latest state', () => {
  const { keys, take } = setUp();
  const showTwice = () => [keys.find(apiKey)?.boundClientId, keys.find(apiKey)?.boundClientId];
  take({ client_id: 'cli_1' });
  expect(showTwice()).toEqual(['cli_1', 'cli_1']);
  take({ client_id: 'cli_2', version: 2 });
  expect(showTwice()).toEqual(['cli_2', 'cli_2']);
  take({ client_id: 'cli_3', secret_hash: hashApiKey(pepper, makeApiKey('live', keyId)), version: 3 });
  expect(showTwice()).toEqual([undefined, undefined]);
  take({ client_id: 'cli_4', version: 4 });
  expect(showTwice()).toEqual(['cli_4', 'cli_4']);
  take({ revoked_at: '2026-01-01T00:00:00.000Z', version: 5 });
  expect(showTwice()).toEqual([undefined, undefined]);
});

test('an unreadable message changes nothing', () => {
  const { keys, take } = setUp();
  take();
  keys.take(keyId, Buffer.from('{"key_id":1}'));
  keys.take(keyId, Buffer.from('no json'));
  keys.take(null, Buffer.from('{}'));
  expect(keys.find(apiKey)).toBeDefined();
});

test('the use of a key is reported once a minute, also after a new version', () => {
  const { clock, keys, uses, take } = setUp();
  take();
  keys.find(apiKey);
  take({ version: 2 });
  clock.now += 59_999;
  keys.find(apiKey);
  expect(uses).toEqual([`${keyId} 2026-01-01T00:00:00.000Z`]);
  clock.now += 1;
  keys.find(apiKey);
  expect(uses).toHaveLength(2);
});

test('seen() waits for a state with a time limit', async () => {
  const { keys, take } = setUp();
  const there = keys.seen(keyId, () => true, 1_000);
  const revoked = keys.seen(keyId, ({ revoked_at }) => revoked_at !== null, 1_000);
  take();
  expect(await there).toBe(true);
  expect(await keys.seen(keyId, ({ version }) => version > 1, 20)).toBe(false);
  take({ version: 2, revoked_at: '2026-02-01T00:00:00.000Z' });
  expect(await revoked).toBe(true);
});
