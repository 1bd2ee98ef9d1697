import { describe, expect, it, test } from 'vitest';
import { type MessageContext, type ReplyBody, source } from '#libs/contracts/envelope.ts';
import { maySend } from '#libs/contracts/messages.ts';
import { createSecretKeys, newWebhookSecret } from '#libs/contracts/webhook-secret.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { claimDue } from '../deliveries/store.ts';
import { completed, newId, useWebhooks } from '../test/harness.ts';
import { resealSecrets } from './store.ts';

/** Commands and queries about webhooks, with a real Postgres. Nothing is sent. */
const harness = useWebhooks();

const url = 'https://receiver.example/bank';
const creation = (changes: object = {}) => {
  const webhook_id = newId('webhook');
  return {
    webhook_id,
    url,
    event_types: ['*'],
    description: null,
    sealed_secret: harness.secretKeys.seal(webhook_id, newWebhookSecret()),
    ...changes,
  };
};
const create = (data: ReturnType<typeof creation>, overrides: Partial<MessageContext> = {}) =>
  harness.send('create_webhook', data, { message_id: data.webhook_id, ...overrides });
/** Returns a webhook of a client without events that was paused twenty times, while others had events. */
async function oftenPaused(): Promise<string> {
  const { webhook_id } = await harness.webhook(url, ['*'], { bound_client_id: newId('client') });
  for (let i = 0; i < 20; i++) {
    await harness.take(completed(newId('account'), 1));
    for (const status of ['Paused', 'Active'] as const)
      await harness.done('update_webhook', { webhook_id, changes: { status } });
  }
  return webhook_id;
}
/** As accounts requests it. */
const revoke = (set_by: string[], client_id: string | null = null) =>
  harness.send('disable_webhooks', { set_by, client_id }, { source: source.accounts, actor: 'jwt:x|alice' });

/** Sends commands one after another, each when the previous one waits for a lock, while a transaction holds `lock`. */
async function whileHeld(lock: string, ...commands: (() => Promise<ReplyBody>)[]): Promise<ReplyBody[]> {
  const holder = await harness.owner.connect();
  try {
    await holder.query('begin');
    await holder.query(lock);
    const replies: Promise<ReplyBody>[] = [];
    for (const command of commands) {
      replies.push(command());
      await eventually(async () => {
        const { rowCount } = await harness.owner.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        );
        return rowCount === replies.length;
      });
    }
    await holder.query('commit');
    return await Promise.all(replies);
  } finally {
    holder.release(true);
  }
}
const refusedWith = (code: string, message?: RegExp) => ({
  ok: false,
  refusal: expect.objectContaining({
    code,
    ...(message && { message: expect.stringMatching(message) as string }),
  }) as object,
});

describe('a webhook', () => {
  it('of a key that was revoked sends nothing more; only accounts may request that', async () => {
    // contract: webhooks-9
    const client_id = newId('client');
    const by = (actor: string, more = {}) => harness.webhook(url, ['*'], { actor, ...more });
    const made = await by('key:key_stolen');
    const bound = await by('key:key_of_a_customer', { bound_client_id: client_id });
    const other = await by('key:key_other');
    const asked = { set_by: ['key:key_stolen'], client_id };
    const byAlice = { actor: 'jwt:x|alice', request_id: 'req-revocation', address: '192.0.2.7' };
    const reply = await harness.done('disable_webhooks', asked, { source: source.accounts, ...byAlice });
    expect(reply.disabled.toSorted()).toEqual([made.webhook_id, bound.webhook_id].sort());
    const readStatus = async ({ webhook_id }: { webhook_id: string }) =>
      (await harness.done('get_webhook', { webhook_id })).status;
    expect([await readStatus(made), await readStatus(bound), await readStatus(other)]).toEqual([
      'Disabled',
      'Disabled',
      'Active',
    ]);
    const written = (await harness.outbox()).filter(({ payload }) => payload?.includes(made.webhook_id));
    expect(written.map(({ payload }) => JSON.parse(payload ?? '') as object)).toMatchObject([
      { action: 'create_webhook' },
      { reason: 'revoked', failing_since: null },
      { action: 'disable_webhook', resource_id: made.webhook_id, ...byAlice },
      { action: 'disable_webhooks', ...byAlice },
    ]);
    expect(written[1]).toMatchObject({ topic: 'webhooks', headers: { 'request-id': 'req-revocation' } });
    expect([maySend('accounts', 'disable_webhooks'), maySend('gateway', 'disable_webhooks')]).toEqual([true, false]);
  });

  it('is not created or made Active by a command that was sent before its key was revoked or its client erased', async () => {
    const client_id = newId('client');
    const callers = [{ actor: 'key:key_late' }, { actor: 'jwt:x|customer', bound_client_id: client_id }];
    const { webhook_id } = await harness.webhook(url, ['*'], { bound_client_id: client_id });
    await revoke(['key:key_late'], client_id);
    await revoke(['key:key_late'], client_id);
    const resumption = { webhook_id, changes: { status: 'Active' as const } };
    for (const by of callers) {
      const late = creation();
      for (let i = 0; i < 2; i++) expect(await create(late, by)).toEqual(refusedWith('insufficient_scope'));
      expect(await harness.send('get_webhook', { webhook_id: late.webhook_id })).toMatchObject(
        refusedWith('webhook_not_found'),
      );
      expect(await harness.send('update_webhook', resumption, by)).toEqual(refusedWith('insufficient_scope'));
    }
    expect(await harness.done('get_webhook', { webhook_id })).toMatchObject({ status: 'Disabled' });
    expect(await harness.done('update_webhook', resumption, { actor: 'jwt:x|alice' })).toMatchObject({
      status: 'Active',
    });
    expect(await create(creation(), { actor: 'key:key_another', bound_client_id: newId('client') })).toMatchObject({
      ok: true,
    });
  });

  it('that a revoked key is creating or making Active at that moment is Disabled', async () => {
    const by = { actor: 'key:key_racing' };
    const { webhook_id } = await harness.webhook(url, ['*'], by);
    await harness.owner.query("update webhooks set status = 'Disabled' where webhook_id = $1", [webhook_id]);
    const created = creation();
    // Both commands hold their locks when they need this table.
    const [creating, resuming, disabling] = await whileHeld(
      'lock table feeds in access exclusive mode',
      () => create(created, by),
      () => harness.send('update_webhook', { webhook_id, changes: { status: 'Active' } }, by),
      () => revoke([by.actor]),
    );
    expect([creating, resuming]).toMatchObject([{ data: { status: 'Active' } }, { data: { status: 'Active' } }]);
    const both = [webhook_id, created.webhook_id];
    expect(disabling).toMatchObject({ ok: true, data: { disabled: both.toSorted() } });
    for (const id of both)
      expect(await harness.done('get_webhook', { webhook_id: id })).toMatchObject({ status: 'Disabled' });
  });

  it('is refused to a key that is being revoked at that moment', async () => {
    const by = { actor: 'key:key_overtaken' };
    const [first, second] = [await harness.webhook(url, ['*'], by), await harness.webhook(url, ['*'], by)]
      .map(({ webhook_id }) => webhook_id)
      .toSorted() as [string, string];
    await harness.done('update_webhook', { webhook_id: first, changes: { status: 'Paused' } });
    const [disabling, creating, resuming] = await whileHeld(
      `select from webhooks where webhook_id = '${second}' for update`,
      () => revoke([by.actor]),
      () => create(creation(), by),
      () => harness.send('update_webhook', { webhook_id: first, changes: { status: 'Active' } }, by),
    );
    expect(disabling).toMatchObject({ ok: true, data: { disabled: [first, second] } });
    expect([creating, resuming]).toEqual([refusedWith('insufficient_scope'), refusedWith('insufficient_scope')]);
  });

  it('is disabled with the key that last set its URL or its secret, until somebody else makes it Active', async () => {
    // contract: webhooks-9
    const owner = { actor: 'key:key_owner' };
    const readStatus = async (webhook_id: string) => (await harness.done('get_webhook', { webhook_id })).status;
    const ways = [
      (webhook_id: string, by: object) =>
        harness.done('update_webhook', { webhook_id, changes: { url: 'https://thief.example/' } }, by),
      (webhook_id: string, by: object) =>
        harness.done(
          'rotate_webhook_secret',
          { webhook_id, sealed_secret: harness.secretKeys.seal(webhook_id, newWebhookSecret()), overlap_seconds: 0 },
          by,
        ),
    ];
    for (const [index, set] of ways.entries()) {
      const thief = { actor: `key:key_thief_${index}` };
      const [taken, recovered] = [await harness.webhook(url, ['*'], owner), await harness.webhook(url, ['*'], owner)];
      for (const { webhook_id } of [taken, recovered]) await set(webhook_id, thief);
      // A change of something else takes no responsibility.
      await harness.done('update_webhook', { webhook_id: taken.webhook_id, changes: { description: 'x' } }, owner);
      await set(recovered.webhook_id, owner);
      const actors = [thief.actor];
      expect(await harness.done('list_webhooks_set_by', { actors })).toEqual([taken.webhook_id]);
      expect(await revoke(actors)).toMatchObject({ data: { disabled: [taken.webhook_id] } });
      expect([await readStatus(taken.webhook_id), await readStatus(recovered.webhook_id)]).toEqual([
        'Disabled',
        'Active',
      ]);
      const resumption = { webhook_id: taken.webhook_id, changes: { status: 'Active' as const } };
      for (const command of [
        () => harness.send('update_webhook', resumption, thief),
        () => harness.send('delete_webhook', { webhook_id: taken.webhook_id }, thief),
      ])
        expect(await command()).toEqual(refusedWith('insufficient_scope'));
      await harness.done('update_webhook', resumption, owner);
      expect(await revoke(actors)).toMatchObject({ data: { disabled: [] } });
      expect(await readStatus(taken.webhook_id)).toBe('Active');
    }
    expect(await revoke([owner.actor])).toMatchObject({ ok: true });
    expect((await harness.done('list_webhooks_set_by', { actors: [owner.actor] })).length).toBe(4);
  });

  it('that was disabled for another reason is resumed without responsibility for what others have set', async () => {
    const [thief, owner] = [{ actor: 'key:key_gone' }, { actor: 'key:key_trusting' }];
    const { webhook_id } = await harness.webhook(url, ['*'], owner);
    const change = (changes: { url?: string; status?: 'Active' }, by: object) =>
      harness.done('update_webhook', { webhook_id, changes }, by);
    await change({ url: 'https://thief.example/' }, thief);
    await harness.owner.query("update webhooks set status = 'Disabled' where webhook_id = $1", [webhook_id]);
    expect(await change({ status: 'Active' }, owner)).toMatchObject({ status: 'Active' });
    expect(await revoke([thief.actor])).toMatchObject({ data: { disabled: [webhook_id] } });
  });

  it('of another caller does not exist for one that may use only its own', async () => {
    // contract: webhooks-2
    const own = { actor: 'jwt:x|own', all_webhooks: 'false' };
    const page = { limit: 500, order: 'desc' as const };
    const { webhook_id } = await harness.webhook(url, ['*'], own);
    const { webhook_id: foreign } = await harness.webhook(url);
    expect((await harness.done('list_webhooks', page, own)).items.map((one) => one.webhook_id)).toEqual([webhook_id]);
    expect((await harness.done('list_webhooks', page)).items.map((one) => one.webhook_id)).toEqual(
      expect.arrayContaining([webhook_id, foreign]),
    );
    const sealed_secret = harness.secretKeys.seal(foreign, newWebhookSecret());
    const period = { from: '2026-01-01T00:00:00.000Z', to: '2026-02-01T00:00:00.000Z' };
    for (const reply of [
      await harness.send('get_webhook', { webhook_id: foreign }, own),
      await harness.send('list_deliveries', { webhook_id: foreign, ...page }, own),
      await harness.send('update_webhook', { webhook_id: foreign, changes: { url } }, own),
      await harness.send('rotate_webhook_secret', { webhook_id: foreign, sealed_secret, overlap_seconds: 0 }, own),
      await harness.send('test_webhook', { webhook_id: foreign }, own),
      await harness.send('redeliver', { webhook_id: foreign, delivery_id: newId('delivery') }, own),
      await harness.send('replay_webhook', { webhook_id: foreign, ...period }, own),
      await harness.send('delete_webhook', { webhook_id: foreign }, own),
    ])
      expect(reply).toEqual(refusedWith('webhook_not_found'));
    expect(await harness.done('test_webhook', { webhook_id }, own)).toMatchObject({ status: 'Pending' });
  });

  it('is created, shown, listed, changed, and deleted', async () => {
    const made = await harness.webhook(url, ['transaction.*', 'client.created']);
    const { secret: _secret, ...shown } = made;
    expect(shown).toEqual({
      webhook_id: made.webhook_id,
      url,
      event_types: ['transaction.*', 'client.created'],
      description: null,
      status: 'Active',
      client_id: null,
      created_by: 'key:key_tester',
      created_at: made.created_at,
      updated_at: made.created_at,
      failing_since: null,
      previous_secret_ends_at: null,
      ordering: 'account',
      blocked_accounts: [],
    });
    const { webhook_id } = made;
    expect(await harness.done('get_webhook', { webhook_id })).toEqual(shown);
    const changes = {
      url: 'https://other.example/',
      event_types: ['*'],
      description: 'books',
      status: 'Paused' as const,
    };
    expect(await harness.done('update_webhook', { webhook_id, changes })).toMatchObject(changes);
    const page = { limit: 100, order: 'desc' as const };
    expect((await harness.done('list_webhooks', page)).items.map((one) => one.webhook_id)).toContain(webhook_id);
    expect((await harness.done('delete_webhook', { webhook_id })).status).toBe('Paused');
    const kept = await harness.owner.query('select url, description from webhooks where webhook_id = $1', [webhook_id]);
    expect(kept.rows).toEqual([{ url: '', description: null }]);
    for (const name of ['get_webhook', 'delete_webhook', 'test_webhook'] as const)
      expect(await harness.send(name, { webhook_id })).toEqual(refusedWith('webhook_not_found'));
    expect((await harness.done('list_webhooks', page)).items.map((one) => one.webhook_id)).not.toContain(webhook_id);
  });

  it('lists are paged', async () => {
    const actor = 'key:pages';
    const made = [
      await harness.webhook(url, ['*'], { actor }),
      await harness.webhook(url, ['*'], { actor }),
      await harness.webhook(url, ['*'], { actor }),
    ];
    const first = await harness.done('list_webhooks', { limit: 2, order: 'desc' });
    const rest = await harness.done('list_webhooks', { limit: 500, order: 'desc', after: first.next });
    const all = [...first.items, ...rest.items].map((one) => one.webhook_id);
    expect(new Set(all).size).toBe(all.length);
    for (const { webhook_id } of made) expect(all).toContain(webhook_id);
  });

  it('its secret is sealed for this webhook only', async () => {
    const { webhook_id, secret } = await harness.webhook(url);
    const {
      rows: [row],
    } = await harness.owner.query<{ secret: string }>('select secret from webhooks where webhook_id = $1', [
      webhook_id,
    ]);
    expect(row?.secret).not.toContain(secret.slice(6, 20));
    expect(harness.secretKeys.open(webhook_id, row?.secret ?? '')).toBe(secret);
    expect(() => harness.secretKeys.open(newId('webhook'), row?.secret ?? '')).toThrow();
    expect(() =>
      createSecretKeys(['another key, of 32 characters or more']).open(webhook_id, row?.secret ?? ''),
    ).toThrow(/the key .* is not configured/);
    const { rows } = await harness.owner.query<{ all: string }>(
      "select string_agg(w::text, '') || (select coalesce(string_agg(c::text, ''), '') from commands c) as all from webhooks w",
    );
    expect(rows[0]?.all).not.toContain(secret);
  });

  it('secrets are sealed with a new key at the next start, and the old key is no longer needed', async () => {
    const { webhook_id, secret } = await harness.webhook(url);
    await harness.done('rotate_webhook_secret', {
      webhook_id,
      sealed_secret: harness.secretKeys.seal(webhook_id, newWebhookSecret()),
      overlap_seconds: 60,
    });
    const [next, old] = ['a new key for secrets, of 32 characters', 'a key for secrets of webhooks, of tests'];
    await expect(resealSecrets(harness.pool, createSecretKeys([next]))).rejects.toThrow(/the key .* is not configured/);
    expect(await resealSecrets(harness.pool, createSecretKeys([next, old]))).toBeGreaterThan(0);
    const held = await harness.owner.connect();
    await held.query('begin');
    await held.query('select from webhooks for update');
    // With nothing to do, it waits for no lock.
    expect(await resealSecrets(harness.pool, createSecretKeys([next]))).toBe(0);
    await held.query('rollback');
    held.release();
    const {
      rows: [row],
    } = await harness.owner.query<{ previous_secret: string }>(
      'select previous_secret from webhooks where webhook_id = $1',
      [webhook_id],
    );
    expect(createSecretKeys([next]).open(webhook_id, row?.previous_secret ?? '')).toBe(secret);
    await resealSecrets(harness.pool, createSecretKeys([old, next]));
  });

  it('private addresses in the url are refused, and http except to loopback', async () => {
    for (const wrong of [
      'https://10.0.0.1/',
      'https://169.254.169.254/',
      'https://[fd00::1]/',
      'https://192.168.0.1:8443/',
    ]) {
      expect(await create(creation({ url: wrong }))).toEqual(
        refusedWith('validation_failed', /^url must not resolve to a private network/),
      );
    }
    expect(await create(creation({ url: 'http://receiver.example/' }))).toEqual(
      refusedWith('validation_failed', /^url must begin with https/),
    );
    const { webhook_id } = await harness.webhook('http://127.0.0.1:4000/');
    expect(await harness.send('update_webhook', { webhook_id, changes: { url: 'https://10.0.0.1/' } })).toEqual(
      refusedWith('validation_failed', /^url must not/),
    );
  });

  it('a caller has at most 20, also with concurrent requests; deleted ones do not count', async () => {
    // contract: webhooks-8
    const actor = 'key:twenty';
    const replies = await Promise.all(Array.from({ length: 25 }, () => create(creation(), { actor })));
    expect(replies.filter(({ ok }) => ok)).toHaveLength(20);
    expect(replies.find(({ ok }) => !ok)).toEqual(refusedWith('validation_failed', /at most 20 webhooks/));
    expect((await create(creation(), { actor: 'key:another' })).ok).toBe(true);
    const [one] = replies.filter(({ ok }) => ok);
    await harness.done('delete_webhook', { webhook_id: (one as { data: { webhook_id: string } }).data.webhook_id });
    expect((await create(creation(), { actor })).ok).toBe(true);
  });

  it('of one client does not exist for callers bound to another client, nor does a webhook of the bank', async () => {
    const [client, other] = [{ bound_client_id: newId('client') }, { bound_client_id: newId('client') }];
    const { webhook_id } = await harness.webhook(url, ['*'], client);
    const { webhook_id: ofBank } = await harness.webhook(url);
    const page = { limit: 500, order: 'desc' as const };
    expect((await harness.done('list_webhooks', page, client)).items.map((one) => one.webhook_id)).toEqual([
      webhook_id,
    ]);
    for (const [id, by] of [
      [webhook_id, other],
      [ofBank, client],
    ] as const) {
      const about = { webhook_id: id };
      expect(await harness.send('get_webhook', about, by)).toEqual(refusedWith('webhook_not_found'));
      expect(await harness.send('list_deliveries', { ...about, ...page }, by)).toEqual(
        refusedWith('webhook_not_found'),
      );
      expect(await harness.send('update_webhook', { ...about, changes: { status: 'Paused' } }, by)).toEqual(
        refusedWith('webhook_not_found'),
      );
      expect(
        await harness.send(
          'replay_webhook',
          { ...about, from: '2026-01-01T00:00:00.000Z', to: '2026-02-01T00:00:00.000Z' },
          by,
        ),
      ).toEqual(refusedWith('webhook_not_found'));
    }
    expect(await harness.done('get_webhook', { webhook_id })).toMatchObject(
      client.bound_client_id ? { client_id: client.bound_client_id } : {},
    );
  });

  it('nothing is sent to one that is not Active: test, redelivery, and replay are refused', async () => {
    const { webhook_id } = await harness.webhook(url);
    const { delivery_id } = await harness.done('test_webhook', { webhook_id });
    await harness.done('update_webhook', { webhook_id, changes: { status: 'Paused' } });
    const paused = refusedWith('invalid_status_transition', /is Paused/);
    expect(await harness.send('test_webhook', { webhook_id })).toEqual(paused);
    expect(await harness.send('redeliver', { webhook_id, delivery_id })).toEqual(paused);
    expect(
      await harness.send('replay_webhook', {
        webhook_id,
        from: '2026-01-01T00:00:00.000Z',
        to: '2026-02-01T00:00:00.000Z',
      }),
    ).toEqual(paused);
    expect((await claimDue(harness.pool, [], 10_000)).filter((one) => one.webhook_id === webhook_id)).toEqual([]);
  });

  it('an unknown or malformed delivery id is not found', async () => {
    const { webhook_id } = await harness.webhook(url);
    const { webhook_id: another } = await harness.webhook(url);
    const { delivery_id } = await harness.done('test_webhook', { webhook_id: another });
    for (const id of [delivery_id, newId('delivery'), 'dlv_x', `dlv_${'f'.repeat(32)}`])
      expect(await harness.send('redeliver', { webhook_id, delivery_id: id }), id).toEqual(
        refusedWith('delivery_not_found'),
      );
  });

  it('has a limited number of running replays; pauses do not count', async () => {
    const webhook_id = await oftenPaused();
    const replay = () =>
      harness.send('replay_webhook', { webhook_id, from: '2026-01-01T00:00:00.000Z', to: '2026-02-01T00:00:00.000Z' });
    for (let i = 0; i < 20; i++) expect((await replay()).ok).toBe(true);
    expect(await replay()).toEqual(refusedWith('invalid_status_transition', /too many running replays/));
  });
});

test('pauses leave one feed, which forgets those from before the oldest stored event, and has 1,000 at most', async () => {
  // contract: webhooks-8
  const { webhook_id } = await harness.webhook(url);
  await harness.take(completed(newId('account'), 1, undefined, { time: '2020-06-01T00:00:00.000Z' }));
  const set = (pauses: string) =>
    harness.owner.query(`update feeds set pauses = ${pauses} where webhook_id = $1`, [webhook_id]);
  const update = (status: 'Paused' | 'Active') => harness.send('update_webhook', { webhook_id, changes: { status } });
  const read = async () =>
    (await harness.owner.query('select pauses::text from feeds where webhook_id = $1', [webhook_id])).rows;
  await set("'{[2020-01-01,2020-01-02),[2020-07-01,2020-07-02)}'");
  expect((await update('Paused')).ok).toBe(true);
  expect(await read()).toEqual([{ pauses: expect.stringMatching(/^\{\["2020-07-01 [^[]*\("20[^[]*,\)\}$/) }]);
  expect((await update('Active')).ok).toBe(true);
  const minutes = (from: number) =>
    `(select range_agg(tstzrange(at, at + interval '30 seconds')) from (
        select timestamptz '2020-07-01' + i * interval '1 minute' as at from generate_series(${from}, 1000) i) s)`;
  await set(minutes(1));
  const before = await read();
  expect(await update('Paused')).toEqual(refusedWith('validation_failed', /at most 1000 pauses/));
  expect([await read(), (await harness.done('get_webhook', { webhook_id })).status]).toEqual([before, 'Active']);
  // One of these 1,000 is forgotten.
  await set(`${minutes(2)} + '{[2020-01-01,2020-01-02)}'`);
  expect((await update('Paused')).ok).toBe(true);
});

describe('a command', () => {
  it('is executed once: a repeat gets the same reply, and a different request under its id is refused', async () => {
    const data = creation();
    const given = { fingerprint: 'a'.repeat(32), correlation_id: 'first' };
    const first = await create(data, given);
    expect(await create(data, given)).toEqual(first);
    expect(await create(data, { ...given, correlation_id: 'second' })).toEqual({ ...first, replayed: true });
    expect(await create(data, { fingerprint: 'b'.repeat(32) })).toEqual(refusedWith('idempotency_key_reused'));
    const both = await Promise.all(
      [1, 2].map(() =>
        harness.send('test_webhook', { webhook_id: data.webhook_id }, { message_id: 'cmd_test', fingerprint: 'x' }),
      ),
    );
    expect(new Set(both.map((reply) => JSON.stringify('data' in reply ? reply.data : reply))).size).toBe(1);
    expect(await harness.deliveries(data.webhook_id)).toHaveLength(1);
  });

  it('is not executed after its deadline, and that is stored; an invalid one may be corrected', async () => {
    const data = creation();
    expect(await create(data, { deadline: '2026-01-01T00:00:00.000Z' })).toEqual(refusedWith('deadline_exceeded'));
    expect(await create(data)).toEqual({ ...refusedWith('deadline_exceeded'), replayed: true });
    const wrong = creation({ url: 'https://10.0.0.1/' });
    expect((await create(wrong)).ok).toBe(false);
    expect((await create({ ...wrong, url })).ok).toBe(true);
  });

  it('writes its audit record in the same transaction, also if it is refused', async () => {
    const { webhook_id } = await harness.webhook(url, ['*'], { address: '203.0.113.7' });
    await harness.send(
      'delete_webhook',
      { webhook_id: newId('webhook') },
      { message_id: 'cmd_refused', subject: 'whk_refused' },
    );
    const records = (await harness.outbox()).map(
      ({ payload }) => JSON.parse(payload ?? '{}') as Record<string, unknown>,
    );
    expect(records.find(({ resource_id }) => resource_id === webhook_id)).toMatchObject({
      action: 'create_webhook',
      actor: 'key:key_tester',
      outcome: 'success',
      address: '203.0.113.7',
      request_id: 'req-1',
      details: { host: 'receiver.example', event_types: ['*'] },
    });
    expect(records.find(({ resource_id }) => resource_id === 'whk_refused')).toMatchObject({
      action: 'delete_webhook',
      outcome: 'webhook_not_found',
    });
  });
});

describe('a command that the database rejects', () => {
  const caller = { actor: 'key:of rejected commands' };
  const rejecting = async (table: string, condition: string, use: () => Promise<void>) => {
    await harness.owner.query(`alter table ${table} add constraint newer check (${condition}) not valid`);
    try {
      await use();
    } finally {
      await harness.owner.query(`alter table ${table} drop constraint newer`);
    }
  };

  it.each(['webhooks', 'feeds', 'deliveries', 'disabled_callers', 'commands', 'outbox_batches', 'outbox'])(
    'waits while nothing can be inserted into %s',
    async (table) => {
      const data = creation({ url: `${url}?rejected` });
      await harness.owner.query(
        `alter table webhooks add constraint its_own check (url not like '%rejected') not valid`,
      );
      try {
        await rejecting(table, 'false', async () => {
          await expect(create(data, caller)).rejects.toMatchObject({ constraint: 'newer', table });
        });
      } finally {
        await harness.owner.query('alter table webhooks drop constraint its_own');
      }
      expect(await create(data, caller)).toMatchObject({ ok: true });
    },
  );

  it('is dead-lettered if others can be executed', async () => {
    await rejecting('webhooks', "url not like '%rejected'", async () => {
      expect(await create(creation({ url: `${url}?rejected` }), caller)).toMatchObject({
        refusal: { code: 'internal_error' },
      });
    });
  });
});
