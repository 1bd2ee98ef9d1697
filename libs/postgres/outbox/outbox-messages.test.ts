import { zstdDecompressSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { OutboxEvent } from './outbox.ts';
import { numbered, packEvents, toPublishedEvent, unpackEvents } from './outbox-messages.ts';

const text = fc.string({ unit: 'binary' });
const name = text.filter((each) => !/^(ce_|content-type)|^__proto__$/.test(each));
const event: fc.Arbitrary<OutboxEvent> = fc.record(
  {
    id: fc.uuid(),
    topic: text,
    key: fc.option(text),
    type: text,
    time: text,
    payload: fc.option(fc.oneof(text, fc.json(), fc.constantFrom('', '\n', 'null', 'a\nb\n'))),
    headers: fc.dictionary(name, text),
    partition: fc.nat({ max: 2 ** 31 - 1 }),
  },
  { requiredKeys: ['id', 'topic', 'key', 'type', 'time', 'payload', 'headers'] },
);
const one: OutboxEvent = {
  id: '00000000-0000-0000-0000-000000000001',
  topic: 't',
  key: 'k',
  type: 't.v1',
  time: '',
  headers: {},
  payload: '{"of":"acc_1"}',
};

test('a packed batch is unpacked byte for byte, in order', () => {
  fc.assert(
    fc.property(fc.array(event), (events) => {
      expect(unpackEvents(packEvents(events))).toEqual(events);
    }),
    { numRuns: 300 },
  );
});

test('the data of events contain their id and type, and those of the ledger their batch and their position in it; other payloads are unchanged', () => {
  const events = ['corebanking.hold.placed.v1', 't.v1', 'corebanking.account.opened.v1', 'corebanking.balance.v1'].map(
    (type) => ({ ...one, id: one.id.replaceAll('-', ''), type }),
  );
  const published = numbered(4711n, unpackEvents(packEvents(events)));
  expect(numbered(4711n, events)).toEqual(published);
  const identity = (type: string) => `"event_id":"${one.id}","event_type":"corebanking.${type}.v1"}`;
  expect(published.map(({ payload }) => payload)).toEqual([
    `{"of":"acc_1","batch_id":4711,"batch_position":0,${identity('hold.placed')}`,
    one.payload,
    `{"of":"acc_1",${identity('account.opened')}`,
    `{"of":"acc_1","batch_id":4711,"batch_position":3,${identity('balance')}`,
  ]);
  for (const event of published.filter(({ type }) => type !== 't.v1')) {
    const { headers, value } = toPublishedEvent(event, 'source', String);
    expect(JSON.parse(value ?? '')).toMatchObject({ event_id: headers['ce_id'], event_type: headers['ce_type'] });
  }
});

test('zstd and jq can read a packed batch', () => {
  const packed = packEvents([one, { ...one, key: null, payload: null }]);
  const lines = zstdDecompressSync(packed).toString().trimEnd().split('\n');
  const { payload, ...rest } = one;
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    rest,
    JSON.parse(payload ?? ''),
    { ...rest, key: null, payload: null },
  ]);
});

test('a message has its topic with the prefix, CloudEvents headers, and its own headers, which take precedence', () => {
  const headers = { ce_id: 'aud_1', ce_subject: 's', actor: 'a' };
  expect(toPublishedEvent({ ...one, headers, partition: 0 }, 'source', (topic) => `prefix.${topic}`)).toEqual({
    topic: 'prefix.t',
    key: 'k',
    value: one.payload,
    partition: 0,
    headers: {
      ce_specversion: '1.0',
      ce_id: 'aud_1',
      ce_type: 't.v1',
      ce_source: 'source',
      ce_time: '',
      ce_subject: 's',
      'content-type': 'application/json',
      actor: 'a',
    },
  });
  expect(toPublishedEvent(one, '', String)).not.toHaveProperty('partition');
});

test('a lone surrogate becomes U+FFFD in a payload, as in a parameter of Postgres', () => {
  expect(unpackEvents(packEvents([{ ...one, payload: '"\ud800"' }]))).toEqual([{ ...one, payload: '"\ufffd"' }]);
});

test('a batch that does not contain a text is not decoded', () => {
  const events = [one, { ...one, key: null, payload: null }];
  expect(unpackEvents(packEvents(events), 'acc_1')).toEqual(events);
  expect(unpackEvents(packEvents(events), 'acc_2')).toEqual([]);
});

test('postings of one batch are compressed to a tenth', () => {
  const id = () => Array.from({ length: 32 }, () => Math.floor(Math.random() * 16).toString(16)).join('');
  const events = Array.from({ length: 1000 }, () => {
    const [transaction, account] = [id(), id()];
    const payload = JSON.stringify({
      transaction: {
        transaction_id: `txn_${transaction}`,
        account_id: `acc_${account}`,
        transaction_type: 'Transfer',
        amount: '0.25',
        currency: 'USD',
        description: null,
        reference: null,
        status: 'Completed',
      },
      entries: [
        {
          account_id: `acc_${account}`,
          direction: 'debit',
          side: 'DR',
          amount: '0.25',
          currency: 'USD',
          balance_after: '99.75',
          entry_id: `ent_${account}-7`,
        },
      ],
    });
    return {
      id: transaction,
      topic: 'transactions',
      key: `acc_${account}`,
      type: 'corebanking.transaction.completed.v1',
      time: '2026-01-02T03:04:05.678Z',
      headers: { 'request-id': 'req_1' },
      payload,
    };
  });
  expect(packEvents(events).length * 8).toBeLessThan(JSON.stringify(events).length);
});
