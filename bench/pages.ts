import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { generateData } from './growth-data.ts';

/**
 * `node bench/pages.ts`: measures the time to the first byte of every page of the dashboard, on a bank that `npm start`
 * runs. With --fill it first adds a million transactions (--transactions) and a tenth as many clients and accounts, which are not
 * removed. Prints p50, p95, and maximum. Fails if a p95 is above 100 ms.
 */
const { values: options } = parseArgs({
  options: {
    dir: { type: 'string', default: '.local' },
    fill: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '40' },
    only: { type: 'string', default: '' },
    transactions: { type: 'string', default: '1000000' },
  },
});
const goalMs = 100;
const transactions = Number(options.transactions);
const size = { accounts: Math.ceil(transactions / 10), transactions };
const say = (line: string) => void process.stdout.write(`${line}\n`);

const { dashboard_url, database_url, dashboard_password } = JSON.parse(
  readFileSync(join(options.dir, 'connection.json'), 'utf8'),
) as Record<'dashboard_url' | 'database_url' | 'dashboard_password', string>;

async function withSchema(schema: string, work: (pool: Pool) => Promise<unknown>): Promise<void> {
  const settings = { url: database_url, application_name: 'bench', schema, max: 1, statement_timeout_ms: 30 * 60_000 };
  const pool = createPool(settings, pino({ level: 'warn' }));
  await work(pool);
  await pool.end();
}

/** Inserts the owners of the generated ledger accounts, as the accounts service would have stored them. */
async function generateOwners(pool: Pool): Promise<void> {
  const name = (names: string, of: string) => `(string_to_array('${names}', ' '))[1 + (${of}) % 5]`;
  const opened = "now() - interval '31 days' + n * interval '1 second', now()";
  const numbers = `generate_series(0, ${size.accounts - 1}) n`;
  await pool.query(`insert into clients (client_id, client_type, first_name, last_name, email, contact_number, created_at, updated_at)
    select 'cli_' || md5('client ' || n), 'Retail', ${name('Amina Baraka Grace Juma Wanjiru', 'n')},
      ${name('Otieno Mwangi Kamau Hassan Achieng', 'n / 5')} || ' ' || n, 'p' || n || '@example.org', '+2547' || lpad(n::text, 8, '0'), ${opened} from ${numbers}`);
  await pool.query(`insert into accounts (account_id, client_id, account_number, account_type, currency, status, state, created_at, updated_at)
    select 'acc_' || md5('account ' || n), 'cli_' || md5('client ' || n), 'CUR-' || lpad(n::text, 10, '0'), 'Current', 'USD', 'Active', 'open', ${opened} from ${numbers}`);
  await pool.query('analyze clients, accounts');
}

/** Signs in at the local identity provider, as a browser does. Returns the session's cookie. */
async function signIn(): Promise<string> {
  const cookies = new Map<string, Map<string, string>>();
  const follow = async (from: string, form?: URLSearchParams): Promise<string> => {
    const { origin } = new URL(from);
    const own = cookies.get(origin) ?? new Map<string, string>();
    cookies.set(origin, own);
    const response = await fetch(from, {
      ...(form && { method: 'POST', body: form }),
      headers: { cookie: [...own].map(([name, value]) => `${name}=${value}`).join('; ') },
      redirect: 'manual',
    });
    for (const [, name = '', value = ''] of response.headers
      .getSetCookie()
      .map((one) => /^([^=]+)=([^;]*)/.exec(one) ?? []))
      own.set(name, value);
    const to = response.headers.get('location');
    return to === null ? from : follow(new URL(to, from).href);
  };
  const form = await follow(`${dashboard_url}/login/start`);
  await follow(form, new URLSearchParams({ user_name: 'admin', password: dashboard_password }));
  const session = cookies.get(new URL(dashboard_url).origin)?.get('bank_session');
  if (session === undefined) throw new Error('the sign-in has failed');
  return `bank_session=${session}`;
}

const exampleId = (prefix: string, kind: string, n: number) =>
  `${prefix}_${createHash('md5').update(`${kind} ${n}`).digest('hex')}`;

/** Returns the pages of one account, client, and transfer, which are different ones in each round. */
function pagePaths(n: number): string[] {
  const account = `/accounts/${exampleId('acc', 'account', n)}`;
  const transaction = `/transactions/${exampleId('txn', 'transfer', n)}`;
  const counter = `/counter/${exampleId('acc', 'account', n)}`;
  const parts = ['', '/transactions', '/entries', '/holds', '/statement', '/history', '/freezing'];
  return [
    ...[
      '',
      '/your-day',
      '/today',
      '/cash-days',
      '/tills',
      '/clients',
      '/accounts',
      '/transactions',
      '/approvals/all',
      '/books',
      '/operations',
      '/audit',
    ],
    ...['/api-keys', '/api-keys/new', '/webhooks', '/counter', '/counter/batches'],
    ...['/transactions?status=Failed', '/books/postings', '/clients?q=amina+ot', '/find?q=amina+otieno'],
    ...[`/find?q=07${String(n).padStart(8, '0')}`, '/counter?q=amina+otieno', '/clients/new', '/accounts/new'],
    ...parts.map((part) => account + part),
    ...['deposit', 'transfer'].map((kind) => `${counter}/${kind}`),
    ...['', '/contact', '/notes', '/erasure'].map((part) => `/clients/${exampleId('cli', 'client', n)}${part}`),
    ...['', '/reversal'].map((part) => transaction + part),
    `/transfers/${exampleId('trf', 'transfer', n)}`,
  ];
}

if (options.fill) {
  await withSchema('ledger', (pool) => generateData(pool, size, say));
  await withSchema('accounts', generateOwners);
}
const cookie = await signIn();
const times = new Map<string, number[]>();
for (let round = -10; round < Number(options.rounds); round++) {
  for (const path of pagePaths(Math.floor(Math.random() * size.accounts))) {
    const name = path.replace(/_[0-9a-f]{32}/, '').replace(/=07\d+/, '=07…');
    if (!name.includes(options.only)) continue;
    const begun = performance.now();
    const response = await fetch(`${dashboard_url}/ui${path}`, { headers: { cookie }, redirect: 'manual' });
    const took = performance.now() - begun;
    await response.arrayBuffer();
    if (response.status >= 400 || response.headers.get('location')?.startsWith('/admin/login') === true)
      throw new Error(`${path}: ${response.status}`);
    // The first rounds are a warm-up: a bank in use runs code that is compiled.
    if (round >= 0) times.set(name, [...(times.get(name) ?? []), took]);
  }
}
for (const [name, all] of times) {
  const sorted = all.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? 0;
  say(
    `${(name || '/').padEnd(36)} p50 ${at(0.5).toFixed(0).padStart(5)} ms   p95 ${at(0.95).toFixed(0).padStart(5)} ms   max ${at(1).toFixed(0).padStart(5)} ms`,
  );
  if (at(0.95) > goalMs) process.exitCode = 1;
}
