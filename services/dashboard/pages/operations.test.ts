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
let ledger = { outbox: { rows: 0, oldest_age_ms: 0 }, last_verification: null as object | null };
let lag = 1;
let others = {};
let history = [sample(1, 0), sample(2, null), sample(3, 1500), sample(4, 7), sample(5, 7)];

beforeAll(async () => {
  made = await testDashboard(
    answering(() => ({
      get_ledger_operations: ok({ tills_different: 0, ...ledger }),
      ...others,
    })),
    {
      history: { read: () => history },
      consumerLag: async () =>
        ['ledger.commands', 'ledger.queries', 'ledger.batches'].map((topic) => ({
          group: 'g',
          topic,
          partition: 0,
          lag: topic === 'ledger.batches' ? 0 : lag,
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
  expect(body).toContain('aria-label="Slowest request, the last hour: now 50 ms, usually 30 ms, at most 50 ms"');
  expect(visibleText(body)).toMatch(/2026-01-02 03:01 2026-01-02 03:05/);
  expect(body).toMatch(/<path d="M0\.0 58\.0M150\.0 2\.0L225\.0 57\.7L300\.0 57\.7" fill="none"/);
  expect(body).not.toContain('style=');
  history = history.slice(0, 4);
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

it('is not as usual with broken books, events that wait, or messages that are far behind', async () => {
  const said = async () =>
    /(Everything is as usual\.|Not as usual: .*?) Services /.exec(visibleText(await open()))?.[1];
  const calm = { outbox: { rows: 0, oldest_age_ms: 0 } };
  others = {
    get_accounts_operations: ok({ ...calm, dead_letters_open: 0, last_audit_check: null }),
    get_webhooks_operations: ok({ ...calm, webhooks_failing: 0 }),
  };
  const check = (state: string) => ({
    verification_id: 'v',
    requested_by: 'key:k',
    started_at: '2026-01-02T03:01:00.000Z',
    ended_at: '2026-01-02T03:01:00.000Z',
    state,
    findings: [],
  });
  ledger = { outbox: { rows: 3, oldest_age_ms: 15_000 }, last_verification: check('passed') };
  expect(await said()).toBe('Everything is as usual.');
  ledger = { outbox: { rows: 3, oldest_age_ms: 15_001 }, last_verification: check('passed') };
  expect(await said()).toBe('Not as usual: ledger does not publish its events.');
  ledger = { ...calm, last_verification: check('broken') };
  expect(await said()).toContain('Not as usual: the last verification has found rules');
  ledger = { ...calm, last_verification: check('interrupted') };
  expect(await said()).toContain('Not as usual: the last verification has not finished');
  ledger = { ...calm, last_verification: null };
  lag = 2_001;
  expect(await said()).toBe('Not as usual: g is 2001 messages behind.');
  lag = 2_000;
  expect(await said()).toBe('Everything is as usual.');
  others = { ...others, get_webhooks_operations: ok({ ...calm, webhooks_failing: 1 }) };
  expect(await said()).toBe('Not as usual: webhooks of the bank to which events cannot be delivered: 1.');
});
