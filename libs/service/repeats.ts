import { type MessageContext, type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal } from '#libs/contracts/errors.ts';

/** The replies of accounts and webhooks to commands that were received before or too late. */

/** A command that was received before. */
export interface KnownCommand {
  fingerprint: string | null;
  /** The correlation id of the first request. */
  correlation_id: string | null;
}

/** Returns the reply to a repeat of a known command, or undefined while that has no reply. */
export function replyToRepeat(
  { fingerprint, correlation_id }: MessageContext,
  known: KnownCommand,
  reply: ReplyBody | undefined,
): ReplyBody | undefined {
  if (known.fingerprint !== (fingerprint ?? null))
    return refused(refusal('idempotency_key_reused', 'this Idempotency-Key was used with another request'));
  // The same request was delivered again. Its caller gets the first reply, which is not marked as replayed.
  const isSameRequest = (correlation_id ?? null) === known.correlation_id;
  return reply === undefined || isSameRequest ? reply : { ...reply, replayed: true };
}

/** Returns the reason for which a new command is not executed, or undefined if it is executed. */
export function refusedUnseen({ deadline }: MessageContext, now: string): Refusal | undefined {
  if (deadline === undefined || deadline >= now) return undefined;
  return refusal('deadline_exceeded', 'the command was received after its deadline and was not executed');
}
