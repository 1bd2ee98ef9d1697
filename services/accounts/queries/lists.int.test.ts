import { expect, test } from 'vitest';
import type { AccountMaster } from '#libs/contracts/accounts.ts';
import type { Client } from '#libs/contracts/clients.ts';
import type { Position } from '#libs/contracts/message-fields.ts';
import { pageBytes } from '#libs/postgres/keyset.ts';
import { newAccount, newClient, newId, openAccountCommand, retail, useAccounts } from '../test/harness.ts';

const bank = useAccounts();

interface Page<T> {
  items: T[];
  next?: Position;
}

async function allPages<T>(
  name: 'list_accounts' | 'list_clients',
  data: object,
): Promise<{ items: T[]; pages: number }> {
  const items: T[] = [];
  for (let pages = 1, after: Position | undefined; ; pages++) {
    const reply = await bank.send(name, { limit: 7, order: 'desc', after, ...data });
    if (!reply?.ok) throw new Error(JSON.stringify(reply));
    const page = reply.data as Page<T>;
    items.push(...page.items);
    if (!page.next) return { items, pages };
    after = page.next;
  }
}

test('pages continue after the previous one and contain each row once, also with equal times, in both directions', async () => {
  const client_id = await newClient(bank);
  for (let i = 0; i < 23; i++) {
    const data = openAccountCommand(client_id, {
      currency: i % 2 ? 'EUR' : 'JPY',
      account_type: i % 3 ? 'Savings' : 'Current',
      initial_deposit: '1',
    });
    const time = `2026-01-01T00:00:0${Math.floor(i / 5)}.000Z`;
    await bank.send('open_account', data, { message_id: data.account_id, time });
  }
  await bank.owner.query("update accounts set state = 'open', status = 'Frozen' where client_id = $1", [client_id]);
  const { items, pages } = await allPages<AccountMaster>('list_accounts', { client_id });
  expect(pages).toBe(4);
  const sorted = [...items].sort((a, b) => (a.created_at + a.account_id < b.created_at + b.account_id ? 1 : -1));
  expect(items).toEqual(sorted);
  expect(new Set(items.map((item) => item.account_id)).size).toBe(23);
  const upwards = await allPages<AccountMaster>('list_accounts', { client_id, order: 'asc' });
  expect(upwards.items).toEqual(items.toReversed());
  expect(
    (await allPages('list_accounts', { client_id, currency: 'EUR', account_type: 'Savings', status: 'Frozen' })).items,
  ).toEqual(items.filter((item) => item.currency === 'EUR' && item.account_type === 'Savings'));
  expect((await allPages('list_accounts', { client_id, status: 'Active' })).items).toEqual([]);
});

test('clients and accounts are found by several ids; a bound caller gets only its own', async () => {
  const [one, two] = [await newClient(bank), await newClient(bank)];
  await newClient(bank);
  const accounts = [await newAccount(bank, one), await newAccount(bank, two)];
  const clients = await allPages<Client>('list_clients', { client_ids: `${one},${two},${newId('client')}` });
  expect(clients.items.map(({ client_id }) => client_id).sort()).toEqual([one, two].sort());
  const found = await allPages<AccountMaster>('list_accounts', { account_ids: accounts.join(',') });
  expect(found.items.map(({ account_id }) => account_id).sort()).toEqual([...accounts].sort());
  const owned = await allPages<AccountMaster>('list_accounts', { client_ids: `${two},${one},${newId('client')}` });
  expect(owned.items.map(({ account_id }) => account_id).sort()).toEqual([...accounts].sort());
  const page = { limit: 100, order: 'desc' as const };
  for (const [name, asked] of [
    ['list_clients', { client_ids: `${one},${two}` }],
    ['list_accounts', { account_ids: accounts.join(',') }],
    ['list_accounts', { client_ids: `${one},${two}` }],
  ] as const)
    expect(await bank.send(name, { ...page, ...asked }, { bound_client_id: one })).toMatchObject({
      data: { items: [{ client_id: one }] },
    });
});

test('opening and refused accounts are not listed; an unknown client has no accounts', async () => {
  // contract: accounts-11
  const client_id = await newClient(bank);
  const opening = openAccountCommand(client_id);
  await bank.send('open_account', opening, { message_id: opening.account_id });
  const account_id = await newAccount(bank, client_id);
  expect((await allPages<AccountMaster>('list_accounts', { client_id })).items.map((item) => item.account_id)).toEqual([
    account_id,
  ]);
  expect((await allPages('list_accounts', { client_id: 'nobody' })).items).toEqual([]);
});

test('a bound caller lists only its own accounts', async () => {
  const own = await newClient(bank);
  const account_id = await newAccount(bank, own);
  const other = await newClient(bank);
  const bound = { bound_client_id: own };
  const page = { limit: 100, order: 'desc' as const };
  expect(await bank.send('list_accounts', page, bound)).toMatchObject({ ok: true, data: { items: [{ account_id }] } });
  expect(await bank.send('list_accounts', { ...page, client_id: other }, bound)).toEqual({
    ok: true,
    data: { items: [] },
  });
  expect(await bank.send('get_account', { account_id }, { bound_client_id: other })).toMatchObject({
    ok: false,
    refusal: { code: 'account_not_found' },
  });
  expect(await bank.send('get_account', { account_id }, bound)).toMatchObject({ ok: true });
});

test('a page contains at most 1 MiB of JSON', async () => {
  const address = '🏠'.repeat(500);
  const time = '2026-05-05T00:00:00.000Z';
  await bank.owner.query(
    `insert into clients (client_id, client_type, first_name, last_name, email, contact_number, address, ussd_phone_number, created_at, updated_at)
     select 'cli_' || lpad(to_hex(n), 32, '0'), 'Retail', $1, $1, 'a@example.com', '+1', $2, '+442079460958', $3, $3 from generate_series(1, 1000) n`,
    ['𝔸'.repeat(100), address, time],
  );
  const { items, pages } = await allPages<Client>('list_clients', { ussd_phone: '+442079460958', limit: 500 });
  expect(items).toHaveLength(1000);
  expect(pages).toBe(3);
  const reply = await bank.send('list_clients', { ussd_phone: '+442079460958', limit: 500, order: 'desc' });
  const page = reply?.ok ? (reply.data as Page<Client>) : { items: [] };
  expect(page.items.length).toBeLessThan(500);
  expect(Buffer.byteLength(JSON.stringify(page.items))).toBeLessThanOrEqual(pageBytes);
  expect(Buffer.byteLength(JSON.stringify(page.items))).toBeGreaterThan(pageBytes - 5000);
});

test('a position of another list is an invalid cursor', async () => {
  for (const after of [
    { at: 'x', id: 'y' },
    { at: '2026-01-01T00:00:00.000Z', id: 'x'.repeat(65) },
    { at: '9999-99-99T99:99:99.999Z', id: 'a' },
  ]) {
    expect(await bank.send('list_clients', { limit: 1, order: 'asc', after })).toMatchObject({
      ok: false,
      refusal: { code: 'invalid_cursor' },
    });
  }
});

test('clients are filtered by type and phone', async () => {
  const client_id = await newClient(bank, { ...retail, ussd_phone_number: '+254711111111' });
  expect(
    (await allPages<Client>('list_clients', { ussd_phone: '+254711111111' })).items.map((item) => item.client_id),
  ).toEqual([client_id]);
  expect(
    (await allPages<Client>('list_clients', { ussd_phone: '+254711111111', client_type: 'Corporate' })).items,
  ).toEqual([]);
  expect(
    (await allPages<Client>('list_clients', { client_type: 'Corporate' })).items.every(
      (item) => item.client_type === 'Corporate',
    ),
  ).toBe(true);
});

test('every page of every filter reads a short range of an index', async () => {
  // contract: lists-6
  const client_id = await newClient(bank);
  for (const from of [1, 15_001])
    await bank.owner.query(
      `insert into accounts (account_id, client_id, account_number, account_type, currency, status, state, created_at, updated_at)
     select 'acc_' || md5(n::text), $1, 'T-' || n, (array['Savings', 'Checking', 'Current', 'Loan'])[1 + n % 4], (array['USD', 'EUR', 'JPY'])[1 + n % 3],
       case when n % 100 = 0 then 'Frozen' else 'Active' end, 'open', timestamptz '2020-01-01' + n * interval '1 minute', now() from generate_series($2::int, $2::int + 14999) n`,
      [client_id, from],
    );
  await bank.owner.query('analyze accounts');
  const at = new Date(Date.parse('2020-01-01') + 25_000 * 60_000).toISOString();
  for (const filter of [
    'true',
    `client_id = '${client_id}'`,
    "account_type = 'Loan'",
    "status = 'Frozen'",
    "currency = 'EUR'",
  ]) {
    const plan = await bank.pool.query(
      `explain (analyze, buffers, format json) select * from accounts where state = 'open' and ${filter} and (created_at, account_id) < ($1, 'acc_f') order by created_at desc, account_id desc limit 101`,
      [at],
    );
    const root = plan.rows[0]['QUERY PLAN'][0].Plan;
    expect(root['Shared Hit Blocks'] + root['Shared Read Blocks'], filter).toBeLessThan(250);
    expect(JSON.stringify(root), filter).not.toMatch(/Seq Scan|"Sort"|Rows Removed by Filter":[1-9]\d{2}/);
  }
});

test('get_account and get_client with several ids return each resource to its own query', async () => {
  const client_id = await newClient(bank);
  const account_id = await newAccount(bank, client_id);
  const asked = [{ account_id }, { account_id: newId('account') }, { account_id: "acc_'; drop table" }, { account_id }];
  const replies = await Promise.all(asked.map((data) => bank.send('get_account', data)));
  expect(replies.map((reply) => (reply?.ok ? (reply.data as AccountMaster).account_id : reply?.refusal.code))).toEqual([
    account_id,
    'account_not_found',
    'account_not_found',
    account_id,
  ]);
});
