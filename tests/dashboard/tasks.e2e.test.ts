import { describeInBrowser, useDashboard } from '../support/browser.ts';
import { useBank } from '../support/world.ts';
import { testBack } from './back.ts';
import { testBatches } from './batches.ts';
import { testDays } from './days.ts';
import { testTasks } from './tasks.ts';

/**
 * Tests the tasks of staff other than the counter, in a browser. It has its own bank, so it can run at the same time as
 * the tests of other pages.
 */
describeInBrowser('the tasks of staff in the dashboard', () => {
  const dashboard = useDashboard(useBank({ dashboards: 1 }));
  testTasks(dashboard);
  testBatches(dashboard);
  testDays(dashboard);
  testBack(dashboard);
});
