import type { LoadPlan, LoadResult, Target } from './load-plan.ts';
import type { Side, World } from './world.ts';

/** How long and how often everything is measured. */
export interface Effort {
  rounds: number;
  /** Of one side in one round. */
  seconds: number;
  warmUpSeconds: number;
  searchSeconds: number;
  /** Of a side that has done nothing yet: compilers and caches come to rest. */
  firstSeconds: number;
  connections: number[];
  pools: number[];
}

export const efforts: Record<'full' | 'quick', Effort> = {
  full: { rounds: 5, seconds: 5, warmUpSeconds: 1, searchSeconds: 2, firstSeconds: 6, connections: [16, 32, 64, 128, 256, 512, 1000], pools: [4, 8, 16] },
  quick: { rounds: 2, seconds: 3, warmUpSeconds: 1, searchSeconds: 1.5, firstSeconds: 3, connections: [32, 128, 512], pools: [8] },
};

/** A load's result with the CPU that the side's processes, Postgres and its broker used for it. */
export interface Reading extends LoadResult {
  cpuMicrosPerRequest: number;
  /** The same by process. */
  cpuMicros: Record<string, number>;
}

export type LoadOptions = Pick<LoadPlan, 'target' | 'connections' | 'seconds' | 'warmUpSeconds' | 'rate'>;

/** The default: transfers between the side's accounts. */
export function transfersOf(side: Side): Target {
  return { kind: 'transfer', accounts: side.accounts };
}

const patienceMs = 40_000;

/** Loads one side. */
export async function load(world: World, side: Side, options: LoadOptions): Promise<Reading> {
  let before: Record<string, number> = {};
  let after: Record<string, number> = {};
  const plan: LoadPlan = { port: side.port, credential: side.credential, ...options };
  const result = await world.generator.run(plan, (options.seconds + options.warmUpSeconds) * 1000 + patienceMs, {
    measuring: () => { before = world.cpuOf(side); },
    measured: () => { after = world.cpuOf(side); },
  });
  const each = ([name, seconds]: [string, number]) => [name, ((seconds - (before[name] ?? 0)) * 1e6) / Math.max(1, result.completed)] as const;
  const cpuMicros = Object.fromEntries(Object.entries(after).map(each));
  return { ...result, cpuMicrosPerRequest: Object.values(cpuMicros).reduce((sum, micros) => sum + micros, 0), cpuMicros };
}

/** The number of connections at which a side does most, searched coarsely; a step that gives less than 3 % more is not taken. */
export async function bestConnections(world: World, side: Side, effort: Effort, target = transfersOf(side)): Promise<number> {
  let best = { connections: effort.connections[0] ?? 1, perSecond: 0 };
  let worse = 0;
  await load(world, side, { target, connections: 64, seconds: 1, warmUpSeconds: effort.firstSeconds });
  for (const connections of effort.connections) {
    const { perSecond } = await load(world, side, { target, connections, seconds: effort.searchSeconds, warmUpSeconds: 0.5 });
    if (perSecond > best.perSecond * 1.03) {
      best = { connections, perSecond };
      worse = 0;
    } else if (++worse === 2) break;
  }
  world.say(`  ${side.name}: best at ${best.connections} connections, about ${Math.round(best.perSecond)}/s`);
  return best.connections;
}

/** The contender with the size of pool at which it does most; those of other sizes are stopped. */
export async function bestPool(world: World, name: 'direct' | 'function', effort: Effort, targetOf: (side: Side) => Target = transfersOf): Promise<Side> {
  let best: { side: Side; perSecond: number; pool: number } | undefined;
  for (const pool of effort.pools) {
    const side = await world.contender(name, { pool });
    if (effort.pools.length === 1) return side;
    const { perSecond } = await load(world, side, { target: targetOf(side), connections: 64, seconds: effort.searchSeconds, warmUpSeconds: 1 });
    if (best === undefined || perSecond > best.perSecond) best = { side, perSecond, pool };
  }
  if (best === undefined) throw new Error('no size of pool to try');
  world.say(`  ${name}: best with ${best.pool} connections to Postgres`);
  return best.side;
}

/** Runs every part once per round, in turn (A B C, A B C, …): the machine's moods meet all alike. */
export async function inTurn<Name extends string, T>(rounds: number, parts: Record<Name, () => Promise<T>>): Promise<Record<Name, T[]>> {
  const names = Object.keys(parts) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, [] as T[]])) as Record<Name, T[]>;
  for (let round = 0; round < rounds; round++) for (const name of names) results[name].push(await parts[name]());
  return results;
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[middle] ?? NaN) : ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2;
}

/** The median of the rounds' own ratios: both sides of a round saw the same machine. */
export function ratio(above: number[], below: number[]): number {
  return median(above.map((value, i) => value / (below[i] ?? NaN)));
}
