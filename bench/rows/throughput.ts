import { best, bestPool, inTurn, load, median, type Reading, ratio, transfersOf } from '../measure.ts';
import { pgbench, pgbenchMissing } from '../pgbench.ts';
import type { Bench, Group, Line, Outcome } from '../rows.ts';
import type { Side, World } from '../world.ts';

/**
 * Transfers per second of every contender, each at its best number of connections, and the CPU cost
 * of one.
 */
export const throughput: Group = {
  name: 'throughput',
  quick: true,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, effort } = bench;
    const missing = pgbenchMissing();
    const sides = [
      await world.bank(),
      await world.contender('self'),
      await bestPool(world, 'direct', effort),
      await bestPool(world, 'function', effort),
    ] as const;
    const [bank] = sides;
    const connections = new Map<Side, number>();
    for (const side of sides) connections.set(side, (await best(world, side, effort)).connections);
    const withToken: Side = { ...sides[1], name: 'self, with a JWT', credential: world.token };
    if (!bench.quick) connections.set(withToken, connections.get(sides[1]) ?? 1);
    const all = [...connections.keys()];
    const parts: Record<string, () => Promise<Reading | number>> = Object.fromEntries(
      all.map((side) => [side.name, () => full(world, side, connections.get(side) ?? 1, bench)]),
    );
    if (missing === undefined) parts['pgbench'] = () => pgbench(world, effort.seconds, true);
    if (missing === undefined && !bench.quick) parts['pgbench alone'] = () => pgbench(world, effort.seconds, false);
    const measured = await inTurn(effort.rounds, parts);
    const of = (name: string) => (measured[name] ?? []).map((one) => (typeof one === 'number' ? one : one.perSecond));
    const readings = (name: string) => (measured[name] ?? []).filter((one) => typeof one !== 'number');
    (await best(world, bank, effort)).perSecond = median(of('bank'));
    const over = (goal: 'of-gateway' | 'over-direct' | 'over-function' | 'over-pgbench', name: string): Line => ({
      goal,
      value: ratio(of('bank'), of(name)),
      note: `${perSecond(of('bank'))} ÷ ${perSecond(of(name))}`,
    });
    const cpu = (name: string) => readings(name).map(({ cpuMicrosPerRequest }) => cpuMicrosPerRequest);
    return {
      lines: [
        over('of-gateway', 'self'),
        over('over-direct', 'direct'),
        over('over-function', 'function'),
        missing === undefined ? over('over-pgbench', 'pgbench') : { goal: 'over-pgbench', missing },
        {
          goal: 'cpu-saturated',
          value: ratio(cpu('direct'), cpu('bank')),
          note: `${Math.round(median(cpu('direct')))} µs ÷ ${Math.round(median(cpu('bank')))} µs`,
        },
      ],
      figures: [
        {
          title: 'Transfers, each contender at its best number of connections',
          columns: [
            'contender',
            'connections',
            'transfers/s',
            'p50 ms',
            'p99 ms',
            'CPU µs each',
            'of these',
            'generator, of a core',
            'elsewhere, of a core',
            'not 2xx',
          ],
          rows: [
            ...all.map((side) => figuresOf(side, connections.get(side) ?? 1, readings(side.name))),
            ...['pgbench', 'pgbench alone']
              .filter((name) => name in measured)
              .map((name) => [
                name === 'pgbench' ? 'pgbench, relay running' : 'pgbench',
                '8',
                median(of(name)).toFixed(0),
                ...Array<string>(6).fill('–'),
              ]),
          ],
        },
      ],
      raw: { connections: Object.fromEntries([...connections].map(([side, count]) => [side.name, count])), measured },
    };
  },
};

function full(world: World, side: Side, connections: number, { effort }: Bench): Promise<Reading> {
  return load(world, side, {
    target: transfersOf(side),
    connections,
    seconds: effort.seconds,
    warmUpSeconds: effort.warmUpSeconds,
  });
}

function perSecond(values: number[]): string {
  return `${Math.round(median(values))}/s`;
}

function figuresOf(side: Side, connections: number, readings: Reading[]): string[] {
  const of = (value: (reading: Reading) => number, digits = 0) => median(readings.map(value)).toFixed(digits);
  return [
    side.name,
    String(connections),
    of((r) => r.perSecond),
    of((r) => r.latency.p50, 1),
    of((r) => r.latency.p99, 1),
    of((r) => r.cpuMicrosPerRequest),
    Object.keys(readings[0]?.cpuMicros ?? {})
      .map((name) => `${name} ${of((r) => r.cpuMicros[name] ?? 0)}`)
      .join(', '),
    of((r) => r.generatorCores, 2),
    of((r) => r.elsewhere, 2),
    String(readings.reduce((sum, { wrong }) => sum + wrong, 0)),
  ];
}
