import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import {
  type Harness as Accounts,
  messageFor,
  newId,
  retail,
  startHarness as startAccounts,
} from '../../services/accounts/test/harness.ts';
import type { Query } from '../../services/ledger/queries/queries.ts';
import { type LedgerHarness, startLedger } from '../../services/ledger/test/harness.ts';
import { startHarness as startWebhooks, type Harness as Webhooks } from '../../services/webhooks/test/harness.ts';
import type { Child } from '../../tools/local/child.ts';
import { freePort } from '../../tools/local/ports.ts';
import { postgresUrl, startPostgres } from '../../tools/local/postgres.ts';
import { eventually } from '../support/eventually.ts';

/**
 * Tests a server whose synchronous standby is away: each commit waits for it. What is not on the standby must not be
 * answered, because a failover would take it back.
 */
const root = mkdtempSync(join(tmpdir(), 'core-banking-standby-'));
const sharedServer = process.env['DATABASE_URL'];
let server: Child;
let superuser: Pool;
let ledger: LedgerHarness;
let accounts: Accounts;
let webhooks: Webhooks;
let savings: string;

beforeAll(async () => {
  const port = await freePort();
  const owner = { name: 'bank', password: 'secret' };
  const files = { dir: join(root, 'data'), log: join(root, 'log') };
  server = await startPostgres({ ...files, port, superuserPassword: 'secret', owner, durable: false });
  const url = postgresUrl(port, 'postgres', 'secret', 'postgres');
  process.env['DATABASE_URL'] = url;
  superuser = createPool({ url, application_name: 'superuser', schema: 'public', max: 2 }, silent);
  [ledger, accounts, webhooks] = await Promise.all([startLedger(), startAccounts(), startWebhooks()]);
  savings = await ledger.open('Savings', '100');
});
afterAll(async () => {
  await standby('');
  await Promise.all([ledger, accounts, webhooks].map((one) => one?.stop()));
  await superuser?.end();
  await server?.stop(10_000);
  process.env['DATABASE_URL'] = sharedServer;
  rmSync(root, { recursive: true, force: true });
});

/** Names the standby that commits wait for; none if empty. */
async function standby(name: string): Promise<void> {
  await superuser.query(`alter system set synchronous_standby_names = '${name}'`);
  await superuser.query('select pg_reload_conf()');
  await eventually(
    async () => (await superuser.query('show synchronous_standby_names')).rows[0].synchronous_standby_names === name,
  );
}

const waiting = "from pg_stat_activity where wait_event = 'SyncRep'";

/** Resolves when a commit waits for the standby. Fails if `work` ends before that. */
async function commitWaits(work: Promise<unknown>): Promise<void> {
  let ended = false;
  const end = () => void (ended = true);
  work.then(end, end);
  await eventually(async () => {
    const { rowCount } = await superuser.query(`select ${waiting}`);
    expect(ended, 'answered without the standby').toBe(false);
    return rowCount === 1;
  });
}

const cancelWait = () => superuser.query(`select pg_cancel_backend(pid) ${waiting}`);

/**
 * Does the work while the standby is away and cancels its wait, as an operator does with a statement that hangs. The
 * outcome must not be reported. Then does it again, and returns what that reports when the standby is back.
 */
async function repeated<T>(work: () => Promise<T>): Promise<T> {
  await standby('nobody');
  try {
    const first = work();
    await commitWaits(first);
    await cancelWait();
    await expect(first).rejects.toThrow(/may not be durable/);
    const again = work();
    await commitWaits(again);
    await standby('');
    return await again;
  } finally {
    await standby('');
  }
}

test.each([
  ['a deposit', () => ledger.cash('Deposit', savings, '7')],
  // It locks no row, so nothing but its record was ever written.
  ['a deposit to an unknown account', () => ledger.cash('Deposit', newId('account'), '7')],
])('the ledger reports %s only when it is on the standby, and so its repeat', async (_what, command) => {
  const one = command();
  expect(await repeated(() => ledger.book([one]))).toMatchObject([{ replayed: true }]);
});

test('accounts answers a command and its repeats only when it is on the standby', async () => {
  const create = () => {
    const client_id = newId('client');
    return messageFor('create_client', { client_id, client: retail }, { message_id: client_id });
  };
  const client = create();
  await repeated(() => accounts.handleCommands([client]));
  expect(accounts.repliesTo(client.headers['correlation-id'] ?? '')).toMatchObject([{ ok: true }]);
  // A backlog, whose repeats are answered together.
  const backlog = Array.from({ length: 60 }, create);
  await accounts.handleCommands(backlog);
  await standby('nobody');
  const again = accounts.handleCommands(backlog.map((message) => ({ ...message })));
  await commitWaits(again);
  await standby('');
  await again;
});

test('webhooks answers a command and its repeat only when it is on the standby', async () => {
  const webhook_id = newId('webhook');
  const data = { webhook_id, url: 'https://127.0.0.1/', event_types: ['*'], description: null, sealed_secret: 'x' };
  await repeated(() => webhooks.send('create_webhook', data, { message_id: webhook_id }));
});

test.each<[string, (at: string) => Omit<Query, 'context'>]>([
  ['a past balance', (at) => ({ name: 'get_account_balance', data: { account_id: savings, at } })],
  [
    'a period of a statement',
    (to) => ({ name: 'get_statement', data: { account_id: savings, to, limit: 9, order: 'asc' } }),
  ],
])('%s does not change any more: a posting that is being committed is waited for', async (_what, asked) => {
  // contract: accounts-30
  await standby('nobody');
  const posting = ledger.book([ledger.cash('Deposit', savings, '5')]);
  await commitWaits(posting);
  const { rows } = await superuser.query<{ now: string }>('select clock_timestamp() as now');
  const query = asked(rows[0]?.now ?? '');
  const first = ledger.ask(query);
  await eventually(async () => (await superuser.query('select from pg_locks where not granted')).rowCount === 1);
  await standby('');
  await posting;
  expect(await first).toEqual(await ledger.ask(query));
});
