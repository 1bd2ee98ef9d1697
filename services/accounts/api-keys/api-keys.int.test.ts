import { randomBytes } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { hashApiKey, parseApiKey } from '#libs/contracts/api-key.ts';
import { type ApiKey, apiKeySchema } from '#libs/contracts/api-keys.ts';
import { events } from '#libs/contracts/events.ts';
import { type MessageData, messageType } from '#libs/contracts/messages.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import { schema } from '../schema.ts';
import { newClient, newId, readOutboxByKey, useAccounts } from '../test/harness.ts';
import { createBootstrapKey, republishApiKeys, tellExpiries } from './api-keys.ts';

const bank = useAccounts();

const hour = 3_600_000;
const inHours = (n: number) => new Date(Date.now() + n * hour).toISOString();
const hash = () => randomBytes(32).toString('hex');

function keyData(changes: Partial<MessageData<'create_api_key'>> = {}): MessageData<'create_api_key'> {
  return {
    key_id: newId('key'),
    name: 'partner',
    scopes: ['clients:read', 'accounts:read'],
    environment: 'live',
    client_id: null,
    expires_at: inHours(48),
    secret_hash: hash(),
    ...changes,
  };
}

async function newKey(changes: Partial<MessageData<'create_api_key'>> = {}): Promise<ApiKey> {
  const data = keyData(changes);
  const reply = await bank.send('create_api_key', data, { message_id: data.key_id });
  if (!reply?.ok) throw new Error(JSON.stringify(reply));
  return apiKeySchema.strict().parse(reply.data);
}

function rotation(
  rotates_key_id: string,
  changes: Partial<MessageData<'rotate_api_key'>> = {},
): MessageData<'rotate_api_key'> {
  return {
    key_id: newId('key'),
    secret_hash: hash(),
    rotates_key_id,
    overlap_seconds: 3600,
    maker_scopes: [...scopes],
    ...changes,
  };
}

async function get(key_id: string): Promise<ApiKey> {
  const reply = await bank.send('get_api_key', { key_id });
  return apiKeySchema.parse(reply?.ok ? reply.data : undefined);
}

const readStates = async (key_id: string) =>
  (await readOutboxByKey(bank.pool, key_id))
    .filter(({ topic }) => topic === 'api-keys')
    .map((row) => events['corebanking.api_key.v1'].data.strict().parse(row.payload));

test('its name is shown to people who may not read keys', async () => {
  const { key_id, name } = await newKey({ name: 'Payroll' });
  const asked = { actors: `key:${key_id},key:key_${'0'.repeat(32)}` };
  expect(await bank.send('list_staff_names', asked)).toEqual({ ok: true, data: [{ actor: `key:${key_id}`, name }] });
});

test('a key is created, returned without its hash, and published to the gateways', async () => {
  const data = keyData({ expires_at: '2099-01-01T02:00:00.000+02:00' });
  const reply = await bank.send('create_api_key', data, { message_id: data.key_id, time: '2026-01-02T03:04:05.678Z' });
  const { secret_hash, key_id, name, environment, client_id } = data;
  const expires_at = '2099-01-01T00:00:00.000Z';
  expect(reply).toEqual({
    ok: true,
    data: {
      key_id,
      name,
      scopes: data.scopes,
      environment,
      client_id,
      status: 'active',
      created_at: '2026-01-02T03:04:05.678Z',
      created_by: 'key:key_tester',
      expires_at,
      last_used_at: null,
      revoked_at: null,
      rotated_from: null,
    },
  });
  const [row] = await readOutboxByKey(bank.pool, key_id);
  expect(row).toMatchObject({ topic: 'api-keys', type: 'corebanking.api_key.v1' });
  expect(await readStates(key_id)).toEqual([
    {
      key_id,
      family_id: key_id,
      secret_hash,
      scopes: data.scopes,
      environment,
      client_id,
      expires_at,
      revoked_at: null,
      version: 1,
    },
  ]);
  expect(await bank.send('create_api_key', data, { message_id: key_id })).toEqual({ ...reply, replayed: true });
});

test('a key for an unknown client, with an expiry in the past, or with more rights than its creator is refused; only permanent refusals are stored', async () => {
  const short = await newKey({ expires_at: inHours(2) });
  const revoked = await newKey();
  await bank.send('revoke_api_key', { key_id: revoked.key_id });
  const refusals = [
    [{ client_id: newId('client') }, {}, 'client_not_found'],
    [{ expires_at: '2020-01-01T00:00:00.000Z' }, {}, 'validation_failed'],
    [{ expires_at: inHours(3), not_after: inHours(2) }, {}, 'validation_failed'],
    [{ expires_at: inHours(3), maker_key_id: short.key_id }, {}, 'validation_failed'],
    [{ maker_key_id: revoked.key_id }, {}, 'insufficient_scope'],
  ] as const;
  for (const [changes, overrides, code] of refusals) {
    const data = keyData(changes);
    expect(await bank.send('create_api_key', data, { message_id: data.key_id, ...overrides })).toMatchObject({
      ok: false,
      refusal: { code },
    });
    const again = await bank.send(
      'create_api_key',
      { ...data, client_id: null, expires_at: inHours(1), not_after: null, maker_key_id: null },
      { message_id: data.key_id },
    );
    expect(again).toMatchObject(
      code !== 'client_not_found' ? { ok: true } : { ok: false, replayed: true, refusal: { code } },
    );
  }
});

test('a key without a requested lifetime gets the maximum: the bank’s limit, or its creator’s remaining lifetime', async () => {
  // contract: permission-17
  const maker = await newKey({ expires_at: inHours(2) });
  const [limit, earlier] = [inHours(24), inHours(1)];
  expect((await newKey({ expires_at: null, not_after: limit })).expires_at).toBe(limit);
  expect((await newKey({ expires_at: null, not_after: limit, maker_key_id: maker.key_id })).expires_at).toBe(
    maker.expires_at,
  );
  expect((await newKey({ expires_at: null, not_after: earlier, maker_key_id: maker.key_id })).expires_at).toBe(earlier);
  expect(
    (await newKey({ expires_at: maker.expires_at, not_after: limit, maker_key_id: maker.key_id })).expires_at,
  ).toBe(maker.expires_at);
});

test('rotation never extends a lifetime: the old key’s remains, limited by that of the key that rotates', async () => {
  // contract: permission-18
  const rotator = await newKey({ expires_at: inHours(2) });
  for (const [hours, expected] of [
    [1, undefined],
    [48, rotator.expires_at],
  ] as const) {
    const old = await newKey({ expires_at: inHours(hours) });
    const change = rotation(old.key_id, { maker_key_id: rotator.key_id });
    expect(await bank.send('rotate_api_key', change, { message_id: change.key_id })).toMatchObject({
      ok: true,
      data: { expires_at: expected ?? old.expires_at },
    });
  }
  await bank.send('revoke_api_key', { key_id: rotator.key_id });
  const change = rotation((await newKey()).key_id, { maker_key_id: rotator.key_id });
  expect(await bank.send('rotate_api_key', change, { message_id: change.key_id })).toMatchObject({
    ok: false,
    refusal: { code: 'insufficient_scope' },
  });
});

test('an approved key is not shortened or refused because the key that asked was rotated meanwhile', async () => {
  // contract: permission-17
  const maker = await newKey({ expires_at: inHours(48) });
  const asked = () => keyData({ expires_at: inHours(24), maker_key_id: maker.key_id });
  const change = rotation(maker.key_id, { overlap_seconds: 60 });
  await bank.send('rotate_api_key', change, { message_id: change.key_id });
  const create = (data: MessageData<'create_api_key'>, approved: object) =>
    bank.send('create_api_key', data, { message_id: data.key_id, ...approved });
  const approved = { approved_by: 'jwt:https://issuer.example|bob' };
  const wanted = asked();
  expect(await create(wanted, approved)).toMatchObject({ ok: true, data: { expires_at: wanted.expires_at } });
  // The rotated key cannot do so itself, and the approved key does not outlive its creator either.
  expect(await create(asked(), {})).toMatchObject({ ok: false, refusal: { code: 'validation_failed' } });
  expect(await create({ ...asked(), expires_at: inHours(49) }, approved)).toMatchObject({ ok: false });
});

test('rotation creates a key of the same family; the old one expires after the overlap', async () => {
  const client_id = await newClient(bank);
  const old = await newKey({ client_id, environment: 'test' });
  const change = rotation(old.key_id);
  const now = new Date();
  bank.clock.now = now;
  const reply = await bank.send('rotate_api_key', change, { message_id: change.key_id, actor: 'key:admin' });
  bank.clock.now = undefined;
  const { expires_at } = old;
  expect(reply).toMatchObject({
    ok: true,
    data: {
      key_id: change.key_id,
      name: old.name,
      scopes: old.scopes,
      environment: 'test',
      client_id,
      created_by: 'key:admin',
      expires_at,
      rotated_from: old.key_id,
      last_used_at: null,
    },
  });
  const [first, second] = await readStates(old.key_id);
  expect(second).toEqual({
    ...first,
    version: 2,
    expires_at: new Date(Math.min(Date.parse(old.expires_at), now.getTime() + hour)).toISOString(),
  });
  expect(await readStates(change.key_id)).toMatchObject([
    { family_id: old.key_id, secret_hash: change.secret_hash, version: 1 },
  ]);
  const again = rotation(change.key_id);
  await bank.send('rotate_api_key', again, { message_id: again.key_id });
  expect(await readStates(again.key_id)).toMatchObject([{ family_id: old.key_id }]);
});

test('the overlap never extends a key’s lifetime', async () => {
  const old = await newKey({ expires_at: inHours(1) });
  const change = rotation(old.key_id, { overlap_seconds: 30 * 86400 });
  await bank.send('rotate_api_key', change);
  expect((await get(old.key_id)).expires_at).toBe(old.expires_at);
  const at_once = rotation(change.key_id, { overlap_seconds: 0 });
  await bank.send('rotate_api_key', at_once);
  expect((await get(change.key_id)).status).toBe('expired');
});

test('revoked, expired, and unknown keys cannot be rotated, nor one with more scopes than the caller', async () => {
  const revoked = await newKey();
  await bank.send('revoke_api_key', { key_id: revoked.key_id });
  const expired = await newKey();
  await bank.send('rotate_api_key', rotation(expired.key_id, { overlap_seconds: 0 }));
  const strong = await newKey({ scopes: ['keys:manage', 'ops:manage'] });
  const attempts = [
    [rotation(revoked.key_id), {}, 'invalid_status_transition'],
    [rotation(expired.key_id), {}, 'invalid_status_transition'],
    [rotation(newId('key')), {}, 'api_key_not_found'],
    [rotation('key_?'), {}, 'api_key_not_found'],
    [rotation(strong.key_id, { maker_scopes: ['keys:manage'] }), {}, 'insufficient_scope'],
  ] as const;
  for (const [change, overrides, code] of attempts) {
    expect(await bank.send('rotate_api_key', change, { message_id: change.key_id, ...overrides })).toMatchObject({
      ok: false,
      refusal: { code },
    });
  }
  expect(await readStates(strong.key_id)).toHaveLength(1);
});

test('a revocation is published once and acknowledged every time', async () => {
  const key = await newKey();
  const first = await bank.send('revoke_api_key', { key_id: key.key_id });
  expect(first).toMatchObject({ ok: true, data: { status: 'revoked', revoked_at: expect.stringMatching(/Z$/) } });
  expect(await bank.send('revoke_api_key', { key_id: key.key_id })).toEqual(first);
  expect(await readStates(key.key_id)).toMatchObject([
    { version: 1, revoked_at: null },
    { version: 2, revoked_at: expect.any(String) },
  ]);
  expect(await bank.send('revoke_api_key', { key_id: newId('key') })).toMatchObject({
    ok: false,
    refusal: { code: 'api_key_not_found' },
  });
});

test('after concurrent revocation and rotations, versions have no gaps, and the key is revoked', async () => {
  const key = await newKey();
  const second = bank.process();
  await Promise.all([
    ...Array.from({ length: 5 }, () => bank.send('rotate_api_key', rotation(key.key_id))),
    second.send('revoke_api_key', { key_id: key.key_id }),
    ...Array.from({ length: 5 }, () => second.send('rotate_api_key', rotation(key.key_id))),
  ]);
  const states = await readStates(key.key_id);
  expect(states.map((state) => state.version)).toEqual(states.map((_, i) => i + 1));
  expect(states.at(-1)?.revoked_at).not.toBeNull();
  const left = await bank.pool.query('select key_id from api_keys where family_id = $1 and revoked_at is null', [
    key.key_id,
  ]);
  expect(left.rows).toEqual([]);
});

test('last_used_at never moves backwards, and its message gets no reply', async () => {
  const { key_id } = await newKey();
  for (const used_at of ['2026-03-01T00:00:00.000Z', '2026-02-01T00:00:00.000Z'])
    await bank.send(
      'record_api_key_use',
      { key_id, used_at },
      { correlation_id: undefined, reply_topic: undefined, reply_partition: undefined },
    );
  await bank.send('record_api_key_use', { key_id: newId('key'), used_at: '2026-02-01T00:00:00.000Z' });
  expect((await get(key_id)).last_used_at).toBe('2026-03-01T00:00:00.000Z');
  expect(await readStates(key_id)).toHaveLength(1);
});

/** Rotates a key; returns the new one's id. */
async function rotated(key_id: string, actor?: string): Promise<string> {
  const change = rotation(key_id);
  const reply = await bank.send('rotate_api_key', change, {
    message_id: change.key_id,
    ...(actor === undefined ? {} : { actor }),
  });
  if (!reply?.ok) throw new Error(JSON.stringify(reply));
  return change.key_id;
}
const isRevoked = async (...keyIds: string[]) =>
  Promise.all(keyIds.map(async (key_id) => (await get(key_id)).status === 'revoked'));

test('revocation applies to the whole family, whichever of its keys is named, and each key is published', async () => {
  const first = await newKey();
  const second = await rotated(first.key_id);
  const third = await rotated(second);
  const stranger = await newKey();
  expect(await bank.send('revoke_api_key', { key_id: second })).toMatchObject({
    ok: true,
    data: { key_id: second, status: 'revoked' },
  });
  expect(await isRevoked(first.key_id, second, third, stranger.key_id)).toEqual([true, true, true, false]);
  for (const key_id of [first.key_id, second, third])
    expect((await readStates(key_id)).at(-1)).toMatchObject({ revoked_at: expect.any(String) });
});

test('with descendants it also applies to keys that the family created or rotated, and to their descendants', async () => {
  const root = await newKey();
  const by = async (maker: string) => {
    const data = keyData();
    await bank.send('create_api_key', data, { message_id: data.key_id, actor: `key:${maker}` });
    return data.key_id;
  };
  const child = await by(root.key_id);
  const grandchild = await by(child);
  const partner = await newKey();
  const seen = await rotated(partner.key_id, `key:${root.key_id}`);
  const others = [child, grandchild, seen, partner.key_id];
  await bank.send('revoke_api_key', { key_id: root.key_id });
  expect(await isRevoked(root.key_id, ...others)).toEqual([true, false, false, false, false]);
  await bank.send(
    'revoke_api_key',
    { key_id: root.key_id, descendants: true },
    { address: '192.0.2.7', approved_by: 'bob' },
  );
  expect(await isRevoked(...others)).toEqual([true, true, true, true]);
  const records = await bank.pool.query(
    "select details from audit where resource_id = $1 and action = 'revoke_api_key' order by created_at",
    [root.key_id],
  );
  expect(records.rows.map(({ details }) => details)).toEqual([
    { revoked: [root.key_id] },
    { revoked: expect.arrayContaining(others), approved_by: 'bob' },
  ]);
  const asked = (await readOutboxByKey(bank.pool, root.key_id)).filter(({ topic }) => topic === 'webhooks.commands');
  expect(asked.slice(1)).toMatchObject([
    {
      type: messageType('disable_webhooks'),
      headers: { 'caller-address': '192.0.2.7', 'approved-by': 'bob' },
      payload: {
        set_by: [root.key_id, child, grandchild, partner.key_id].map((id) => `key:${id}`).sort(),
        client_id: null,
      },
    },
  ]);
});

test('webhooks is told of each family that was revoked, and of each whose last key has expired, once', async () => {
  // contract: webhooks-9
  const told = async (key_id: string) =>
    (await readOutboxByKey(bank.pool, key_id))
      .filter(({ topic }) => topic === 'webhooks.commands')
      .map(({ payload }) => payload as unknown);
  const message = ({ key_id }: ApiKey) => [{ set_by: [`key:${key_id}`], client_id: null }];
  const revoked = await newKey();
  expect(await bank.send('revoke_api_key', { key_id: revoked.key_id })).toMatchObject({
    ok: true,
    data: { families: [revoked.key_id] },
  });
  expect(await told(revoked.key_id)).toEqual(message(revoked));
  const [expired, rotatedOne, valid] = [await newKey(), await newKey(), await newKey()];
  const next = await rotated(rotatedOne.key_id);
  const expire = (...ids: string[]) =>
    bank.owner.query("update api_keys set expires_at = now() - interval '1 second' where key_id = any($1)", [ids]);
  await expire(expired.key_id, rotatedOne.key_id);
  await Promise.all([tellExpiries(bank.pool), tellExpiries(bank.pool), tellExpiries(bank.pool)]);
  expect([await told(expired.key_id), await told(rotatedOne.key_id)]).toEqual([message(expired), []]);
  await expire(next);
  while ((await tellExpiries(bank.pool)) > 0);
  expect(await told(rotatedOne.key_id)).toEqual(message(rotatedOne));
  expect([await told(expired.key_id), await told(valid.key_id)]).toEqual([message(expired), []]);
});

test('while the clocks disagree, no key counts as expired, also not one whose family has a valid key', async () => {
  const [only, replaced] = [await newKey(), await newKey()];
  await rotated(replaced.key_id);
  const toldOf = async () =>
    (await bank.owner.query<{ key_id: string }>('select key_id from api_keys where expiry_told')).rows.map(
      ({ key_id }) => key_id,
    );
  for (const { key_id } of [replaced, only]) {
    await bank.owner.query("update api_keys set expires_at = now() - interval '1 second' where key_id = $1", [key_id]);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 7_200_000 });
    try {
      await expect(tellExpiries(bank.pool)).rejects.toThrow(/clock is more than 5 s behind/);
    } finally {
      vi.useRealTimers();
    }
    expect(await toldOf()).not.toContain(key_id);
  }
  while ((await tellExpiries(bank.pool)) > 0);
  expect(await toldOf()).toEqual(expect.arrayContaining([only.key_id, replaced.key_id]));
});

test('a key created while its creator is being revoked is revoked too', async () => {
  const root = await newKey();
  const other = bank.process();
  const made = Array.from({ length: 10 }, () => keyData({ maker_key_id: root.key_id }));
  const actor = `key:${root.key_id}`;
  await Promise.all([
    ...made.slice(0, 5).map((data) => bank.send('create_api_key', data, { message_id: data.key_id, actor })),
    other.send('revoke_api_key', { key_id: root.key_id, descendants: true }),
    ...made.slice(5).map((data) => bank.send('create_api_key', data, { message_id: data.key_id, actor })),
  ]);
  const left = await bank.pool.query('select key_id from api_keys where created_by = $1 and revoked_at is null', [
    actor,
  ]);
  expect(left.rows).toEqual([]);
});

test('every key can be published again in its current state', async () => {
  const { key_id } = await newKey();
  await bank.send('revoke_api_key', { key_id });
  const [, revoked] = await readStates(key_id);
  expect(await republishApiKeys(bank.pool, schema, new Date())).toBeGreaterThan(1);
  expect((await readStates(key_id)).slice(2)).toEqual([revoked]);
});

test('the first key of an installation has all scopes and expires after a year', async () => {
  const now = new Date();
  const apiKey = await createBootstrapKey(bank.pool, { pepper: 'pepper-for-tests', environment: 'live', schema, now });
  const key_id = parseApiKey(apiKey)?.key_id ?? '';
  expect(await get(key_id)).toMatchObject({
    name: 'bootstrap',
    scopes: [...scopes],
    environment: 'live',
    client_id: null,
    status: 'active',
    expires_at: new Date(now.getTime() + 365 * 24 * hour).toISOString(),
  });
  expect(await readStates(key_id)).toMatchObject([{ secret_hash: hashApiKey('pepper-for-tests', apiKey), version: 1 }]);
});
