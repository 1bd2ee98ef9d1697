import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';
import { done, minorUnits, type Operation, openedAccount, placedHold } from '../journal.ts';
import type { Random } from '../random.ts';
import type { Bench, Row } from '../row.ts';
import { killAndStart, workingLedger } from './kills.ts';

const holders = 8;
const killings = 4;
/** The balance is enough for all concurrent holds. */
const opened = 10_000_000;
/** The lifetime of holds that are expected to expire. */
const expiresInMs = 3000;
const expectedWithinMs = 10_000;

/** A client's knowledge of its own account. */
interface Holder {
  account: string;
  /** In minor units. Only holds that expire remain Active. */
  balance: number;
  /** By hold_id: the captured amount and the expected final status. */
  holds: Map<string, { captured: number; status: 'Captured' | 'Released' | 'Expired' }>;
}

let holding: Holder[] = [];

/** Holds, each on a separate account, so that every amount is known exactly. */
const holds: Row = {
  name: 'holds',
  title: `holds placed, captured, released, and left to expire while ledgers are killed, ${killings} times, started again after 0-3 s`,
  touches: ['ledger'],
  recoveryMs: 5000,
  async inject(bench) {
    const { random, load } = bench;
    const openings = await Promise.all(
      Array.from({ length: holders }, async () => finish(bench, load.opening(opened))),
    );
    holding = openings.map((opening) => ({ account: openedAccount(opening) ?? '', balance: opened, holds: new Map() }));
    let isOver = false;
    const clients = holding.map(async (holder, i) => {
      const own = random.fork(`holder ${i}`);
      while (!isOver) await useHold(bench, holder, own);
    });
    let goneAt = performance.now();
    for (let kill = 0; kill < killings; kill++) {
      await sleep(random.int(300, 1500));
      goneAt = await killAndStart(await workingLedger(bench), bench);
    }
    await sleep(500);
    isOver = true;
    await Promise.all(clients);
    return goneAt;
  },
  check: async (_, bench) => (await Promise.all(holding.map((holder) => checkHolder(bench, holder)))).flat(),
};

/** Repeats a request with its key until it has an outcome. */
async function finish({ load, random }: Bench, operation: Operation): Promise<Operation> {
  await load.send(operation);
  while (operation.decided === undefined) {
    await sleep(random.int(50, 500));
    await load.send(operation);
  }
  return operation;
}

/** Places a hold, tries to withdraw the held money, captures part of it, and ends it in one of three ways. */
async function useHold(bench: Bench, holder: Holder, random: Random): Promise<void> {
  const { load, accounts } = bench;
  const { account } = holder;
  const minor = random.int(2, 2000);
  const status = random.pick(['Captured', 'Released', 'Expired'] as const);
  const expires_at = new Date(Date.now() + (status === 'Expired' ? expiresInMs : 3_600_000)).toISOString();
  const placed = await finish(
    bench,
    load.make('hold', `/accounts/${account}/holds`, { amount: minor / 100, expires_at }, [], {
      deserves: ['validation_failed'],
    }),
  );
  const hold_id = placedHold(placed);
  if (hold_id === undefined) return; // It had expired when the ledger was available again.
  holder.holds.set(hold_id, { captured: 0, status });
  const capture = async (amount: number, final: boolean): Promise<void> => {
    const to = random.chance(0.5) ? accounts.probes[0] : undefined;
    const deserves = status === 'Expired' ? ['hold_not_active'] : [];
    const taken = await finish(bench, load.capture({ hold_id, from: account, to }, amount, { final, deserves }));
    if (!done(taken)) return;
    holder.balance -= amount;
    holder.holds.set(hold_id, { captured: (holder.holds.get(hold_id)?.captured ?? 0) + amount, status });
  };
  const part = random.int(1, minor - 1);
  if (random.chance(0.5)) await capture(part, false);
  if (status !== 'Expired') await finish(bench, load.withdrawal(account, holder.balance, true));
  const left = minor - (holder.holds.get(hold_id)?.captured ?? 0);
  if (status === 'Captured') await capture(random.int(1, left), true);
  else if (status === 'Released') await finish(bench, load.release(hold_id));
}

/** I3: every hold has the state that its client received, there are no others, and the available balance matches. */
async function checkHolder(
  { cluster, slowness }: Bench,
  { account, balance, holds: known }: Holder,
): Promise<string[]> {
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(`${cluster.gateways[0]?.baseUrl}${path}`, {
      headers: { 'x-api-key': cluster.apiKey },
      signal: AbortSignal.timeout(10_000),
    });
    return ((await response.json()) as { data: T }).data;
  };
  interface Shown {
    hold_id: string;
    status: string;
    captured_amount: number;
  }
  const read = async () =>
    (await get<Shown[]>(`/accounts/${account}/holds?limit=500`))
      .map(({ hold_id, status, captured_amount }) => `${hold_id} ${status} ${minorUnits(captured_amount, 'USD')}`)
      .sort()
      .join();
  const due = [...known]
    .map(([id, { status, captured }]) => `${id} ${status} ${captured}`)
    .sort()
    .join();
  const isAsKnown = await eventually(async () => (await read()) === due, expectedWithinMs * slowness).catch(
    () => false,
  );
  const shown = await get<{ balance: number; available_balance: number }>(`/accounts/${account}`);
  return [
    ...(isAsKnown ? [] : [`I3: the holds of ${account} are ${await read()}, and its client was told ${due}`]),
    ...(shown.available_balance === shown.balance && minorUnits(shown.balance, 'USD') === balance
      ? []
      : [`I3: ${account} has ${JSON.stringify(shown)}, and nothing of ${balance} is held`]),
  ];
}

export const holdRows: Row[] = [holds];
