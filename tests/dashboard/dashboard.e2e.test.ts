import { describeInBrowser, useDashboard } from '../support/browser.ts';
import { useBank } from '../support/world.ts';
import { testBackOffice } from './back-office.ts';
import { testClients } from './clients.ts';
import { testCounter } from './counter.ts';
import { testDesk } from './desk.ts';
import { testFinding, testTransaction } from './finding.ts';
import { useRecords } from './records.ts';
import { testSignIn, testSignOut } from './sign-in.ts';
import { testYourDay } from './your-day.ts';

/**
 * Tests the dashboard as the staff of a branch use it, with a real browser, a real issuer, and two gateways.
 * administration.e2e.test.ts tests the pages of administrators.
 */
describeInBrowser('the dashboard of a branch', () => {
  const world = useBank({ gateways: 2, webhooks: 1, dashboards: 2 });
  const dashboard = useDashboard(world);
  const records = useRecords(world);
  testSignIn(dashboard);
  testFinding(dashboard, records);
  testTransaction(dashboard, records);
  testBackOffice(dashboard);
  testDesk(dashboard, records);
  testClients(dashboard);
  testCounter(dashboard);
  testYourDay(dashboard);
  testSignOut(dashboard);
});
