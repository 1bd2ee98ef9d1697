import { describe, expect, test } from 'vitest';
import { bucketOfId } from '#libs/contracts/ids.ts';
import { commandPartition, commandPartitions } from '#libs/contracts/topics.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { ids, ok, refused, type Service, samples, useTestCaller } from '../test/test-app.ts';

const start = useTestCaller();

describe('reads', () => {
  test('an account is combined from both services, queried concurrently; status and balance are the ledger’s', async () => {
    const { call, sent } = await start(({ name }) => ok(name === 'get_account' ? samples.master : [samples.ledger]));
    const { body } = await call('GET', `/accounts/${ids.account}`);
    expect(body.data).toEqual({ ...samples.master, status: 'Frozen', balance: 10.5 });
    expect(sent.map(({ topic }) => topic).sort()).toEqual(['test.accounts.queries', 'test.ledger.queries']);
  });

  test('without balances, one account and the whole list are 503; 404 takes precedence', async () => {
    // contract: accounts-12
    let ledger: ReturnType<Service> = ok([]);
    const { call } = await start(({ name }) =>
      name === 'get_account'
        ? ok(samples.master)
        : name === 'list_accounts'
          ? ok({ items: [samples.master, { ...samples.master, account_id: ids.other }] })
          : ledger,
    );
    expect((await call('GET', `/accounts/${ids.account}`)).status).toBe(503);
    ledger = ok([samples.ledger]);
    expect((await call('GET', '/accounts')).body.code).toBe('service_unavailable');
    ledger = 'no_reply';
    expect((await call('GET', '/accounts')).status).toBe(503);
    ledger = ok([{ ...samples.ledger, account_id: ids.other }, samples.ledger]);
    expect(
      (await call('GET', '/accounts')).body.data.map(({ account_id }: { account_id: string }) => account_id),
    ).toEqual([ids.account, ids.other]);
  });

  test('accounts by their ids are read together with their balances, and once more if one was opened meanwhile', async () => {
    let hasAsked: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => (hasAsked = resolve));
    let balances: unknown[] = [];
    const { call, sent } = await start(async ({ name }) => {
      if (name === 'get_ledger_accounts') {
        hasAsked();
        return ok(balances.shift());
      }
      await asked;
      return ok({ items: [samples.master] });
    });
    balances = [[samples.ledger]];
    const list = () => call('GET', `/accounts?account_ids=${ids.account},${ids.other}`);
    expect((await list()).body.data).toMatchObject([{ balance: 10.5 }]);
    expect(sent).toHaveLength(2);
    balances = [[], [samples.ledger]];
    expect((await list()).body.data).toMatchObject([{ balance: 10.5 }]);
    expect(sent).toHaveLength(5);
  });

  test('several ids in one query are well-formed, and a bound caller cannot filter by actor', async () => {
    const { call, sent, keyHeader } = await start(() => ok({ items: [] }));
    const clients = (list: string) => call('GET', `/clients?client_ids=${list}`);
    expect((await clients(`${ids.client},${ids.client}`)).status).toBe(200);
    for (const list of ['', 'x', ids.account, `${ids.client},`, Array(101).fill(ids.client).join(',')])
      expect((await clients(list)).status, list).toBe(400);
    expect((await call('GET', `/accounts?account_ids=${ids.account}`)).status).toBe(200);
    expect((await call('GET', `/accounts?client_ids=${ids.client}`)).status).toBe(200);
    expect((await call('GET', `/accounts?client_ids=${ids.account}`)).status).toBe(400);
    const before = sent.length;
    const bound = keyHeader({ client_id: ids.client });
    expect((await call('GET', '/transactions?actor=key:x', undefined, bound)).status).toBe(403);
    expect(sent).toHaveLength(before);
    expect((await call('GET', '/transactions?actor=key:x')).status).toBe(200);
  });

  test('lists without an index say whether they are complete; a third concurrent one of a caller, or fifth sum, is 429', async () => {
    // contract: permission-36
    const waiting: (() => void)[] = [];
    const { call, keyHeader } = await start(({ name }) => {
      const reply = name.startsWith('get_') ? refused('account_not_found') : ok({ items: [], complete: false });
      return new Promise((resolve) => void waiting.push(() => resolve(reply)));
    });
    const third = async (
      url: string,
      headers?: Record<string, string>,
      earlier = ['/transactions?min_amount=5', '/transfers'],
    ) => {
      const lists = earlier.map((one) => call('GET', one));
      await eventually(() => waiting.length === earlier.length);
      const last = call('GET', url, undefined, headers);
      await Promise.race([last, eventually(() => waiting.length > earlier.length)]);
      for (const answer of waiting.splice(0)) answer();
      return (await Promise.all([...lists, last])).map(({ status }) => status);
    };
    expect(await third('/transactions?max_amount=5')).toEqual([200, 200, 429]);
    expect(await third(`/transactions?max_amount=5&account_id=${ids.account}`)).toEqual([200, 200, 200]);
    expect(await third('/transactions?max_amount=5', keyHeader())).toEqual([200, 200, 200]);
    for (const url of ['/admin/posting-totals', '/admin/posting-statistics?currency=USD', '/admin/trial-balance']) {
      expect(await third(url), url).toEqual([200, 200, 404]);
      expect(await third(url, undefined, [url, url, url, url]), url).toEqual([404, 404, 404, 404, 429]);
    }
    const list = call('GET', '/transactions?min_amount=5');
    await eventually(() => waiting.length === 1);
    waiting.pop()?.();
    expect((await list).body).toEqual({ status: 'success', data: [], complete: false });
  });

  test('an unknown account is 404 whatever the ledger replies; an empty page queries no balances', async () => {
    const { call, sent } = await start(({ name }) =>
      name === 'get_account'
        ? refused('account_not_found', 'account x not found')
        : name === 'list_accounts'
          ? ok({ items: [] })
          : 'no_reply',
    );
    expect((await call('GET', `/accounts/${ids.account}`)).status).toBe(404);
    sent.length = 0;
    expect((await call('GET', '/accounts')).body).toEqual({ status: 'success', data: [] });
    expect(sent).toHaveLength(1);
  });

  test.each([
    ['no_reply', 500],
    ['not_sent', 500],
    ['unacknowledged', 500],
    ['malformed', 500],
    [refused('service_unavailable'), 500],
    [refused('internal_error'), 500],
  ] as const)('a balance that cannot be fetched is 500 (%#)', async (answer, status) => {
    // contract: accounts-14
    const { call } = await start(() => answer);
    const response = await call('GET', '/accounts/number/SAV-1234567897/balance');
    expect([response.status, response.body.message]).toEqual([status, 'An error occurred while fetching the balance']);
  });

  test('a balance is found by account number; an unknown number is 404', async () => {
    const balance = { account_id: ids.account, account_number: 'SAV-1', balance: '10.50', currency: 'USD' };
    let answer: ReturnType<Service> = ok(balance);
    const { call } = await start(() => answer);
    expect((await call('GET', '/accounts/number/SAV-1/balance')).body).toEqual({
      status: 'success',
      data: { ...balance, balance: 10.5 },
    });
    answer = refused('account_not_found', 'whatever');
    expect((await call('GET', '/accounts/number/SAV-1/balance')).body).toMatchObject({
      status: 'error',
      code: 'account_not_found',
      message: 'account number SAV-1 not found',
    });
  });

  test('a transaction unknown to the ledger is queried again after the commands of its bucket', async () => {
    const { call, sent } = await start(({ topic }) =>
      topic.endsWith('.commands') ? ok(samples.transfer) : refused('transfer_not_found'),
    );
    const { status, body } = await call('GET', `/transfers/${ids.transfer}`);
    expect([status, body.data.amount]).toEqual([200, 5]);
    expect(sent.map(({ topic, partition }) => [topic, partition])[1]).toEqual([
      'test.ledger.commands',
      commandPartition(bucketOfId(ids.transfer)),
    ]);
  });

  test('a transfer that was routed by its destination is found behind the commands of any other partition', async () => {
    const usual = commandPartition(bucketOfId(ids.transfer));
    const other = (usual + 5) % commandPartitions;
    const { call, sent } = await start(({ topic, partition }) =>
      topic.endsWith('ledger.commands') && partition === other ? ok(samples.transfer) : refused('transfer_not_found'),
    );
    expect((await call('GET', `/transfers/${ids.transfer}`)).status).toBe(200);
    const asked = sent.filter(({ topic }) => topic.endsWith('ledger.commands')).map(({ partition }) => partition);
    expect(asked.toSorted((a = 0, b = 0) => a - b)).toEqual(Array.from({ length: commandPartitions }, (_, i) => i));
    // In its usual partition, it is found without the others.
    const again = await start(({ topic }) =>
      topic.endsWith('ledger.commands') ? ok(samples.transfer) : refused('transfer_not_found'),
    );
    expect((await again.call('GET', `/transfers/${ids.transfer}`)).status).toBe(200);
    expect(again.sent).toHaveLength(3);
  });

  test('a response that needs several replies waits no longer than for one', async () => {
    const first = 300;
    const { call, waits } = await start(async ({ topic }) => {
      if (topic.endsWith('commands')) return ok(samples.transfer);
      await new Promise((resolve) => {
        setTimeout(resolve, first);
      });
      return refused('transfer_not_found');
    });
    expect((await call('GET', `/transfers/${ids.transfer}`)).status).toBe(200);
    expect(waits[0]).toBeLessThanOrEqual(5_000);
    expect(waits[1]).toBeLessThanOrEqual(5_000 - first + 5);
  });

  test('pages: the Link names the next one, and its cursor is valid only there', async () => {
    const next = { at: samples.transaction.created_at, id: ids.transaction };
    const { call, sent } = await start(() => ok({ items: [samples.transaction], next }));
    const url = `/transactions?account_id=${ids.account}&from=2026-01-01T00:00:00%2B02:00&min_amount=1.50&limit=1`;
    const first = await call('GET', url);
    expect(first.body.data[0].amount).toBe(25);
    const link = /^<([^>]+)>; rel="next"$/.exec(String(first.headers.link))?.[1] ?? '';
    expect(link.startsWith('/transactions?account_id=')).toBe(true);
    expect((await call('GET', link)).status).toBe(200);
    expect(JSON.parse(String(sent[1]?.value))).toEqual({
      account_id: ids.account,
      from: '2025-12-31T22:00:00.000Z',
      min_amount: '1.5',
      limit: 1,
      order: 'desc',
      after: next,
    });
    expect((await call('GET', link.replace('limit=1', 'limit=7'))).status).toBe(200);
    const cursor = new URL(link, 'http://x').searchParams.get('cursor');
    for (const other of [
      `/transactions?cursor=${cursor}`,
      `/accounts?cursor=${cursor}`,
      `${link}&order=asc`,
      `/transactions?cursor=x`,
      '/transactions?cursor=',
    ]) {
      expect((await call('GET', other)).body.code).toBe('invalid_cursor');
    }
  });

  test('the path is part of a cursor’s list', async () => {
    const { call } = await start(() => ok({ items: [], next: { at: 'x', id: '1' } }));
    const { headers } = await call('GET', `/accounts/${ids.account}/entries`);
    const link = /^<([^>]+)>/.exec(String(headers.link))?.[1] ?? '';
    expect((await call('GET', link)).status).toBe(200);
    expect((await call('GET', link.replace(ids.account, ids.other))).body.code).toBe('invalid_cursor');
  });
});
