import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import {
  clientShowsItsChange,
  holdsAreAsAnswered,
  logsAreClean,
  outboxesEmpty,
  restShowsTheBooks,
  sagasFinished,
} from './check-outside.ts';
import { freezeHolds } from './check-reads.ts';
import { evidenceRules } from './checks.ts';
import type { Evidence, LedgerTransaction } from './evidence.ts';
import { type Attempt, Journal, type Kind, type Operation, type Read } from './journal.ts';

/** Tests the checker: each invariant is violated once in invented evidence, and must be the reported one. */
const dir = mkdtempSync(join(tmpdir(), 'core-banking-checks-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const account = `acc_${'a'.repeat(32)}`;
const id = `txn_${'b'.repeat(32)}`;

const attempt = (status: Attempt['status'], body: unknown, rest: Partial<Attempt> = {}): Attempt => ({
  sentAt: 100,
  tookMs: 10,
  gateway: 'gateway',
  status,
  body,
  replayed: false,
  ...rest,
});
const error = (code: string, details?: object) => ({ status: 'error', message: code, code, request_id: 'r', details });
const completed = attempt(201, { transaction_id: id, status: 'Completed' });

function booked(rest: Partial<LedgerTransaction> = {}): LedgerTransaction {
  return {
    transaction_id: id,
    operation_id: 'opr_1',
    account_id: account,
    direction: 'credit',
    amount_minor: 500n,
    status: 'Completed',
    failure_code: null,
    idempotency_key: 'k',
    ...rest,
  };
}

/** Returns one operation with this response, and the ledger's rows for it. */
function evidence(
  attempts: Attempt[],
  transactions: LedgerTransaction[],
  rest: Partial<Evidence> & { kind?: Kind; minor?: number; deserves?: string[]; mustFail?: boolean } = {},
): Evidence {
  const { kind = 'deposit', minor = 500, deserves = [], mustFail = false, ...more } = rest;
  const journal = new Journal(join(dir, 'journal'));
  const operation = journal.begin({
    key: 'k',
    kind,
    path: '/transactions',
    body: kind === 'open_account' ? { currency: 'USD', initial_deposit: 0 } : {},
    effects: [{ account, minor }],
    deserves,
    mustFail,
  });
  for (const one of attempts) journal.answered(operation, one);
  const row = { name: 'row', title: 'row', touches: [], recoveryMs: 0, inject: async () => undefined };
  return {
    row,
    t0: 50,
    fault: { from: 0, until: Number.POSITIVE_INFINITY },
    slowness: 1,
    journal,
    transactions,
    cluster: { gateways: [{ name: 'gateway' }, { name: 'gateway-2' }] },
    operations: [operation],
    attempts: attempts.map((one) => ({ operation, attempt: one })),
    reads: [],
    before: new Map([[account, 1000]]),
    after: new Map([[account, 1500]]),
    ...more,
  } as unknown as Evidence;
}

const read = (balance: number, at: number): Read => ({
  path: `/accounts/${account}`,
  account,
  attempt: attempt(200, { data: { balance, currency: 'USD' } }, { sentAt: at, tookMs: 5 }),
});
const all = (given: Evidence): string[] =>
  evidenceRules.flatMap((rule) => rule(given)).map((finding) => finding.slice(0, 40));

const pending = attempt(202, { transaction_id: id, status: 'Pending' }, { location: `/transactions/${id}` });
/** Returns an operation whose response was 202, and the later results of GET by gateway. */
function asked(
  outcomes: Record<string, object>,
  transactions: LedgerTransaction[],
  rest: Parameters<typeof evidence>[2] = {},
): Evidence {
  const given = evidence([pending], transactions, rest);
  const [operation] = given.operations;
  for (const [gateway, data] of Object.entries(outcomes))
    given.journal.asked(
      operation as Operation,
      attempt(200, { data: { transaction_id: id, ...data } }, { gateway, sentAt: 300 }),
    );
  return given;
}
const isCompleted = { status: 'Completed' };
const isFailed = { status: 'Failed', failure_code: 'insufficient_funds' };

it('finds nothing if nothing is wrong', () => {
  expect(all(evidence([completed], [booked()], { reads: [read(10, 90), read(15, 120)] }))).toEqual([]);
  const refusal = attempt(400, error('insufficient_funds', { transaction_id: id }));
  expect(
    all(
      evidence([refusal], [booked({ status: 'Failed' })], {
        kind: 'withdrawal',
        minor: -5000,
        deserves: ['insufficient_funds'],
        after: new Map([[account, 1000]]),
      }),
    ),
  ).toEqual([]);
});

it('outcomes that were unknown are not failures when they are known', () => {
  const unknown = attempt(504, error('outcome_unknown'));
  expect(all(evidence([unknown, { ...completed, sentAt: 200 }], [booked()]))).toEqual([]);
  expect(all(asked({ gateway: isCompleted, 'gateway-2': isCompleted }, [booked()]))).toEqual([]);
  const refused = { deserves: ['insufficient_funds'], after: new Map([[account, 1000]]), minor: -5000 };
  expect(all(asked({ gateway: isFailed, 'gateway-2': isFailed }, [booked({ status: 'Failed' })], refused))).toEqual([]);
});

it.each<[string, string[], Evidence]>([
  [
    'an acknowledged operation that is not posted',
    ['I3: LOST', 'I3: acc_'],
    evidence([completed], [], { after: new Map([[account, 1000]]) }),
  ],
  [
    'one that is posted with another amount',
    ['I3: booked otherwise', 'I3: acc_'],
    evidence([completed], [booked({ amount_minor: 501n })], { after: new Map([[account, 1501]]) }),
  ],
  [
    'one that is posted twice',
    ['I5: DOUBLED', 'I3: acc_'],
    evidence([completed], [booked(), booked({ operation_id: 'opr_2' })], { after: new Map([[account, 2000]]) }),
  ],
  [
    'a refused one that is posted',
    ['I4: refused, and booked', 'I3: acc_'],
    evidence([attempt(400, error('insufficient_funds'))], [booked()], { deserves: ['insufficient_funds'] }),
  ],
  [
    'a refusal that is not stored',
    ['I4: its Failed transaction'],
    evidence([attempt(400, error('inactive_account', { transaction_id: id }))], [], {
      deserves: ['inactive_account'],
      after: new Map([[account, 1000]]),
    }),
  ],
  [
    'one without an outcome',
    ['I5: repeated'],
    evidence([attempt(504, error('outcome_unknown'))], [], { after: new Map([[account, 1000]]) }),
  ],
  [
    'one with an unknown name',
    ['I3: named otherwise'],
    evidence([{ ...completed, body: { ...(completed.body as object), external_id: 'slip 1' } }], [booked()]),
  ],
  ['one that is lost after its 202', ['I5: LOST: answered 202'], asked({}, [], { after: new Map([[account, 1000]]) })],
  [
    'one that stays Pending',
    ['I5: LOST: answered 202'],
    asked({ gateway: { status: 'Pending' } }, [], { after: new Map([[account, 1000]]) }),
  ],
  ['one that a gateway never shows', ['I5: LOST at gateway-2'], asked({ gateway: isCompleted }, [booked()])],
  [
    'one with two outcomes',
    ['I5: deposit k was answered 202, and has'],
    asked({ gateway: isCompleted, 'gateway-2': isFailed }, [booked()]),
  ],
  [
    'a repeat that is not marked as a replay',
    ['I8: deposit k was answered 201 with Idem'],
    evidence([completed, { ...completed, sentAt: 200 }], [booked()]),
  ],
  [
    'a first response that is marked as a replay',
    ['I8: deposit k was answered 201 with Idem'],
    evidence([{ ...completed, replayed: true }], [booked()], { fault: { from: 200, until: 400 } }),
  ],
  [
    'a 202 without a fault',
    ['I10: undeserved while nothing is wrong'],
    evidence([attempt(504, error('outcome_unknown'), { sentAt: 500 }), { ...completed, sentAt: 600 }], [booked()], {
      fault: { from: 90, until: 400 },
    }),
  ],
  [
    'a 503 before the fault',
    ['I10: undeserved while nothing is wrong'],
    evidence([attempt(503, error('service_unavailable')), { ...completed, sentAt: 200 }], [booked()], {
      fault: { from: 150, until: 400 },
    }),
  ],
  [
    'a resource that is not found after its 202',
    ['I10: not found'],
    evidence([completed], [booked()], {
      reads: [{ path: `/transactions/${id}`, pending: true, attempt: attempt(404, error('transaction_not_found')) }],
    }),
  ],
  [
    'an operation that nobody requested',
    [`I5: ${id}`, 'I3: acc_'],
    evidence([], [booked({ idempotency_key: 'other' })], { operations: [] }),
  ],
  [
    'an account that nobody opened',
    ['I5: acc_new'],
    evidence([completed], [booked()], {
      after: new Map([
        [account, 1500],
        ['acc_new', 0],
      ]),
    }),
  ],
  [
    'two responses to one key',
    ['I8: deposit k was answered differently'],
    evidence([completed, attempt(201, { transaction_id: 'txn_other' })], [booked()]),
  ],
  [
    'a different body that is accepted',
    ['I8: k with another body', 'I10: undeserved'].slice(0, 1),
    evidence([completed, { ...completed, otherBody: true }], [booked()]),
  ],
  [
    'a balance that returns to an older value',
    ['I9: GET'],
    evidence([completed], [booked()], { reads: [read(10, 120)] }),
  ],
  ['a balance that is too high', ['I9: GET'], evidence([completed], [booked()], { reads: [read(16, 120)] })],
  [
    'one id with two amounts',
    ['I8: deposit k was answered differently'],
    evidence([completed, attempt(201, { transaction_id: id, status: 'Completed', amount: 6 })], [booked()]),
  ],
  [
    'an account that was opened and is missing',
    ['I3: acc_opened'],
    evidence([attempt(201, { data: { account_id: 'acc_opened' } })], [], {
      kind: 'open_account',
      after: new Map([[account, 1000]]),
    }),
  ],
  ['a balance below zero', ['I6: GET', 'I9: GET'], evidence([completed], [booked()], { reads: [read(-1, 120)] })],
  [
    'a refusal although funds were available',
    ['I4: withdrawal k'],
    evidence([attempt(400, error('insufficient_funds'))], [], {
      kind: 'withdrawal',
      minor: -900,
      deserves: ['insufficient_funds'],
      after: new Map([[account, 1000]]),
    }),
  ],
  ['an answer that is late', ['I10: too late'], evidence([{ ...completed, tookMs: 6100 }], [booked()])],
  [
    'a missing response',
    ['I10: too late', 'I10: deposit k'],
    evidence([attempt('no answer', '', { tookMs: 15_000 }), completed], [booked()]),
  ],
  ['a connection that is cut', ['I10: deposit k'], evidence([attempt('cut', 'reset'), completed], [booked()])],
  ['a 500', ['I10: undeserved'], evidence([attempt(500, error('internal_error')), completed], [booked()])],
  [
    'an error in another form',
    ['I10: not in the error form'],
    evidence([attempt(503, 'Bad Gateway'), completed], [booked()]),
  ],
  ['what must be refused and is not', ['I10: accepted'], evidence([completed], [booked()], { mustFail: true })],
])('finds %s', (_, expected, given) => {
  const found = all(given);
  expect(found.map((finding) => expected.find((start) => finding.startsWith(start)) ?? finding)).toEqual(expected);
});

it('a 503 is a failure if callers must not notice the fault', () => {
  const given = evidence([attempt(503, error('service_unavailable')), completed], [booked()]);
  expect(all(given)).toEqual([]);
  given.row.callers = 'nothing';
  expect(all(given)).toEqual([expect.stringMatching(/^I10: undeserved/)]);
});

it('finds a posting on a frozen account', () => {
  const given = evidence([{ ...completed, sentAt: 300 }], [booked()]);
  given.operations[0]?.effects.unshift({ account: 'acc_source', minor: -500 });
  const before: Operation = given.journal.begin({
    key: 'b',
    kind: 'status',
    path: `/accounts/${account}/status-transitions`,
    body: { status: 'Active' },
    effects: [],
  });
  given.journal.answered(before, attempt(200, {}, { sentAt: 60 }));
  const freeze = given.journal.begin({
    key: 'f',
    kind: 'status',
    path: `/accounts/${account}/status-transitions`,
    body: { status: 'Frozen' },
    effects: [],
  });
  given.journal.answered(freeze, attempt(200, {}, { sentAt: 200 }));
  expect(freezeHolds(given)).toEqual([expect.stringMatching(/^I5: deposit k was booked/)]);
  // The freeze was requested again in this row, but it began before the row.
  given.journal.answered(freeze, attempt(200, {}, { sentAt: 400, replayed: true }));
  expect(freezeHolds({ ...given, t0: 250 })).toEqual([]);
  const thaw: Operation = given.journal.begin({
    key: 't',
    kind: 'status',
    path: freeze.path,
    body: { status: 'Active' },
    effects: [],
  });
  given.journal.answered(thaw, attempt(200, {}, { sentAt: 250 }));
  expect(freezeHolds(given)).toEqual([]);
});

it('finds reads that differ from the books, and a lost change of the client', async () => {
  const server = createServer((request, response) => {
    const data = request.url?.startsWith('/accounts/') ? { balance: 15, currency: 'USD' } : { contact_number: '+1' };
    response.end(JSON.stringify({ status: 'success', data }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cluster = {
    gateways: [{ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }],
    apiKey: '',
  } as unknown as Evidence['cluster'];
  const before = new Map([[account, 1]]);
  const patch = (contact_number: string) =>
    ({
      key: 'p',
      kind: 'patch',
      path: '/clients/c',
      body: { contact_number },
      decided: attempt(200, {}),
    }) as unknown as Operation;
  try {
    expect(await restShowsTheBooks({ cluster, before, after: new Map([[account, 1500]]) } as Evidence)).toEqual([]);
    expect(await restShowsTheBooks({ cluster, before, after: new Map([[account, 1501]]) } as Evidence)).toEqual([
      expect.stringMatching(/^I2: GET/),
    ]);
    expect(await clientShowsItsChange({ cluster, operations: [patch('+2'), patch('+1')] })).toEqual([]);
    expect(await clientShowsItsChange({ cluster, operations: [patch('+1'), patch('+2')] })).toEqual([
      expect.stringMatching(/^I3: GET/),
    ]);
  } finally {
    server.close();
  }
});

it('finds a process that ended by itself and an unhandled error, once', () => {
  const log = join(dir, 'ledger.log');
  writeFileSync(log, '{"level":30,"msg":"all is well"}\n');
  const cluster = {
    unexpectedExits: ['ledger ended by itself'],
    nodes: [{ name: 'ledger', log }],
  } as unknown as Evidence['cluster'];
  const from = new Map<string, number>();
  expect(logsAreClean(cluster, from)).toEqual([expect.stringMatching(/^I12: ledger ended/)]);
  expect(logsAreClean(cluster, from)).toEqual([]);
  appendFileSync(log, '{"level":50,"err":"TypeError: x is undefined"}\n');
  expect(logsAreClean(cluster, from)).toEqual([expect.stringMatching(/^I12: ledger: .*TypeError/)]);
});

it('finds a saga that does not end, and an outbox that never becomes empty', async () => {
  const counting = (count: bigint) =>
    ({
      query: async (text: string) => ({
        rows: [text.startsWith('select (') ? { left: count, waiting: count } : { step_id: 's' }],
      }),
    }) as unknown as Evidence['pool'];
  const [done, open] = [counting(0n), counting(1n)];
  expect(await sagasFinished({ pool: done }, 100)).toEqual([]);
  expect(await sagasFinished({ pool: open }, 100)).toEqual([expect.stringMatching(/^I5: sagas do not end/)]);
  await outboxesEmpty({ pool: done }, 100);
  await expect(outboxesEmpty({ pool: open }, 100)).rejects.toThrow();
});

it('a hold that is lost, captured or ended otherwise than answered, or answered to nobody is reported', async () => {
  const journal = new Journal(join(dir, 'journal'));
  const send = (kind: Kind, path: string, body: Operation['body'], effects: Operation['effects'], answer: Attempt) =>
    journal.answered(journal.begin({ key: `${kind} ${path}`, kind, path, body, effects }), answer);
  const placed = (hold_id: string) =>
    send('hold', `/accounts/${account}/holds`, {}, [], attempt(201, { data: { hold_id } }));
  const end = (kind: Kind, hold_id: string, body: Operation['body'], minor = 0, status = 201) =>
    send(kind, `/holds/${hold_id}/${kind}`, body, minor === 0 ? [] : [{ account, minor }], attempt(status, {}));
  for (const hold of ['hld_1', 'hld_2', 'hld_3', 'hld_4']) placed(hold);
  end('capture', 'hld_2', { final: false }, -5);
  end('capture', 'hld_2', { final: true }, -6);
  end('capture', 'hld_2', { final: true }, -7, 400);
  end('release', 'hld_3', {});
  const found = (rows: [hold_id: string, captured_minor: bigint, is_over: boolean][]) => {
    const shown = rows.map(([hold_id, captured_minor, is_over]) => ({ hold_id, captured_minor, is_over }));
    return holdsAreAsAnswered({
      journal,
      pool: { query: async () => ({ rows: shown }) } as unknown as Evidence['pool'],
    });
  };
  const right: Parameters<typeof found>[0] = [
    ['hld_1', 0n, false],
    ['hld_2', 11n, true],
    ['hld_3', 0n, true],
    ['hld_4', 0n, false],
  ];
  expect(await found(right)).toEqual([]);
  expect(await found(right.slice(0, 3))).toEqual([expect.stringMatching(/^I3: LOST: .*hld_4/)]);
  expect(await found([...right, ['hld_5', 0n, false]])).toEqual([expect.stringMatching(/^I5: .*hld_5/)]);
  for (const wrong of [
    ['hld_2', 5n, true],
    ['hld_2', 11n, false],
  ] as const)
    expect(await found(right.map((row) => (row[0] === wrong[0] ? [...wrong] : row)))).toHaveLength(2);
});
