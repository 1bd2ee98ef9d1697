import { describeInBrowser, useDashboard } from '../support/browser.ts';
import { useBank } from '../support/world.ts';
import { testAudit } from './audit.ts';
import { testBackOffice } from './back-office.ts';
import { testBooks } from './books.ts';
import { testClients } from './clients.ts';
import { testCounter } from './counter.ts';
import { testDesk } from './desk.ts';
import { testFinding, testTransaction } from './finding.ts';
import { testKeys } from './keys.ts';
import { testLists, testStatement } from './lists.ts';
import { testOperations } from './operations.ts';
import { testPages } from './pages.ts';
import { useRecords } from './records.ts';
import { testSignIn, testSignOut } from './sign-in.ts';
import { testWebhooks } from './webhooks.ts';

/**
 * The administration dashboard as staff use it: a real browser, a real issuer, two gateways. One
 * bank for all of it, which takes longest to start.
 */
describeInBrowser('the dashboard', () => {
  const world = useBank({ gateways: 2, webhooks: 1, dashboard: true, env: { SECURITY_SUMMARY_SECONDS: '1' } });
  const dashboard = useDashboard(world);
  const records = useRecords(world);
  testSignIn(dashboard);
  testFinding(dashboard, records);
  testTransaction(dashboard, records);
  testBackOffice(dashboard);
  testDesk(dashboard, records);
  testClients(dashboard);
  testCounter(dashboard);
  testLists(dashboard, records);
  testStatement(dashboard, records);
  testKeys(dashboard);
  testWebhooks(dashboard);
  testPages(dashboard);
  testAudit(dashboard);
  testBooks(dashboard);
  testOperations(dashboard);
  testSignOut(dashboard);
});
