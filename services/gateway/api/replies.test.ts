import { describe, expect, test } from 'vitest';
import { deadLettered } from '#libs/contracts/errors.ts';
import { bucketForKey, bucketOfId } from '#libs/contracts/ids.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import { type Answer, ids, ok, refused, samples, useTestCaller } from '../test/test-app.ts';

const start = useTestCaller();

const deposit = { account_id: ids.account, transaction_type: 'Deposit', amount: 25 };
const transfer = { from_account_id: ids.account, to_account_id: ids.other, amount: 5 };

describe('commands', () => {
  test('a transaction is returned without an envelope, with its Location and money as numbers', async () => {
    const { call, sent } = await start(() => ok(samples.transaction));
    const { status, body, headers } = await call(
      'POST',
      '/transactions',
      `{"account_id":"${ids.account}","transaction_type":"Deposit","amount":2.50e1}`,
    );
    expect([status, body]).toEqual([201, { ...samples.transaction, amount: 25 }]);
    const [message] = sent;
    const data = JSON.parse(String(message?.value));
    expect(data).toEqual({
      transaction_id: expect.stringMatching(/^txn_[0-9a-f]{32}$/),
      account_id: ids.account,
      transaction_type: 'Deposit',
      amount: '25',
      currency: null,
      description: null,
      reference: null,
    });
    expect(headers.location).toBe(`/transactions/${data.transaction_id}`);
    expect(bucketOfId(data.transaction_id)).toBe(bucketForKey(ids.account));
    expect(message).toMatchObject({
      topic: 'test.ledger.commands',
      key: ids.account,
      partition: commandPartition(bucketForKey(ids.account)),
    });
    const { ce_id, ce_type, actor, ce_time = '', deadline = '', ...more } = message?.headers ?? {};
    expect({ ce_id, ce_type }).toEqual({
      ce_id: data.transaction_id,
      ce_type: 'corebanking.command.create_transaction.v1',
    });
    expect(actor).toMatch(/^key:key_/);
    expect([Date.parse(deadline) - Date.parse(ce_time), more['reply-by']]).toEqual([30_000, undefined]);
    expect([more['idempotency-key'], more['fingerprint']]).toEqual([undefined, undefined]);
  });

  test('with an Idempotency-Key every repeat is the same command; another body has another fingerprint', async () => {
    const { call, sent, keyHeader } = await start(() => ok(samples.transaction));
    const key = { 'idempotency-key': 'k 1' };
    await call('POST', '/transactions', deposit, key);
    await call(
      'POST',
      '/transactions',
      `{"amount":25.00,"transaction_type":"Deposit","description":null,"account_id":"${ids.account}"}`,
      key,
    );
    await call('POST', '/transactions', { ...deposit, amount: 26 }, key);
    await call('POST', '/transactions', deposit, { 'idempotency-key': 'k 2' });
    await call('POST', '/transactions', deposit, { ...key, ...keyHeader() });
    const [first, second, third, otherKey, otherCaller] = sent.map(({ headers }) => headers);
    expect(second?.['ce_id']).toBe(first?.['ce_id']);
    expect(second?.['fingerprint']).toBe(first?.['fingerprint']);
    expect(third?.['ce_id']).toBe(first?.['ce_id']);
    expect(third?.['fingerprint']).not.toBe(first?.['fingerprint']);
    expect(new Set([first, otherKey, otherCaller].map((headers) => headers?.['ce_id'])).size).toBe(3);
    expect(first?.['idempotency-key']).toBe('k 1');
  });

  test.each(['', 'x'.repeat(256), 'é', 'a\tb'])('the Idempotency-Key "%s" is refused', async (value) => {
    const { call, sent } = await start(() => ok(samples.transaction));
    const { status, body } = await call('POST', '/transactions', deposit, { 'idempotency-key': value });
    expect([status, body.errors[0].field, sent.length]).toEqual([400, 'Idempotency-Key', 0]);
  });

  test('Idempotent-Replayed is sent only to callers who sent a key', async () => {
    const { call } = await start(() => ({ ok: true, replayed: true, data: samples.transaction }));
    expect(
      (await call('POST', '/transactions', deposit, { 'idempotency-key': 'k' })).headers['idempotent-replayed'],
    ).toBe('true');
    expect((await call('POST', '/transactions', deposit)).headers['idempotent-replayed']).toBeUndefined();
  });

  test('a refusal has the status of its code, its details, and the replay mark', async () => {
    const { call } = await start(() => ({
      ...refused('insufficient_funds', 'too little', { transaction_id: ids.transaction }),
      replayed: true,
    }));
    const { status, body, headers } = await call('POST', '/transactions', deposit, {
      'idempotency-key': 'k',
      'x-request-id': 'r',
    });
    expect([status, body]).toEqual([
      400,
      {
        status: 'error',
        message: 'Insufficient Funds: too little',
        code: 'insufficient_funds',
        request_id: 'r',
        details: { transaction_id: ids.transaction },
      },
    ]);
    expect(headers['idempotent-replayed']).toBe('true');
  });

  test('malformed account ids are unknown accounts, which the error names', async () => {
    const { call, sent } = await start(() => ok(samples.transfer));
    expect((await call('POST', '/transactions', { ...deposit, account_id: 'nope' })).body).toMatchObject({
      code: 'account_not_found',
      message: 'account nope not found',
    });
    expect((await call('POST', '/transfers', { ...transfer, to_account_id: 'there' })).body).toMatchObject({
      code: 'account_not_found',
      message: 'account there not found',
    });
    expect(
      (await call('POST', '/accounts', { client_id: 'me', account_type: 'Savings', currency: 'USD' })).body,
    ).toMatchObject({ code: 'client_not_found' });
    expect(sent).toEqual([]);
  });

  test('no reply in time: 202 Pending for transactions and transfers, and GET is 503 while there is no reply', async () => {
    const { call } = await start(() => 'no_reply');
    const posted = await call('POST', '/transactions', { ...deposit, currency: 'USD' });
    expect([posted.status, posted.body.status, posted.body.amount, posted.headers['retry-after']]).toEqual([
      202,
      'Pending',
      25,
      '1',
    ]);
    expect(posted.headers.location).toBe(`/transactions/${posted.body.transaction_id}`);
    const moved = await call('POST', '/transfers', transfer);
    expect([moved.status, moved.body.status, moved.body.data.status, moved.headers.location]).toEqual([
      202,
      'success',
      'Pending',
      `/transfers/${moved.body.data.transfer_id}`,
    ]);
    expect((await call('GET', posted.headers.location ?? '')).status).toBe(503);
  });

  test.each([
    ['is unknown there too', refused('transaction_not_found', 'x not found'), 404, undefined],
    ['was dead-lettered', refused('service_unavailable', 'looked into'), 503, '1'],
    ['is not answered there', 'no_reply', 503, '1'],
  ] as const)(
    'a transaction unknown to the ledger is queried again after the commands of its bucket: it %s',
    async (_, behind, status, retryAfter) => {
      // contract: idempotency-17
      const { call } = await start(({ topic }) =>
        topic.endsWith('queries') ? refused('transaction_not_found') : behind,
      );
      const answer = await call('GET', `/transactions/${ids.transaction}`);
      expect([answer.status, answer.headers['retry-after']]).toEqual([status, retryAfter]);
    },
  );

  const unknown = refused('transaction_not_found');
  const faulty = refused('service_unavailable', 'the service cannot answer at the moment');
  const dead = { ok: false as const, refusal: deadLettered(ids.transaction) };
  const waiting = refused('approval_required');
  test.each<[string, Answer, Answer, Answer, number, boolean?]>([
    ['known', ok(samples.transaction), 'no_reply', ok(samples.transaction), 201],
    ['known, and the reversal has no reply', ok(samples.transaction), 'no_reply', 'no_reply', 504],
    ['dead-lettered', dead, 'no_reply', refused('not_reversible'), 400],
    ['unknown', unknown, unknown, unknown, 404],
    ['decided behind the commands', unknown, ok(samples.transaction), ok(samples.transaction), 201],
    ['dead-lettered behind the commands', unknown, dead, refused('not_reversible'), 400],
    ['waiting for an approval', waiting, waiting, unknown, 400, false],
    ['approved behind the commands', waiting, ok(samples.transaction), ok(samples.transaction), 201],
    ['not decided yet', unknown, 'no_reply', unknown, 504, false],
    ['not found because of a fault', unknown, faulty, unknown, 503, false],
    ['queried without a reply', 'no_reply', 'no_reply', unknown, 504, false],
    ['queried without a reply, but answered behind the commands', 'no_reply', unknown, unknown, 404],
    ['queried while the database has a fault', faulty, faulty, unknown, 503, false],
    ['queried during a fault that is over behind the commands', faulty, dead, refused('not_reversible'), 400],
  ])('a reversal is sent only once the ledger has answered about its original, which is %s', async (...given) => {
    const [, early, behind, reversal, status, isSent = true] = given;
    const { call, sent } = await start(({ name, topic }) =>
      name === 'reverse_transaction' ? reversal : topic.endsWith('queries') ? early : behind,
    );
    expect((await call('POST', `/transactions/${ids.transaction}/reversal`, { reason: 'x' })).status).toBe(status);
    expect(sent.some(({ headers }) => headers['ce_type']?.includes('reverse_transaction'))).toBe(isSent);
  });

  test.each([
    ['not_sent', 503, 503, 503],
    ['unacknowledged', 504, 504, 504],
    ['no_reply', 202, 504, 504],
    ['malformed', 504, 504, 504],
  ] as const)('%s: the response depends on what is known', async (stage, money, client, reversal) => {
    // contract: idempotency-16
    const { call } = await start(() => stage);
    expect((await call('POST', '/transactions', deposit)).status).toBe(money);
    expect((await call('POST', '/transfers', transfer)).status).toBe(money);
    const created = await call('POST', '/clients', {
      client_type: 'Corporate',
      company_name: 'x',
      registration_number: 'y',
      email: 'a@b.cc',
      contact_number: '+254700000001',
    });
    expect(created.status).toBe(client);
    if (client === 504)
      expect(created.body).toMatchObject({
        code: 'outcome_unknown',
        details: { client_id: expect.stringMatching(/^cli_/) },
      });
    else expect(created.headers['retry-after']).toBe('1');
    expect((await call('POST', `/transactions/${ids.transaction}/reversal`, { reason: 'x' })).status).toBe(reversal);
    expect((await call('PATCH', `/clients/${ids.client}`, { address: 'x' })).status).toBe(client);
    expect((await call('GET', `/clients/${ids.client}`)).status).toBe(503);
  });
});
