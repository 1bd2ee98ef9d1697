import { expect, test } from 'vitest';
import type { Outcome } from './forward.ts';
import { withFallbackRead } from './with-fallback-read.ts';
import type { Write } from './write.ts';

const found: Outcome = { kind: 'done', data: { found: true }, replayed: false };
const noReply: Outcome = { kind: 'failed', stage: 'no_reply' };

async function run(outcome: Outcome, fallback?: Outcome | 'nothing') {
  const waits: number[] = [];
  let reads = 0;
  const send = withFallbackRead(async ({ origin }) => (waits.push(origin.answerBy), outcome));
  const plan = fallback && { fallbackRead: async () => (reads++, fallback === 'nothing' ? undefined : fallback) };
  const answer = await send({ plan: plan ?? {}, origin: { answerBy: 5_000 } } as unknown as Write);
  return { answer, reads, waits };
}

test('without a reply, the outcome is read in the time that is left for it', async () => {
  expect(await run(noReply, found)).toEqual({ answer: found, reads: 1, waits: [4_000] });
  expect(await run(noReply, 'nothing')).toEqual({ answer: noReply, reads: 1, waits: [4_000] });
});

test('a reply, and a command that was not sent, are the answer; a plan without this read waits as long as it may', async () => {
  const notSent: Outcome = { kind: 'failed', stage: 'not_sent' };
  for (const outcome of [found, notSent])
    expect(await run(outcome, found)).toMatchObject({ answer: outcome, reads: 0 });
  expect(await run(noReply)).toEqual({ answer: noReply, reads: 0, waits: [5_000] });
});
