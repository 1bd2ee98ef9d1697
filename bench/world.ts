import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { makeApiKey } from '#libs/contracts/api-key.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { type Child, startChild, stopAllChildren } from '../tools/local/child.ts';
import { type Infrastructure, startInfrastructure } from '../tools/local/infra.ts';
import { type LocalDir, openLocalDir, PROJECT } from '../tools/local/local-dir.ts';
import { logTail } from '../tools/local/log-file.ts';
import { accepts } from '../tools/local/ports.ts';
import { accountCount, tellerId, vaultId } from './contenders/posting.ts';
import { cpuSeconds, cpuSecondsWithChildren } from './cpu.ts';
import { type Generator, startGenerator } from './helper.ts';
import type { Best, Reading } from './load-plan.ts';

const logger = pino({ level: 'warn' });
const stopMs = 8_000;
const startMs = 30_000;
/** min_wal_size of tools/local. */
const walMiB = 1024;
const walFileMiB = 16;
const openingMinor = 100_000_000_00;

/** A server that receives the generator's requests. */
export interface Side {
  name: string;
  port: number;
  /** The ports, if it has several. */
  ports?: number[];
  credential: string;
  accounts: string[];
  /** Account numbers, for reads. */
  numbers: string[];
  /** Its processes. Postgres is added for every side, and the broker for those that use it. */
  processes: { name: string; pid: number }[];
  usesBroker: boolean;
  stop(): Promise<void>;
}

/**
 * The parts of one run: the servers, the started contenders, and the generator. All use one Postgres and one broker.
 */
export class World {
  readonly local: LocalDir;
  readonly infra: Infrastructure;
  readonly generator: Generator;
  readonly say: (line: string) => void;
  /** All loads of the current group. */
  readonly loads: Pick<Reading, 'elsewhere' | 'generatorCores' | 'wrong'>[] = [];
  /**
   * Values found in this run: the best numbers of connections (measure.ts), the best pool sizes.
   */
  readonly best = new Map<string, Best>();
  readonly pools = new Map<string, number>();
  /** True as soon as the run is being stopped. */
  stopping = false;
  /** Process ids. */
  readonly servers: Record<'kafka' | 'postgres', number>;
  readonly #sides = new Map<string, Promise<Side>>();

  constructor(
    local: LocalDir,
    infra: Infrastructure,
    servers: Record<'kafka' | 'postgres', number>,
    say: (line: string) => void,
  ) {
    this.local = local;
    this.infra = infra;
    this.servers = servers;
    this.say = say;
    this.generator = startGenerator();
  }

  /** Starts broker and database in `dir`. Throws if something is missing. */
  static async start(dir: string, say: (line: string) => void): Promise<World> {
    const local = await openLocalDir(dir);
    const servers = { kafka: 0, postgres: 0 };
    const keep = async (name: 'kafka' | 'postgres', start: () => Promise<Child>) => {
      const child = await start();
      servers[name] = child.pid;
      return child;
    };
    const world = new World(
      local,
      await startInfrastructure(local, { keep, postgresSettings: { track_commit_timestamp: 'on' } }),
      servers,
      say,
    );
    await world.#fillWal();
    return world;
  }

  /**
   * Creates WAL files that can be reused, as in a database that has run for a while. Otherwise, after every 16 MiB,
   * postings wait for a new file to be filled with zeros.
   */
  #fillWal(): Promise<void> {
    return this.withPool(this.infra.superuserUrl, 'public', async (pool) => {
      for (let written = 0; written < walMiB; written += walFileMiB)
        await pool.query("select pg_logical_emit_message(false, 'bench', ''), pg_switch_wal()");
      await pool.query('checkpoint');
    });
  }

  /** Begins a group of rows after a checkpoint, with no pending writes. */
  checkpoint(): Promise<void> {
    return this.withPool(this.infra.superuserUrl, 'public', async (pool) => void (await pool.query('checkpoint')));
  }

  async stop(): Promise<void> {
    this.stopping = true;
    this.generator.stop();
    await stopAllChildren(stopMs);
    this.local.release();
  }

  /** Returns one of the contenders of bench/contenders, which is started at its first use, once per pool size. */
  contender(name: 'direct' | 'function', pool = 8): Promise<Side> {
    const id = `${name}-${pool}`;
    let side = this.#sides.get(id);
    if (side === undefined) this.#sides.set(id, (side = this.#startContender(name, pool)));
    return side;
  }

  async #startContender(name: 'direct' | 'function', poolMax: number): Promise<Side> {
    const apiKey = makeApiKey('test', `key_${'0'.repeat(31)}1`);
    const databaseUrl = await this.contenderDatabase(name);
    const port = await this.local.port(`bench_${name}_${poolMax}`);
    const script = join(PROJECT, 'bench', 'contenders', 'direct.ts');
    const env = {
      PORT: String(port),
      MODE: name === 'function' ? 'function' : 'statements',
      DATABASE_URL: databaseUrl,
      POOL_MAX: String(poolMax),
      API_KEY: apiKey,
      API_KEY_PEPPER: this.local.secret('bench_pepper'),
    };
    const child = await this.startProcess(`${name}-${poolMax}`, script, env, port);
    return {
      name,
      port,
      credential: `x-api-key: ${apiKey}`,
      ...contenderAccounts(),
      processes: [{ name, pid: child.pid }],
      usesBroker: false,
      stop: () => child.stop(stopMs),
    };
  }

  /** Starts a script and waits until it listens; without a port, until it runs. */
  startProcess(name: string, script: string, env: Record<string, string>, port?: number): Promise<Child> {
    return this.startProgram(name, [process.execPath, script], env, port);
  }

  /** Starts any program in the same way. */
  async startProgram(
    name: string,
    [command = '', ...args]: string[],
    env: Record<string, string>,
    port?: number,
  ): Promise<Child> {
    const log = this.local.log(name);
    const child = startChild({
      name,
      command,
      args,
      cwd: PROJECT,
      env: { ...process.env, ...env },
      log,
      marker: args.at(-1) ?? command,
      onStart: this.local.recordProcess,
    });
    const end = performance.now() + startMs;
    while (port !== undefined && !(await accepts('127.0.0.1', port, 500))) {
      if (!child.running() || performance.now() > end) throw new Error(`${name} does not answer\n${logTail(log)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return child;
  }

  /**
   * Returns the database of a contender, which is created at its first use, with its accounts. The URL is the owner's.
   */
  async contenderDatabase(name: string): Promise<string> {
    const database = `bench_${name}`;
    const url = await this.newDatabase(database);
    await this.withPool(url, 'public', async (pool) => {
      if ((await pool.query<{ there: boolean }>("select to_regclass('accounts') is not null as there")).rows[0]?.there)
        return;
      await pool.query(readFileSync(join(import.meta.dirname, 'contenders', 'schema.sql'), 'utf8'));
      await pool.query(
        `insert into accounts (account_id, account_number, kind, currency, balance_minor)
         select lpad(n::text, 32, '0')::uuid, 'SAV-' || n, 'Customer', 'USD', $2 from generate_series(1, $1::int) n
         union all values ($3::uuid, 'TLR-USD', 'Teller', 'USD', 0::bigint), ($4::uuid, 'VLT-USD', 'Vault', 'USD', 0)`,
        [accountCount, openingMinor, tellerId, vaultId],
      );
      await pool.query('analyze');
    });
    return url;
  }

  /** Returns the URL of a database of the owner, which is created if it does not exist. */
  async newDatabase(name: string): Promise<string> {
    const url = new URL(this.infra.ownerUrl);
    await this.withPool(this.infra.ownerUrl, 'public', async (pool) => {
      const { rowCount } = await pool.query('select from pg_database where datname = $1', [name]);
      if (rowCount === 0) await pool.query(`create database ${name}`);
    });
    url.pathname = `/${name}`;
    return url.href;
  }

  /** Runs statements with the superuser's rights in a database of the server. */
  superuserUrl(databaseUrl: string): string {
    const url = new URL(this.infra.superuserUrl);
    url.pathname = new URL(databaseUrl).pathname;
    return url.href;
  }

  async withPool<T>(url: string, schema: string, run: (pool: Pool) => Promise<T>, max = 1): Promise<T> {
    const pool = createPool(
      {
        url,
        application_name: 'bench',
        schema,
        max,
        statement_timeout_ms: 30 * 60_000,
        idle_in_transaction_session_timeout_ms: 30 * 60_000,
      },
      logger,
    );
    try {
      return await run(pool);
    } finally {
      await pool.end();
    }
  }

  /**
   * Returns the CPU seconds so far of a side's processes by name, of Postgres with all its backends, and of the broker
   * if it is used.
   */
  readCpu({ processes, usesBroker }: Pick<Side, 'processes' | 'usesBroker'>): Record<string, number> {
    const own = Object.fromEntries(processes.map(({ name, pid }) => [name, cpuSeconds(pid)]));
    return { ...own, ...(usesBroker ? { kafka: cpuSeconds(this.servers.kafka) } : {}), postgres: this.postgresCpu() };
  }

  postgresCpu(): number {
    return cpuSecondsWithChildren(this.servers.postgres);
  }
}

function contenderAccounts(): Pick<Side, 'accounts' | 'numbers'> {
  const counts = Array.from({ length: accountCount }, (_, i) => i + 1);
  return {
    accounts: counts.map((n) => `acc_${String(n).padStart(32, '0')}`),
    numbers: counts.map((n) => `SAV-${n}`),
  };
}
