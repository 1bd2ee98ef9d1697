import { refusal } from '#libs/contracts/errors.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { replaceSecret } from '../api-keys/api-keys.ts';
import { type Outcome, refused, type Work } from '../outcome.ts';
import { approvalNotFound } from './decide.ts';
import { type ApprovalRow, lockApproval, setKeyClaimed } from './store.ts';

/** Returns the id of the key that the approval created, if its secret has not been shown. */
export function findUnreadKey({ request, outcome, key_claimed_at }: ApprovalRow): string | undefined {
  const makesKey = request.operation === 'create_api_key' || request.operation === 'rotate_api_key';
  if (!makesKey || outcome?.status !== 'success' || key_claimed_at !== null) return undefined;
  return String(outcome.data['key_id']);
}

/**
 * Sets the secret of a key that was created by an approval, when its requester first reads the approval. Until then
 * nobody knows a secret of the key. The secret itself is never stored.
 */
export async function claimApprovedKey(
  work: Work,
  { approval_id, key_id, secret_hash }: MessageData<'claim_approved_key'>,
): Promise<Outcome> {
  const row = await lockApproval(work.client, approval_id);
  if (row?.requested_by !== work.context.actor) return refused(approvalNotFound(approval_id));
  if (findUnreadKey(row) !== key_id)
    return refused(
      refusal('approval_decided', 'the secret of this key has been shown before: rotate the key if it was lost'),
    );
  const replaced = await replaceSecret(work, key_id, secret_hash);
  if (replaced.kind === 'decided' && replaced.body.ok) await setKeyClaimed(work.client, approval_id, work.now);
  return replaced;
}
