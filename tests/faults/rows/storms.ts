import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { countBy, load as drive, quantile, type Shot } from '../../support/load.ts';
import type { Evidence } from '../evidence.ts';
import { type Attempt, done, type Operation } from '../journal.ts';
import type { Bench, Row } from '../row.ts';

/** More load than capacity, and much load on few accounts. */
const floodMs = 60_000;
const calmSeconds = 3;
const callers = 24;
const times = 5;
/** The fraction of the offered load by which the load generator may be too slow. */
const leastTimes = 4.5;
const refusedWithinMs = 1_000;
const memoryBoundMiB = 512;

/** Findings of the row's last run, for its check. */
let floodFindings: string[] = [];
let refusedShots: Shot[] = [];

/** A slow database makes the ledger the bottleneck, so that the same machine can generate five times the capacity. */
const slow = `create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.005); return null; end';
  create trigger slow after insert on transactions for each row execute function slow()`;

const overload: Row = {
  name: 'overload',
  title: (lasts) => `five times the capacity for ${lasts(floodMs)}`,
  touches: ['all', 'load'],
  recoveryMs: 10_000,
  withoutLoad: true,
  async inject(bench) {
    await bench.pool.query(slow);
    // Processes are slow after their start, so the measured capacity would be too low.
    const warm = await flood(bench, { seconds: calmSeconds, callers });
    const calm = await flood(bench, { seconds: calmSeconds, callers });
    const done = (shots: Shot[]) => shots.filter(({ status }) => status === 201).length;
    const capacity = done(calm) / calmSeconds;
    const seconds = bench.duration(floodMs) / 1000;
    const flooding = flood(bench, { seconds, perSecond: times * capacity });
    const most = await watchMemory(bench, flooding);
    const shots = await flooding;
    const goneAt = performance.now();
    const offered = shots.length / seconds;
    floodFindings = judge(bench, shots, most);
    if (offered < leastTimes * capacity)
      floodFindings.push(
        `overload: ${Math.round(offered)}/s were offered, and ${Math.round(capacity)}/s can be done: that is not ${times} times`,
      );
    const refused = shots.filter(isRefused);
    refusedShots = [...warm, ...calm, ...shots].filter(isRefused);
    const refusedMs = (part: number) =>
      Math.round(
        quantile(
          refused.map(({ tookMs }) => tookMs),
          part,
        ),
      );
    bench.say(
      `capacity ${Math.round(capacity)}/s; ${Math.round(offered)}/s were offered for ${seconds} s, ${(offered / capacity).toFixed(1)} times that; goodput ${Math.round(done(shots) / seconds)}/s`,
    );
    bench.say(
      `${Math.round(refused.length / seconds)}/s were refused (503 or 429), half of them within ${refusedMs(0.5)} ms, 95 % within ${refusedMs(0.95)} ms`,
    );
    bench.say(
      `most memory in MiB: ${Object.entries(most)
        .map(([name, mebibytes]) => `${name} ${mebibytes}`)
        .join(', ')}`,
    );
    return goneAt;
  },
  counted: () => countBy(refusedShots),
  async check({ pool }) {
    const { rows } = await pool.query<{ idempotency_key: string }>(
      'select idempotency_key from v_transactions where idempotency_key = any($1)',
      [refusedShots.map(({ key }) => key)],
    );
    await pool.query('drop function slow cascade');
    return [
      ...floodFindings,
      ...rows.map(({ idempotency_key }) => `I4: ${idempotency_key} was refused by 503 or 429, and the ledger has it`),
    ];
  },
};

const isRefused = ({ status }: Shot) => status === 503 || status === 429;

/**
 * Makes deposits through both gateways. Responses are added to the journal except refusals, which need no repeat and
 * are counted here.
 */
async function flood(bench: Bench, how: { seconds: number; callers?: number; perSecond?: number }): Promise<Shot[]> {
  const { cluster, load, journal, accounts } = bench;
  const operations = new Map<string, Operation>();
  const parts = cluster.gateways.map(async ({ name, baseUrl }) => {
    const shots = await drive({
      baseUrl,
      headers: { 'x-api-key': cluster.apiKey },
      seconds: how.seconds,
      ...(how.callers === undefined ? {} : { callers: how.callers / cluster.gateways.length }),
      ...(how.perSecond === undefined ? {} : { perSecond: how.perSecond / cluster.gateways.length }),
      shot: (n) => {
        const { own } = accounts;
        const operation = load.deposit(own[n % own.length] ?? '', 125);
        const { key, path, body } = operation;
        operations.set(key, operation);
        journal.sending({ key, path, body, gateway: name });
        return { method: 'POST', path, key, body };
      },
    });
    for (const shot of shots.filter((one) => !isRefused(one)))
      journal.answered(operations.get(shot.key) as Operation, toAttempt(shot, name));
    journal.forget(new Set(shots.filter(isRefused).map(({ key }) => key)));
    return shots;
  });
  return (await Promise.all(parts)).flat();
}

function toAttempt({ sentAt, tookMs, status, body }: Shot, gateway: string): Attempt {
  const answer = status === 0 ? 'no answer' : (JSON.parse(body) as { transaction_id?: string });
  const location =
    status === 202 ? `/transactions/${(answer as { transaction_id?: string }).transaction_id}` : undefined;
  return { sentAt, tookMs, gateway, status: status === 0 ? 'cut' : status, body: answer, replayed: false, location };
}

function judge({ slowness }: Bench, shots: Shot[], most: Record<string, number>): string[] {
  const refused = shots.filter(isRefused);
  const within = quantile(
    refused.map(({ tookMs }) => tookMs),
    0.95,
  );
  const findings: string[] = [];
  // Four is enough for a nominal five: if the machine was slow while the capacity was measured, the actual factor is
  // lower.
  if (refused.length < shots.length / 10)
    findings.push(`overload: of ${shots.length} only ${refused.length} were refused`);
  if (within > refusedWithinMs * slowness) findings.push(`overload: refused only after ${Math.round(within)} ms (p95)`);
  for (const { retryAfter, body } of refused)
    if (!/^\d+$/.test(retryAfter ?? '')) findings.push(`overload: a refusal has Retry-After ${retryAfter}: ${body}`);
  for (const [name, mebibytes] of Object.entries(most))
    if (mebibytes > memoryBoundMiB) findings.push(`overload: ${name} takes ${mebibytes} MiB`);
  return findings.slice(0, 10);
}

/** Returns the maximum resident memory of each service in MiB. */
async function watchMemory({ cluster }: Bench, until: Promise<unknown>): Promise<Record<string, number>> {
  const most: Record<string, number> = {};
  const over = until.then(() => true);
  do {
    for (const node of cluster.nodes.filter((one) => one.running())) {
      const mebibytes =
        Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${node.pid()}/status`, 'utf8'))?.[1] ?? 0) / 1024;
      most[node.name] = Math.max(most[node.name] ?? 0, Math.round(mebibytes));
    }
  } while (!(await Promise.race([over, sleep(250, false)])));
  return most;
}

const stormMs = 30_000;
const stormClients = 32;

/**
 * The time at which the freeze was acknowledged, and the time at which its end was requested, by the wall clock, which
 * is the same as the database's here.
 */
let frozenSpan: { from: string; until: string } | undefined;

const storm: Row = {
  name: 'storm',
  title: (lasts) => `hot account, crossed transfers, and a freeze during a flood of postings, for ${lasts(stormMs)}`,
  touches: ['all'],
  recoveryMs: 5_000,
  callers: 'nothing',
  withoutLoad: true,
  async inject(bench) {
    const { load, accounts, random, duration, pool, say } = bench;
    const deadlocks = async () =>
      (
        await pool.query<{ deadlocks: bigint }>(
          'select deadlocks from pg_stat_database where datname = current_database()',
        )
      ).rows[0]?.deadlocks ?? 0n;
    const before = await deadlocks();
    await load.send(load.status(accounts.frozen, 'Active'));
    let isOver = false;
    const clients = Array.from({ length: stormClients }, async (_, i) => {
      const own = random.fork(`storm ${i}`);
      while (!isOver) {
        await load.send(draw(bench, own.int(1, 100), own.int(1, 999)));
        await sleep(own.int(5, 40));
      }
    });
    const third = duration(stormMs) / 3;
    await sleep(third);
    const frozen = await load.send(load.status(accounts.frozen, 'Frozen'));
    const from = new Date().toISOString();
    await sleep(third);
    const until = new Date().toISOString();
    frozenSpan = frozen.status === 200 || frozen.status === 201 ? { from, until } : undefined;
    await load.send(load.status(accounts.frozen, 'Active'));
    await sleep(third);
    isOver = true;
    await Promise.all(clients);
    say(`${(await deadlocks()) - before} deadlocks in the database`);
  },
  check: async (evidence, bench) => [
    ...(await nothingBookedWhileFrozen(evidence, bench)),
    ...refusedWhileFrozen(evidence, bench),
  ],
};

/**
 * The requests of a client of the storm: mostly on the hot account, also transfers in both directions between two
 * accounts, and requests on the account to be frozen.
 */
function draw({ load, accounts }: Bench, kind: number, minor: number): Operation {
  const {
    hot,
    frozen,
    crossed: [a = '', b = ''],
  } = accounts;
  if (kind <= 25) return load.deposit(hot, minor);
  if (kind <= 35) return load.withdrawal(hot, minor);
  if (kind <= 50) return load.transfer(a, b, minor);
  if (kind <= 65) return load.transfer(b, a, minor);
  if (kind <= 75) return load.deposit(frozen, minor);
  if (kind <= 80) return load.withdrawal(frozen, minor);
  return kind <= 90 ? load.transfer(frozen, hot, minor) : load.transfer(hot, frozen, minor);
}

async function nothingBookedWhileFrozen({ pool }: Evidence, { accounts }: Bench): Promise<string[]> {
  if (!frozenSpan) return ['the account was not frozen'];
  const { rows } = await pool.query<{ transaction_id: string; created_at: string }>(
    'select transaction_id, created_at from v_entries where account_id = $1 and created_at > $2 and created_at < $3 limit 10',
    [accounts.frozen, frozenSpan.from, frozenSpan.until],
  );
  return rows.map(
    ({ transaction_id, created_at }) =>
      `the freeze was answered at ${frozenSpan?.from}, and ${transaction_id} booked on it at ${created_at}`,
  );
}

/** Reports whether the storm tried to post on the frozen account. */
function refusedWhileFrozen({ operations }: Evidence, { accounts }: Bench): string[] {
  const refused = operations.filter(
    (operation) => !done(operation) && operation.effects.some(({ account }) => account === accounts.frozen),
  );
  return refused.length > 0 ? [] : ['nobody has tried to post on the frozen account'];
}

export const storms: Row[] = [overload, storm];
