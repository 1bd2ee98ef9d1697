import { describeInBrowser, useDashboard } from '../support/browser.ts';
import { useBank } from '../support/world.ts';
import { testBatches } from './batches.ts';
import { testTasks } from './tasks.ts';

/** What staff do besides the counter, in a browser. A bank of its own: it runs beside that of the other pages. */
describeInBrowser('the tasks of staff in the dashboard', () => {
  const dashboard = useDashboard(useBank({ dashboard: true }));
  testTasks(dashboard);
  testBatches(dashboard);
});
