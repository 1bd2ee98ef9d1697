import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test-database.ts';
import { eventually } from '../support/eventually.ts';
import { verifyBooks } from '#services/ledger/verify-books.ts';
import { freezeHolds, readsNeverGoBack, refusedForGoodReason } from './check-reads.ts';
import { booksAreInOrder, eventsMatch, logsAreClean, outboxesEmpty, restShowsTheBooks, sagasFinished } from './check-outside.ts';
import { callersSeeWhatTheyMay, eachOperationOnce, noReadBelowZero, nothingElseBooked, sameKeySameAnswer } from './checks.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { Entrance } from './entrance.ts';
import { EventLog } from './event-log.ts';
import { databaseTime, type Evidence, readBalances, readTransactions } from './evidence.ts';
import { type Attempt, Journal, type Operation } from './journal.ts';
import { type Accounts, Load } from './load.ts';
import { recovery } from './probe.ts';
import { createRandom, type Random } from './random.ts';
import type { Bench, Row } from './row.ts';

/** What a row came to. */
export interface Result {
  row: Row;
  findings: string[];
  /** Milliseconds until everything was normal; infinite where it never was. */
  recoveredMs: number;
  /** How many answers of each kind callers got. */
  answers: Record<string, number>;
  operations: number;
  tookMs: number;
}

export interface CampaignOptions {
  seed: string;
  quick: boolean;
  dir: string;
  /** Bounds are multiplied by it, for machines that are slow or shared. */
  slowness: number;
  say(line: string): void;
  /** How the cluster is started; default: one broker, one database. */
  start?: (dir: string, random: Random) => Promise<Cluster>;
}

const warmUpMs = 1000;
const patienceMs = 90_000;
/** For all that is open, and for each operation from its turn on. */
const drainMs = 300_000;
const outcomeMs = 60_000;
const drainers = 16;
const startMs = 180_000;
const startAccounts = 28;

/** What verify() gives is told in the form of a row. */
export const wholeRun: Row = { name: 'whole-run', title: 'everything again, at the end', touches: [], recoveryMs: 0, inject: async () => undefined };

/** A cluster under load, on which rows are run one after the other; between them everything is at rest and checked. */
export class Campaign {
  readonly #options: CampaignOptions;
  readonly #bench: Bench;
  readonly #events: EventLog;
  readonly #pool: Pool;
  readonly #logs = new Map<string, number>();
  readonly #start: { since: string; balances: Map<string, number> };
  #before: Map<string, number>;

  private constructor(options: CampaignOptions, bench: Bench, events: EventLog, pool: Pool, start: { since: string; balances: Map<string, number> }) {
    this.#options = options;
    this.#bench = bench;
    this.#events = events;
    this.#pool = pool;
    this.#start = start;
    this.#before = start.balances;
  }

  static async start(options: CampaignOptions): Promise<Campaign> {
    const random = createRandom(options.seed);
    const cluster = await (options.start ?? startCluster)(options.dir, random.fork('links'));
    const entrance = new Entrance(cluster, random.fork('entrance'));
    const events = new EventLog(cluster);
    const pool = createPool({ url: cluster.databaseUrl, application_name: 'checker', schema: 'ledger', max: 4, statement_timeout_ms: 120_000 }, silent);
    try {
      const [accounts] = await Promise.all([openAccounts(entrance), events.start()]);
      const journal = new Journal(join(options.dir, 'journal.jsonl'));
      const load = new Load(entrance, journal, accounts, random.fork('load'), options.seed);
      const { quick, say } = options;
      const duration = (ms: number) => (quick ? Math.min(ms, 5000) : ms);
      const start = { balances: await readBalances(pool), since: await databaseTime(pool) };
      return new Campaign(options, { cluster, load, entrance, journal, accounts, events, pool, random: random.fork('rows'), slowness: options.slowness, quick, duration, say }, events, pool, start);
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

  /** Load, fault, recovery, drain, checks. Never rejects: what goes wrong is a finding. */
  async run(row: Row): Promise<Result> {
    const { load, journal } = this.#bench;
    const t0 = performance.now();
    const findings: string[] = [];
    let recovered: Record<string, number> = {};
    const since = await eventually(() => databaseTime(this.#pool), 30_000);
    const attempt = async (what: string, step: () => Promise<void>) => {
      await step().catch((error: Error) => void findings.push(`${what}: ${error.message}`));
    };
    const { cluster } = this.#bench;
    if (!row.withoutLoad) load.start();
    await sleep(row.withoutLoad ? 0 : (row.warmUpMs ?? warmUpMs));
    await attempt('injecting', async () => {
      const goneAt = (await row.inject(this.#bench)) ?? performance.now();
      recovered = await recovery(this.#bench, goneAt, patienceMs);
    });
    await load.stop();
    if (findings.length > 0 || recoveredAll(recovered) === Number.POSITIVE_INFINITY) await attempt('restoring', () => cluster.restore());
    const recoveredMs = recoveredAll(recovered);
    const bound = row.recoveryMs * this.#options.slowness;
    if (recoveredMs > bound) findings.push(`I11: normal again after ${describe(recovered)}, and ${bound} ms are allowed`);
    await attempt('coming to rest', () => this.#comeToRest());
    await attempt('checking', async () => void findings.push(...(await this.#check(row, t0, since))));
    const evidence = touchedSince(journal.operations, t0);
    const reads = journal.reads.filter((read) => read.attempt.sentAt >= t0);
    const answers: Record<string, number> = { ...row.counted?.() };
    for (const { attempt: { status } } of [...evidence.attempts, ...reads]) answers[status] = (answers[status] ?? 0) + 1;
    return { row, findings, recoveredMs, answers, operations: evidence.operations.length, tookMs: performance.now() - t0 };
  }

  /** Everything again, over the whole run: each operation, each balance, each event, and the books by the bank's own check. Never rejects. */
  async verify(): Promise<Result> {
    const begun = performance.now();
    const findings = await this.#checkAll().catch((error: Error) => [`checking: ${error.message}`]);
    return { row: wholeRun, findings, recoveredMs: 0, answers: {}, operations: 0, tookMs: performance.now() - begun };
  }

  async #checkAll(): Promise<string[]> {
    await this.#comeToRest();
    const { cluster, journal } = this.#bench;
    const { operations } = journal;
    const row = wholeRun;
    const evidence: Evidence = {
      row, t0: 0, slowness: this.#options.slowness, cluster, journal, events: this.#events, pool: this.#pool, operations, attempts: [], reads: [],
      before: this.#start.balances,
      after: await readBalances(this.#pool),
      transactions: await readTransactions(this.#pool, this.#start.since, operations),
    };
    const broken = await verifyBooks(this.#pool);
    return [
      ...broken.map(({ rule, rows }) => `I1: ${rule}: ${rows.length} rows break it`),
      ...eachOperationOnce(evidence),
      ...nothingElseBooked(evidence),
      ...sameKeySameAnswer(evidence),
      ...(await eventsMatch(evidence)),
    ];
  }

  /** Repeats what has no outcome until it has one; then waits until everything is published and read. */
  async #comeToRest(): Promise<void> {
    const { load, journal } = this.#bench;
    // Those too whose answer is still on its way.
    const open = journal.operations.filter(({ decided }) => decided === undefined);
    const until = performance.now() + drainMs;
    await Promise.all(Array.from({ length: drainers }, async () => {
      for (let operation = open.pop(); operation !== undefined; operation = open.pop()) {
        const giveUpAt = Math.min(until, performance.now() + outcomeMs);
        while (operation.decided === undefined && performance.now() < giveUpAt) {
          const { status, location } = await load.send(operation);
          if (status === 202 && location !== undefined) await load.read(location, { pending: true });
          if (operation.decided === undefined) await sleep(200);
        }
      }
    }));
    await outboxesEmpty({ pool: this.#pool });
    await this.#events.caughtUp();
  }

  async #check(row: Row, t0: number, since: string): Promise<string[]> {
    const { cluster, journal } = this.#bench;
    const { operations, attempts } = touchedSince(journal.operations, t0);
    const pool = this.#pool;
    const evidence: Evidence = {
      row, t0, slowness: this.#options.slowness, cluster, journal, events: this.#events, pool, operations, attempts,
      reads: journal.reads.filter(({ attempt }) => attempt.sentAt >= t0),
      before: this.#before,
      after: await readBalances(pool),
      transactions: await readTransactions(pool, since, operations),
    };
    const findings = [
      ...(await sagasFinished(evidence)),
      ...[eachOperationOnce, nothingElseBooked, noReadBelowZero, sameKeySameAnswer, callersSeeWhatTheyMay, readsNeverGoBack, refusedForGoodReason, freezeHolds].flatMap((rule) => rule(evidence)),
      ...(await booksAreInOrder(evidence)),
      ...(await restShowsTheBooks(evidence)),
      ...(await eventsMatch(evidence)),
      ...logsAreClean(cluster, this.#logs),
      ...((await row.check?.(evidence, this.#bench)) ?? []),
    ];
    this.#before = evidence.after;
    return findings;
  }
}

const recoveredAll = (recovered: Record<string, number>): number => Math.max(...Object.values(recovered), 0);

function describe(recovered: Record<string, number>): string {
  return Object.entries(recovered).map(([what, ms]) => `${Math.round(ms)} ms (${what})`).join(', ');
}

function touchedSince(all: Operation[], t0: number): { operations: Operation[]; attempts: { operation: Operation; attempt: Attempt }[] } {
  const attempts = all.flatMap((operation) => operation.attempts.filter(({ sentAt }) => sentAt >= t0).map((attempt) => ({ operation, attempt })));
  return { operations: [...new Set(attempts.map(({ operation }) => operation))], attempts };
}

/** The accounts that a run begins with. A bank that has just started may still be slow: each request is repeated until it is done. */
async function openAccounts(entrance: Entrance): Promise<Accounts> {
  const post = (key: string, path: string, body: unknown) =>
    eventually(async () => {
      const { status, body: answer } = await entrance.call(entrance.pick(), 'POST', path, body, key);
      if (status !== 201) throw new Error(`POST ${path} was answered ${status} ${JSON.stringify(answer)}`);
      return (answer as { data: Record<string, string> }).data;
    }, startMs);
  const corporate = { client_type: 'Corporate', company_name: 'Campaign', registration_number: '1', email: 'campaign@example.org', contact_number: '+254700000001' };
  const { client_id: client = '' } = await post('client', '/clients', corporate);
  const opened: string[] = [];
  while (opened.length < startAccounts) {
    const number = opened.length;
    opened.push((await post(`account ${number}`, '/accounts', { client_id: client, account_type: 'Savings', currency: 'USD', initial_deposit: 1000 }))['account_id'] ?? '');
  }
  const take = (count: number) => opened.splice(0, count);
  return { client, own: take(16), crossed: take(8), hot: take(1)[0] ?? '', frozen: take(1)[0] ?? '', probes: take(2) };
}
