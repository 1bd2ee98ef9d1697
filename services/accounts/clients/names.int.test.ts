import { describe, expect, test } from 'vitest';
import type { AccountMaster } from '#libs/contracts/accounts.ts';
import {
  ledgerReply,
  messageFor,
  newAccount,
  newClient,
  newId,
  openAccountCommand,
  readOutboxByKey,
  retail,
  useAccounts,
} from '../test/harness.ts';

/** Tests the contract of external_id and metadata of clients and accounts. */
const bank = useAccounts();

const duplicate = {
  ok: false,
  refusal: { code: 'duplicate_external_id', message: expect.stringMatching(/^Duplicate External ID: /) },
};
const metadata = { z: 'last first', a: '"ü"' };
const fresh = () => `name ${newId('client')}`;
const page = { limit: 100, order: 'desc' as const };
const create = (changes: object, client_id = newId('client')) =>
  bank.send('create_client', { client_id, client: { ...retail, ...changes } }, { message_id: client_id });

describe('clients', () => {
  test('are returned, published in events, and searchable', async () => {
    const external_id = fresh();
    const client_id = await newClient(bank, { ...retail, external_id, metadata });
    expect(await bank.send('get_client', { client_id })).toMatchObject({ ok: true, data: { external_id, metadata } });
    expect((await readOutboxByKey(bank.pool, client_id)).map(({ payload }) => payload)).toMatchObject([
      { client_id, external_id, metadata },
    ]);
    expect(await bank.send('list_clients', { ...page, external_id })).toMatchObject({
      ok: true,
      data: { items: [{ client_id }] },
    });
    for (const other of [external_id.toUpperCase(), ` ${external_id}`])
      expect(await bank.send('list_clients', { ...page, external_id: other })).toEqual({
        ok: true,
        data: { items: [] },
      });
  });

  test('a taken external_id is named before a taken USSD phone, so that an import finds its earlier row', async () => {
    const [external_id, ussd_phone_number] = [fresh(), '+254755555555'];
    const changes = { external_id, ussd_phone_number, ussd_status: 'active' };
    expect(await create(changes)).toMatchObject({ ok: true });
    expect(await create(changes)).toMatchObject(duplicate);
    expect(await create({ ...changes, external_id: fresh() })).toMatchObject({
      refusal: { code: 'duplicate_ussd_phone' },
    });
    expect(await create({ external_id })).toMatchObject(duplicate);
  });

  test('are omitted everywhere if they were not given', async () => {
    const client_id = await newClient(bank);
    const texts = [await bank.send('get_client', { client_id }), await readOutboxByKey(bank.pool, client_id)].map(
      (value) => JSON.stringify(value),
    );
    for (const text of texts) expect(text).not.toMatch(/external_id|metadata/);
    const { rows } = await bank.owner.query(
      "select indexdef from pg_indexes where indexname = 'clients_by_external_id'",
    );
    expect(rows[0]?.indexdef).toContain('WHERE (external_id IS NOT NULL)');
  });

  test('an external_id belongs to the first client that sets it; the refusal is stored', async () => {
    const external_id = fresh();
    const replies = await Promise.all(Array.from({ length: 20 }, () => create({ external_id })));
    expect(replies.filter((reply) => reply?.ok)).toHaveLength(1);
    expect(replies.filter((reply) => !reply?.ok)).toEqual(
      Array.from({ length: 19 }, () => expect.objectContaining(duplicate)),
    );
    const late = newId('client');
    expect(await create({ external_id }, late)).toMatchObject(duplicate);
    const holder = replies.find((reply) => reply?.ok) as { data: { client_id: string } };
    await bank.send('update_client', { client_id: holder.data.client_id, changes: { external_id: null } });
    expect(await create({ external_id }, late)).toMatchObject({ ...duplicate, replayed: true });
    expect(await create({ external_id })).toMatchObject({ ok: true });
  });

  test('in one batch, the external_id goes to the first client that can be created', async () => {
    const external_id = fresh();
    const ussd_phone_number = `+2547${Math.floor(Math.random() * 1e9)}`;
    await create({ ussd_phone_number, ussd_status: 'active' });
    const clients = [{ ussd_phone_number, ussd_status: 'active' as const }, {}, {}].map((changes) => ({
      ...retail,
      ...changes,
      external_id,
    }));
    const commands = clients.map((client) => {
      const client_id = newId('client');
      return { ...messageFor('create_client', { client_id, client }, { message_id: client_id }), partition: 0 };
    });
    await bank.handleCommands(commands);
    const codes = commands
      .map(({ headers }) => bank.repliesTo(headers['correlation-id'] ?? '')[0])
      .map((reply) => (reply?.ok ? 'done' : reply?.refusal.code));
    expect(codes).toEqual(['duplicate_external_id', 'done', 'duplicate_external_id']);
  });

  test('a duplicate USSD number is still reported as such', async () => {
    const ussd_phone_number = `+2547${Math.floor(Math.random() * 1e9)}`;
    const active = { ussd_phone_number, ussd_status: 'active' };
    await create({ ...active, external_id: fresh() });
    expect(await create({ ...active, external_id: fresh() })).toMatchObject({
      ok: false,
      refusal: { code: 'duplicate_ussd_phone' },
    });
  });

  test('PATCH replaces metadata as a whole, null removes them; events have the field names and the result', async () => {
    const [external_id, client_id] = [fresh(), await newClient(bank, { ...retail, metadata: { a: '1', b: '2' } })];
    const patch = (changes: object) => bank.send('update_client', { client_id, changes });
    expect(await patch({ metadata: { c: '3' }, external_id })).toMatchObject({
      ok: true,
      data: { external_id, metadata: { c: '3' } },
    });
    const { data: kept } = (await patch({ email: 'b@example.com' })) as { data: object };
    expect(kept).toMatchObject({ external_id, metadata: { c: '3' } });
    expect(await patch({ metadata: { c: '3' } })).toEqual({ ok: true, data: kept });
    const removed = await patch({ metadata: null });
    expect(JSON.stringify(removed)).not.toContain('metadata');
    expect(JSON.stringify(await patch({ external_id: null }))).not.toContain('external_id');
    const told = (await readOutboxByKey(bank.pool, client_id))
      .slice(1)
      .map(
        ({
          payload: {
            client_id: _id,
            client_type: _type,
            updated_at: _at,
            actor: _actor,
            request_channel: _channel,
            ...rest
          },
        }) => rest,
      );
    expect(told).toEqual(
      [
        { changed_fields: ['external_id', 'metadata'], external_id, metadata: { c: '3' } },
        { changed_fields: ['email'], external_id, metadata: { c: '3' } },
        { changed_fields: ['metadata'], external_id },
        { changed_fields: ['external_id'] },
      ].map((event) => ({ ...event, changed_fields: expect.arrayContaining(event.changed_fields) })),
    );
  });

  test('PATCH refuses the external_id of another client', async () => {
    const external_id = fresh();
    await create({ external_id });
    const client_id = await newClient(bank);
    expect(
      await bank.send('update_client', { client_id, changes: { external_id, email: 'c@example.com' } }),
    ).toMatchObject(duplicate);
    expect(await bank.send('get_client', { client_id })).toMatchObject({ ok: true, data: { email: retail.email } });
  });
});

describe('accounts', () => {
  test('are returned, published in events, and searchable', async () => {
    const [external_id, client_id] = [fresh(), await newClient(bank)];
    const account_id = await newAccount(bank, client_id, { external_id, metadata });
    const plain = await newAccount(bank, client_id);
    expect(await bank.send('get_account', { account_id })).toMatchObject({ ok: true, data: { external_id, metadata } });
    const shown = [await bank.send('get_account', { account_id: plain }), await readOutboxByKey(bank.pool, plain)];
    for (const text of shown.map((value) => JSON.stringify(value))) expect(text).not.toMatch(/external_id|metadata/);
    const [step, opened] = await readOutboxByKey(bank.pool, account_id);
    expect([step?.payload['metadata'], opened?.payload]).toMatchObject([
      undefined,
      { account: { external_id, metadata } },
    ]);
    const list = await bank.send('list_accounts', { ...page, external_id });
    expect((list as { data: { items: AccountMaster[] } }).data.items).toMatchObject([
      { account_id, external_id, metadata },
    ]);
    const { rows } = await bank.owner.query(
      'select count(*)::int as count from accounts where external_id is not null and client_id = $1',
      [client_id],
    );
    expect(rows).toEqual([{ count: 1 }]);
  });

  test('an external_id belongs to one account, also while it is opening; a refused opening releases it', async () => {
    const [external_id, client_id] = [fresh(), await newClient(bank)];
    const first = openAccountCommand(client_id, { external_id });
    expect(await bank.send('open_account', first, { message_id: first.account_id })).toBeUndefined();
    const second = openAccountCommand(client_id, { external_id });
    expect(await bank.send('open_account', second, { message_id: second.account_id })).toMatchObject(duplicate);
    await bank.handleCommands([
      ledgerReply(first.account_id, first.account_id, {
        ok: false,
        refusal: { code: 'balance_limit_exceeded', message: 'full' },
      }),
    ]);
    expect(await bank.send('open_account', second, { message_id: second.account_id })).toMatchObject({
      ...duplicate,
      replayed: true,
    });
    const rivals = Array.from({ length: 10 }, () =>
      openAccountCommand(client_id, { external_id: `${external_id} too` }),
    );
    const replies = await Promise.all(
      rivals.map((data) => bank.send('open_account', data, { message_id: data.account_id })),
    );
    expect(replies.filter((reply) => reply === undefined)).toHaveLength(1);
    expect(replies.filter((reply) => reply !== undefined)).toEqual(
      Array.from({ length: 9 }, () => expect.objectContaining(duplicate)),
    );
    const third = await newAccount(bank, client_id, { external_id });
    expect(await bank.send('list_accounts', { ...page, external_id })).toMatchObject({
      ok: true,
      data: { items: [{ account_id: third }] },
    });
  });
});
