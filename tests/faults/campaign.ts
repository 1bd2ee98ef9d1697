import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { eventually } from '../support/eventually.ts';
import {
  booksAreInOrder,
  clientShowsItsChange,
  eventsMatch,
  holdsAreAsAnswered,
  logsAreClean,
  outboxesEmpty,
  restShowsTheBooks,
  sagasFinished,
} from './check-outside.ts';
import {
  eachOperationOnce,
  evidenceRules,
  nothingElseBooked,
  oneOutcomeEverywhere,
  sameKeySameAnswer,
} from './checks.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { Entrance } from './entrance.ts';
import { EventLog } from './event-log.ts';
import { databaseTime, type Evidence, readBalances, readTransactions } from './evidence.ts';
import { type Attempt, Journal, type Operation, pendingAt } from './journal.ts';
import { type Accounts, Load } from './load.ts';
import { recovery } from './probe.ts';
import { createRandom, type Random } from './random.ts';
import { type Bench, durationIn, type Row, rowTitle, Skipped } from './row.ts';

/** The result of a row. */
export interface Result {
  row: Row;
  /** With the durations of this run. */
  title: string;
  findings: string[];
  /** The reason why the fault was not injected; the row then neither passed nor failed. */
  skipped?: string;
  /** Figures that the row reports. */
  notes: string[];
  /** The time in milliseconds until everything was normal; infinite if it never was. */
  recoveredMs: number;
  /** The number of responses of each kind. */
  answers: Record<string, number>;
  operations: number;
}

export interface CampaignOptions {
  seed: string;
  quick: boolean;
  dir: string;
  /** A factor for all time limits, for machines that are slow or shared. */
  slowness: number;
  say(line: string): void;
  /** Starts the cluster; default: one broker, one database. */
  start?: (dir: string, random: Random) => Promise<Cluster>;
}

const warmUpMs = 1000;
const patienceMs = 90_000;
/** Load after recovery, during which no failure is allowed. */
const calmMs = 3000;
/** The time by which an operation has its outcome: the deadline of its command and a margin. */
const outcomeMs = 30_000 + 10_000;
/** The limit for all of them together. If many are lost, the remaining ones are not queried. */
const drainMs = 3 * outcomeMs;
const drainers = 16;
const startMs = 180_000;

/** Returns the result of verify() in the form of a row. */
export const wholeRun: Row = {
  name: 'whole-run',
  title: 'everything again, at the end',
  touches: [],
  recoveryMs: 0,
  inject: async () => undefined,
};

/**
 * A cluster under load on which rows run one after the other. After each row, the load stops and everything is checked.
 */
export class Campaign {
  readonly #options: CampaignOptions;
  readonly #bench: Bench;
  readonly #events: EventLog;
  readonly #pool: Pool;
  readonly #logs = new Map<string, number>();
  /** Persistent findings are reported once. */
  readonly #told = new Set<string>();
  /** Operations that are no longer followed. */
  readonly #lost = new Set<Operation>();
  #notes: string[] = [];
  readonly #start: { since: string; balances: Map<string, number> };
  #before: Map<string, number>;

  private constructor(
    options: CampaignOptions,
    bench: Bench,
    events: EventLog,
    pool: Pool,
    start: { since: string; balances: Map<string, number> },
  ) {
    this.#options = options;
    this.#bench = { ...bench, say: (line) => void this.#notes.push(line) };
    this.#events = events;
    this.#pool = pool;
    this.#start = start;
    this.#before = start.balances;
  }

  static async start(options: CampaignOptions): Promise<Campaign> {
    const random = createRandom(options.seed);
    const cluster = await (options.start ?? startCluster)(options.dir, random.fork('links'));
    const spread = cluster.nodeSettings('ledger').env?.['SPREAD_COMMANDS'];
    options.say(`seed ${options.seed}, SPREAD_COMMANDS=${spread}`);
    const entrance = new Entrance(cluster, random.fork('entrance'));
    const events = new EventLog(cluster);
    const pool = createPool(
      {
        url: cluster.databaseUrl,
        application_name: 'checker',
        schema: 'ledger',
        max: 4,
        statement_timeout_ms: 120_000,
      },
      silent,
    );
    try {
      const [accounts] = await Promise.all([openAccounts(entrance), events.start()]);
      const journal = new Journal(join(options.dir, 'journal.jsonl'));
      const load = new Load(entrance, journal, accounts, random.fork('load'), options.seed);
      const { quick, say } = options;
      const start = { balances: await readBalances(pool), since: await databaseTime(pool) };
      const settings = { slowness: options.slowness, quick, duration: durationIn(quick), say };
      const bench = {
        cluster,
        load,
        entrance,
        journal,
        accounts,
        events,
        pool,
        random: random.fork('rows'),
        ...settings,
      };
      return new Campaign(options, bench, events, pool, start);
    } catch (error) {
      await Promise.all([entrance.stop(), events.stop(), pool.end()]);
      await cluster.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await Promise.all([this.#bench.entrance.stop(), this.#events.stop(), this.#pool.end()]);
    await this.#bench.cluster.stop();
  }

  /** Runs a row: load, fault, recovery, drain, checks. Never rejects, because errors become findings. */
  async run(row: Row): Promise<Result> {
    const { load, journal, cluster } = this.#bench;
    const t0 = performance.now();
    const findings: string[] = [];
    const bound = row.recoveryMs * this.#options.slowness;
    const fault = { from: Number.POSITIVE_INFINITY, until: Number.POSITIVE_INFINITY };
    let recovered: Record<string, number> = {};
    let skipped: string | undefined;
    this.#notes = [];
    const since = await eventually(() => databaseTime(this.#pool), 30_000);
    const attempt = (what: string, step: () => Promise<void>) =>
      step().catch((error: Error) => {
        if (error instanceof Skipped) skipped = error.message;
        else findings.push(`${what}: ${error.message}`);
      });
    if (!row.withoutLoad) load.start();
    await sleep(row.withoutLoad ? 0 : (row.warmUpMs ?? warmUpMs));
    fault.from = performance.now();
    await attempt('injecting', async () => {
      const goneAt = (await row.inject(this.#bench)) ?? performance.now();
      fault.until = goneAt + bound;
      recovered = await recovery(this.#bench, goneAt, patienceMs);
      await sleep(row.withoutLoad ? 0 : calmMs);
      await load.stop();
      recovered['every request'] = lastAbnormal(journal, goneAt) - goneAt;
    });
    await load.stop();
    const recoveredMs = Math.max(...Object.values(recovered), 0);
    if (findings.length > 0 || recoveredMs === Number.POSITIVE_INFINITY)
      await attempt('restoring', () => cluster.restore());
    if (recoveredMs > bound)
      findings.push(`I11: normal again after ${describe(recovered)}, and ${bound} ms are allowed`);
    await attempt('coming to rest', () => this.#comeToRest());
    await attempt(
      'checking',
      async () => void findings.push(...this.#untold(await this.#check(row, t0, since, fault))),
    );
    const { operations, attempts } = touchedSince(journal.operations, t0);
    const reads = journal.reads.filter((read) => read.attempt.sentAt >= t0);
    const answers: Record<string, number> = { ...row.counted?.() };
    for (const {
      attempt: { status },
    } of [...attempts, ...reads])
      answers[status] = (answers[status] ?? 0) + 1;
    return {
      row,
      title: rowTitle(row, this.#options.quick),
      findings,
      skipped,
      notes: this.#notes,
      recoveredMs,
      answers,
      operations: operations.length,
    };
  }

  /**
   * Repeats all checks over the whole run: each operation, each balance, each event, and the books
   * with verify-books. Never rejects.
   */
  async verify(): Promise<Result> {
    const findings = this.#untold(await this.#checkAll().catch((error: Error) => [`checking: ${error.message}`]));
    return {
      row: wholeRun,
      title: rowTitle(wholeRun, this.#options.quick),
      findings,
      notes: [],
      recoveredMs: 0,
      answers: {},
      operations: 0,
    };
  }

  #untold(findings: string[]): string[] {
    return findings.filter((finding) => !this.#told.has(finding) && this.#told.add(finding));
  }

  async #checkAll(): Promise<string[]> {
    await this.#comeToRest();
    const { cluster, journal } = this.#bench;
    const { operations } = journal;
    const row = wholeRun;
    const evidence: Evidence = {
      row,
      t0: 0,
      fault: { from: 0, until: 0 },
      slowness: this.#options.slowness,
      cluster,
      journal,
      events: this.#events,
      pool: this.#pool,
      operations,
      attempts: [],
      reads: [],
      before: this.#start.balances,
      after: await readBalances(this.#pool),
      transactions: await readTransactions(this.#pool, this.#start.since, operations),
    };
    return [
      ...[eachOperationOnce, oneOutcomeEverywhere, nothingElseBooked, sameKeySameAnswer].flatMap((rule) =>
        rule(evidence),
      ),
      ...(await holdsAreAsAnswered(evidence)),
      ...(await booksAreInOrder(evidence)),
      ...(await eventsMatch(evidence)),
    ];
  }

  /**
   * Follows operations without an outcome until they have one or are lost; then waits until
   * everything is published and read.
   */
  async #comeToRest(): Promise<void> {
    const { journal, cluster } = this.#bench;
    const begun = performance.now();
    // These include operations whose response has not arrived yet.
    const open = journal.operations.filter((one) => !this.#lost.has(one) && !isSettled(one, cluster.gateways));
    await Promise.all(
      Array.from({ length: drainers }, async () => {
        for (let one = open.pop(); one !== undefined; one = open.pop()) {
          if (performance.now() < begun + drainMs) await this.#follow(one, begun);
          else this.#lost.add(one);
        }
      }),
    );
    await outboxesEmpty({ pool: this.#pool });
    await this.#events.caughtUp();
  }

  /**
   * Queries the outcome of a 202 at each gateway without sending the request again. Other operations are repeated with
   * their key.
   */
  async #follow(operation: Operation, begun: number): Promise<void> {
    const {
      load,
      cluster: { gateways },
    } = this.#bench;
    const until = Math.min(
      begun + drainMs,
      outcomeMs + (pendingAt(operation) === undefined ? performance.now() : begun),
    );
    for (;;) {
      const ignorant = gateways.filter(({ name }) => !operation.outcomes.has(name));
      if (pendingAt(operation) === undefined) await load.send(operation);
      else await Promise.all(ignorant.map((gateway) => load.ask(operation, gateway)));
      if (isSettled(operation, gateways)) return;
      if (performance.now() > until) return void this.#lost.add(operation);
      await sleep(200);
    }
  }

  async #check(row: Row, t0: number, since: string, fault: Evidence['fault']): Promise<string[]> {
    const { cluster, journal } = this.#bench;
    const { operations, attempts } = touchedSince(journal.operations, t0);
    const pool = this.#pool;
    const evidence: Evidence = {
      row,
      t0,
      fault,
      slowness: this.#options.slowness,
      cluster,
      journal,
      events: this.#events,
      pool,
      operations,
      attempts,
      reads: journal.reads.filter(({ attempt }) => attempt.sentAt >= t0),
      before: this.#before,
      after: await readBalances(pool),
      transactions: await readTransactions(pool, since, operations),
    };
    const findings = [
      ...(await sagasFinished(evidence)),
      ...evidenceRules.flatMap((rule) => rule(evidence)),
      ...(await holdsAreAsAnswered(evidence)),
      ...(await booksAreInOrder(evidence)),
      ...(await restShowsTheBooks(evidence)),
      ...(await clientShowsItsChange(evidence)),
      ...(await eventsMatch(evidence)),
      ...logsAreClean(cluster, this.#logs),
      ...((await row.check?.(evidence, this.#bench)) ?? []),
    ];
    this.#before = evidence.after;
    return findings;
  }
}

/** Reports whether the operation has an outcome, and after a 202 both gateways show it. */
function isSettled(operation: Operation, gateways: { name: string }[]): boolean {
  const { decided, outcomes } = operation;
  return (
    decided !== undefined && (pendingAt(operation) === undefined || gateways.every(({ name }) => outcomes.has(name)))
  );
}

/**
 * Returns the time of the last request, from this moment on, without a definite response: 202, 5xx, or a closed
 * connection.
 */
function lastAbnormal({ operations, reads }: Journal, from: number): number {
  const attempts = [...operations.flatMap((operation) => operation.attempts), ...reads.map(({ attempt }) => attempt)];
  return attempts.filter(isAbnormal).reduce((last, { sentAt }) => Math.max(last, sentAt), from);
}

const isAbnormal = ({ status }: Attempt): boolean => typeof status !== 'number' || status === 202 || status >= 500;

function describe(recovered: Record<string, number>): string {
  return Object.entries(recovered)
    .map(([what, ms]) => `${Math.round(ms)} ms (${what})`)
    .join(', ');
}

function touchedSince(
  all: Operation[],
  t0: number,
): { operations: Operation[]; attempts: { operation: Operation; attempt: Attempt }[] } {
  const attempts = all.flatMap((operation) =>
    operation.attempts.filter(({ sentAt }) => sentAt >= t0).map((attempt) => ({ operation, attempt })),
  );
  return { operations: [...new Set(attempts.map(({ operation }) => operation))], attempts };
}

/**
 * Creates the initial accounts of a run. A bank that has just started may be slow, so each request
 * is repeated until it succeeds.
 */
async function openAccounts(entrance: Entrance): Promise<Accounts> {
  const post = (key: string, path: string, body: unknown) =>
    eventually(async () => {
      const { status, body: answer } = await entrance.call(entrance.pick(), 'POST', path, body, key);
      if (status !== 201) throw new Error(`POST ${path} returned ${status} ${JSON.stringify(answer)}`);
      return (answer as { data: Record<string, string> }).data;
    }, startMs);
  const corporate = {
    client_type: 'Corporate',
    company_name: 'Campaign',
    registration_number: '1',
    email: 'campaign@example.org',
    contact_number: '+254700000001',
  };
  const { client_id: client = '' } = await post('client', '/clients', corporate);
  const currencies = new Map<string, string>();
  let number = 0;
  const open = (count: number, account_type = 'Savings', currency = 'USD', initial_deposit = 1000): Promise<string[]> =>
    Promise.all(
      Array.from({ length: count }, async () => {
        const body = { client_id: client, account_type, currency, initial_deposit };
        const { account_id = '' } = await post(`account ${number++}`, '/accounts', body);
        currencies.set(account_id, currency);
        return account_id;
      }),
    );
  const [own, [hot = '', frozen = '', ...probes], crossed, loans, [held = '']] = await Promise.all([
    Promise.all([open(10), open(3, 'Checking', 'JPY'), open(3, 'Current', 'KWD')]).then((accounts) => accounts.flat()),
    open(4),
    open(8),
    open(3, 'Loan'),
    open(1, 'Savings', 'USD', 10_000_000),
  ]);
  return { client, own, crossed, loans, hot, frozen, held, probes, currencies };
}
