import { isUnapproved } from '#libs/contracts/approvals.ts';
import { refused } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal } from '#libs/contracts/errors.ts';
import { plusDays } from '#libs/contracts/times.ts';
import { dayAt } from './calendar.ts';
import { deadlineExceeded, pastDeadline } from './checks.ts';
import { type Books, type CommandOf, type Decision, storeReply } from './decision.ts';
import { waitsForApproval } from './four-eyes.ts';

/** A closed day. Its totals are calculated afterwards (closings/closer.ts). */
export interface ClosedDay {
  date: string;
  closed_at: string;
  closed_by: string;
}

/** Closes a day: from then on, no posting has its value date or an earlier one. Pure. */
export function closeDay({ data: { date }, context }: CommandOf<'close_day'>, books: Books): Decision {
  const refuse = (reason: Refusal) => storeReply(refused(reason));
  if (pastDeadline(context, books)) return refuse(deadlineExceeded());
  const { closed, now } = books;
  if (closed !== null && date <= closed) return refuse(refusal('day_closed', `the days up to ${closed} are closed`));
  const today = dayAt(now);
  if (date >= today) return refuse(refusal('day_not_closable', `${date} has not ended: the bank's day is ${today}`));
  if (closed !== null && date !== plusDays(closed, 1))
    return refuse(refusal('day_not_closable', `the next day to close is ${plusDays(closed, 1)}`));
  if (isUnapproved(context, 'close_day')) return waitsForApproval(context, 'close_day', books);
  books.closed = date;
  const closedDay: ClosedDay = { date, closed_at: now, closed_by: context.actor };
  return { ...storeReply({ ok: true, data: closedDay }), closedDay };
}
