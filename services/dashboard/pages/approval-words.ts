import type { ApprovalAction } from '#libs/contracts/approvals.ts';

/** The actions that need an approval, in words. */
export const actionWords: Record<ApprovalAction, string> = {
  reverse: 'Reversal',
  unfreeze: 'Unfreezing',
  create_key: 'API key',
  post_above: 'Large posting',
  erase: 'Erasure of a client',
  client_contact: 'Contact of a client',
  webhook: 'Webhook',
  close_day: 'Closing of a day',
  raise_limit: 'Limits of an account',
  backdate: 'Earlier value date',
};
