import type { DeadLetterContent } from '#libs/contracts/dead-letters.ts';
import { type MessageData, messages } from '#libs/contracts/messages.ts';
import { type FourEyes, isAbove, type Posting } from '../access/four-eyes.ts';
import { Refused } from '../http/errors.ts';
import { type Asker, accountOf, ask, capturedPosting, type Question } from './approval-question.ts';

/** Returns the facts about a redrive, from the bytes of the dead letter. */
export async function aboutRedrive(
  { dead_letter_id, renew_deadline }: MessageData<'redrive_dead_letter'>,
  asker: Asker,
): Promise<Question> {
  const letter = await ask('get_dead_letter', { dead_letter_id }, dead_letter_id, asker);
  const posting = await postingIn(letter, asker);
  const amount = typeof posting === 'object' ? ` of ${posting.amount} ${posting.currency}` : '';
  const what = `${letter.message ?? 'an unreadable message'}${amount}`;
  const deadline = letter.headers['deadline'] ?? null;
  return {
    actions: [
      ...(renew_deadline ? ['redrive' as const] : []),
      ...(mayBeLarge(posting, asker.fourEyes) ? ['post_above' as const] : []),
    ],
    scopes: ['ops:manage'],
    summary: `Redrive ${dead_letter_id}, ${what}${renew_deadline ? ', with a renewed deadline' : ''}`,
    changes: [
      { field: 'state', before: letter.state, after: 'redriven' },
      { field: 'deadline', before: deadline, after: renew_deadline ? '30 s after the redrive' : deadline },
    ],
  };
}

/** An unreadable posting may have any amount. */
function mayBeLarge(posting: Posting | 'unreadable' | undefined, { limits }: FourEyes): boolean {
  if (posting === 'unreadable') return limits.size > 0;
  return posting !== undefined && isAbove(posting, limits);
}

const postings = new Set<string | null>([
  'create_transaction',
  'create_transfer',
  'capture_hold',
  'open_account',
  'open_ledger_account',
  'create_batch',
]);

/**
 * Returns the posting that the dead letter would make; undefined if it is not a posting, or is no longer stored and
 * cannot be redriven.
 */
async function postingIn(
  { message, available, value }: DeadLetterContent,
  asker: Asker,
): Promise<Posting | 'unreadable' | undefined> {
  if (!postings.has(message) || !available || asker.fourEyes.limits.size === 0) return undefined;
  // No item of a batch needed an approval when it was sent, but the limits may have changed.
  if (message === 'create_batch') return 'unreadable';
  const data = fieldsIn(value);
  if (message === 'capture_hold') return postingOfCapture(data, asker);
  const amount = data['amount'] ?? data['initial_deposit'];
  if (typeof amount !== 'string' || !/^\d{1,72}(\.\d{1,72})?$/.test(amount)) return 'unreadable';
  if (typeof data['currency'] === 'string') return { amount, currency: data['currency'] };
  const account_id = String(data['account_id'] ?? data['from_account_id']);
  return orUnreadable(async () => ({ amount, currency: (await accountOf(account_id, asker)).currency }));
}

async function postingOfCapture(data: Record<string, unknown>, asker: Asker): Promise<Posting | 'unreadable'> {
  const parsed = messages.capture_hold.data.safeParse(data);
  if (!parsed.success) return 'unreadable';
  const { hold_id, amount } = parsed.data;
  return orUnreadable(() => capturedPosting(hold_id, amount, asker));
}

/** A posting on an account or hold that does not exist cannot be read. */
async function orUnreadable(read: () => Promise<Posting>): Promise<Posting | 'unreadable'> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof Refused && error.refusal.code.endsWith('_not_found')) return 'unreadable';
    throw error;
  }
}

function fieldsIn(value: string | null): Record<string, unknown> {
  try {
    return Object(JSON.parse(value ?? 'null')) as Record<string, unknown>;
  } catch {
    return {};
  }
}
