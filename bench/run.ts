import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { writeDocs } from './docs.ts';
import { describeMachine } from './machine.ts';
import { efforts, judgeTrust } from './measure.ts';
import { markdown, shown } from './report.ts';
import type { Bench, Group, Outcome } from './row.ts';
import { groups } from './rows.ts';
import { World } from './world.ts';

/**
 * `npm run bench`: compares the bank with its contenders on this machine, all in one run. Starts all processes itself
 * in a temporary directory. --quick takes two minutes, --only selects groups of rows (--list), --peers only compares
 * the bank with other ledgers (bench/peers), --only versions --against DIR with another version of itself, and --growth-transactions and --growth-accounts set the size of the
 * generated data.
 */
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    peers: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    minutes: { type: 'string', default: '60' },
    'growth-accounts': { type: 'string', default: '1000000' },
    'growth-transactions': { type: 'string', default: '10000000' },
    against: { type: 'string' },
    json: { type: 'string' },
    'write-docs': { type: 'boolean', default: false },
  },
});
/** In cores. If other processes used more than this, a measurement is not reliable. */
const mostElsewhere = 0.5;
const say = (line: string) => void process.stdout.write(`${line}\n`);

function number(
  name: 'rounds' | 'seconds' | 'minutes' | 'growth-accounts' | 'growth-transactions',
  fallback: number,
): number {
  const value = Number(options[name] ?? fallback);
  if (!(value > 0)) throw new Error(`--${name} must be a number above 0`);
  return value;
}

function chosen(): Group[] {
  const wanted = options.only?.split(',');
  const unknown = wanted?.filter((name) => !groups.some((group) => group.name === name)) ?? [];
  if (unknown.length > 0) throw new Error(`there is no group ${unknown.join(', ')}; --list shows all groups`);
  if (wanted) return groups.filter(({ name }) => wanted.includes(name));
  if (options.peers) return groups.filter(({ name }) => name.startsWith('peers-'));
  return groups.filter(({ quick, onRequest }) => (options.quick ? quick : !onRequest));
}

/** Measures one group after the other. If one fails, the failure is reported and the others continue. */
async function measureAll(
  bench: Bench,
  wanted: Group[],
  measured: (name: string, outcome: Outcome) => void,
): Promise<{ outcomes: Record<string, Outcome>; failed: number }> {
  const outcomes: Record<string, Outcome> = {};
  let failed = 0;
  for (const group of wanted) {
    if (bench.world.stopping) break;
    const begun = performance.now();
    say(`${group.name} …`);
    bench.world.loads.length = 0;
    try {
      await bench.world.checkpoint();
      const outcome = await group.measure(bench);
      measured(group.name, (outcomes[group.name] = { ...outcome, trust: judgeTrust(bench.world.loads) }));
    } catch (error) {
      failed += 1;
      if (!bench.world.stopping) say(`  FAILED: ${(error as Error).message}`);
    }
    say(`  ${((performance.now() - begun) / 1000).toFixed(0)} s`);
  }
  return { outcomes, failed };
}

async function main(): Promise<void> {
  if (options.list) {
    for (const { name } of groups) say(name);
    return;
  }
  const wanted = chosen();
  const effort = efforts[options.quick ? 'quick' : 'full'];
  const dir = mkdtempSync(join(tmpdir(), 'core-banking-bench-'));
  let world: World | undefined;
  let stopping = false;
  const stop = async (code: number) => {
    if (stopping) return;
    stopping = true;
    await world?.stop();
    if (code === 1) {
      renameSync(join(dir, 'log'), `${dir}-log`);
      say(`the logs are in ${dir}-log`);
    }
    rmSync(dir, { recursive: true, force: true });
    process.exit(code);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stop(130));
  try {
    world = await World.start(dir, say);
    const bench: Bench = {
      world,
      effort: { ...effort, rounds: number('rounds', effort.rounds), seconds: number('seconds', effort.seconds) },
      quick: options.quick,
      minutes: number('minutes', 60),
      growth: { accounts: number('growth-accounts', 0), transactions: number('growth-transactions', 0) },
      against: options.against && resolve(options.against),
    };
    const machine = await describeMachine(world);
    const { outcomes, failed } = await measureAll(bench, wanted, (name, outcome) => {
      for (const line of outcome.lines)
        say(`  ${line.goal}: ${'value' in line ? `${shown(line.value)} (${line.note})` : line.missing}`);
      const busy = outcome.trust?.elsewhere ?? 0;
      if (options['write-docs'] && busy > mostElsewhere)
        say(`  not written: ${busy.toFixed(2)} cores were used by other processes`);
      else if (options['write-docs']) writeDocs({ [name]: outcome }, machine);
    });
    if (stopping) return;
    say(`\n${markdown(outcomes, machine)}`);
    if (options.json) writeFileSync(options.json, `${JSON.stringify({ machine, outcomes }, null, 2)}\n`);
    await stop(failed === 0 ? 0 : 1);
  } catch (error) {
    if (stopping) return;
    process.stderr.write(`\nThe benchmark cannot run: ${(error as Error).message}\n`);
    await stop(1);
  }
}

await main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
