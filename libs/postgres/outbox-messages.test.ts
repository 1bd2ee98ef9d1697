import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { OutboxEvent } from './outbox.ts';
import { packMessages, unpackMessages } from './outbox-messages.ts';

const text = fc.string({ unit: 'binary' });
const event: fc.Arbitrary<OutboxEvent> = fc.record(
  { id: text, topic: text, key: fc.option(text), type: text, time: text, payload: fc.option(fc.oneof(text, fc.json(), fc.constantFrom('', '\n', 'null', 'a\nb\n'))), headers: fc.dictionary(text, text), partition: fc.nat() },
  { requiredKeys: ['id', 'topic', 'key', 'type', 'time', 'payload'] },
);

test('what was packed comes out byte for byte, in its order', () => {
  fc.assert(fc.property(fc.array(event), (events) => {
    expect(unpackMessages(packMessages(events))).toEqual(events);
  }), { numRuns: 300 });
});

test('a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD in a payload, as in a parameter of Postgres', () => {
  const one: OutboxEvent = { id: '1', topic: 't', key: 'k', type: 't', time: '', payload: '"\ud800"' };
  expect(unpackMessages(packMessages([one]))).toEqual([{ ...one, payload: '"\ufffd"' }]);
});

test('a batch that does not mention a text is not looked into, one that is not compressed is read as it is', () => {
  const events: OutboxEvent[] = [{ id: '1', topic: 't', key: 'k', type: 't', time: '', payload: '{"of":"acc_1"}' }, { id: '2', topic: 't', key: null, type: 't', time: '', payload: null }];
  expect(unpackMessages(packMessages(events), 'acc_1')).toEqual(events);
  expect(unpackMessages(packMessages(events), 'acc_2')).toEqual([]);
  expect(unpackMessages(Buffer.from(events.map((each) => `${JSON.stringify(each)}\n`).join('')))).toEqual(events);
});

test('postings of one batch take a tenth of their size', () => {
  const id = () => Array.from({ length: 32 }, () => Math.floor(Math.random() * 16).toString(16)).join('');
  const events = Array.from({ length: 1000 }, () => {
    const [transaction, account] = [id(), id()];
    const payload = JSON.stringify({ transaction: { transaction_id: `txn_${transaction}`, account_id: `acc_${account}`, transaction_type: 'Transfer', amount: '0.25', currency: 'USD', description: null, reference: null, status: 'Completed' }, entries: [{ account_id: `acc_${account}`, direction: 'debit', side: 'DR', amount: '0.25', currency: 'USD', balance_after: '99.75', entry_id: `ent_${account}-7` }] });
    return { id: transaction, topic: 'transactions', key: `acc_${account}`, type: 'corebanking.transaction.completed.v1', time: '2026-01-02T03:04:05.678Z', headers: { 'request-id': 'req_1' }, payload };
  });
  expect(packMessages(events).length * 8).toBeLessThan(JSON.stringify(events).length);
});
