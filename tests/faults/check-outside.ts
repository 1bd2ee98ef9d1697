import { closeSync, openSync, readSync } from 'node:fs';
import type { Finding } from '#libs/postgres/findings.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { verifyBooks } from '#services/ledger/verify/verify-books.ts';
import { verifyEvents } from '#services/ledger/verify/verify-events.ts';
import { logSize } from '../../tools/local/log-file.ts';
import { eventually } from '../support/eventually.ts';
import type { Cluster } from './cluster.ts';
import type { Evidence } from './evidence.ts';
import { done, minorUnits, placedHold } from './journal.ts';

/** The invariants that are checked in the database, the topics, and the logs. */

/** The findings, one line each. The campaign prints each line once. */
function shown(prefix: string, findings: Finding[]): string[] {
  return findings.flatMap(({ rule, rows }) => rows.map((row) => `${prefix}: ${rule}: ${inWords(row)}`));
}

const inWords = (row: object): string =>
  JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));

/** I1, I2, I6: every rule of verify-books, over all entries. */
export async function booksAreInOrder({ pool }: Pick<Evidence, 'pool'>): Promise<string[]> {
  return shown('I1, I2, I6', await verifyBooks(pool));
}

/**
 * I7: the events match the postings, completely and in order, and each account has an opening
 * event.
 */
export async function eventsMatch({ pool, events, cluster, after }: Evidence): Promise<string[]> {
  const unopened = [...after.keys()].filter((account) => !events.openedAccounts.has(account));
  const broken = await verifyEvents(pool, events.kafka, cluster.topicPrefix, silent, cluster.isRestored);
  return [...shown('I7', broken), ...unopened.map((account) => `I7: ${account} was opened, and has no event`)];
}

/** I3: the client has the data of its last acknowledged change. */
export async function clientShowsItsChange({
  cluster,
  operations,
}: Pick<Evidence, 'cluster' | 'operations'>): Promise<string[]> {
  const last = operations.findLast(({ kind, decided }) => kind === 'patch' && decided !== undefined);
  if (!last) return [];
  const { status, data } = await get<{ contact_number: string }>(cluster, last.path);
  const due = last.body['contact_number'];
  if (data?.contact_number === due) return [];
  return [`I3: GET ${last.path} answers ${status} ${data?.contact_number}, and ${last.key} has set ${due}`];
}

async function get<T>({ gateways, apiKey }: Cluster, path: string): Promise<{ status: number; data: T | undefined }> {
  const headers = { 'x-api-key': apiKey };
  const response = await fetch(`${gateways[0]?.baseUrl}${path}`, { headers, signal: AbortSignal.timeout(10_000) });
  return { status: response.status, data: ((await response.json()) as { data?: T }).data };
}

/** I2: the balance that REST shows for each account used (or a sample) is that of the ledger. */
export async function restShowsTheBooks({ cluster, before, after }: Evidence): Promise<string[]> {
  const touched = [...after].filter(([account, minor]) => before.get(account) !== minor).slice(-50);
  const findings: string[] = [];
  for (const [account, minor] of touched) {
    const { status, data } = await get<{ balance: number; currency: string }>(cluster, `/accounts/${account}`);
    if (data && minorUnits(data.balance, data.currency) === minor) continue;
    findings.push(
      `I2: GET /accounts/${account} answers ${status} ${data?.balance}, and the ledger holds ${minor} minor units`,
    );
  }
  return findings;
}

/** I3, I5: each hold is as its client was answered, and no other has been placed on the same accounts. */
export async function holdsAreAsAnswered({ pool, journal }: Pick<Evidence, 'pool' | 'journal'>): Promise<string[]> {
  const due = new Map<string, { captured: number; isOver: boolean }>();
  const accounts = new Set<string>();
  for (const operation of journal.operations) {
    const [, , id = ''] = operation.path.split('/');
    const placed = placedHold(operation);
    if (placed !== undefined) due.set(placed, { captured: 0, isOver: false });
    if (operation.kind === 'hold') accounts.add(id);
    const hold = done(operation) ? due.get(id) : undefined;
    if (hold === undefined) continue;
    hold.captured -= operation.effects[0]?.minor ?? 0;
    hold.isOver ||= operation.kind === 'release' || operation.body['final'] === true;
  }
  const { rows } = await pool.query<{ hold_id: string; captured_minor: bigint; is_over: boolean }>(
    "select hold_id, captured_minor, status in ('Captured', 'Released') as is_over from v_holds where account_id = any($1)",
    [[...accounts]],
  );
  const inWords = (id: string, captured: number | bigint, isOver: boolean) =>
    `${id}, ${captured} minor units captured, ${isOver ? 'ended' : 'not ended'}`;
  const answered = new Set([...due].map(([id, { captured, isOver }]) => inWords(id, captured, isOver)));
  const kept = new Set(rows.map(({ hold_id, captured_minor, is_over }) => inWords(hold_id, captured_minor, is_over)));
  return [
    ...[...answered.difference(kept)].map((hold) => `I3: LOST: the responses report ${hold}`),
    ...[...kept.difference(answered)].map((hold) => `I5: the ledger has ${hold}, which no response reports`),
  ];
}

/** Resolves when every service has published everything that it committed. */
export async function outboxesEmpty({ pool }: Pick<Evidence, 'pool'>, timeoutMs = 30_000): Promise<void> {
  await eventually(async () => {
    const { rows } = await pool.query<{ waiting: bigint }>(
      'select (select count(*) from ledger.outbox_batches where published_at is null) + (select count(*) from accounts.outbox_batches where published_at is null) as waiting',
    );
    return rows[0]?.waiting === 0n;
  }, timeoutMs);
}

/** I5: all sagas have ended: every account is open or refused, and every step has a reply. */
export async function sagasFinished({ pool }: Pick<Evidence, 'pool'>, timeoutMs = 20_000): Promise<string[]> {
  try {
    await eventually(async () => {
      const { rows } = await pool.query<{ left: bigint }>(
        "select (select count(*) from accounts.saga_steps) + (select count(*) from accounts.accounts where state = 'opening') as left",
      );
      return rows[0]?.left === 0n;
    }, timeoutMs);
    return [];
  } catch {
    const { rows } = await pool.query<{ step_id: string; attempts: number; message: string }>(
      'select step_id, attempts, message from accounts.saga_steps limit 5',
    );
    return [`I5: sagas do not end: ${JSON.stringify(rows)}`];
  }
}

/** Text that no log may contain (I12). `from`: the offset in each log. */
const disaster = /unhandled ?rejection|uncaught|"level":60|FATAL ERROR|\bTypeError\b|\bReferenceError\b/i;

/** I12: no process ended by itself, and no log contains an unhandled error. */
export function logsAreClean(cluster: Cluster, from: Map<string, number>): string[] {
  const findings = cluster.unexpectedExits.splice(0).map((exit) => `I12: ${exit}`);
  for (const { name, log } of cluster.nodes) {
    const lines = newText(log, from.get(log) ?? 0)
      .split('\n')
      .filter((line) => disaster.test(line));
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
