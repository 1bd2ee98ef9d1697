import { faultColumns } from './report.ts';
import { testRows } from './row-tests.ts';
import { rows } from './rows/all.ts';

/**
 * `npm run test:faults`: injects every fault once under load, and checks I1-I12 from outside after each. row.ts
 * explains how to add a fault. With --self-test, self-test.suite.ts runs instead.
 */
testRows('faults', [{ name: 'faults', rows }], faultColumns);
