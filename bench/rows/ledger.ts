import { migrateLedger } from '../bank.ts';
import type { LedgerPlan, LedgerResult } from '../contenders/ledger.ts';
import { startHelper } from '../helper.ts';
import { inTurn, median, ratio } from '../measure.ts';
import { pgbench, pgbenchMissing } from '../pgbench.ts';
import type { Bench, Group, Outcome } from '../row.ts';

const startMs = 60_000;

/** Compares the ledger's engine alone with pgbench, which shows the effect of batches. */
export const ledger: Group = {
  name: 'ledger',
  quick: false,
  async measure({ world, effort }: Bench): Promise<Outcome> {
    const missing = pgbenchMissing();
    if (missing !== undefined) return { lines: [{ goal: 'ledger-over-pgbench', missing }] };
    const engine = startHelper<LedgerPlan, LedgerResult>('contenders/ledger.ts', {
      DATABASE_URL: await migrateLedger(world, 'bench_ledger'),
    });
    try {
      await engine.ready(startMs);
      const run = (seconds: number) => engine.run({ seconds }, (seconds + 30) * 1000);
      await run(effort.firstSeconds);
      const measured = await inTurn(effort.rounds, {
        ledger: () => run(effort.seconds),
        pgbench: () => pgbench(world, effort.seconds, true),
      });
      const perSecond = measured.ledger.map((one) => one.perSecond);
      const refused = median(measured.ledger.map((one) => one.refusedPerSecond));
      return {
        lines: [
          {
            goal: 'ledger-over-pgbench',
            value: ratio(perSecond, measured.pgbench),
            note: `${Math.round(median(perSecond))} commands/s, ${Math.round(refused)} of them refused ÷ ${Math.round(median(measured.pgbench))}/s`,
          },
        ],
        raw: measured,
      };
    } finally {
      engine.stop();
    }
  },
};
