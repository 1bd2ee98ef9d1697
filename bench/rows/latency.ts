import type { BarePlan } from '../contenders/bare.ts';
import { type Helper, startHelper } from '../helper.ts';
import type { Latency } from '../histogram.ts';
import { best, bestPool, inTurn, load, median, type Reading, ratio, transfersOf } from '../measure.ts';
import type { Bench, Group, Line, Outcome } from '../rows.ts';
import type { Side, World } from '../world.ts';

const openConnections = 256;
const startMs = 60_000;
/** kafkajs as published sets timers with a negative duration, of which Node warns. */
const bareEnv = { NODE_NO_WARNINGS: '1' };

/**
 * The latency of one transfer: alone, at 1,000/s, and at half of the maximum; and its CPU cost at
 * 500/s.
 */
export const latency: Group = {
  name: 'latency',
  quick: true,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, effort } = bench;
    const bank = await world.bank();
    const direct = await bestPool(world, 'direct', effort);
    const half = Math.round((await best(world, bank, effort)).perSecond / 2);
    const [bare, posting] = await Promise.all([startBare(world, 'bare'), startBare(world, 'posting')]);
    try {
      const at = (side: Side, rate: number | undefined) => () =>
        load(world, side, {
          target: transfersOf(side),
          connections: rate === undefined ? 1 : openConnections,
          rate,
          seconds: effort.seconds,
          warmUpSeconds: effort.warmUpSeconds,
        });
      const bareAt =
        ({ requester }: Bare, rate?: number) =>
        () =>
          requester.run(
            { seconds: effort.seconds, warmUpSeconds: effort.warmUpSeconds, rate },
            (effort.seconds + 30) * 1000,
          );
      await at(bank, undefined)();
      await bareAt(posting, 1000)();
      const measured = await inTurn(effort.rounds, {
        bank: at(bank, undefined),
        bare: bareAt(bare),
        posting: bareAt(posting),
        bank1000: at(bank, 1000),
        bare1000: bareAt(bare, 1000),
        posting1000: bareAt(posting, 1000),
        bankHalf: at(bank, half),
        bank500: at(bank, 500),
        direct500: at(direct, 500),
      });
      return outcome(measured, half);
    } finally {
      for (const { requester, responder } of [bare, posting]) {
        requester.stop();
        responder.stop();
      }
    }
  },
};

interface Measured
  extends Record<'bank' | 'bank1000' | 'bankHalf' | 'bank500' | 'direct500', Reading[]>,
    Record<'bare' | 'bare1000' | 'posting' | 'posting1000', Latency[]> {}

function outcome(measured: Measured, half: number): Outcome {
  const latencies = (name: keyof Measured): Latency[] =>
    measured[name].map((one) => ('latency' in one ? one.latency : one));
  const p50 = (name: keyof Measured) => latencies(name).map((one) => one.p50);
  const over = (goal: 'p50-alone' | 'p50-at-1000', name: 'bank' | 'bank1000', also: string): Line => ({
    goal,
    value: ratio(p50(name), p50('bare')),
    note: `${ms(p50(name))} ÷ ${ms(p50('bare'))}; ${also}`,
  });
  const p99 = (goal: 'p99-at-1000' | 'p99-at-half', name: 'bank1000' | 'bankHalf'): Line => ({
    goal,
    value: median(latencies(name).map((one) => one.p99)),
    note: `p50 ${ms(p50(name))}${name === 'bankHalf' ? `, at ${half}/s` : ''}`,
  });
  const cpu = (name: 'bank500' | 'direct500') => measured[name].map((one) => one.cpuMicrosPerRequest);
  const names: Record<keyof Measured, string> = {
    bank: 'bank, one at a time',
    bare: 'bare request-reply, one at a time',
    posting: 'the same with a posting between, no HTTP, no events',
    bank1000: 'bank, 1,000/s',
    bare1000: 'bare request-reply, 1,000/s',
    posting1000: 'the same with a posting between',
    bankHalf: `bank, ${half}/s`,
    bank500: 'bank, 500/s',
    direct500: 'direct, 500/s',
  };
  return {
    lines: [
      over('p50-alone', 'bank', `bare with a posting by a SQL function between ${ms(p50('posting'))}`),
      over(
        'p50-at-1000',
        'bank1000',
        `at 1,000/s bare ${ms(p50('bare1000'))}, with a posting between ${ms(p50('posting1000'))}`,
      ),
      p99('p99-at-1000', 'bank1000'),
      p99('p99-at-half', 'bankHalf'),
      {
        goal: 'cpu-at-500',
        value: ratio(cpu('bank500'), cpu('direct500')),
        note: `${Math.round(median(cpu('bank500')))} µs ÷ ${Math.round(median(cpu('direct500')))} µs`,
      },
    ],
    figures: [
      {
        title:
          'Latency of transfers in ms, medians of the rounds (open loop but for one at a time, counted from the moment at which a request was to be sent)',
        columns: ['load', 'p50', 'p90', 'p99', 'p99.9', 'max', 'sent late', 'elsewhere, of a core', 'not 2xx'],
        rows: (Object.keys(names) as (keyof Measured)[]).map((name) => [
          names[name],
          ...(['p50', 'p90', 'p99', 'p999', 'max'] as const).map((field) =>
            median(latencies(name).map((one) => one[field])).toFixed(2),
          ),
          ...readings(measured[name]),
        ]),
      },
    ],
    raw: measured,
  };
}

function readings(all: (Reading | Latency)[]): string[] {
  const loads = all.filter((one) => 'wrong' in one);
  if (loads.length === 0) return ['–', '–', '0'];
  return [
    median(loads.map((one) => one.sentLateMs)).toFixed(2),
    median(loads.map((one) => one.elsewhere)).toFixed(2),
    String(loads.reduce((sum, one) => sum + one.wrong, 0)),
  ];
}

function ms(values: number[]): string {
  return `${median(values).toFixed(2)} ms`;
}

interface Bare {
  responder: Helper<object, unknown>;
  requester: Helper<BarePlan, Latency>;
}

async function startBare(world: World, name: 'bare' | 'posting'): Promise<Bare> {
  const env = { ...bareEnv, KAFKA_BROKERS: world.infra.brokers, TOPICS: `bench.${name}` };
  const databaseUrl = name === 'bare' ? '' : await world.contenderDatabase(name);
  const responder = startHelper<object, unknown>('contenders/bare.ts', {
    ...env,
    ROLE: 'responder',
    DATABASE_URL: databaseUrl,
  });
  const requester = startHelper<BarePlan, Latency>('contenders/bare.ts', { ...env, ROLE: 'requester' });
  await Promise.all([responder.ready(startMs), requester.ready(startMs)]);
  return { responder, requester };
}
