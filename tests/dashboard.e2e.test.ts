import { testAudit } from './dashboard/audit.ts';
import { testBackOffice } from './dashboard/back-office.ts';
import { testBooks } from './dashboard/books.ts';
import { testFinding, testTransaction } from './dashboard/finding.ts';
import { testKeys } from './dashboard/keys.ts';
import { testLists, testStatement } from './dashboard/lists.ts';
import { testOperations } from './dashboard/operations.ts';
import { testPages } from './dashboard/pages.ts';
import { useRecords } from './dashboard/records.ts';
import { testSignIn, testSignOut } from './dashboard/sign-in.ts';
import { describeInBrowser, useDashboard } from './support/browser.ts';
import { useBank } from './support/world.ts';

/** The administration dashboard as staff use it: a real browser, a real issuer, two gateways. One bank for all of it, which takes longest to start. */
describeInBrowser('the dashboard', () => {
  const world = useBank({ gateways: 2, dashboard: true });
  const dashboard = useDashboard(world);
  const records = useRecords(world);
  testSignIn(dashboard);
  testFinding(dashboard, records);
  testTransaction(dashboard, records);
  testBackOffice(dashboard);
  testLists(dashboard, records);
  testStatement(dashboard, records);
  testKeys(dashboard);
  testPages(dashboard);
  testAudit(dashboard);
  testBooks(dashboard);
  testOperations(dashboard);
  testSignOut(dashboard);
});
