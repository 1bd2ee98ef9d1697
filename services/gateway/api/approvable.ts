import type { ApprovableCommand, ApprovalAction, WaitingPosting } from '#libs/contracts/approvals.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Scope } from '#libs/contracts/scopes.ts';

/** The commands that can wait for an approval, and what their approval says. */

interface Approvable<N extends ApprovableCommand> {
  action: ApprovalAction;
  /** The scopes that the requester has and the approver needs in addition to approvals:write. */
  scopes: (data: MessageData<N>) => Scope[];
  /**
   * One sentence without personal data, because an approval is kept longer than its subject. `posting`: what a reversal would
   * post, if the ledger said it.
   */
  summary: (data: MessageData<N>, posting: WaitingPosting | undefined) => string;
}

const listFields = (changes: object) => Object.keys(changes).join(', ');
const money = (amount: string, currency: string | null) => (currency === null ? amount : `${amount} ${currency}`);

export const approvable: { [N in ApprovableCommand]: Approvable<N> } = {
  reverse_transaction: {
    action: 'reverse',
    scopes: () => ['transactions:reverse'],
    summary: ({ reverses_transaction_id }, posting) =>
      `Reverse transaction ${reverses_transaction_id}${posting ? ` of ${money(posting.amount, posting.currency)} on account ${posting.account_ids.join(' and ')}` : ''}`,
  },
  change_account_status: {
    action: 'unfreeze',
    scopes: () => ['accounts:status'],
    summary: ({ account_id }) => `Unfreeze account ${account_id}`,
  },
  create_api_key: {
    action: 'create_key',
    scopes: () => ['keys:manage'],
    summary: ({ name, scopes }) => `Create the API key “${name}” with the scopes ${scopes.join(', ')}`,
  },
  rotate_api_key: {
    action: 'create_key',
    scopes: () => ['keys:manage'],
    summary: ({ rotates_key_id }) => `Rotate API key ${rotates_key_id}`,
  },
  create_transaction: {
    action: 'post_above',
    scopes: () => ['transactions:write'],
    summary: ({ transaction_type, amount, currency, account_id }) =>
      `${transaction_type} of ${money(amount, currency)} on account ${account_id}`,
  },
  create_transfer: {
    action: 'post_above',
    scopes: () => ['transfers:write'],
    summary: ({ amount, currency, from_account_id, to_account_id }) =>
      `Transfer of ${money(amount, currency)} from account ${from_account_id} to account ${to_account_id}`,
  },
  capture_hold: {
    action: 'post_above',
    scopes: ({ to_account_id }) => ['holds:write', to_account_id === null ? 'transactions:write' : 'transfers:write'],
    summary: ({ amount, hold_id }) => `Capture ${amount ?? 'what is left'} of hold ${hold_id}`,
  },
  open_account: {
    action: 'post_above',
    scopes: () => ['accounts:write', 'transactions:write'],
    summary: ({ account_type, client_id, initial_deposit, currency }) =>
      `Open a ${account_type} account of client ${client_id} with ${money(initial_deposit, currency)}`,
  },
  erase_client: {
    action: 'erase',
    scopes: () => ['clients:erase'],
    summary: ({ client_id }) => `Erase client ${client_id}`,
  },
  update_client: {
    action: 'client_contact',
    scopes: () => ['clients:write'],
    summary: ({ client_id, changes }) => `Change ${listFields(changes)} of client ${client_id}`,
  },
  create_webhook: {
    action: 'webhook',
    scopes: () => ['webhooks:manage'],
    summary: ({ url, event_types }) => `Send ${event_types.join(', ')} to ${new URL(url).host}`,
  },
  update_webhook: {
    action: 'webhook',
    scopes: () => ['webhooks:manage'],
    summary: ({ webhook_id, changes }) => `Change ${listFields(changes)} of webhook ${webhook_id}`,
  },
  rotate_webhook_secret: {
    action: 'webhook',
    scopes: () => ['webhooks:manage'],
    summary: ({ webhook_id }) => `Rotate the secret of webhook ${webhook_id}`,
  },
  set_account_limits: {
    action: 'raise_limit',
    scopes: () => ['accounts:limits'],
    summary: ({ account_id }) => `Raise limits of account ${account_id}`,
  },
  close_day: {
    action: 'close_day',
    scopes: () => ['books:close'],
    summary: ({ date }) => `Close the day ${date}`,
  },
};

export function isApprovable(name: string): name is ApprovableCommand {
  return Object.hasOwn(approvable, name);
}
