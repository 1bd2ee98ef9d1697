import { setTimeout as sleep } from 'node:timers/promises';
import { residentMb } from '../cpu.ts';
import type { GoalId } from '../goals.ts';
import { best, inTurn, load, median, ratio, transfersOf } from '../measure.ts';
import type { Bench, Group, Line, Outcome } from '../rows.ts';

const quietMs = 5_000;

/** The CPU use of an idle bank. */
export const idle: Group = {
  name: 'idle',
  quick: false,
  async measure({ world, quick }: Bench): Promise<Outcome> {
    const bank = await world.bank();
    await sleep(quietMs);
    const side = { processes: bank.processes, usesBroker: false };
    const before = world.cpuOf(side);
    const seconds = quick ? 10 : 30;
    await sleep(seconds * 1000);
    const after = world.cpuOf(side);
    const shares = Object.entries(after).map(
      ([name, used]) => [name, ((used - (before[name] ?? 0)) * 100) / seconds] as const,
    );
    const note = `${shares.map(([name, share]) => `${name} ${share.toFixed(2)} %`).join(', ')}; over ${seconds} s`;
    return { lines: [{ goal: 'idle', value: shares.reduce((sum, [, share]) => sum + share, 0), note }] };
  },
};

/** Resident memory while the bank is saturated for --minutes. */
export const memory: Group = {
  name: 'memory',
  quick: false,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, minutes, effort } = bench;
    const bank = await world.bank();
    const { connections } = await best(world, bank, effort);
    const samples: Record<string, number>[] = [];
    const sample = () =>
      samples.push(Object.fromEntries(bank.processes.map(({ name, pid }) => [name, residentMb(pid)])));
    const timer = setInterval(sample, Math.min(10_000, (minutes * 60_000) / 20));
    try {
      const { perSecond } = await load(world, bank, {
        target: transfersOf(bank),
        connections,
        seconds: minutes * 60,
        warmUpSeconds: 1,
      });
      const third = Math.ceil(samples.length / 3);
      const most = (name: string, part: Record<string, number>[]) => Math.max(...part.map((one) => one[name] ?? 0));
      const line = (goal: GoalId, name: string): Line => ({
        goal,
        value: most(name, samples.slice(-third)),
        note: `most in the last third of ${minutes} min at ${Math.round(perSecond)}/s; in the first third ${most(name, samples.slice(0, third)).toFixed(0)} MB`,
      });
      return {
        lines: [
          line('memory-gateway', 'gateway'),
          line('memory-ledger', 'ledger'),
          line('memory-accounts', 'accounts'),
        ],
        raw: samples,
      };
    } finally {
      clearInterval(timer);
    }
  },
};

/** The same bank with more ledgers. */
export const ledgers: Group = {
  name: 'ledgers',
  quick: false,
  async measure({ world, effort }: Bench): Promise<Outcome> {
    const banks = {
      one: await world.bank(),
      two: await world.newBank({ name: 'two', accounts: 200, ledgers: 2 }),
      four: await world.newBank({ name: 'four', accounts: 200, ledgers: 4 }),
    };
    try {
      const { connections } = await best(world, banks.one, effort);
      for (const bank of [banks.two, banks.four])
        await load(world, bank, {
          target: transfersOf(bank),
          connections,
          seconds: 1,
          warmUpSeconds: effort.firstSeconds,
        });
      const part = (bank: (typeof banks)['one']) => () =>
        load(world, bank, {
          target: transfersOf(bank),
          connections,
          seconds: effort.seconds,
          warmUpSeconds: effort.warmUpSeconds,
        });
      const measured = await inTurn(effort.rounds, {
        one: part(banks.one),
        two: part(banks.two),
        four: part(banks.four),
      });
      const perSecond = (name: keyof typeof measured) => measured[name].map((one) => one.perSecond);
      const line = (goal: 'ledgers-2' | 'ledgers-4', name: 'two' | 'four'): Line => ({
        goal,
        value: ratio(perSecond(name), perSecond('one')),
        note: `${Math.round(median(perSecond(name)))}/s ÷ ${Math.round(median(perSecond('one')))}/s on the same cores`,
      });
      return { lines: [line('ledgers-2', 'two'), line('ledgers-4', 'four')], raw: measured };
    } finally {
      await Promise.all([banks.two.stop(), banks.four.stop()]);
    }
  },
};
