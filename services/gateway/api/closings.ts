import { setTimeout as sleep } from 'node:timers/promises';
import type { Approval } from '#libs/contracts/approvals.ts';
import type { DayClosing } from '#libs/contracts/days.ts';
import type { Origin } from '../messages/encode.ts';
import type { Forwarder } from './forward.ts';

/** How often a closing is asked for until its totals are calculated. */
const pollMs = 50;

/** Returns the closing of a closed day as soon as its totals are calculated; undefined if they are not when the reply is due. */
export async function awaitClosing(
  date: string,
  origin: Origin,
  forwarder: Forwarder,
): Promise<DayClosing | undefined> {
  for (;;) {
    const closing = await forwarder.query('get_day_closing', { date }, date, origin);
    if (closing.kind === 'done') return closing.data;
    if (closing.kind === 'failed' || performance.now() + pollMs > origin.answerBy) return undefined;
    await sleep(pollMs);
  }
}

/** Returns the closing of a closed day if its totals are calculated. */
export async function readClosing(date: string, origin: Origin, forwarder: Forwarder): Promise<DayClosing | undefined> {
  const closing = await forwarder.query('get_day_closing', { date }, date, origin);
  return closing.kind === 'done' ? closing.data : undefined;
}

/** Returns an approval of which the outcome is the closing of a day, if it is that, `read` returns it, and the caller may read it. */
export async function withClosing(
  approval: Approval,
  origin: Origin,
  forwarder: Forwarder,
  read: typeof readClosing,
): Promise<Approval> {
  const { request, outcome } = approval;
  const { scopes } = origin.caller;
  if (request.operation !== 'close_day' || outcome?.status !== 'success') return approval;
  if (!scopes.has('books:close') && !scopes.has('books:read')) return approval;
  const data = await read(String(outcome.data['date']), origin, forwarder);
  return data === undefined ? approval : { ...approval, outcome: { ...outcome, data } };
}
