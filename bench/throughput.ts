import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import autocannon from 'autocannon';

/**
 * The first reading: completed deposits and transfers per second of a running bank (`npm start`), over HTTP, on uniformly
 * chosen accounts. `npm run bench -- [--connections 32] [--seconds 10] [--accounts 200]`. The generator shares the machine.
 */
function option(name: string, fallback: number): number {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : Number(process.argv[at + 1]);
}

const connections = option('connections', 32);
const seconds = option('seconds', 10);
const accounts = option('accounts', 200);

const localDir = process.env['LOCAL_DIR'] ?? join(import.meta.dirname, '..', '.local');
const { base_url, api_key } = JSON.parse(readFileSync(join(localDir, 'connection.json'), 'utf8')) as { base_url: string; api_key: string };
const headers = { 'x-api-key': api_key, 'content-type': 'application/json' };

async function post(path: string, body: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(base_url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return ((await response.json()) as { data: Record<string, unknown> }).data;
}

async function openAccounts(): Promise<string[]> {
  const client = await post('/clients', { client_type: 'Corporate', company_name: 'Bench', registration_number: '1', email: 'bench@example.org', contact_number: '+254700000001' });
  const ids: string[] = [];
  while (ids.length < accounts) {
    const some = Array.from({ length: Math.min(20, accounts - ids.length) }, () => post('/accounts', { client_id: client['client_id'], account_type: 'Current', currency: 'USD', initial_deposit: 1_000_000 }));
    ids.push(...(await Promise.all(some)).map((account) => String(account['account_id'])));
  }
  return ids;
}

interface Reading {
  operation: string;
  perSecond: number;
  p50: number;
  p99: number;
  other: number;
}

async function load(operation: string, path: string, body: () => unknown): Promise<Reading> {
  const result = await autocannon({
    url: base_url + path,
    connections,
    duration: seconds,
    requests: [{ method: 'POST', path, headers, setupRequest: (request) => ({ ...request, body: JSON.stringify(body()) }) }],
  });
  return { operation, perSecond: Math.round(result['2xx'] / result.duration), p50: result.latency.p50, p99: result.latency.p99, other: result.non2xx + result.errors };
}

const ids = await openAccounts();
const pick = () => ids[Math.floor(Math.random() * ids.length)] ?? '';
const deposit = () => ({ account_id: pick(), transaction_type: 'Deposit', amount: 1.25 });
const transfer = () => {
  const from = pick();
  let to = pick();
  while (to === from) to = pick();
  return { from_account_id: from, to_account_id: to, amount: 0.25 };
};

await load('warm-up', '/transfers', transfer);
const readings = [await load('transfers', '/transfers', transfer), await load('deposits', '/transactions', deposit)];
process.stdout.write(`${connections} connections, ${seconds} s each, ${accounts} accounts, everything on this machine\n\n`);
process.stdout.write('| operation | completed/s | p50 ms | p99 ms | not 2xx |\n|---|---|---|---|---|\n');
for (const { operation, perSecond, p50, p99, other } of readings) process.stdout.write(`| ${operation} | ${perSecond} | ${p50} | ${p99} | ${other} |\n`);
