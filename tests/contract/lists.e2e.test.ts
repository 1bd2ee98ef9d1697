import { beforeAll, describe, expect, it } from 'vitest';
import { expectError, newKey, type RestAccount, type RestClient } from '../support/client.ts';
import { together, useBank } from '../support/world.ts';

/** Tests the contract of lists and of unknown parameters. */
const world = useBank({ gateways: 2 });
const { api } = world;

let owner: RestClient;
let account: RestAccount;
/** Each list of the bank: its path, the query that filters it, and the resulting number of items. */
const lists: Record<string, { path: string; filter?: string; id: string; count: number }> = {};

beforeAll(async () => {
  owner = await api.client();
  account = await api.account(owner.client_id, { initial_deposit: 100 });
  const other = await api.account(owner.client_id);
  await together(8, () => api.client());
  await together(8, () => api.account(owner.client_id));
  await together(10, (i) => api.transact(account.account_id, 'Deposit', i + 1));
  await together(10, () => api.transfer(account.account_id, other.account_id, 1));
  for (let i = 0; i < 5; i++) {
    await api.setStatus(account.account_id, 'Inactive');
    await api.setStatus(account.account_id, 'Active');
  }
  await together(9, () => api.key({ scopes: ['accounts:read'] }));
  const deposit = { account_id: account.account_id, transaction_type: 'Deposit', amount: 1 };
  const payments = { mode: 'atomic', items: [{ transaction: deposit }] };
  await together(9, () => api.once(newKey(), '/batches', { ...payments, external_id: 'nine' }));
  Object.assign(lists, {
    clients: { path: '/clients', filter: 'client_type=Retail', id: 'client_id', count: 9 },
    accounts: { path: '/accounts', filter: `client_id=${owner.client_id}`, id: 'account_id', count: 10 },
    transactions: {
      path: '/transactions',
      filter: `account_id=${account.account_id}`,
      id: 'transaction_id',
      count: 30,
    },
    batches: { path: '/batches', filter: 'external_id=nine', id: 'batch_id', count: 9 },
    transfers: { path: '/transfers', filter: `account_id=${account.account_id}`, id: 'transfer_id', count: 10 },
    entries: { path: `/accounts/${account.account_id}/entries`, id: 'entry_id', count: 30 },
    transitions: {
      path: `/accounts/${account.account_id}/status-transitions`,
      id: 'transition_id',
      count: 10,
    },
    'API keys': { path: '/admin/api-keys', id: 'key_id', count: 10 },
  });
});

type Item = Record<string, string> & { created_at: string };

describe.each(['clients', 'accounts', 'transactions', 'transfers', 'batches', 'entries', 'transitions', 'API keys'])(
  'Lists: %s',
  (name) => {
    const list = () => lists[name] as { id: string; count: number };
    const url = (query = '') => {
      const { path, filter } = lists[name] ?? {};
      return `${path}?${[filter, query].filter(Boolean).join('&')}`;
    };
    const items = async (query = '') => (await api.get(url(query))).list<Item>();
    const itemIds = (read: Item[]) => read.map((item) => item[list().id]);

    it('newest first; order=asc is the reverse', async () => {
      // contract: lists-1
      const newest = await items();
      expect(newest).toHaveLength(list().count);
      const times = newest.map(({ created_at }) => created_at);
      expect(times).toEqual([...times].sort().reverse());
      expect(itemIds(await items('order=desc'))).toEqual(itemIds(newest));
      expect(itemIds(await items('order=asc'))).toEqual(itemIds(newest).reverse());
    });

    it.each(['asc', 'desc'])(
      'the pages of a cursor are the whole list, on every gateway, with order=%s',
      async (order) => {
        // contract: lists-4
        const read: Item[] = [];
        let next: string | undefined = url(`order=${order}&limit=3`);
        for (let page = 0; next !== undefined; page++) {
          const answer = await world.gateway(page % 2).get(next);
          expect(answer.list().length).toBeLessThanOrEqual(3);
          read.push(...answer.list<Item>());
          next = answer.next;
        }
        expect(itemIds(read)).toEqual(itemIds(await items(`order=${order}`)));
      },
    );

    it('the last page has no Link, even if it is full', async () => {
      // contract: lists-4
      const { count } = list();
      expect((await api.get(url())).header('link')).toBeNull();
      const exact = await api.get(url(`limit=${count}`));
      expect(exact.list()).toHaveLength(count);
      expect(exact.next).toBeUndefined();
      expect((await api.get(url(`limit=${count - 1}`))).next).toBeDefined();
    });

    it('limit is 1 to 500', async () => {
      // contract: lists-2
      expect(await items('limit=1')).toHaveLength(1);
      expect((await api.get(url('limit=500'))).status).toBe(200);
      for (const limit of ['0', '501', '-1', 'ten', '1.5', '', '1e2', '%201'])
        expectError(await api.get(url(`limit=${limit}`)), 400, 'validation_failed');
    });

    it('order is asc or desc', async () => {
      expectError(await api.get(url('order=up')), 400, 'validation_failed');
    });

    it('an unknown or repeated query parameter is 400', async () => {
      // contract: lists-7
      const error = expectError(await api.get(url('acount_id=x')), 400, 'unknown_parameter');
      expect(error.errors).toEqual([{ field: 'acount_id', code: 'unknown_parameter', message: expect.any(String) }]);
      expectError(await api.get(url('limit=1&limit=2')), 400, 'validation_failed');
    });

    it('cursors are opaque, and only cursors of this bank are accepted', async () => {
      // contract: lists-5
      const next = (await api.get(url('limit=2'))).next ?? '';
      const cursor = new URL(next, 'http://localhost').searchParams.get('cursor') ?? '';
      expect(cursor).not.toBe('');
      for (const bad of [
        'x',
        '',
        'e30',
        `${cursor}A`,
        cursor.slice(0, -2),
        cursor.replace(/./, (c) => (c === 'A' ? 'B' : 'A')),
      ])
        expect(expectError(await api.get(url(`cursor=${bad}`)), 400, 'invalid_cursor').errors).toEqual([
          { field: 'cursor', code: 'invalid_cursor', message: expect.any(String) },
        ]);
    });
  },
);

describe('Lists: cursors are bound to their filters', () => {
  const readCursor = async (path: string) =>
    new URL((await api.get(path)).next ?? '', 'http://localhost').searchParams.get('cursor') ?? '';

  it('another filter, order, or list is refused; another limit is not', async () => {
    // contract: lists-5
    const path = `/transactions?account_id=${account.account_id}`;
    const cursor = await readCursor(`${path}&limit=2`);
    expect((await api.get(`${path}&limit=5&cursor=${cursor}`)).list()).toHaveLength(5);
    for (const other of [
      `${path}&status=Completed`,
      `${path}&order=asc`,
      '/transactions?limit=2',
      `/transfers?account_id=${account.account_id}`,
      '/accounts?limit=2',
      `/accounts/${account.account_id}/entries?limit=2`,
    ]) {
      expectError(await api.get(`${other}&cursor=${cursor}`), 400, 'invalid_cursor');
    }
  });

  it('a list of another account is refused', async () => {
    const cursor = await readCursor(`/accounts/${account.account_id}/entries?limit=2`);
    const [other] = (await api.get('/accounts?limit=1')).list<RestAccount>();
    expectError(await api.get(`/accounts/${other?.account_id}/entries?cursor=${cursor}`), 400, 'invalid_cursor');
  });

  it('items added meanwhile do not shift the pages', async () => {
    // contract: lists-6
    const path = `/transactions?account_id=${account.account_id}&limit=4`;
    const before = (await api.get(`/transactions?account_id=${account.account_id}`)).list<Item>();
    const first = await api.get(path);
    await together(3, () => api.transact(account.account_id, 'Deposit', 1));
    const second = await api.get(first.next ?? '');
    expect([...first.list<Item>(), ...second.list<Item>()]).toEqual(before.slice(0, 8));
  });
});

describe('Lists: limits', () => {
  it('the default limit is 100', async () => {
    // contract: lists-2
    const busy = await api.newAccount();
    await together(101, () => api.transact(busy.account_id, 'Deposit', 1));
    const answer = await api.get(`/transactions?account_id=${busy.account_id}`);
    expect(answer.list()).toHaveLength(100);
    expect((await api.get(answer.next ?? '')).list()).toHaveLength(1);
    expect((await api.get(`/accounts/${busy.account_id}/entries`)).list()).toHaveLength(100);
  });

  it('a page ends at 1 MiB', async () => {
    // contract: lists-3
    // 500 clients of more than 2 KiB each, with four bytes per character.
    await together(500, (i) => api.client({ first_name: `n${i}`, address: '\u{1F3E6}'.repeat(500) }));
    const answer = await api.get('/clients?limit=500');
    expect(Buffer.byteLength(answer.text)).toBeLessThanOrEqual(1024 * 1024 + 200);
    expect(answer.list().length).toBeLessThan(500);
    expect(await api.all('/clients?limit=500')).toHaveLength(500 + 9 + 1);
  });
});

describe('An unknown query parameter is 400 on every route', () => {
  it.each(['/', '/clients/ussd/search?ussd_phone=%2B254700000001', '/admin/trial-balance', '/admin/system-accounts'])(
    'GET %s',
    async (path) => {
      // contract: lists-7
      expectError(await api.get(`${path}${path.includes('?') ? '&' : '?'}verbose=1`), 400, 'unknown_parameter');
    },
  );

  it('also on writes', async () => {
    // contract: lists-7
    for (const path of ['/clients', '/accounts', '/transactions', '/transfers']) {
      // The parameter is reported together with the errors in the body.
      const { errors } = expectError(await api.post(`${path}?dry_run=true`, {}), 400, 'validation_failed');
      expect(errors).toContainEqual(expect.objectContaining({ field: 'dry_run', code: 'unknown_parameter' }));
    }
    expectError(await api.post('/admin/api-keys/x/revocation?dry_run=true', {}), 400, 'unknown_parameter');
  });
});
