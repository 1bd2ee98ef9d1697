import { describe, expect, test } from 'vitest';
import { rulesIn } from '#libs/contracts/approvals.ts';
import { bucketForKey, bucketOfId, idKey } from '#libs/contracts/ids.ts';
import { pickNames } from '#libs/contracts/names.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import type { FourEyes } from '../access/four-eyes.ts';
import { type Answer, ids, ok, refused, type Service, samples, testApp, useTestCaller } from '../test/test-app.ts';

const start = useTestCaller();
const key = { 'idempotency-key': 'k' };

/** Accounts in different partitions. */
const accounts = [
  ...Map.groupBy(
    Array.from({ length: 200 }, (_, i) => `acc_${String(i).padStart(32, '0')}`),
    (id) => commandPartition(bucketForKey(id)),
  ).values(),
].map(([first = '']) => first);
const [one, two] = accounts as [string, string];
const deposit = (account_id: string, rest: object = {}) => ({
  transaction: { account_id, transaction_type: 'Deposit', amount: 1, ...rest },
});
const transfer = (from_account_id: string, rest: object = {}) => ({
  transfer: { from_account_id, to_account_id: ids.other, amount: 1, ...rest },
});

type Sent = {
  batch_id: string;
  mode: string;
  items: { transaction?: object; transfer?: object }[];
};

/** A ledger that decides everything. */
const ledger: Service = ({ data }) => {
  const { items } = data as unknown as Sent;
  const results = items.map(({ transfer: moved }, index) => ({
    index,
    status: 'Completed',
    ...(moved ? { transfer: samples.transfer } : { transaction: samples.transaction }),
  }));
  return ok({ results });
};

describe('messages', () => {
  test.each(['independent', 'atomic'])(
    '%s: one, in the bucket of its first item, whatever the accounts',
    async (mode) => {
      const { call, sent } = await start(ledger);
      const items = [
        deposit(one, { reference: 'R', currency: 'USD' }),
        transfer(two, { description: 'x' }),
        ...accounts.map((id) => deposit(id)),
      ];
      const { status, body, headers } = await call('POST', '/batches', { mode, items }, key);
      expect([status, body.data.counts, body.data.results.map(({ index }: { index: number }) => index)]).toEqual([
        200,
        { completed: items.length, failed: 0, pending: 0 },
        items.map((_, index) => index),
      ]);
      expect(body.data.results[0].transaction.amount).toBe(25);
      expect(headers['idempotent-replayed']).toBeUndefined();
      const { batch_id } = body.data;
      expect(
        sent.map(({ topic, partition, key: named, headers: { ce_id, 'idempotency-key': given } }) => [
          topic,
          partition,
          named,
          ce_id,
          given,
        ]),
      ).toEqual([['test.ledger.batches', commandPartition(bucketForKey(one)), one, batch_id, 'k']]);
      expect(bucketOfId(batch_id)).toBe(bucketForKey(one));
      expect(JSON.parse(String(sent[0]?.value))).toEqual({
        batch_id,
        mode,
        items: [
          {
            transaction: {
              account_id: one,
              transaction_type: 'Deposit',
              amount: '1',
              currency: 'USD',
              description: null,
              reference: 'R',
            },
          },
          {
            transfer: { from_account_id: two, to_account_id: ids.other, amount: '1', currency: null, description: 'x' },
          },
          ...accounts.map((account_id) => ({ transaction: expect.objectContaining({ account_id }) })),
        ],
      });
    },
  );

  test('external_id and metadata are sent with the batch and shown; a bound caller cannot give an external_id', async () => {
    // contract: batches-13, names-8
    const names = { external_id: 'wages 7', metadata: { file_name: 'wages.csv' } };
    const made = await testApp(ledger);
    const post = async (state: object, body: object) => {
      const headers = { ...made.keyHeader(state), ...key, 'content-type': 'application/json' };
      const payload = JSON.stringify({ mode: 'independent', items: [transfer(one)], ...body });
      const { statusCode, json } = await made.app.inject({ method: 'POST', url: '/batches', headers, payload });
      return [statusCode, json()] as const;
    };
    const bound = { scopes: ['transfers:write'], client_id: ids.client };
    expect((await post({}, names))[1].data).toMatchObject({
      ...names,
      totals: [{ currency: 'USD', amount: Number(samples.transfer.amount) }],
    });
    expect((await post(bound, { metadata: names.metadata }))[1].data).toMatchObject({ metadata: names.metadata });
    expect((await post({}, {}))[1].data).not.toHaveProperty('metadata');
    expect((await post(bound, names))[1]).toMatchObject({ code: 'insufficient_scope' });
    expect(made.sent.map(({ value }) => pickNames(JSON.parse(String(value))))).toEqual([
      names,
      { metadata: names.metadata },
      {},
    ]);
    await made.app.close();
  });

  test('a repeat sends the same message; another body has another fingerprint', async () => {
    const { call, sent } = await start(ledger);
    const items = [deposit(one), deposit(two)];
    await call('POST', '/batches', { mode: 'independent', items }, key);
    await call(
      'POST',
      '/batches',
      `{"items":[{"transaction":{"amount":1.00,"transaction_type":"Deposit","account_id":"${one}"}},${JSON.stringify(items[1])}],"mode":"independent"}`,
      key,
    );
    await call('POST', '/batches', { mode: 'independent', items: [items[1], items[0]] }, key);
    const headers = sent.map(({ headers: { ce_id, fingerprint } }) => [ce_id, fingerprint]);
    expect(headers[1]).toEqual(headers[0]);
    expect(headers[2]?.[1]).not.toBe(headers[0]?.[1]);
  });
});

describe('response', () => {
  test.each(['independent', 'atomic'])(
    '%s: without a reply in time all items are Pending, as requested',
    async (mode) => {
      const { call } = await start(() => 'no_reply');
      const items = [transfer(two, { amount: 12.5, description: 'rent' }), deposit(one, { reference: 'R' })];
      const { status, body } = await call('POST', '/batches', { mode, items }, key);
      const { batch_id, results, ...rest } = body.data;
      expect([status, rest]).toEqual([
        200,
        {
          mode,
          status: 'Pending',
          counts: { completed: 0, failed: 0, pending: 2 },
          totals: [],
          actor: expect.stringMatching(/^key:/),
          created_at: results[0].transfer.created_at,
        },
      ]);
      expect(results[0]).toMatchObject({
        index: 0,
        status: 'Pending',
        transfer: {
          transfer_id: expect.stringMatching(/^trf_[0-9a-f]{32}$/),
          from_account_id: two,
          to_account_id: ids.other,
          amount: 12.5,
          description: 'rent',
          status: 'Pending',
          batch_id,
        },
      });
      expect(results[1]).toMatchObject({
        index: 1,
        status: 'Pending',
        transaction: { account_id: one, reference: 'R', status: 'Pending', direction: 'credit', batch_id },
      });
      // The bucket in their ids is the batch's, where a read finds them before they are decided.
      const [first, second] = [results[0].transfer.transfer_id, results[1].transaction.transaction_id];
      expect([bucketOfId(first), bucketOfId(second)]).toEqual([bucketOfId(batch_id), bucketOfId(batch_id)]);
      expect(idKey(first).slice(4)).not.toBe(idKey(second).slice(4));
      const again = await call('POST', '/batches', { mode, items }, key);
      expect(again.body.data).toEqual(body.data);
    },
  );

  test.each([
    ['not sent', 'not_sent', 503],
    ['not acknowledged', 'unacknowledged', 504],
    ['answered with a reply that cannot be read', 'malformed', 504],
  ] as const)('%s', async (_, stage, status) => {
    const { call } = await start(() => stage);
    const answer = await call('POST', '/batches', { mode: 'independent', items: [deposit(one), deposit(two)] }, key);
    expect(answer.status).toBe(status);
    if (status === 504)
      expect(answer.body).toMatchObject({
        code: 'outcome_unknown',
        details: { batch_id: expect.stringMatching(/^bat_/) },
      });
    else expect(answer.headers['retry-after']).toBe('1');
  });

  test('a dead-lettered message leaves its items Pending, because some may be decided; an atomic one is a 500', async () => {
    const { call } = await start(() => refused('internal_error'));
    const items = [deposit(one), deposit(two)];
    const independent = await call('POST', '/batches', { mode: 'independent', items }, key);
    expect([independent.status, independent.body.data.counts]).toEqual([200, { completed: 0, failed: 0, pending: 2 }]);
    expect((await call('POST', '/batches', { mode: 'atomic', items }, key)).status).toBe(500);
  });

  test('a refusal of the whole batch has its errors and is marked when replayed', async () => {
    const errors = [{ field: 'items[1].transaction', code: 'inactive_account' as const, message: 'x' }];
    const { call } = await start(() => ({
      ok: false,
      replayed: true,
      refusal: { code: 'batch_refused', message: 'no', errors, details: { batch_id: 'b' } },
    }));
    const { status, body, headers } = await call(
      'POST',
      '/batches',
      { mode: 'atomic', items: [deposit(one), deposit(two)] },
      key,
    );
    expect([status, body.code, body.errors, headers['idempotent-replayed']]).toEqual([
      400,
      'batch_refused',
      errors,
      'true',
    ]);
  });

  test('is a replay if the reply is', async () => {
    const { call } = await start(
      async (message) => ({ ...((await ledger(message)) as object), replayed: true }) as Answer,
    );
    const { headers } = await call('POST', '/batches', { mode: 'independent', items: [deposit(one)] }, key);
    expect(headers['idempotent-replayed']).toBe('true');
  });
});

describe('refused before anything is sent', () => {
  test.each([
    ['no key', { mode: 'x' }, {}, 400, 'missing_idempotency_key'],
    [
      'an invalid key',
      { mode: 'independent', items: [deposit(one)] },
      { 'idempotency-key': 'é' },
      400,
      'validation_failed',
    ],
    ['no body', undefined, key, 400, 'validation_failed'],
    ['no items', { mode: 'independent', items: [] }, key, 400, 'validation_failed'],
    ['items that are no list', { mode: 'independent', items: { length: 1 } }, key, 400, 'validation_failed'],
    ['an invalid mode', { mode: 'both', items: [deposit(one)] }, key, 400, 'validation_failed'],
    [
      'too many items',
      { mode: 'independent', items: Array.from({ length: 1001 }, () => deposit(one)) },
      key,
      400,
      'validation_failed',
    ],
    [
      'too many items of an atomic one',
      { mode: 'atomic', items: Array.from({ length: 501 }, () => deposit(one)) },
      key,
      400,
      'validation_failed',
    ],
    [
      'a wrong amount',
      { mode: 'independent', items: [deposit(one), deposit(one, { amount: 0 })] },
      key,
      400,
      'invalid_amount',
    ],
    ['an id that cannot exist', { mode: 'independent', items: [deposit('nope')] }, key, 404, 'account_not_found'],
  ] as const)('%s', async (_, body, headers, status, code) => {
    const { call, sent } = await start(ledger);
    const answer = await call('POST', '/batches', body, headers);
    expect([answer.status, answer.body.code, sent.length]).toEqual([status, code, 0]);
  });

  test('an unknown parameter', async () => {
    const { call, sent } = await start(ledger);
    expect([
      (await call('POST', '/batches?x=1', { mode: 'independent', items: [deposit(one)] }, key)).body.code,
      sent.length,
    ]).toEqual(['unknown_parameter', 0]);
  });

  test('all errors are named, item by item', async () => {
    const { call } = await start(ledger);
    const items = [
      deposit(one, { amount: 'x', currency: 'XXX' }),
      { transfer: {} },
      7,
      {},
      { ...deposit(one), ...transfer(one) },
      { other: 1 },
    ];
    const { body } = await call('POST', '/batches', { mode: 'independent', items, extra: 1 }, key);
    expect(body.errors.map(({ field }: { field: string }) => field)).toEqual([
      'items[0].transaction.amount',
      'items[0].transaction.currency',
      'items[1].transfer.from_account_id',
      'items[1].transfer.to_account_id',
      'items[1].transfer.amount',
      'items[2]',
      'items[3]',
      'items[4]',
      'items[5].other',
      'extra',
    ]);
  });

  test('a caller without the scope that an item needs, before validation', async () => {
    const { call, keyHeader, sent } = await start(ledger);
    const as = (scope: string) => ({ ...key, ...keyHeader({ scopes: [scope] }) });
    const post = async (scope: string, items: unknown[]) =>
      (await call('POST', '/batches', { mode: 'independent', items }, as(scope))).status;
    expect(await post('transfers:write', [transfer(one), deposit(one, { amount: 0 })])).toBe(403);
    expect(await post('transactions:write', [deposit(one), transfer(one)])).toBe(403);
    expect(await post('transactions:read', [deposit(one)])).toBe(403);
    expect(sent).toEqual([]);
    expect([await post('transfers:write', [transfer(one)]), await post('transactions:write', [deposit(one)])]).toEqual([
      200, 200,
    ]);
  });
});

test('four eyes: the ledger is told the rules, and its refusal is the response', async () => {
  const fourEyes: FourEyes = {
    actions: new Set(['post_above', 'backdate']),
    keys: true,
    limits: new Map([['USD', '100']]),
    timeZone: 'UTC',
  };
  const { app, keyHeader, sent } = await testApp(() => refused('approval_required', 'x'), { fourEyes });
  const response = await app.inject({
    method: 'POST',
    url: '/batches',
    headers: { ...key, ...keyHeader(), 'content-type': 'application/json' },
    payload: JSON.stringify({ mode: 'independent', items: [deposit(one)] }),
  });
  const dated = { transaction: { ...deposit(one).transaction, effective_date: '2020-01-31' } };
  const payload = JSON.stringify({ mode: 'independent', items: [deposit(one), dated] });
  const headers = { 'idempotency-key': 'dated', ...keyHeader(), 'content-type': 'application/json' };
  await app.inject({ method: 'POST', url: '/batches', headers, payload });
  await app.close();
  expect([response.statusCode, response.json().code]).toEqual([400, 'approval_required']);
  expect(sent.map(({ headers }) => rulesIn({ four_eyes: headers['four-eyes'] }))).toMatchObject([
    { actions: ['post_above'], limits: { USD: '100' } },
    { actions: ['post_above', 'backdate'], limits: { USD: '100' } },
  ]);
});

describe('GET /batches/:batch_id', () => {
  const batch_id = `bat_${'a'.repeat(30)}05`;

  test('if the ledger does not know it, it is queried again after the messages of its bucket', async () => {
    const batch = {
      batch_id,
      mode: 'independent',
      status: 'Pending',
      counts: { completed: 0, failed: 0, pending: 1 },
      totals: [],
      actor: 'key:x',
      created_at: '2026-01-02T03:04:05.678Z',
      results: [{ index: 0, status: 'Pending' }],
    };
    const { call, sent } = await start(({ topic }) =>
      topic.endsWith('batches') ? ok(batch) : refused('batch_not_found'),
    );
    expect((await call('GET', `/batches/${batch_id}`)).body.data).toEqual(batch);
    expect(sent.map(({ topic, partition }) => [topic, partition])).toEqual([
      ['test.ledger.queries', expect.any(Number)],
      ['test.ledger.batches', 5],
    ]);
  });

  test('an item that the ledger does not know yet is queried again after batches too', async () => {
    const { call } = await start(({ topic }) =>
      topic.endsWith('batches') ? ok(samples.transaction) : refused('transaction_not_found'),
    );
    expect((await call('GET', `/transactions/${ids.transaction}`)).status).toBe(200);
  });

  test('a malformed id is unknown, without a query', async () => {
    const { call, sent } = await start(() => 'no_reply');
    expect([(await call('GET', '/batches/x')).body.code, sent.length]).toEqual(['batch_not_found', 0]);
  });
});

test('a refused destination in a batch counts like one in a single request', async () => {
  const error = { code: 'destination_refused', message: 'x' };
  const made = await testApp(() =>
    ok({ results: [{ index: 0, status: 'Failed', transfer: { ...samples.transfer, status: 'Failed' }, error }] }),
  );
  const payload = JSON.stringify({ mode: 'independent', items: [transfer(one)] });
  const headers = {
    ...made.keyHeader({ scopes: ['transfers:write'], client_id: ids.client }),
    ...key,
    'content-type': 'application/json',
  };
  expect((await made.app.inject({ method: 'POST', url: '/batches', headers, payload })).statusCode).toBe(200);
  await made.auditRecords.flush();
  const told = made.recorded
    .filter(({ topic }) => topic === 'test.security')
    .map(({ value }) => JSON.parse(String(value)));
  expect(told).toMatchObject([{ outcome: 'destination_refused', resource_id: ids.other, count: 1 }]);
  await made.app.close();
});
