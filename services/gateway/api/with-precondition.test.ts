import { expect, test } from 'vitest';
import type { Outcome } from './forward.ts';
import { withPrecondition } from './with-precondition.ts';
import type { Send, Write } from './write.ts';

const done: Outcome = { kind: 'done', data: {}, replayed: false };
const refused: Outcome = { kind: 'failed', stage: 'not_sent' };

test.each<[string, Outcome | undefined, boolean, Outcome]>([
  ['an unmet precondition is the answer, and nothing is sent', refused, false, refused],
  ['if it is met, the write is sent', undefined, true, done],
])('%s', async (_, precondition, isSent, answer) => {
  const sent: Write[] = [];
  const send = withPrecondition(async (write) => (sent.push(write), done));
  const write = { plan: { precondition: async () => precondition }, origin: {} } as unknown as Write;
  expect(await send(write)).toBe(answer);
  expect(sent).toEqual(isSent ? [write] : []);
});

test('a plan without one is sent', async () => {
  const next: Send = async () => done;
  expect(await withPrecondition(next)({ plan: {}, origin: {} } as unknown as Write)).toBe(done);
});
