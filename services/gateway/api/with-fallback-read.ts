import type { Send } from './write.ts';

/** The part of the wait for a reply that is left for reading the outcome in another way. */
const reservedMs = 1_000;

/** If no reply arrives in time, reads the outcome in the other way that the plan knows, if it has one. */
export function withFallbackRead(next: Send): Send {
  return async (write) => {
    const { plan, origin } = write;
    if (!plan.fallbackRead) return next(write);
    const outcome = await next({ ...write, origin: { ...origin, answerBy: origin.answerBy - reservedMs } });
    if (outcome.kind !== 'failed' || outcome.stage !== 'no_reply') return outcome;
    return (await plan.fallbackRead(origin)) ?? outcome;
  };
}
