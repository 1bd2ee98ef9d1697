import { openSync, readSync, closeSync } from 'node:fs';
import { logSize } from '../../deploy/local/log-file.ts';
import { eventually } from '../support/eventually.ts';
import type { Cluster } from './cluster.ts';
import type { Evidence } from './evidence.ts';

/** The invariants that are seen in the database, in the topics and in the logs. */

const limit = 'limit 10';

/** Over all that was ever booked, on the contract's views alone. */
const booksRules: Record<string, string> = {
  'I1: per operation and currency debits equal credits': `
    select operation_id, currency from v_entries group by operation_id, currency having sum(case side when 'DR' then amount_minor else -amount_minor end) <> 0 ${limit}`,
  'I1: Teller is 0 at rest': `select account_number, balance_minor from v_accounts where account_number like 'TLR-%' and balance_minor <> 0 ${limit}`,
  'I2: balance = sum of entries': `
    select a.account_id, a.balance_minor, e.total from v_accounts a
      left join (select account_id, sum(case direction when 'credit' then amount_minor else -amount_minor end) as total from v_entries group by account_id) e using (account_id)
    where a.balance_minor <> coalesce(e.total, 0) ${limit}`,
  'I2: balance = last balance_after, and sequences have no gap': `
    select a.account_id, a.balance_minor, a.last_sequence, e.entries from v_accounts a
      left join (select account_id, max(sequence) as last, count(*) as entries, (array_agg(balance_after_minor order by sequence desc))[1] as balance_after from v_entries group by account_id) e using (account_id)
    where a.last_sequence <> coalesce(e.last, 0) or a.last_sequence <> coalesce(e.entries, 0) or a.balance_minor <> coalesce(e.balance_after, 0) ${limit}`,
  'I6: no customer below 0 in any row': `
    select e.account_id, e.sequence, e.balance_after_minor from v_entries e join v_accounts a using (account_id) where a.client_id is not null and e.balance_after_minor < 0 ${limit}`,
};

export async function booksAreInOrder({ pool }: Evidence): Promise<string[]> {
  const findings: string[] = [];
  for (const [rule, query] of Object.entries(booksRules)) {
    const { rows } = await pool.query<Record<string, unknown>>(query);
    if (rows.length > 0) findings.push(`${rule}: ${rows.map((row) => JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))).join(' ')}`);
  }
  return findings;
}

/** I2: what REST shows of every account that was touched (of many, a part) is what the ledger holds. */
export async function restShowsTheBooks({ cluster, before, after }: Evidence): Promise<string[]> {
  const touched = [...after].filter(([account, minor]) => before.get(account) !== minor).slice(-50);
  const findings: string[] = [];
  for (const [account, minor] of touched) {
    const response = await fetch(`${cluster.gateways[0]?.baseUrl}/accounts/${account}`, { headers: { 'x-api-key': cluster.apiKey }, signal: AbortSignal.timeout(10_000) });
    const { data } = (await response.json()) as { data?: { balance: number } };
    if (response.status !== 200 || Math.round((data?.balance ?? Number.NaN) * 100) !== minor) findings.push(`I2: GET /accounts/${account} answers ${response.status} ${data?.balance}, and the ledger holds ${minor} minor units`);
  }
  return findings;
}

/** Resolves when every service has published what it has committed. */
export async function outboxesEmpty({ pool }: Pick<Evidence, 'pool'>, timeoutMs = 30_000): Promise<void> {
  await eventually(async () => {
    const { rows } = await pool.query<{ waiting: bigint }>('select (select count(*) from ledger.outbox_batches where published_at is null) + (select count(*) from accounts.outbox_batches where published_at is null) as waiting');
    return rows[0]?.waiting === 0n;
  }, timeoutMs);
}

/** I7: each transaction of these operations has its event, of the same amount; and no event is without its transaction. */
export async function eventsMatch({ transactions, events, pool }: Evidence): Promise<string[]> {
  const findings = events.findings.splice(0);
  for (const { transaction_id, account_id, status, amount_minor } of transactions) {
    const event = events.transactions.get(transaction_id);
    if (!event) findings.push(`I7: ${transaction_id} is ${status}, and has no event`);
    else if (event.status !== status || event.account !== account_id) findings.push(`I7: the event of ${transaction_id} says ${event.status} on ${event.account}`);
    else if (status === 'Completed' && Math.round(Number(event.amount) * 100) !== Number(amount_minor)) findings.push(`I7: the event of ${transaction_id} says ${event.amount}`);
  }
  const { rows } = await pool.query<{ completed: bigint; failed: bigint }>("select count(*) filter (where status = 'Completed') as completed, count(*) filter (where status = 'Failed') as failed from v_transactions");
  const seen = { completed: 0n, failed: 0n };
  for (const { status } of events.transactions.values()) seen[status === 'Completed' ? 'completed' : 'failed'] += 1n;
  if (rows[0]?.completed !== seen.completed) findings.push(`I7: ${seen.completed} events of Completed transactions, of which there are ${rows[0]?.completed}`);
  if (rows[0]?.failed !== seen.failed) findings.push(`I7: ${seen.failed} events of Failed transactions, of which there are ${rows[0]?.failed}`);
  return findings;
}

/** The sagas are at their end: every account is open or refused, and every step answered. */
export async function sagasFinished({ pool }: Evidence): Promise<string[]> {
  try {
    await eventually(async () => {
      const { rows } = await pool.query<{ left: bigint }>("select (select count(*) from accounts.saga_steps) + (select count(*) from accounts.accounts where state = 'opening') as left");
      return rows[0]?.left === 0n;
    }, 20_000);
    return [];
  } catch {
    const { rows } = await pool.query<{ step_id: string; attempts: number; message: string }>('select step_id, attempts, message from accounts.saga_steps limit 5');
    return [`I5: sagas do not end: ${JSON.stringify(rows)}`];
  }
}

/** What no log may hold (I12); `from`: where in each log to begin. */
const disaster = /unhandled ?rejection|uncaught|"level":60|FATAL ERROR|\bTypeError\b|\bReferenceError\b/i;

/** I12: nothing ended by itself, and no log tells of an error that nobody has handled. */
export function logsAreClean(cluster: Cluster, from: Map<string, number>): string[] {
  const findings = cluster.unexpectedExits.splice(0).map((exit) => `I12: ${exit}`);
  for (const { name, log } of cluster.nodes) {
    const lines = newText(log, from.get(log) ?? 0).split('\n').filter((line) => disaster.test(line));
    findings.push(...lines.slice(0, 5).map((line) => `I12: ${name}: ${line.slice(0, 500)}`));
    from.set(log, logSize(log));
  }
  return findings;
}

function newText(file: string, from: number): string {
  const size = logSize(file);
  if (size <= from) return '';
  const handle = openSync(file, 'r');
  try {
    const buffer = Buffer.alloc(size - from);
    return buffer.toString('utf8', 0, readSync(handle, buffer, 0, buffer.length, from));
  } finally {
    closeSync(handle);
  }
}
