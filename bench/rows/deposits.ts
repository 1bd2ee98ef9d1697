import { defaultBank } from '../bank.ts';
import type { Target } from '../load-plan.ts';
import { best, bestPool, defaultTarget, inTurn, load, median, ratio } from '../measure.ts';
import type { Bench, Group, Outcome } from '../row.ts';
import type { Side } from '../world.ts';

const depositTarget = (side: Side): Target => ({ kind: 'deposit', accounts: side.accounts });
const manyConnections = 1_000;

/** Compares deposits, each of which uses Teller and Vault, with transfers and with direct deposits. */
export const deposits: Group = {
  name: 'deposits',
  quick: false,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, effort } = bench;
    const bank = await defaultBank(world);
    const direct = await bestPool(world, 'direct', effort);
    const connections = {
      bank: (await best(world, bank, effort, depositTarget(bank))).connections,
      direct: (await best(world, direct, effort, depositTarget(direct))).connections,
    };
    const at = (side: Side, target: Target, count: number) => () =>
      load(world, side, { target, connections: count, seconds: effort.seconds, warmUpSeconds: effort.warmUpSeconds });
    const measured = await inTurn(effort.rounds, {
      bank: at(bank, depositTarget(bank), connections.bank),
      direct: at(direct, depositTarget(direct), connections.direct),
      transfers: at(bank, defaultTarget(bank), connections.bank),
      many: at(bank, depositTarget(bank), manyConnections),
      directMany: at(direct, depositTarget(direct), manyConnections),
    });
    const perSecond = (name: keyof typeof measured) => measured[name].map((one) => one.perSecond);
    const text = (name: keyof typeof measured) => `${Math.round(median(perSecond(name)))}/s`;
    const wrong = measured.many.reduce((sum, one) => sum + one.wrong, 0);
    return {
      lines: [
        {
          goal: 'deposits-over-direct',
          value: ratio(perSecond('bank'), perSecond('direct')),
          note: `${text('bank')} at ${connections.bank} connections ÷ ${text('direct')} at ${connections.direct}`,
        },
        {
          goal: 'deposits-of-transfers',
          value: ratio(perSecond('bank'), perSecond('transfers')),
          note: `${text('bank')} ÷ ${text('transfers')}`,
        },
        {
          goal: 'deposits-cliff',
          value: ratio(perSecond('many'), perSecond('bank')),
          note: `${text('many')} ÷ ${text('bank')}, ${wrong} not 2xx; direct at ${manyConnections} connections ${text('directMany')}`,
        },
      ],
      raw: { connections, measured },
    };
  },
};
