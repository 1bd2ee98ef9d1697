import { expect, test } from 'vitest';
import { clientSchema } from '#libs/contracts/clients.ts';
import { corporate, messageFor, newClient, newId, readOutboxByKey, retail, useAccounts } from '../test/harness.ts';

const bank = useAccounts();

const phone = () => `+2547${String(Math.floor(Math.random() * 1e9)).padStart(9, '0')}`;

test('a Retail client is created, returned as in REST, and published without personal data', async () => {
  const client_id = newId('client');
  const time = '2026-01-02T03:04:05.678Z';
  const reply = await bank.send('create_client', { client_id, client: retail }, { message_id: client_id, time });
  expect(reply).toEqual({ ok: true, data: { client_id, ...retail, created_at: time, updated_at: time } });
  const events = await readOutboxByKey(bank.pool, client_id);
  expect(
    events.map(({ topic, type, payload, headers }) => ({ topic, type, payload, request: headers['request-id'] })),
  ).toEqual([
    {
      topic: 'clients',
      type: 'corebanking.client.created.v1',
      payload: {
        client_id,
        client_type: 'Retail',
        created_at: time,
        actor: 'key:key_tester',
        request_channel: 'api_key',
      },
      request: 'req-1',
    },
  ]);
});

test('a Corporate client has no USSD fields', async () => {
  const client_id = await newClient(bank, corporate);
  const reply = await bank.send('get_client', { client_id });
  expect(reply?.ok && clientSchema.parse(reply.data)).toMatchObject(corporate);
  expect(JSON.stringify(reply)).not.toContain('ussd');
});

test('a repeat gets the stored reply; another request under the same id is refused', async () => {
  const client_id = newId('client');
  const first = await bank.send(
    'create_client',
    { client_id, client: retail },
    { message_id: client_id, fingerprint: 'a' },
  );
  const again = await bank.send(
    'create_client',
    { client_id, client: retail },
    { message_id: client_id, fingerprint: 'a', time: '2027-01-01T00:00:00.000Z' },
  );
  expect(again).toEqual({ ...first, replayed: true });
  const other = await bank.send(
    'create_client',
    { client_id, client: corporate },
    { message_id: client_id, fingerprint: 'b' },
  );
  expect(other).toMatchObject({ ok: false, refusal: { code: 'idempotency_key_reused' } });
  expect(await readOutboxByKey(bank.pool, client_id)).toHaveLength(1);
});

test('fifty concurrent copies of a command in two processes create one client', async () => {
  const second = bank.process();
  const client_id = newId('client');
  const commands = Array.from({ length: 50 }, () =>
    messageFor('create_client', { client_id, client: retail }, { message_id: client_id, fingerprint: 'a' }),
  );
  await Promise.all(commands.map((command, i) => (i % 2 ? bank : second).handleCommands([command])));
  const replies = commands.map((command, i) =>
    (i % 2 ? bank : second).repliesTo(command.headers['correlation-id'] ?? ''),
  );
  expect(replies.every((own) => own.length === 1 && own[0]?.ok)).toBe(true);
  expect(replies.filter(([own]) => own?.replayed === undefined)).toHaveLength(1);
  expect(await readOutboxByKey(bank.pool, client_id)).toHaveLength(1);
});

test('a command past its deadline is refused, permanently', async () => {
  const client_id = newId('client');
  const reply = await bank.send(
    'create_client',
    { client_id, client: retail },
    { message_id: client_id, deadline: '2026-01-01T00:00:00.000Z' },
  );
  expect(reply).toMatchObject({ ok: false, refusal: { code: 'deadline_exceeded' } });
  const again = await bank.send('create_client', { client_id, client: retail }, { message_id: client_id });
  expect(again).toMatchObject({ ok: false, replayed: true, refusal: { code: 'deadline_exceeded' } });
  expect(await bank.send('get_client', { client_id })).toMatchObject({
    ok: false,
    refusal: { code: 'client_not_found' },
  });
});

test('a known command is replayed even past its deadline', async () => {
  const client_id = await newClient(bank);
  const again = await bank.send(
    'create_client',
    { client_id, client: retail },
    { message_id: client_id, deadline: '2026-01-01T00:00:00.000Z' },
  );
  expect(again).toMatchObject({ ok: true, replayed: true });
});

test('an active USSD number belongs to one client; the refusal is stored, and the number can be reused after a release', async () => {
  const ussd_phone_number = phone();
  const holder = await newClient(bank, { ...retail, ussd_phone_number, ussd_status: 'active' });
  const late = newId('client');
  const client = { ...retail, ussd_phone_number, ussd_status: 'active' as const };
  expect(await bank.send('create_client', { client_id: late, client }, { message_id: late })).toMatchObject({
    ok: false,
    refusal: { code: 'duplicate_ussd_phone', message: expect.stringMatching(/^Duplicate USSD Phone/) },
  });
  const sleeping = await newClient(bank, { ...retail, ussd_phone_number });
  expect(await bank.send('update_client', { client_id: sleeping, changes: { ussd_status: 'active' } })).toMatchObject({
    ok: false,
    refusal: { code: 'duplicate_ussd_phone' },
  });
  expect(await bank.send('search_client_by_ussd', { ussd_phone: ussd_phone_number })).toMatchObject({
    ok: true,
    data: { client_id: holder },
  });
  await bank.send('update_client', { client_id: holder, changes: { ussd_status: 'inactive' } });
  expect(await bank.send('search_client_by_ussd', { ussd_phone: ussd_phone_number })).toMatchObject({
    ok: true,
    data: { client_id: sleeping },
  });
  expect(await bank.send('update_client', { client_id: sleeping, changes: { ussd_status: 'active' } })).toMatchObject({
    ok: true,
  });
  expect(await bank.send('create_client', { client_id: late, client }, { message_id: late })).toMatchObject({
    ok: false,
    replayed: true,
  });
});

test('only one of twenty clients that request one number concurrently gets it', async () => {
  const ussd_phone_number = phone();
  const replies = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      if (i % 2 === 0)
        return bank.send('create_client', {
          client_id: newId('client'),
          client: { ...retail, ussd_phone_number, ussd_status: 'active' },
        });
      const client_id = await newClient(bank, { ...retail, ussd_phone_number });
      return bank.send('update_client', { client_id, changes: { ussd_status: 'active' } });
    }),
  );
  expect(replies.filter((reply) => reply?.ok)).toHaveLength(1);
  expect(replies.filter((reply) => reply && !reply.ok && reply.refusal.code === 'duplicate_ussd_phone')).toHaveLength(
    19,
  );
});

test('PATCH changes the named fields and publishes their names; without a change, nothing is published', async () => {
  const client_id = await newClient(bank, { ...retail, address: 'Nairobi' });
  const reply = await bank.send(
    'update_client',
    { client_id, changes: { email: 'new@example.com', address: null, contact_number: retail.contact_number } },
    { time: '2030-01-01T00:00:00.000Z' },
  );
  expect(reply).toMatchObject({
    ok: true,
    data: { email: 'new@example.com', address: null, updated_at: '2030-01-01T00:00:00.000Z' },
  });
  expect(await bank.send('update_client', { client_id, changes: { email: 'new@example.com' } })).toMatchObject({
    ok: true,
    data: { updated_at: '2030-01-01T00:00:00.000Z' },
  });
  const events = await readOutboxByKey(bank.pool, client_id);
  expect(events.slice(1).map((event) => event.payload)).toEqual([
    {
      client_id,
      client_type: 'Retail',
      changed_fields: ['email', 'address'],
      updated_at: '2030-01-01T00:00:00.000Z',
      actor: 'key:key_tester',
      request_channel: 'api_key',
    },
  ]);
});

test('PATCH refuses fields of the other type by name, and an active status without a number', async () => {
  const company = await newClient(bank, corporate);
  expect(
    await bank.send('update_client', {
      client_id: company,
      changes: { ussd_status: 'inactive', ussd_phone_number: null },
    }),
  ).toMatchObject({
    ok: false,
    refusal: { code: 'unknown_field', errors: [{ field: 'ussd_phone_number' }, { field: 'ussd_status' }] },
  });
  const person = await newClient(bank, { ...retail, ussd_phone_number: phone(), ussd_status: 'active' });
  expect(await bank.send('update_client', { client_id: person, changes: { ussd_phone_number: null } })).toMatchObject({
    ok: false,
    refusal: { code: 'validation_failed', errors: [{ field: 'ussd_phone_number' }] },
  });
  expect(
    await bank.send('update_client', {
      client_id: person,
      changes: { ussd_phone_number: null, ussd_status: 'inactive' },
    }),
  ).toMatchObject({ ok: true, data: { ussd_phone_number: null } });
});

test('an unknown client stays unknown to the refused command, although it was created meanwhile', async () => {
  const client_id = newId('client');
  const message_id = `cmd_${client_id.slice(4)}`;
  expect(
    await bank.send('update_client', { client_id, changes: { email: 'a@example.com' } }, { message_id }),
  ).toMatchObject({ ok: false, refusal: { code: 'client_not_found' } });
  await bank.send('create_client', { client_id, client: retail }, { message_id: client_id });
  const reply = await bank.send('update_client', { client_id, changes: { email: 'a@example.com' } }, { message_id });
  expect(reply).toMatchObject({ ok: false, replayed: true, refusal: { code: 'client_not_found' } });
  expect(await bank.send('get_client', { client_id })).toMatchObject({ ok: true, data: { email: retail.email } });
});

test('a bound caller sees only its own client and cannot create any', async () => {
  const ussd_phone_number = phone();
  const own = await newClient(bank);
  const other = await newClient(bank, { ...retail, ussd_phone_number, ussd_status: 'active' });
  const bound = { bound_client_id: own };
  expect(await bank.send('create_client', { client_id: newId('client'), client: retail }, bound)).toMatchObject({
    ok: false,
    refusal: { code: 'insufficient_scope' },
  });
  expect(await bank.send('get_client', { client_id: other }, bound)).toMatchObject({
    ok: false,
    refusal: { code: 'client_not_found' },
  });
  expect(
    await bank.send('update_client', { client_id: other, changes: { email: 'x@example.com' } }, bound),
  ).toMatchObject({ ok: false, refusal: { code: 'client_not_found' } });
  expect(await bank.send('search_client_by_ussd', { ussd_phone: ussd_phone_number }, bound)).toMatchObject({
    ok: false,
    refusal: { code: 'client_not_found' },
  });
  expect(await bank.send('list_clients', { limit: 100, order: 'desc' }, bound)).toMatchObject({
    ok: true,
    data: { items: [{ client_id: own }] },
  });
});

test('malformed ids are like unknown ids', async () => {
  for (const client_id of ['', 'cli_', 'acc_0', 'x'.repeat(64), 'cli_\u0000']) {
    expect(await bank.send('get_client', { client_id })).toMatchObject({
      ok: false,
      refusal: { code: 'client_not_found' },
    });
    expect(await bank.send('update_client', { client_id, changes: { email: 'x@example.com' } })).toMatchObject({
      ok: false,
      refusal: { code: 'client_not_found' },
    });
  }
  expect(bank.deadLetters).toEqual([]);
});
