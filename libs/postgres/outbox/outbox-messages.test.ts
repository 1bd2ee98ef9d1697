import { zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readContent, readHeader } from '#libs/contracts/record.ts';
import type { OutboxEvent } from './outbox.ts';
import { eventOf, headersOf, packMessages, unpackMessages } from './outbox-messages.ts';

const text = fc.string({ unit: 'binary' });
const uuid = fc.uuid();
const name = text.filter((each) => !/^(ce_|content-type)|^__proto__$/.test(each));
const event: fc.Arbitrary<OutboxEvent> = fc.record(
  { id: uuid, topic: text, key: fc.option(text), type: text, time: text, payload: fc.option(fc.oneof(text, fc.json(), fc.constantFrom('', '\n', 'null', 'a\nb\n'))), headers: fc.dictionary(name, text), partition: fc.nat({ max: 2 ** 31 - 1 }) },
  { requiredKeys: ['id', 'topic', 'key', 'type', 'time', 'payload', 'headers'] },
);
const one: OutboxEvent = { id: '00000000-0000-0000-0000-000000000001', topic: 't', key: 'k', type: 't.v1', time: '', headers: {}, payload: '{"of":"acc_1"}' };
const unpacked = (packed: Buffer, mentioning?: string) => unpackMessages(packed, 'old', mentioning).map(eventOf);

test('what was packed comes out byte for byte, in its order, as it was passed on', () => {
  fc.assert(fc.property(fc.array(event), text, (events, source) => {
    const { packed, messages } = packMessages(events, source);
    expect(messages.map(eventOf)).toEqual(events);
    expect(unpacked(packed)).toEqual(events);
    for (const [i, { topic, key, content }] of unpackMessages(packed, 'old').entries()) {
      const { payload, ...each } = events[i] as OutboxEvent;
      expect([topic, key]).toEqual([each.topic, each.key]);
      const { value, ...rest } = readContent(content.bytes, content.start);
      expect([rest, value?.toString()]).toEqual([{ key, headers: headersOf({ ...each, payload }, source) }, payload ?? undefined]);
      expect(readHeader(content.bytes, content.start, 'ce_source')).toBe(source);
    }
  }), { numRuns: 300 });
});

test('headers of its own win, and come back as what they are', () => {
  const headers = { ce_id: 'aud_1', ce_subject: 's', ce_specversion: '1.0', 'content-type': 'application/json', actor: 'a' };
  const [message] = packMessages([{ ...one, headers }], 'source').messages;
  expect(message && eventOf(message)).toEqual({ ...one, id: 'aud_1', headers: { actor: 'a', ce_subject: 's' } });
});

test('a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD in a payload, as in a parameter of Postgres', () => {
  expect(unpacked(packMessages([{ ...one, payload: '"\ud800"' }], '').packed)).toEqual([{ ...one, payload: '"\ufffd"' }]);
});

test('a batch that does not mention a text is not looked into', () => {
  const events = [one, { ...one, key: null, payload: null }];
  expect(unpacked(packMessages(events, '').packed, 'acc_1')).toEqual(events);
  expect(unpacked(packMessages(events, '').packed, 'acc_2')).toEqual([]);
});

test('what versions before have written is read, in both of its forms, with the source that it did not keep', () => {
  const { payload, headers: _, ...head } = one;
  const events = [one, { ...one, key: null, payload: null, partition: 7, headers: { 'request-id': 'r' } }];
  const lines = (all: object[]) => all.map((each) => `${JSON.stringify(each)}\n`).join('');
  // Migration 0006: one line each. Later: the payload is a line of its own.
  const forms = [lines(events), `${JSON.stringify(head)}\n${payload}\n${lines(events.slice(1))}`];
  for (const packed of [...forms.map((form) => Buffer.from(form)), ...forms.map((form) => zstdCompressSync(Buffer.from(form)))]) {
    expect(unpacked(packed)).toEqual(events);
    expect(unpackMessages(packed, 'old').map(({ content }) => readHeader(content.bytes, content.start, 'ce_source'))).toEqual(['old', 'old']);
  }
  expect(unpacked(Buffer.from(lines(events)), 'acc_2')).toEqual([]);
});

test('postings of one batch take a tenth of their size', () => {
  const id = () => Array.from({ length: 32 }, () => Math.floor(Math.random() * 16).toString(16)).join('');
  const events = Array.from({ length: 1000 }, () => {
    const [transaction, account] = [id(), id()];
    const payload = JSON.stringify({ transaction: { transaction_id: `txn_${transaction}`, account_id: `acc_${account}`, transaction_type: 'Transfer', amount: '0.25', currency: 'USD', description: null, reference: null, status: 'Completed' }, entries: [{ account_id: `acc_${account}`, direction: 'debit', side: 'DR', amount: '0.25', currency: 'USD', balance_after: '99.75', entry_id: `ent_${account}-7` }] });
    return { id: transaction, topic: 'transactions', key: `acc_${account}`, type: 'corebanking.transaction.completed.v1', time: '2026-01-02T03:04:05.678Z', headers: { 'request-id': 'req_1' }, payload };
  });
  expect(packMessages(events, '/core-banking/ledger').packed.length * 8).toBeLessThan(JSON.stringify(events).length);
});
