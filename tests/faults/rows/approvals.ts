import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Approval } from '#libs/contracts/approvals.ts';
import { eventually } from '../../support/eventually.ts';
import { staffToken } from '../../support/staff.ts';
import { done, openedAccount } from '../journal.ts';
import type { Random } from '../random.ts';
import type { Bench, Row } from '../row.ts';
import { killAndStart } from './kills.ts';

const askers = 8;
const killings = 4;
const deciders = ['bob', 'carol', 'dan'];
/** Amounts above the limit in the cluster's FOUR_EYES_LIMITS. */
const amount = 2_000;
const boundMs = 60_000;
const path = '/transactions';
const bodyFor = (account_id: string) => ({ account_id, transaction_type: 'Deposit', amount });

/** The status of the last request. 5xx and missing responses are retried. */
interface Answer {
  status: number;
  body: unknown;
  /** Milliseconds of performance.now. */
  sentAt: number;
  tookMs: number;
}

/** The decisions on each approval. */
let decided: { approval_id: string; approves: boolean }[] = [];
let found: string[] = [];

/**
 * Makes large deposits, each on an account that is used only for it. Approved ones are added to the journal, whose
 * rules check that each was executed once.
 */
const approvals: Row = {
  name: 'approvals',
  title: `approvals requested, and decided by three people concurrently, while accounts is killed, ${killings} times, started again after 0-3 s`,
  touches: ['accounts'],
  recoveryMs: 5000,
  async inject(bench) {
    const { cluster, random } = bench;
    [decided, found] = [[], []];
    const accounts = await Promise.all(Array.from({ length: askers }, () => opened(bench)));
    let isOver = false;
    const people = accounts.map(async (account, i) => {
      const own = random.fork(`asker ${i}`);
      while (!isOver) await askAndDecide(bench, account, own);
    });
    // This promise is awaited at the end. If it rejects before, the process must not end.
    const all = Promise.all(people);
    all.catch(() => undefined);
    let goneAt = performance.now();
    for (let kill = 0; kill < killings; kill++) {
      await sleep(random.int(300, 1500));
      goneAt = await killAndStart(cluster.node('accounts'), bench);
      // Without this, hardly any approval would be decided between two of them.
      await cluster.node('accounts').ready();
    }
    await sleep(500);
    isOver = true;
    await all;
    return goneAt;
  },
  async check({ pool }, { say }) {
    const { rows } = await pool.query<{ approval_id: string; status: string; has_outcome: boolean }>(
      'select approval_id, status, outcome is not null as has_outcome from accounts.approvals where approval_id = any($1)',
      [decided.map(({ approval_id }) => approval_id)],
    );
    const kept = new Map(rows.map((row) => [row.approval_id, row]));
    const wrong = decided.filter(({ approval_id, approves }) => {
      const { status, has_outcome } = kept.get(approval_id) ?? {};
      return status !== (approves ? 'Approved' : 'Rejected') || has_outcome !== approves;
    });
    say(
      `${decided.filter(({ approves }) => approves).length} approvals were approved, ${decided.filter(({ approves }) => !approves).length} rejected`,
    );
    return [
      ...found,
      ...wrong.map(
        ({ approval_id, approves }) =>
          `I5: ${approval_id} was ${approves ? 'approved' : 'rejected'}, and accounts keeps ${JSON.stringify(kept.get(approval_id))}`,
      ),
      ...(decided.length === 0 ? ['I5: no approval was decided'] : []),
    ];
  },
};

async function opened({ load, random }: Bench): Promise<string> {
  const opening = load.opening(0);
  await load.send(opening);
  while (!done(opening)) {
    await sleep(random.int(50, 500));
    await load.send(opening);
  }
  return openedAccount(opening) ?? '';
}

/**
 * One person requests and three decide concurrently in the same way: exactly one decision counts,
 * and an approved request is executed.
 */
async function askAndDecide(bench: Bench, account: string, random: Random): Promise<void> {
  const approves = random.chance(0.75);
  const key = randomUUID();
  const asked = await settled(bench, 'alice', 'POST', path, bodyFor(account), key);
  const { approval_id } = (asked.body as { data: Approval }).data ?? {};
  if (asked.status !== 202 || approval_id === undefined)
    return void found.push(
      `I10: alice asked for ${key} and was answered ${asked.status} ${JSON.stringify(asked.body)}`,
    );
  const [to, reason] = approves ? ['approval', {}] : ['rejection', { reason: 'no' }];
  const answers = await Promise.all(
    deciders.map((name) =>
      settled(bench, name, 'POST', `/admin/approvals/${approval_id}/${to}`, reason, `${key}-${name}`),
    ),
  );
  decided.push({ approval_id, approves });
  const statuses = answers
    .map(({ status }) => status)
    .sort()
    .join();
  if (statuses !== '200,409,409') found.push(`I5: three decided on ${approval_id}, and were answered ${statuses}`);
  if (approves) await follow(bench, account, key, approval_id);
}

/**
 * Adds the outcome of an approved deposit, as its approval shows it, to the journal. A deposit that
 * is posted but not in the journal counts as one that nobody requested.
 */
async function follow(bench: Bench, account: string, key: string, approval_id: string): Promise<void> {
  const told = await eventually(async () => {
    const { body, ...when } = await settled(bench, 'alice', 'GET', `/admin/approvals/${approval_id}`);
    const { outcome } = (body as { data: Approval }).data;
    return outcome && { outcome, ...when };
  }, boundMs * bench.slowness).catch(() => undefined);
  const outcome = told?.outcome;
  if (told === undefined || outcome?.status !== 'success')
    return void found.push(`I5: LOST: ${approval_id} was approved, and came to ${JSON.stringify(outcome)}`);
  const operation = bench.journal.begin({
    key,
    kind: 'approved',
    path,
    body: bodyFor(account),
    effects: [{ account, minor: amount * 100 }],
  });
  bench.journal.answered(operation, {
    sentAt: told.sentAt,
    tookMs: told.tookMs,
    gateway: 'approvals',
    status: 201,
    body: outcome.data,
    replayed: false,
  });
}

/** Repeats a request with its key while the response is 5xx or missing. */
function settled(
  { cluster, entrance, slowness }: Bench,
  person: string,
  method: string,
  path: string,
  body?: object,
  key?: string,
): Promise<Answer> {
  const headers = {
    authorization: `Bearer ${staffToken(cluster.nodeSettings('gateway'), person)}`,
    ...(body && { 'content-type': 'application/json' }),
    ...(key !== undefined && { 'idempotency-key': key }),
  };
  return eventually(async () => {
    const sentAt = performance.now();
    const response = await fetch(entrance.pick().baseUrl + path, {
      method,
      headers,
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(15_000),
    });
    return (
      response.status < 500 && {
        status: response.status,
        body: await response.json(),
        sentAt,
        tookMs: performance.now() - sentAt,
      }
    );
  }, boundMs * slowness);
}

export const approvalRows: Row[] = [approvals];
