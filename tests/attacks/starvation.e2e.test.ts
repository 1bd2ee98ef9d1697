import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, expect, it } from 'vitest';
import type { PoolClient, Query } from '#libs/postgres/pool.ts';
import type { RestAccount } from '../support/client.ts';
import { useBank } from '../support/world.ts';

/**
 * Attacks that exhaust shared resources: memory for bodies, connections, and the ledger's readers.
 * Callers with other connections and another address must not be affected. `npm run test:attacks`
 * runs them in full size (STARVE_FULL=1); otherwise lists are slow because of a lock instead of two million rows.
 */
const isFull = process.env['STARVE_FULL'] === '1';
const world = useBank();
const { api } = world;
const rows = isFull ? 2_000_000 : 0;
const attacker = '127.0.0.2';
let account: RestAccount;
const sockets = new Set<Socket>();
const attacks: { isOver: boolean }[] = [];

beforeAll(async () => {
  account = await api.newAccount({ initial_deposit: 100 });
});
afterEach(async () => {
  for (const attack of attacks.splice(0)) attack.isOver = true;
  for (const socket of sockets) socket.destroy();
  await sleep(500);
});

/**
 * Opens connections from the attacker's address, each of which sends only `text`. Closed ones are opened again. Returns
 * the statuses of their responses.
 */
async function open(count: number, text: string): Promise<Set<string>> {
  const { hostname, port } = new URL(api.baseUrl);
  const attack = { isOver: false };
  attacks.push(attack);
  const statuses = new Set<string>();
  const one = (sent: () => void): void => {
    const socket = connect({ port: Number(port), host: hostname, localAddress: attacker }, () =>
      socket.write(text, sent),
    );
    socket.on('error', () => undefined);
    socket.on('data', (data) => void statuses.add(data.toString('latin1', 9, 12)));
    socket.on('close', () => {
      sockets.delete(socket);
      sent();
      if (!attack.isOver) setTimeout(() => one(() => undefined), 5_000);
    });
    sockets.add(socket);
  };
  await Promise.all(Array.from({ length: count }, () => new Promise<void>(one)));
  return statuses;
}

type Call = { method?: string; path: string; key?: string; body?: string; localAddress?: string };

/** Returns the status of a request on a separate connection; 0 if there is none. */
function call({
  method = 'GET',
  path,
  key = world.bank.api_key,
  body,
  localAddress = '127.0.0.1',
}: Call): Promise<number> {
  return new Promise((resolve) => {
    const headers = { 'x-api-key': key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
    const sent = request(
      api.baseUrl + path,
      { method, headers, agent: false, localAddress, timeout: 10_000 },
      (response) => {
        response
          .resume()
          .on('end', () => resolve(response.statusCode ?? 0))
          .on('error', () => resolve(0));
      },
    );
    sent.on('timeout', () => sent.destroy(new Error('no answer')));
    sent.on('error', () => resolve(0));
    sent.end(body);
  });
}

/** Makes reads and writes of other callers, one after the other. Returns those that did not succeed. */
async function othersNotice(count: number): Promise<string[]> {
  const deposit = JSON.stringify({ account_id: account.account_id, transaction_type: 'Deposit', amount: 1 });
  const refused: string[] = [];
  for (let i = 0; i < count; i++) {
    const one: Call =
      i % 2 === 0
        ? { path: `/accounts/${account.account_id}` }
        : { method: 'POST', path: '/transactions', body: deposit };
    const status = await call(one);
    if (status < 200 || status > 299) refused.push(`${one.method ?? 'GET'} ${status}`);
  }
  return refused;
}

it('560 slow bodies of one bound key do not affect other callers', async () => {
  // asvs: 15.2.2
  const { client_id } = await api.client();
  const bound = await api.key({ scopes: ['transfers:write'], client_id });
  await open(
    560,
    `POST /transfers HTTP/1.1\r\nHost: x\r\nx-api-key: ${bound.api_key}\r\nContent-Type: application/json\r\nContent-Length: 65536\r\n\r\n{`,
  );
  expect(await othersNotice(100)).toEqual([]);
});

it('560 incomplete bodies of one bound key: only that key is refused, beyond its sixteenth request', async () => {
  const { client_id } = await api.client();
  const bound = await api.key({ scopes: ['transfers:write'], client_id });
  const statuses = await open(
    560,
    `POST /transfers HTTP/1.1\r\nHost: x\r\nx-api-key: ${bound.api_key}\r\nContent-Type: application/json\r\nContent-Length: 65536\r\n\r\n${'{'.repeat(65_535)}`,
  );
  expect(await othersNotice(100)).toEqual([]);
  expect(statuses.has('429')).toBe(true);
});

it('more incomplete requests of one address than the gateway has connections do not affect others', {
  timeout: 180_000,
}, async () => {
  await open(10_100, 'GET / HTTP/1.1\r\nHost: x\r\n');
  expect(await othersNotice(60)).toEqual([]);
  // The complete requests of that address succeed, too, because incomplete ones are closed first.
  expect(await call({ path: '/', localAddress: attacker })).toBe(200);
});

it('ten list queries without an index do not affect others, and a third concurrent one is 429', {
  timeout: 600_000,
}, async () => {
  const greedy = await api.key({ scopes: ['transactions:read'] });
  const blocker = await world.pool.connect();
  let lists: Promise<number[]>;
  try {
    if (rows === 0) {
      await blocker.query('begin');
      // On a slow machine the reads below take longer than the session may be idle.
      await blocker.query('set local idle_in_transaction_session_timeout = 0');
      await blocker.query('lock table transactions in access exclusive mode');
    } else await fill(blocker, rows);
    lists = Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        call({ path: `/transactions?min_amount=${900_000 + i}`, key: greedy.api_key }),
      ),
    );
    const refused: string[] = [];
    for (let i = 0; i < 30; i++) {
      const status = await call({ path: `/accounts/number/${account.account_number}/balance` });
      if (status !== 200) refused.push(`GET ${status}`);
    }
    expect(refused).toEqual([]);
  } finally {
    if (rows === 0) await blocker.query('rollback');
    blocker.release();
  }
  const statuses = await lists;
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  // If a list takes only milliseconds, the first ones may have ended before the last ones arrive.
  if (!isFull) expect(statuses.filter((status) => status === 200)).toHaveLength(2);
});

/** Inserts so many transactions that lists without an index take long. */
async function fill(client: PoolClient, count: number): Promise<void> {
  await client.query('set statement_timeout = 0');
  const text = `insert into transactions (transaction_id, operation_id, account_id, transaction_type, direction, amount_minor, currency, status, failure_code, actor, request_id, created_at)
    select gen_random_uuid(), gen_random_uuid(), $1::uuid, 'Deposit', 'credit', 100, 'USD', 'Failed', 'inactive_account', 'a', 'r', now() - n * interval '1 ms'
    from generate_series(1, $2::int) n`;
  const statement: Query = { text, values: [account.account_id.slice(4), count], query_timeout: 600_000 };
  await client.query(statement);
  await client.query('analyze transactions');
}
