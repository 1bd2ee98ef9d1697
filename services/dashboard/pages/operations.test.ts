import { afterAll, beforeAll, expect, it } from 'vitest';
import { ok } from '../../gateway/test/test-app.ts';
import { answering, testDashboard } from '../test/test-dashboard.ts';

/** Operations without a bank: the last hour as pictures, and no lag that the page itself causes. */
let made: Awaited<ReturnType<typeof testDashboard>>;
const sample = (minute: number, lag: number | null) => ({
  at: `2026-01-02T03:0${minute}:00.000Z`,
  lag,
  count: 60,
  mean_ms: 2.5,
  slowest_ms: minute * 10,
});
let history = [sample(1, 0), sample(2, null), sample(3, 1500), sample(4, 7)];

beforeAll(async () => {
  made = await testDashboard(
    answering(() => ({
      get_ledger_operations: ok({ outbox: { rows: 0, oldest_age_ms: 0 }, last_verification: null }),
    })),
    {
      history: { read: () => history },
      consumerLag: async () =>
        ['ledger.commands', 'ledger.queries', 'ledger.batches'].map((topic) => ({
          group: 'g',
          topic,
          partition: 0,
          lag: topic === 'ledger.batches' ? 0 : 1,
        })),
    },
  );
});
afterAll(() => made.app.close());

const visibleText = (body: string) => body.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
const open = async () => (await made.signedIn('books:read').get('/admin/ui/operations')).body;

it('shows the last hour as lines with their figures in words, and a gap where nothing is known', async () => {
  const body = await open();
  expect(visibleText(body)).toContain('Messages behind 7 usually 7, at most 1500');
  expect(body).toContain('aria-label="Slowest request, the last hour: now 40 ms, usually 30 ms, at most 40 ms"');
  expect(visibleText(body)).toMatch(/2026-01-02 03:01 2026-01-02 03:04/);
  expect(body).toMatch(/<path d="M0\.0 58\.0M200\.0 2\.0L300\.0 57\.7" fill="none"/);
  expect(body).not.toContain('style=');
  history = history.slice(0, 1);
  expect(await open()).toContain('This gateway has just started');
});

it('leaves out topics of queries, which are behind only because somebody looks', async () => {
  const body = await open();
  expect(body).toContain('>ledger.commands</div>');
  expect(body).not.toContain('ledger.queries');
  expect(body).toContain('Up to date: 1 of 2 groups and topics.');
});

it('says first whether everything is as usual, and what is not', async () => {
  // Accounts does not answer here.
  expect(visibleText(await open())).toContain('Not as usual: accounts does not answer;');
});
