import { setTimeout as sleep } from 'node:timers/promises';
import { outboxesEmpty, sagasFinished } from '../check-outside.ts';
import { errorCode } from '../journal.ts';
import { acceptDatabase, archiveWal, backUp, databaseTime, resend, restoreTo } from '../restoring.ts';
import type { Bench, Row } from '../row.ts';

const lostMs = 4000;

/** Everything that callers were told in the lost time must be true again, with every kind of operation in the load. */
const restore: Row = {
  name: 'restore',
  title: (lasts) =>
    `the database is replaced by that of a moment, of a base backup and the WAL, after which the load ran for ${lasts(lostMs)} more; the commands are sent again (operations.md, Restore)`,
  touches: ['all'],
  recoveryMs: 10_000,
  callers: 'cut',
  async inject(bench) {
    const { cluster, load, pool, say } = bench;
    await archiveWal(cluster);
    await backUp(cluster);
    await sleep(1_000);
    const moment = await databaseTime(cluster);
    await sleep(bench.duration(lostMs));
    await load.stop();
    await outboxesEmpty({ pool });
    await sagasFinished({ pool });
    await restoreTo(cluster, moment);
    await acceptDatabase(cluster);
    const { sent, decided, unmet } = await resend(cluster, moment);
    say(`${sent} commands were sent again, of which ${decided} had been decided`);
    if (unmet.length > 0)
      throw new Error(`the books contradict ${unmet.length} events: ${JSON.stringify(unmet.slice(0, 3))}`);
    await cluster.restore();
    await tellLate(bench);
    load.start();
  },
};

/**
 * A refused atomic batch leaves no event, so the restored bank may refuse it for another reason (operations.md,
 * Limits). Its caller asks again now.
 */
async function tellLate({ journal, load }: Bench): Promise<void> {
  for (const operation of journal.operations) {
    if (operation.decided === undefined || errorCode(operation.decided) !== 'batch_refused') continue;
    operation.attempts.length = 0;
    delete operation.decided;
    operation.deserves.push('deadline_exceeded');
    await load.send(operation);
  }
}

export const restores: Row[] = [restore];
