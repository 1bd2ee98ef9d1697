import type { Send } from './write.ts';

/** Asks for the precondition of the plan, if it has one. Unless it is met, its outcome is the answer, and nothing is sent. */
export function withPrecondition(next: Send): Send {
  return async (write) => (await write.plan.precondition?.(write.origin)) ?? next(write);
}
