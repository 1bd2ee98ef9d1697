import { testAudit } from './dashboard/audit.ts';
import { testBooks } from './dashboard/books.ts';
import { testKeys } from './dashboard/keys.ts';
import { testOperations } from './dashboard/operations.ts';
import { testPages } from './dashboard/pages.ts';
import { testRecords } from './dashboard/records.ts';
import { testSignIn, testSignOut } from './dashboard/sign-in.ts';
import { describeInBrowser, useDashboard } from './support/browser.ts';
import { useBank } from './support/world.ts';

/** The administration dashboard as staff use it: a real browser, a real issuer, two gateways. One bank for all of it, which takes longest to start. */
describeInBrowser('the dashboard', () => {
  const dashboard = useDashboard(useBank({ gateways: 2, dashboard: true }));
  testSignIn(dashboard);
  testRecords(dashboard);
  testKeys(dashboard);
  testPages(dashboard);
  testAudit(dashboard);
  testBooks(dashboard);
  testOperations(dashboard);
  testSignOut(dashboard);
});
