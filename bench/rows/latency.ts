import { defaultBank } from '../bank.ts';
import type { BarePlan } from '../contenders/bare.ts';
import type { GoalId } from '../goals.ts';
import { type Helper, startHelper } from '../helper.ts';
import type { Latency } from '../histogram.ts';
import type { Reading, Target } from '../load-plan.ts';
import { defaultTarget, inTurn, load, median, ratio } from '../measure.ts';
import type { Bench, Group, Line, Outcome } from '../row.ts';
import type { World } from '../world.ts';

const openConnections = 256;
const startMs = 60_000;
const rates = [200, 500, 1000] as const;
/** kafkajs as published sets timers with a negative duration, about which Node warns. */
const bareEnv = { NODE_NO_WARNINGS: '1' };

type Rate = (typeof rates)[number];
type Sided<Side extends string> = `${Side}, one at a time` | `${Side}, ${Rate}/s`;
type Load = Sided<'bank' | 'pipeline'> | 'bare, one at a time' | 'bank, reads one at a time';

/**
 * Measures the latency of one transfer, alone and at several rates, compared with the shortest pipeline over the same
 * hops: a request and a reply through the broker, and between them one posting by a SQL function, without HTTP,
 * validation, or events. Also measures the latency of one balance read, compared with the same pipeline without a
 * posting.
 */
export const latency: Group = {
  name: 'latency',
  quick: true,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, effort } = bench;
    const bank = await defaultBank(world);
    const [bare, pipeline] = await Promise.all([startBare(world, 'bare'), startBare(world, 'posting')]);
    const timing = { seconds: effort.seconds, warmUpSeconds: effort.warmUpSeconds };
    const bankAt =
      (rate?: number, target: Target = defaultTarget(bank)) =>
      () =>
        load(world, bank, { target, connections: rate === undefined ? 1 : openConnections, rate, ...timing });
    const bareAt =
      ({ requester }: Bare, rate?: number) =>
      () =>
        requester.run({ ...timing, rate }, (effort.seconds + 30) * 1000);
    try {
      await bankAt()();
      await bareAt(pipeline, 1000)();
      const paced = rates.flatMap((rate) => [
        [`bank, ${rate}/s`, bankAt(rate)] as const,
        [`pipeline, ${rate}/s`, bareAt(pipeline, rate)] as const,
      ]);
      const measured = await inTurn(effort.rounds, {
        'bank, one at a time': bankAt(),
        'pipeline, one at a time': bareAt(pipeline),
        'bank, reads one at a time': bankAt(undefined, { kind: 'balance', numbers: bank.numbers }),
        'bare, one at a time': bareAt(bare),
        ...(Object.fromEntries(paced) as Record<
          `bank, ${Rate}/s` | `pipeline, ${Rate}/s`,
          () => Promise<Reading | Latency>
        >),
      });
      return outcome(measured);
    } finally {
      for (const { requester, responder } of [bare, pipeline]) {
        requester.stop();
        responder.stop();
      }
    }
  },
};

function outcome(measured: Record<Load, (Reading | Latency)[]>): Outcome {
  const latencies = (name: Load): Latency[] => measured[name].map((one) => ('latency' in one ? one.latency : one));
  const line = (goal: GoalId, field: 'p50' | 'p99', one: Load, other: Load): Line => {
    const [above, below] = [one, other].map((name) => latencies(name).map((each) => each[field]));
    return {
      goal,
      value: ratio(above ?? [], below ?? []),
      note: `${median(above ?? []).toFixed(2)} ms ÷ ${median(below ?? []).toFixed(2)} ms`,
    };
  };
  return {
    lines: [
      line('p50-alone', 'p50', 'bank, one at a time', 'pipeline, one at a time'),
      ...rates.flatMap((rate) =>
        (['p50', 'p99'] as const).map((field) =>
          line(`${field}-at-${rate}`, field, `bank, ${rate}/s`, `pipeline, ${rate}/s`),
        ),
      ),
      line('p50-of-read', 'p50', 'bank, reads one at a time', 'bare, one at a time'),
    ],
    figures: [
      {
        title:
          'Latency in ms, medians of the rounds. It is counted from the time at which a request should have been sent (open loop, except for one at a time)',
        columns: [
          'load',
          'p50',
          'p90',
          'p99',
          'p99.9',
          'max',
          'sent late, ms',
          'CPU µs each',
          'other processes, cores',
          'not 2xx',
        ],
        rows: (Object.keys(measured) as Load[]).map((name) => [
          name,
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
  if (loads.length === 0) return ['–', '–', '–', '0'];
  return [
    median(loads.map((one) => one.sentLateMs)).toFixed(2),
    median(loads.map((one) => one.cpuMicrosPerRequest)).toFixed(0),
    median(loads.map((one) => one.elsewhere)).toFixed(2),
    String(loads.reduce((sum, one) => sum + one.wrong, 0)),
  ];
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
