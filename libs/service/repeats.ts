import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal, unknownRepeat } from '#libs/contracts/errors.ts';

/** What accounts and webhooks reply to commands that were received before, or that must not be executed. */

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
    return {
      ok: false,
      refusal: refusal('idempotency_key_reused', 'this Idempotency-Key was used with another request'),
    };
  // The same request was delivered again; its caller gets the first reply, not a replayed one.
  const isSameRequest = (correlation_id ?? null) === known.correlation_id;
  return reply === undefined || isSameRequest ? reply : { ...reply, replayed: true };
}

/** Returns why a command that was not received before is not executed, or undefined if it is. */
export function refusedUnseen({ repeat_only, deadline }: MessageContext, now: string): Refusal | undefined {
  if (repeat_only !== undefined) return unknownRepeat;
  if (deadline === undefined || deadline >= now) return undefined;
  return refusal('deadline_exceeded', 'the command was received after its deadline and was not executed');
}
