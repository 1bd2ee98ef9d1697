import { describe, expect, it } from 'vitest';
import { deadLettered, type Refusal, refusal } from '#libs/contracts/errors.ts';
import { formatId } from '#libs/contracts/ids.ts';
import type { Origin } from '../messages/encode.ts';
import type { Forwarder, Outcome } from './forward.ts';
import { refusedDay } from './with-value-date.ts';

const refuse = (reason: Refusal): Outcome => ({ kind: 'refused', refusal: reason, replayed: false });
const unknown = refuse(refusal('transaction_not_found', 'unknown'));
const id = formatId('transaction', 'a'.repeat(32));
const done: Outcome = { kind: 'done', data: {}, replayed: false };
const silent: Outcome = { kind: 'failed', stage: 'no_reply' };
const waiting = refuse(refusal('approval_required', 'waits'));
const busy = refuse(refusal('service_unavailable', 'not now'));
const notSent = { kind: 'failed', stage: 'not_sent' };

/** What a caller without the scope gets just after midnight for a posting of the day before. */
function ask(known: Outcome, { key = 'k', scopes = [] as string[], day = '2026-01-01' } = {}) {
  const forwarder = { query: async () => known, mayArrive: () => false } as unknown as Forwarder;
  const caller = { actor: 'key:a', scopes: new Set(scopes), boundClientId: undefined };
  const origin = {
    caller,
    requestId: 'r',
    traceparent: undefined,
    answerBy: 0,
    idempotencyKey: key || undefined,
  } as Origin;
  return refusedDay([{}, { effective_date: day }], id, new Date('2026-01-02T00:00:05Z'), origin, forwarder);
}

describe('the repeat of a request after the midnight that followed it', () => {
  it.each<[string, Outcome, Parameters<typeof ask>[1], object | undefined]>([
    ['is sent if the first one was decided', done, {}, undefined],
    ['is sent if the first one waits for an approval', waiting, {}, undefined],
    ['is refused if there was none', unknown, {}, { refusal: { code: 'insufficient_scope' } }],
    ['is refused without a key, which makes it none', done, { key: '' }, { refusal: { code: 'insufficient_scope' } }],
    ['executes nothing if that is not known', silent, {}, notSent],
    ['executes nothing if the ledger cannot say', busy, {}, notSent],
    ['executes nothing if the first one is a dead letter', refuse(deadLettered(id)), {}, notSent],
    ['is sent with the scope', unknown, { scopes: ['transactions:backdate'] }, undefined],
    ['is sent if it is of today', unknown, { day: '2026-01-02' }, undefined],
  ])('%s', async (_, known, options, expected) => {
    // contract: days-6
    const refused = await ask(known, options);
    if (expected === undefined) expect(refused).toBeUndefined();
    else expect(refused).toMatchObject(expected);
  });
});
