import { setTimeout as sleep } from 'node:timers/promises';
import type { HaCluster, HaOptions } from './cluster.ts';
import { type HaRow, haRow } from './measure.ts';
import { promoted } from './rows-postgres.ts';

/**
 * A row that must find a loss. It removes one protection on which the other rows depend, and passes when the checks
 * find the loss.
 */
export interface SelfTestRow extends HaRow {
  without: HaOptions;
}

/**
 * Writes may fail for as long as the row takes. The ledger stops when it detects the older history, so the bank does
 * not recover.
 */
const outageMs = 600_000;
const recoveryMs = 30_000;

/** The standby does not receive the last second. Then the primary is killed. */
const asynchronousStandby: SelfTestRow = {
  ...haRow({
    name: 'self-test-asynchronous',
    title: 'self-test: the standby is asynchronous and behind when the primary is killed: the loss is found',
    touches: ['postgres'],
    outageMs,
    recoveryMs,
    async inject(bench) {
      const { database } = bench.cluster as HaCluster;
      const primary = await database.primary();
      if (!primary) throw new Error('there is no primary');
      primary.freezeSenders();
      await sleep(2000);
      await primary.kill();
      await promoted(bench, primary);
    },
  }),
  without: { database: { synchronous: false } },
};

export const selfTestRows: SelfTestRow[] = [asynchronousStandby];
