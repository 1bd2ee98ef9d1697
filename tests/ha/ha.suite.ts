import { beforeAll } from 'vitest';
import type { Random } from '../faults/random.ts';
import { testRows } from '../faults/row-tests.ts';
import { options } from '../suites/options.ts';
import { startHaCluster } from './cluster.ts';
import { haColumns } from './measure.ts';
import { requirePrograms } from './preflight.ts';
import { certificateRows } from './rows-certificates.ts';
import { kafkaRows } from './rows-kafka.ts';
import { postgresRows } from './rows-postgres.ts';
import { selfTestRows } from './rows-self-test.ts';
import { startOldCluster, versionRows } from './rows-versions.ts';

/**
 * `npm run test:ha`: permanent failures and replacements under load, on three brokers and a database with a standby,
 * with the checks of the fault campaign after each row. `--short` is the part for continuous integration.
 */
beforeAll(requirePrograms);
const shortRows = ['broker-kill-each', 'postgres-kill-primary'];

testRows(
  'ha',
  [
    { name: 'cluster', rows: [...kafkaRows, ...postgresRows, ...certificateRows], start: startHaCluster },
    { name: 'versions', rows: versionRows, start: startOldCluster },
    ...selfTestRows.map((row) => ({
      name: 'self-test',
      rows: [row],
      start: (dir: string, random: Random) => startHaCluster(dir, random, row.without),
      mustFind: /LOST|I3|I5/,
    })),
  ],
  haColumns,
  options.only?.split(',') ?? (options.short ? shortRows : undefined),
);
