import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { logTail } from '../../tools/local/log-file.ts';
import { accountCount } from '../contenders/posting.ts';
import type { Side, World } from '../world.ts';
import { installed, notInstalled, offer, type Peer, request } from './peer.ts';

const stopMs = 3_000;
const pageSize = 50;
const bulkSize = 100;
const atOnce = 20;
const callers = [8, 16, 32, 64];

const transaction = (source: string, destination: string, reference: string, amount = 0.25) =>
  `{"amount":${amount},"precision":100,"currency":"USD","reference":"${reference}","source":"${source}",` +
  `"destination":"${destination}","description":"bench","allow_overdraft":${source.startsWith('@')},"skip_queue":true}`;

/**
 * Blnk: a server, a worker, and Redis, with the default settings but without the search, which needs Typesense.
 * Transactions are applied before the response (skip_queue), as in the bank.
 */
export const blnk: Peer = {
  name: 'Blnk',
  missing() {
    const { status } = spawnSync('redis-server', ['--version'], { timeout: 5000 });
    return notInstalled('blnk') ?? (status === 0 ? undefined : 'Blnk needs redis-server, which is not installed');
  },
  async start(world) {
    const side = await processes(world);
    const { ledger_id } = (await request(side, '/ledgers', { name: 'bench' })).body as { ledger_id: string };
    const newBalance = async () =>
      ((await request(side, '/balances', { ledger_id, currency: 'USD' })).body as { balance_id: string }).balance_id;
    const [hot = ''] = [await newBalance()];
    const { accounts } = side;
    while (accounts.length < accountCount)
      accounts.push(...(await Promise.all(Array.from({ length: atOnce }, newBalance))));
    const opening = (account: string) => JSON.parse(transaction('@World', account, `opening-${account}`, 1_000_000));
    for (let from = 0; from < accounts.length; from += bulkSize)
      await request(side, '/transactions/bulk', {
        transactions: accounts.slice(from, from + bulkSize).map(opening),
        skip_queue: true,
      });
    const transfer = transaction('$one', '$other', '$key');
    const post = (path: string, body: string) => ({ kind: 'post' as const, path, accounts, body });
    const bulk = {
      ...post('/transactions/bulk', '{"transactions":[$items],"skip_queue":true}'),
      item: transfer,
      items: bulkSize,
    };
    const offers = {
      transfers: offer(world, side, post('/transactions', transfer), callers),
      paced: offer(world, side, post('/transactions', transfer), [64]),
      deposits: offer(world, side, post('/transactions', transaction('@World', hot, '$key')), callers),
      bulk: offer(world, side, bulk, [1, 2, 4, 8]),
      reads: offer(world, side, { kind: 'get', paths: accounts.map((id) => `/balances/${id}`) }, callers),
    };
    return {
      offers,
      async fill(transactions, deepPage) {
        await multiply(world, transactions);
        const list = (page: number) => `/transactions?limit=${pageSize}&offset=${(page - 1) * pageSize}`;
        Object.assign(offers, {
          first: offer(world, side, { kind: 'get', paths: [list(1)] }, [1]),
          deep: offer(world, side, { kind: 'get', paths: [list(deepPage)] }, [1]),
        });
      },
      stop: side.stop,
    };
  },
};

async function processes(world: World): Promise<Side> {
  const program = installed('blnk');
  const [port, redisPort, monitoringPort] = [
    await world.local.port('blnk'),
    await world.local.port('blnk_redis'),
    await world.local.port('blnk_worker'),
  ];
  const dir = join(world.local.path, 'redis');
  mkdirSync(dir, { recursive: true });
  const redisArgs = ['--bind', '127.0.0.1', '--dir', dir, '--port', String(redisPort)];
  const redis = await world.startProgram('blnk-redis', ['redis-server', ...redisArgs], {}, redisPort);
  const url = await world.newDatabase('peer_blnk');
  const env = {
    BLNK_PROJECT_NAME: 'bench',
    BLNK_DATA_SOURCE_DNS: `${url}?sslmode=disable`,
    BLNK_REDIS_DNS: `127.0.0.1:${redisPort}`,
    BLNK_SERVER_PORT: String(port),
    BLNK_QUEUE_MONITORING_PORT: String(monitoringPort),
    BLNK_ENABLE_TELEMETRY: 'false',
  };
  const run = (name: string, args: string[], listens?: number) =>
    world.startProgram(name, [program, ...args], env, listens);
  const migrated = await (await run('blnk-migrate', ['migrate', 'up'])).exited;
  if (migrated !== 'exit code 0') throw new Error(`${migrated}: ${logTail(world.local.log('blnk-migrate'))}`);
  const server = await run('blnk-server', ['start'], port);
  const worker = await run('blnk-worker', ['workers'], monitoringPort);
  const children = { server, worker, redis };
  return {
    name: 'blnk',
    port,
    credential: 'x-peer: none',
    accounts: [],
    numbers: [],
    processes: Object.entries(children).map(([name, { pid }]) => ({ name, pid })),
    usesBroker: false,
    async stop() {
      for (const child of Object.values(children)) await child.stop(stopMs);
    },
  };
}

/** Inserts copies of one transaction. */
async function multiply(world: World, count: number): Promise<void> {
  const url = world.superuserUrl(await world.newDatabase('peer_blnk'));
  await world.withPool(url, 'blnk', async (pool) => {
    await pool.query(`
      insert into transactions
      select (jsonb_populate_record(t, jsonb_build_object('id', 1000000000 + n, 'transaction_id', 'txn_' || n,
        'reference', 'past-' || n, 'created_at', t.created_at - n * interval '1 ms'))).*
      from transactions t, generate_series(1, ${count}) n
      where t.transaction_id = (select min(transaction_id) from transactions)`);
    await pool.query('vacuum (analyze) transactions');
  });
}
