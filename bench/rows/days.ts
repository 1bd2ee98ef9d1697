import { setTimeout as sleep } from 'node:timers/promises';
import { dayIn } from '#libs/service/days.ts';
import { type Bank, startBank } from '../bank.ts';
import { residentMb } from '../cpu.ts';
import { generateData } from '../growth-data.ts';
import { load } from '../measure.ts';
import type { Bench, Group, Outcome } from '../row.ts';

const dayMs = 86_400_000;
const transfersPerSecond = 200;
const warmSeconds = 30;
/** Of the generated history, the day whose balances are read: half of what there is was posted later. */
const middleDaysAgo = 15;
const closeMs = 1_800_000;

/** Measures what is read of all accounts on a day, and the closing of one, in a bank of many accounts with a history. */
export const days: Group = {
  name: 'days',
  quick: false,
  onRequest: true,
  async measure({ world, effort, growth }: Bench): Promise<Outcome> {
    const bank = await startBank(world, { name: 'days', accounts: 1 });
    try {
      const { accounts, transactions } = await world.withPool(bank.databaseUrl, 'ledger', (pool) =>
        generateData(pool, growth, world.say),
      );
      const postings = (seconds: number, warmUpSeconds = effort.warmUpSeconds) =>
        load(world, bank, {
          target: { kind: 'transfer', generated: accounts },
          connections: 64,
          rate: transfersPerSecond,
          seconds,
          warmUpSeconds,
        });
      const read = async (path: string) => {
        const begun = performance.now();
        const reading = get(bank, path);
        const memory = await watchMemory(bank, reading);
        return { seconds: (performance.now() - begun) / 1000, memory, bytes: await reading };
      };
      const middle = ago(middleDaysAgo);
      const balances = await read(`/admin/balances?on=${middle}`);
      const now = await read('/admin/balances');
      world.say(
        `balances: ${balances.seconds.toFixed(1)} s, ${inWords(balances.memory)}; now ${now.seconds.toFixed(1)} s`,
      );
      await postings(1, warmSeconds);
      const alone = await postings(5 * effort.seconds);
      const begun = performance.now();
      const closing = closeDay(bank, ago(1)).then(() => (performance.now() - begun) / 1000);
      const memory = watchMemory(bank, closing);
      const beside = await postings(5 * effort.seconds, 0);
      const closed = await closing;
      // Without a closed day before it, all entries since the day are read.
      const trial = await read(`/admin/trial-balance?on=${ago(1)}`);
      const size = `${accounts} accounts, ${transactions} transactions`;
      return {
        lines: [
          {
            goal: 'balances-on',
            value: balances.seconds,
            note: `of ${middle}, ${size}, ${Math.round(balances.bytes / 1e6)} MB; of now ${now.seconds.toFixed(1)} s`,
          },
          { goal: 'balances-memory', value: growthOf(balances.memory), note: inWords(balances.memory) },
          { goal: 'trial-on', value: trial.seconds, note: `of ${ago(1)}, which is closed` },
          {
            goal: 'close-day',
            value: closed,
            note: `of ${ago(1)}, while transfers are posted; ${inWords(await memory)}`,
          },
          {
            goal: 'close-beside',
            value: beside.latency.p99 / alone.latency.p99,
            note: `${beside.latency.p99.toFixed(1)} ms ÷ ${alone.latency.p99.toFixed(1)} ms; p50 ${beside.latency.p50.toFixed(1)} ÷ ${alone.latency.p50.toFixed(1)} ms`,
          },
        ],
        raw: { balances, now, trial, alone, beside, closed },
      };
    } finally {
      await bank.stop();
    }
  },
};

const ago = (count: number): string => dayIn('UTC', Date.now() - count * dayMs);

function ask({ port, credential }: Bank, path: string, body?: object): Promise<Response> {
  const [name = '', value = ''] = credential.split(': ');
  return fetch(`http://127.0.0.1:${port}${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { [name]: value, ...(body && { 'content-type': 'application/json' }) },
    body: body && JSON.stringify(body),
  });
}

/** Reads a response to its end, and returns its length. */
async function get(bank: Bank, path: string): Promise<number> {
  const response = await ask(bank, path);
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  let length = 0;
  for await (const chunk of response.body ?? []) length += (chunk as Uint8Array).length;
  return length;
}

/** Closes a day. Resolves when its totals are there. */
async function closeDay(bank: Bank, date: string): Promise<void> {
  const { status } = await ask(bank, '/admin/day-closings', { date });
  // A closing that takes longer than a request waits.
  if (status !== 201 && status !== 504) throw new Error(`closing ${date}: ${status}`);
  for (const until = performance.now() + closeMs; ; await sleep(200)) {
    const shown = await ask(bank, `/admin/day-closings/${date}`);
    await shown.arrayBuffer();
    if (shown.status === 200) return;
    if (performance.now() > until) throw new Error(`${date} is not calculated: ${shown.status}`);
  }
}

/** The resident memory of gateway and ledger in MB. */
interface Memory {
  before: Record<string, number>;
  most: Record<string, number>;
}

async function watchMemory({ processes }: Bank, until: Promise<unknown>): Promise<Memory> {
  const watched = processes.filter(({ name }) => name === 'gateway' || name === 'ledger');
  const look = () => Object.fromEntries(watched.map(({ name, pid }) => [name, residentMb(pid)]));
  const before = look();
  const most = { ...before };
  const over = until.then(() => true);
  do {
    for (const [name, megabytes] of Object.entries(look())) most[name] = Math.max(most[name] ?? 0, megabytes);
  } while (!(await Promise.race([over, sleep(100, false)])));
  return { before, most };
}

const growthOf = ({ before, most }: Memory): number =>
  Math.max(...Object.entries(most).map(([name, megabytes]) => megabytes - (before[name] ?? 0)));

const inWords = ({ before, most }: Memory): string =>
  Object.entries(most)
    .map(([name, megabytes]) => `${name} ${Math.round(before[name] ?? 0)} → ${Math.round(megabytes)} MB`)
    .join(', ');
