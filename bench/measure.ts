import { machineSeconds } from './cpu.ts';
import type { Phases } from './helper.ts';
import type { Best, LoadPlan, Reading, Target } from './load-plan.ts';
import type { Side, World } from './world.ts';

/** Duration and number of all measurements. */
export interface Effort {
  rounds: number;
  /** The duration for one side in one round. */
  seconds: number;
  warmUpSeconds: number;
  searchSeconds: number;
  /** The duration for a side that has not run yet, until compilers and caches have settled. */
  firstSeconds: number;
  connections: number[];
  pools: number[];
}

export const efforts: Record<'full' | 'quick', Effort> = {
  full: {
    rounds: 3,
    seconds: 4,
    warmUpSeconds: 1,
    searchSeconds: 1.5,
    firstSeconds: 4,
    connections: [32, 64, 128, 256, 512, 1000],
    pools: [4, 8, 16],
  },
  quick: {
    rounds: 2,
    seconds: 1.5,
    warmUpSeconds: 1,
    searchSeconds: 0.75,
    firstSeconds: 1,
    connections: [64, 512],
    pools: [8],
  },
};

export type LoadOptions = Pick<LoadPlan, 'target' | 'connections' | 'seconds' | 'warmUpSeconds' | 'rate'>;

/** Converts a measurement of requests with several items to figures per item. */
export function perItem(reading: Reading, items: number): Reading {
  return {
    ...reading,
    perSecond: reading.perSecond * items,
    cpuMicrosPerRequest: reading.cpuMicrosPerRequest / items,
    cpuMicros: Object.fromEntries(Object.entries(reading.cpuMicros).map(([name, micros]) => [name, micros / items])),
  };
}

/** Returns the default target: transfers between the side's accounts. */
export function defaultTarget(side: Side): Target {
  return { kind: 'transfer', accounts: side.accounts };
}

const patienceMs = 40_000;

/** Loads one side. `generator` replaces the run's if two loads run concurrently. */
export async function load(
  world: World,
  side: Side,
  options: LoadOptions,
  generator = world.generator,
): Promise<Reading> {
  const meter = createCpuMeter(world, side);
  const plan: LoadPlan = { ports: side.ports ?? [side.port], credential: side.credential, ...options };
  const timeoutMs = (options.seconds + options.warmUpSeconds) * 1000 + patienceMs;
  const result = await generator.run(plan, timeoutMs, meter.phases);
  const reading = { ...result, ...meter.costs(result.completed, result.generatorCores) };
  world.loads.push(reading);
  return reading;
}

/** Measures the CPU use of a side, and of other processes, during the measured time of a helper. */
export function createCpuMeter(
  world: World,
  side: Side,
): {
  phases: Required<Phases>;
  /** `cores`: the CPU use of the helper itself. */
  costs(completed: number, cores: number): Pick<Reading, 'cpuMicrosPerRequest' | 'cpuMicros' | 'elsewhere'>;
} {
  const snapshot = () => ({ machine: machineSeconds(), side: world.readCpu(side), at: performance.now() });
  let [before, after] = [snapshot(), snapshot()];
  return {
    phases: {
      measuring() {
        before = snapshot();
      },
      measured() {
        after = snapshot();
      },
    },
    costs(completed, cores) {
      const used = Object.entries(after.side).map(
        ([name, seconds]) => [name, seconds - (before.side[name] ?? 0)] as const,
      );
      const sum = used.reduce((total, [, seconds]) => total + seconds, 0);
      const each = 1e6 / Math.max(1, completed);
      return {
        cpuMicrosPerRequest: sum * each,
        cpuMicros: Object.fromEntries(used.map(([name, seconds]) => [name, seconds * each])),
        elsewhere: Math.max(0, ((after.machine - before.machine - sum) * 1000) / (after.at - before.at) - cores),
      };
    },
  };
}

/** Indicators of the reliability of a group's loads: the CPU use of other processes, and responses other than 2xx. */
export interface Trust {
  loads: number;
  elsewhere: number;
  mostElsewhere: number;
  mostGenerator: number;
  wrong: number;
}

export function judgeTrust(loads: Pick<Reading, 'elsewhere' | 'generatorCores' | 'wrong'>[]): Trust {
  return {
    loads: loads.length,
    elsewhere: loads.length === 0 ? 0 : median(loads.map((one) => one.elsewhere)),
    mostElsewhere: Math.max(0, ...loads.map((one) => one.elsewhere)),
    mostGenerator: Math.max(0, ...loads.map((one) => one.generatorCores)),
    wrong: loads.reduce((sum, one) => sum + one.wrong, 0),
  };
}

/**
 * Found by a coarse search, once per side and kind of request in a run. A step with a gain of less than 3 % is not
 * taken. A side that has not run yet is warmed up first.
 */
export async function best(world: World, side: Side, effort: Effort, target = defaultTarget(side)): Promise<Best> {
  const key = `${side.name} ${target.kind}`;
  const known = world.best.get(key);
  if (known) return known;
  const found = { connections: effort.connections[0] ?? 1, perSecond: 0 };
  let worse = 0;
  await load(world, side, { target, connections: 64, seconds: 1, warmUpSeconds: effort.firstSeconds });
  for (const connections of effort.connections) {
    const { perSecond } = await load(world, side, {
      target,
      connections,
      seconds: effort.searchSeconds,
      warmUpSeconds: 0.5,
    });
    if (perSecond > found.perSecond * 1.03) {
      Object.assign(found, { connections, perSecond });
      worse = 0;
    } else if (++worse === 2) break;
  }
  world.say(
    `  ${side.name}, ${target.kind}: best at ${found.connections} connections, about ${Math.round(found.perSecond)}/s`,
  );
  world.best.set(key, found);
  return found;
}

/**
 * Returns the contender with the pool size of the highest throughput, found once in a run. Those with other sizes are
 * stopped.
 */
export async function bestPool(world: World, name: 'direct' | 'function', effort: Effort): Promise<Side> {
  const known = world.pools.get(name);
  if (known !== undefined) return world.contender(name, known);
  const tried: { side: Side; perSecond: number; pool: number }[] = [];
  for (const pool of effort.pools) {
    const side = await world.contender(name, pool);
    const { perSecond } = await load(world, side, {
      target: defaultTarget(side),
      connections: 64,
      seconds: effort.searchSeconds,
      warmUpSeconds: 1,
    });
    tried.push({ side, perSecond, pool });
  }
  const [first, ...others] = tried.sort((one, other) => other.perSecond - one.perSecond);
  if (first === undefined) throw new Error('no size of pool to try');
  await Promise.all(others.map(({ side }) => side.stop()));
  world.pools.set(name, first.pool);
  world.say(`  ${name}: best with ${first.pool} connections to Postgres`);
  return first.side;
}

/**
 * Runs every part once per round, in alternating order (A B C, C B A, …), so that changes of the machine and effects of
 * earlier parts are distributed evenly.
 */
export async function inTurn<Parts extends Record<string, () => Promise<unknown>>>(
  rounds: number,
  parts: Parts,
): Promise<Results<Parts>> {
  const results = Object.fromEntries(Object.keys(parts).map((name) => [name, [] as unknown[]]));
  const [there, back] = [Object.entries(parts), Object.entries(parts).reverse()];
  for (let round = 0; round < rounds; round++)
    for (const [name, part] of round % 2 === 0 ? there : back) results[name]?.push(await part());
  return results as Results<Parts>;
}

type Results<Parts extends Record<string, () => Promise<unknown>>> = {
  [Name in keyof Parts]: Awaited<ReturnType<Parts[Name]>>[];
};

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? NaN)
    : ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2;
}

/** Returns the median of the ratios of each round, because both sides of a round ran under the same conditions. */
export function ratio(above: number[], below: number[]): number {
  return median(above.map((value, i) => value / (below[i] ?? NaN)));
}
