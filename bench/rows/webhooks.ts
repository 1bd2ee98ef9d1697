import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from '#libs/postgres/pool.ts';
import { type Bank, startBank } from '../bank.ts';
import type { ReceiverPlan, ReceiverResult } from '../contenders/receiver.ts';
import { type Helper, startHelper } from '../helper.ts';
import { createCpuMeter, inTurn, load, median } from '../measure.ts';
import { request } from '../peers/peer.ts';
import type { Bench, Group, Outcome } from '../row.ts';

const startMs = 60_000;
const patienceMs = 120_000;
/** Events of one account are sent one at a time, so this is much more than the number of concurrent requests. */
const accounts = 500;
const fillSeconds = 4;

interface Measured {
  perSecond: number;
  cpuMicros: Record<string, number>;
  receiverMicros: number;
}

/**
 * Measures deliveries of webhooks to a receiver on this machine, from a backlog: webhooks replay the events of a load
 * that has ended, while the rest of the bank is idle.
 */
export const webhooks: Group = {
  name: 'webhooks',
  quick: false,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, effort } = bench;
    const bank = await startBank(world, { name: 'hooks', accounts, webhooks: 1 });
    const port = await world.local.port('bench_receiver');
    const receiver = startHelper<ReceiverPlan, ReceiverResult>('contenders/receiver.ts', { PORT: String(port) });
    try {
      await receiver.ready(startMs);
      const from = new Date().toISOString();
      const target = { kind: 'batch' as const, accounts: bank.accounts, items: 100 };
      await load(world, bank, { target, connections: 4, seconds: fillSeconds, warmUpSeconds: 0 });
      const events = await world.withPool(bank.databaseUrl, 'webhooks', untilStored);
      world.say(`  ${events} events`);
      const replay = (count: number) => () => deliver(bench, bank, receiver, { count, from, port });
      const measured = await inTurn(effort.rounds, { one: replay(1), eight: replay(8) });
      return outcome(measured);
    } finally {
      receiver.stop();
      await bank.stop();
    }
  },
};

/** Resolves with the number of events when none has been stored for two seconds. */
async function untilStored(pool: Pool): Promise<bigint> {
  const head = async () =>
    (await pool.query<{ position: bigint }>('select position from event_head')).rows[0]?.position ?? 0n;
  for (let before = -1n, end = performance.now() + patienceMs; performance.now() < end; await sleep(2000)) {
    const now = await head();
    if (now === before && now > BigInt(accounts) * 2n) return now;
    before = now;
  }
  throw new Error('webhooks did not store the events');
}

/** Replays the events to this many webhooks and counts the requests that arrive. */
async function deliver(
  { world, effort }: Bench,
  bank: Bank,
  receiver: Helper<ReceiverPlan, ReceiverResult>,
  { count, from, port }: { count: number; from: string; port: number },
): Promise<Measured> {
  const { seconds, warmUpSeconds } = effort;
  const meter = createCpuMeter(world, bank);
  const timeoutMs = (seconds + warmUpSeconds) * 1000 + patienceMs;
  const counted = receiver.run({ seconds, warmUpSeconds }, timeoutMs, meter.phases);
  const paths = await Promise.all(
    Array.from({ length: count }, async () => {
      const url = `http://127.0.0.1:${port}/`;
      const created = await request(bank, '/webhooks', { url, event_types: ['transaction.completed'] });
      const path = `/webhooks/${(created.body as { data: { webhook_id: string } }).data.webhook_id}`;
      await request(bank, `${path}/replay`, { from, to: new Date().toISOString() });
      return path;
    }),
  );
  const { completed, cores } = await counted;
  await Promise.all(paths.map((path) => request(bank, path, undefined, 'DELETE')));
  const { cpuMicros, elsewhere } = meter.costs(completed, cores);
  world.loads.push({ elsewhere, generatorCores: cores, wrong: 0 });
  return {
    perSecond: completed / seconds,
    cpuMicros,
    receiverMicros: (cores * seconds * 1e6) / Math.max(1, completed),
  };
}

function outcome(measured: Record<'one' | 'eight', Measured[]>): Outcome {
  const perSecond = (name: keyof typeof measured) => median(measured[name].map((one) => one.perSecond));
  const micros = (name: keyof typeof measured, process: string) =>
    Math.round(median(measured[name].map((one) => one.cpuMicros[process] ?? 0)));
  const cpu = (name: keyof typeof measured) =>
    `CPU µs each: webhooks ${micros(name, 'webhooks')}, postgres ${micros(name, 'postgres')}, receiver ${Math.round(median(measured[name].map((one) => one.receiverMicros)))}`;
  return {
    lines: [
      { goal: 'webhook-deliveries', value: perSecond('eight'), note: `8 webhooks, one process; ${cpu('eight')}` },
      { goal: 'webhook-deliveries-one', value: perSecond('one'), note: cpu('one') },
    ],
    raw: measured,
  };
}
