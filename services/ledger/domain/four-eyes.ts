import {
  type ApprovalAction,
  allowance,
  approvalRequired,
  isUnapproved,
  type PostedOnDay,
  rulesIn,
  type WaitingPosting,
} from '#libs/contracts/approvals.ts';
import { type MessageContext, refused } from '#libs/contracts/envelope.ts';
import { approvalKey } from '#libs/contracts/ids.ts';
import { type Books, type Command, type Decision, replyOnly, reusedKey } from './decision.ts';
import type { Failure } from './records.ts';

/**
 * Decides which commands a second person must approve first (contract: four-eyes). The gateway says in a header of the
 * command under which rules; without it, and after a restore, nothing needs an approval. Pure.
 */

/** `isNew`: not in the database yet. */
export type Posted = PostedOnDay & { isNew?: true };

export function postedKey(actor: string, currency: string): string {
  return `${actor} ${currency}`;
}

/** Returns the sum of the person's day and the limit of the currency. */
const allowed = (context: MessageContext, currency: string, { posted }: Books) =>
  allowance(rulesIn(context) ?? {}, currency, posted.get(postedKey(context.actor, currency)));

/** Reports whether this amount, also that of all items of a batch together, needs an approval. */
export function isAbove(
  context: MessageContext,
  minor: bigint,
  currency: string,
  books: Books,
  captured = 0n,
): boolean {
  if (!isUnapproved(context, 'post_above')) return false;
  const { sum, most } = allowed(context, currency, books);
  return sum + minor > most || captured + minor > most;
}

/** Adds a posting that needed no approval to the sum of the person's day. */
export function countPosting(context: MessageContext, minor: bigint, currency: string, books: Books): void {
  if (!isUnapproved(context, 'post_above')) return;
  const { sum, day } = allowed(context, currency, books);
  books.posted.set(postedKey(context.actor, currency), { day, minor: sum + minor, isNew: true });
}

/** Reports whether this value date needs an approval: it was before the bank's day when the request was accepted. */
export function isBackdated(context: MessageContext, day: string | null | undefined): boolean {
  return day != null && isUnapproved(context, 'backdate') && day < (rulesIn(context)?.day ?? '');
}

/**
 * Returns the decision that a posting waits, if it needs an approval: it has an earlier value date, its person's day or
 * all captures of its hold would be above the limit of the currency, or the currency has none. An item of a batch is refused like any other (`refuse`);
 * that only happens if the batch had to be executed in parts.
 */
export function waitsIfNeeded(
  context: MessageContext,
  day: string | null | undefined,
  minor: bigint,
  currency: string,
  books: Books,
  refuse: (why: Failure) => Decision,
  captured = 0n,
): Decision | undefined {
  const backdated = isBackdated(context, day);
  if (!backdated && !isAbove(context, minor, currency, books, captured)) return undefined;
  if (context.batch_id !== undefined) return refuse(approvalRequired());
  return waitsForApproval(context, backdated ? 'backdate' : 'post_above', books);
}

/**
 * Decides that a command waits for an approval, as this action. That is stored beside the command, under an id of its own, because the
 * approved command has the same id. `posting`: what would be posted, if the command does not say it.
 */
export function waitsForApproval(
  context: MessageContext,
  action: ApprovalAction,
  { outcomes }: Books,
  posting?: WaitingPosting,
): Decision {
  const reply = refused({ ...approvalRequired(), details: { action, ...posting } });
  outcomes.set(approvalKey(context.message_id), { fingerprint: context.fingerprint ?? null, outcome: reply });
  return { ...replyOnly(reply), waits: true };
}

/** Returns the reply to a repeat of a command that waits for an approval, whatever the rules would say now. */
export function replayedWaiting({ context }: Command, { outcomes }: Books): Decision | undefined {
  const known = context.four_eyes === undefined ? undefined : outcomes.get(approvalKey(context.message_id));
  if (known === undefined) return undefined;
  return known.fingerprint === (context.fingerprint ?? null)
    ? replyOnly({ ...known.outcome, replayed: true })
    : reusedKey();
}
