import { accountCount } from '../contenders/posting.ts';
import type { Side, World } from '../world.ts';
import { installed, notInstalled, offer, type Peer, request } from './peer.ts';

const stopMs = 3_000;
const pageSize = 50;
const bulkSize = 100;
const callers = [8, 16, 32, 64];
/** The values of its own compose file. */
const pool = {
  POSTGRES_MAX_OPEN_CONNS: '40',
  POSTGRES_MAX_IDLE_CONNS: '40',
  POSTGRES_CONN_MAX_IDLE_TIME: '5m',
  BULK_PARALLEL: '10',
};

const posting = (source: string, destination: string, amount = 25) =>
  `{"postings":[{"amount":${amount},"asset":"USD/2","source":"${source}","destination":"${destination}"}]}`;

/** Formance Ledger: a server and a worker, ledgers with the default features. */
export const formance: Peer = {
  name: 'Formance Ledger',
  missing: () => notInstalled('formance-ledger'),
  async start(world) {
    const { port, server, worker } = await processes(world);
    const side: Side = {
      name: 'formance',
      port,
      credential: 'x-peer: none',
      accounts: Array.from({ length: accountCount }, (_, i) => `users:${i + 1}`),
      numbers: [],
      processes: [
        { name: 'server', pid: server.pid },
        { name: 'worker', pid: worker.pid },
      ],
      usesBroker: false,
      stop: async () => void (await Promise.all([server.stop(stopMs), worker.stop(stopMs)])),
    };
    const { accounts } = side;
    const ledger = await newLedger(side);
    for (let from = 0; from < accounts.length; from += bulkSize)
      await request(
        side,
        `${ledger}/_bulk`,
        accounts.slice(from, from + bulkSize).map((account) => ({
          action: 'CREATE_TRANSACTION',
          data: JSON.parse(posting('world', account, 100_000_000)),
        })),
      );
    const transfer = posting('$one', '$other');
    const post = (path: string, body: string) => ({ kind: 'post' as const, path: `${ledger}${path}`, accounts, body });
    const bulk = {
      ...post('/_bulk?parallel=true', '[$items]'),
      item: `{"action":"CREATE_TRANSACTION","ik":"$key","data":${transfer}}`,
      items: bulkSize,
    };
    const balances = accounts.map((account) => `${ledger}/accounts/${account}?expand=volumes`);
    const offers = {
      transfers: offer(world, side, post('/transactions', transfer), callers),
      paced: offer(world, side, post('/transactions', transfer), [64]),
      deposits: offer(world, side, post('/transactions', posting('world', 'hot')), callers),
      bulk: offer(world, side, bulk, [1, 2, 4, 8]),
      reads: offer(world, side, { kind: 'get', paths: balances }, callers),
    };
    return {
      offers,
      async fill(transactions, deepPage) {
        const past = await newLedger(side);
        await request(side, `${past}/transactions`, JSON.parse(posting('world', 'users:1')));
        await multiply(world, past.split('/').at(-1) ?? '', transactions);
        const first = `${past}/transactions?pageSize=${pageSize}`;
        let deep = first;
        for (let page = 1; page < deepPage; page++) {
          const { cursor } = (await request(side, deep)).body as { cursor: { next: string } };
          deep = `${past}/transactions?cursor=${cursor.next}`;
        }
        Object.assign(offers, {
          first: offer(world, side, { kind: 'get', paths: [first] }, [1]),
          deep: offer(world, side, { kind: 'get', paths: [deep] }, [1]),
        });
      },
      stop: side.stop,
    };
  },
};

async function processes(world: World) {
  const program = installed('formance-ledger');
  const url = await world.newDatabase('peer_formance');
  const workerAddress = `127.0.0.1:${await world.local.port('formance_worker')}`;
  const port = await world.local.port('formance');
  const env = { ...pool, POSTGRES_URI: `${url}?sslmode=disable`, WORKER_GRPC_ADDRESS: workerAddress };
  const server = await world.startProgram(
    'formance-server',
    [program, 'serve'],
    { ...env, AUTO_UPGRADE: 'true', BIND: `127.0.0.1:${port}` },
    port,
  );
  return { port, server, worker: await world.startProgram('formance-worker', [program, 'worker'], env) };
}

let ledgers = 0;

/** Creates a ledger and returns its path. */
async function newLedger(side: Side): Promise<string> {
  const path = `/v2/bench${++ledgers}`;
  await request(side, path, {});
  return path;
}

/** Inserts copies of the only transaction of a ledger. */
async function multiply(world: World, ledger: string, count: number): Promise<void> {
  const url = world.superuserUrl(await world.newDatabase('peer_formance'));
  await world.withPool(url, '_default', async (pool) => {
    await pool.query(`
      insert into transactions
      select (jsonb_populate_record(t, jsonb_build_object('id', n, 'timestamp', t.timestamp + n * interval '1 ms'))).*
      from transactions t, generate_series(t.id::int8 + 1, ${count}) n where t.ledger = '${ledger}'`);
    await pool.query('vacuum (analyze) transactions');
  });
}
