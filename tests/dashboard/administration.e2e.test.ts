import { describeInBrowser, useDashboard } from '../support/browser.ts';
import { useBank } from '../support/world.ts';
import { testAudit } from './audit.ts';
import { testBooks } from './books.ts';
import { testKeys } from './keys.ts';
import { testLists, testStatement } from './lists.ts';
import { testOperations } from './operations.ts';
import { testPages } from './pages.ts';
import { useRecords } from './records.ts';
import { testWebhooks } from './webhooks.ts';

/** Tests the dashboard as administrators use it: lists, keys, webhooks, audit, books, and operations. */
describeInBrowser('the dashboard of administrators', () => {
  const world = useBank({ gateways: 2, webhooks: 1, dashboards: 2 });
  const dashboard = useDashboard(world);
  const records = useRecords(world);
  testLists(dashboard, records);
  testStatement(dashboard, records);
  testKeys(dashboard);
  testWebhooks(dashboard);
  testPages(dashboard);
  testAudit(dashboard);
  testBooks(dashboard);
  testOperations(dashboard);
});
