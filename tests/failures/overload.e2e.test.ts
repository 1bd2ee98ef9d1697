import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Load, Shot } from '../support/load.ts';
import { countBy, load, quantile } from '../support/load.ts';
import { eventually, useBank } from '../support/world.ts';

/**
 * Tests five times the capacity of the bank. A slow database keeps the capacity low, so that the same machine can generate
 * the load, whose connections all come from one address, as from a proxy.
 */
const seconds = Number(process.env['OVERLOAD_SECONDS'] ?? 10);
const world = useBank({ env: { TRUST_PROXY: '127.0.0.1' } });
const slowDatabase = `create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.0075); return null; end';
  create trigger slow after insert on transactions for each row execute function slow()`;

function deposits(accounts: string[], run: string): Omit<Load, 'seconds'> {
  return {
    baseUrl: world.api.baseUrl,
    headers: { 'x-api-key': world.bank.api_key },
    shot: (n) => ({
      method: 'POST',
      path: '/transactions',
      key: `${run}-${n}`,
      body: { account_id: accounts[n % accounts.length], transaction_type: 'Deposit', amount: 1.25 },
    }),
  };
}

/** Returns the resident memory in MiB. */
function memory(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
}

async function watchMemory(until: Promise<unknown>): Promise<Record<string, number>> {
  const most: Record<string, number> = {};
  const over = until.then(() => true);
  do for (const { name, pid } of world.bank.processes) most[name] = Math.max(most[name] ?? 0, Math.round(memory(pid)));
  while (!(await Promise.race([over, sleep(250, false)])));
  return most;
}

const of = (shots: Shot[], status: number) => shots.filter((shot) => shot.status === status);
/** Responses per second, from the first request to the last response. */
const requestRate = (shots: Shot[]) =>
  shots.length / ((Math.max(...shots.map(({ sentAt, tookMs }) => sentAt + tookMs)) - (shots[0]?.sentAt ?? 0)) / 1000);
const times = (shots: Shot[]) => shots.map(({ tookMs }) => tookMs);

test('at five times the capacity requests are refused immediately or answered, memory is bounded, nothing is lost or posted twice, and the bank recovers', async () => {
  const { client_id } = await world.api.client();
  const accounts = await Promise.all(
    Array.from({ length: 24 }, async () => (await world.api.account(client_id)).account_id),
  );
  await world.sql(slowDatabase);
  await load({ ...deposits(accounts, 'warm'), callers: 32, seconds: 2 });
  const calm = await load({ ...deposits(accounts, 'calm'), callers: 50, seconds: 5 });
  expect(countBy(calm)).toEqual({ 201: calm.length });
  const capacity = requestRate(calm);

  const flooding = load({ ...deposits(accounts, 'flood'), perSecond: 5 * capacity, seconds });
  const most = await watchMemory(flooding);
  const flood = await flooding;
  const refused = of(flood, 503);
  const taken = of(flood, 201);
  const goodput = requestRate(taken);
  console.log(
    `capacity ${capacity.toFixed(0)}/s, offered ${(flood.length / seconds).toFixed(0)}/s for ${seconds} s: ${JSON.stringify(countBy(flood))}, goodput ${((100 * goodput) / capacity).toFixed(0)} %,`,
    `refused in p50 ${quantile(times(refused), 0.5).toFixed(0)} p99 ${quantile(times(refused), 0.99).toFixed(0)} ms, taken in p50 ${quantile(times(taken), 0.5).toFixed(0)} p99 ${quantile(times(taken), 0.99).toFixed(0)} ms, MiB ${JSON.stringify(most)}`,
  );

  // A 202 counts as a response for requests that were accepted before the load could be measured.
  expect(flood.filter(({ status }) => ![201, 202, 503].includes(status))).toEqual([]);
  expect(refused.length).toBeGreaterThan(0.3 * flood.length);
  expect(
    refused.filter(({ retryAfter, body }) => retryAfter !== '1' || !body.includes('"service_unavailable"')),
  ).toEqual([]);
  // The median is compared, because on a busy machine the slowest requests measure the other load.
  expect(quantile(times(refused), 0.5)).toBeLessThan(1_000);
  expect(goodput).toBeGreaterThan(0.5 * capacity);
  for (const [name, mebibytes] of Object.entries(most)) expect(mebibytes, name).toBeLessThan(512);

  await eventually(async () => {
    const probe = await load({ ...deposits(accounts, `after-${Date.now()}`), callers: 4, seconds: 1 });
    return probe.every(({ status, tookMs }) => status === 201 && tookMs < 1_000);
  }, 30_000);

  const rows = await world.sql<{ idempotency_key: string; count: bigint }>(
    "select idempotency_key, count(*) from ledger.transactions where idempotency_key like 'flood-%' and status = 'Completed' group by 1",
  );
  const booked = new Map(rows.map(({ idempotency_key, count }) => [idempotency_key, count]));
  expect(taken.filter(({ key }) => booked.get(key) !== 1n)).toEqual([]);
  expect(refused.filter(({ key }) => booked.has(key))).toEqual([]);
  await world.expectBooksInOrder();
}, 240_000);
