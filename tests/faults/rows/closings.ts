import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { DayClosing } from '#libs/contracts/days.ts';
import { plusDays } from '#libs/contracts/times.ts';
import { eventually } from '../../support/eventually.ts';
import { readTopic } from '../../support/kafka.ts';
import { quantile } from '../../support/load.ts';
import type { Evidence } from '../evidence.ts';
import { decides, errorCode, isDone, minorUnits, type Operation } from '../journal.ts';
import { type Bench, type Row, Skipped } from '../row.ts';
import { killAndStart, workingLedger } from './kills.ts';

/** Days that are closed while postings are dated for them. */
const killings = 4;
const posters = 12;
/** Days are closed from this one on, by this and later rows, so that there are enough. */
const firstDaysAgo = 80;
const floodMs = 20_000;
const betweenMs = 1500;
const boundMs = 60_000;

/** The days that the row has closed, and between which times (performance.now). */
let closed: { date: string; sentAt: number; doneAt: number }[] = [];

const killInClosing: Row = {
  name: 'kill-in-closing',
  title: `days closed beside postings dated for them, a ledger killed in the middle, ${killings} times, started again after 0-3 s`,
  touches: ['ledger'],
  recoveryMs: 5000,
  async inject(bench) {
    const { random } = bench;
    closed = [];
    let goneAt = performance.now();
    await beside(bench, [0, 300], async (dateFor) => {
      for (let kill = 0; kill < killings; kill++) {
        const date = await dateFor();
        await sleep(random.int(300, 1500));
        const closing = close(bench, date);
        closing.catch(() => undefined);
        await sleep(random.int(0, 200));
        goneAt = await killAndStart(await workingLedger(bench), bench);
        await closing;
      }
    });
    return goneAt;
  },
  check: (evidence, bench) => closedAsPosted(evidence, bench),
};

const closeInFlood: Row = {
  name: 'close-in-flood',
  title: (lasts) => `days closed beside a flood of postings, half of them dated for these days, for ${lasts(floodMs)}`,
  touches: ['all'],
  recoveryMs: 5000,
  callers: 'nothing',
  withoutLoad: true,
  async inject(bench) {
    const { duration, say } = bench;
    closed = [];
    let [without, within]: Operation[][] = [[], []];
    await beside(bench, [0, 20], async (dateFor, posted) => {
      await dateFor();
      await sleep(betweenMs);
      // The first postings are slower.
      posted.length = 0;
      await sleep(duration(floodMs) / 2);
      without = posted.splice(0);
      for (const until = performance.now() + duration(floodMs) / 2; performance.now() < until; await sleep(betweenMs))
        await close(bench, await dateFor());
      within = posted.splice(0);
    });
    const p99 = (of: Operation[] = []) =>
      quantile(
        of.map(({ attempts }) => attempts[0]?.tookMs ?? 0),
        0.99,
      );
    say(
      `p99 of ${without?.length} postings ${Math.round(p99(without))} ms, and of ${within?.length} beside ${closed.length} closings ${Math.round(p99(within))} ms: ${(p99(within) / p99(without)).toFixed(2)} times`,
    );
  },
  check: (evidence, bench) => closedAsPosted(evidence, bench),
};

/**
 * Posts with many clients while `work` runs. `dateFor` returns the next day to close, for which half of the postings are
 * dated from then on; `posted` collects what was posted.
 */
async function beside(
  bench: Bench,
  thinkMs: [number, number],
  work: (dateFor: () => Promise<string>, posted: Operation[]) => Promise<void>,
): Promise<void> {
  const { random } = bench;
  let [date, isOver]: [string | undefined, boolean] = [undefined, false];
  const posted: Operation[] = [];
  const clients = Array.from({ length: posters }, async (_, i) => {
    const own = random.fork(`poster ${i}`);
    while (!isOver) {
      const operation = draw(bench, own.chance(0.5) ? date : undefined, own);
      await bench.load.send(operation);
      posted.push(operation);
      await sleep(own.int(...thinkMs));
    }
  });
  const all = Promise.all(clients);
  all.catch(() => undefined);
  try {
    await work(async () => (date = await nextDay(bench)), posted);
  } finally {
    isOver = true;
    await all;
  }
}

function draw({ load, accounts, random }: Bench, effective_date: string | undefined, own: Bench['random']): Operation {
  const [from = '', to = ''] = own.shuffle(accounts.crossed);
  const minor = random.int(1, 300);
  const amount = minor / 100;
  const deserves = ['day_closed', 'insufficient_funds'];
  if (own.chance(0.5)) {
    const body = { account_id: from, transaction_type: 'Deposit', amount, effective_date };
    return load.make('deposit', '/transactions', body, [{ account: from, minor }], { deserves });
  }
  const effects = [
    { account: from, minor: -minor },
    { account: to, minor },
  ];
  const body = { from_account_id: from, to_account_id: to, amount, effective_date };
  return load.make('transfer', '/transfers', body, effects, { deserves });
}

/** Returns the day after the last closed. */
async function nextDay({ pool }: Bench): Promise<string> {
  const { rows } = await eventually(
    () => pool.query<{ last: string | null }>('select max(date) as last from closed_days'),
    boundMs,
  );
  const today = new Date().toISOString().slice(0, 10);
  const last = rows[0]?.last;
  const next = last ? plusDays(last, 1) : plusDays(today, -firstDaysAgo);
  if (next >= today) throw new Skipped('every day that has ended is closed');
  return next;
}

/** Closes a day: repeats the request with its key until it has an outcome. */
async function close({ entrance, slowness, random }: Bench, date: string): Promise<void> {
  const key = `close ${date} ${random.int(0, 1e9)}`;
  const sentAt = performance.now();
  const answer = await eventually(async () => {
    const attempt = await entrance.call(entrance.pick(), 'POST', '/admin/day-closings', { date }, key);
    return decides(attempt) && attempt;
  }, boundMs * slowness);
  if (answer.status !== 201)
    throw new Error(`closing ${date} was answered ${answer.status} ${JSON.stringify(answer.body)}`);
  closed.push({ date, sentAt, doneAt: performance.now() });
}

interface Moved {
  account_id: string;
  currency: string;
  sum: string;
  count: number;
  first_sequence: number;
  last_sequence: number;
}

/**
 * I1: each closed day is at both gateways and in one event what the entries of the day are, in a chain; each posting was
 * decided before its day was closed, and each refusal of a day afterwards.
 */
async function closedAsPosted(evidence: Evidence, { cluster, slowness, say }: Bench): Promise<string[]> {
  const { pool } = evidence;
  const findings: string[] = [];
  const get = async (path: string, node = cluster.gateways[0]) => {
    const response = await fetch(`${node?.baseUrl}/admin/day-closings${path}`, {
      headers: { 'x-api-key': cluster.apiKey },
      signal: AbortSignal.timeout(15_000),
    });
    return response.status === 200 && response.text();
  };
  const sha = (text: string) => createHash('sha256').update(text).digest('hex');
  const topics = { kafka_brokers: cluster.brokers, topic_prefix: cluster.topicPrefix };
  let count = 0;
  for (const { date, sentAt, doneAt } of closed) {
    const shown = await eventually(async () => {
      const texts = await Promise.all(cluster.gateways.map((node) => get(`/${date}`, node)));
      return texts.every((text) => text !== false) && texts;
    }, boundMs * slowness).catch(() => []);
    const [{ data: closing }] = [...shown.map((text) => JSON.parse(text) as { data: DayClosing }), { data: undefined }];
    if (closing === undefined) return [...findings, `I1: LOST: ${date} was closed, and is not calculated`];
    if (new Set(shown).size > 1) findings.push(`I1: ${date} is shown differently: ${shown.join(' | ')}`);
    const file = (await eventually(() => get(`/${date}/accounts`), boundMs * slowness)) as string;
    const { accounts_sha256, previous_hash, hash, closed_at } = closing;
    if (sha(file) !== accounts_sha256 || sha(previous_hash + accounts_sha256) !== hash)
      findings.push(`I1: the hashes of ${date} are not those of its accounts`);
    const before = await get(`/${plusDays(date, -1)}`);
    if (before !== false && (JSON.parse(before) as { data: DayClosing }).data.hash !== previous_hash)
      findings.push(`I1: ${date} does not follow the day before`);
    const lines = file
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Moved);
    const { rows } = await pool.query<Moved & { late: number }>(
      `select account_id, currency, sum(case direction when 'credit' then amount_minor else -amount_minor end)::text as sum, count(*)::int as count,
         min(sequence)::int as first_sequence, max(sequence)::int as last_sequence, (count(*) filter (where created_at > $2))::int as late
       from v_entries where coalesce(effective_date, (created_at at time zone 'UTC')::date) = $1 group by account_id, currency order by account_id`,
      [date, closed_at],
    );
    const posted = rows.map(({ late, ...row }) => row);
    const stated = lines.map((line) => ({
      account_id: line.account_id,
      currency: line.currency,
      sum: String(minorUnits(line.sum, line.currency)),
      count: line.count,
      first_sequence: line.first_sequence,
      last_sequence: line.last_sequence,
    }));
    if (!isDeepStrictEqual(posted, stated))
      findings.push(
        `I1: ${date} is closed with ${JSON.stringify(stated)}, and the entries are ${JSON.stringify(posted)}`,
      );
    if (rows.some(({ late }) => late > 0)) findings.push(`I1: something was posted for ${date} after it was closed`);
    findings.push(...decidedInTime(evidence, { date, sentAt, doneAt }));
    count += posted.reduce((sum, row) => sum + row.count, 0);
  }
  const events = (await readTopic(topics, 'days')).filter(({ key }) => closed.some(({ date }) => date === key));
  const told = Map.groupBy(events, ({ key }) => String(key));
  for (const { date } of closed) {
    const texts = new Set(told.get(date)?.map(({ value }) => String(value)));
    if (texts.size !== 1 && !cluster.isRestored) findings.push(`I7: ${date} has ${texts.size} different events`);
  }
  say(`${closed.length} days were closed, with ${count} entries`);
  return [...findings, ...(count === 0 ? ['I1: nothing was posted for the days that were closed'] : [])];
}

/** No posting for the day was refused before its closing was sent, and none was made that was sent after it was confirmed. */
function decidedInTime({ operations }: Evidence, { date, sentAt, doneAt }: (typeof closed)[number]): string[] {
  return operations.flatMap(({ key, body, decided, attempts }) => {
    if (body['effective_date'] !== date || decided === undefined) return [];
    if (errorCode(decided) === 'day_closed' && decided.sentAt + decided.tookMs < sentAt)
      return [`I4: ${key} was refused for ${date} before it was closed`];
    if (isDone(decided.status) && (attempts[0]?.sentAt ?? 0) > doneAt)
      return [`I1: ${key} was posted for ${date} after it was closed`];
    return [];
  });
}

export const closingRows: Row[] = [killInClosing, closeInFlood];
