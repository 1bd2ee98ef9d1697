/**
 * The meaning of each error code and the action for the caller. Published as docs/errors.md. The codes are
 * those of errors.ts.
 */
export const errorMeanings: Record<string, { meaning: string; action: string }> = {
  validation_failed: {
    meaning: 'A field, parameter or header is missing or not of its form; `errors` names every one.',
    action: 'Correct what `errors` names.',
  },
  malformed_json: {
    meaning: 'The body is no JSON that can be read exactly: broken, with a key twice, a lone surrogate or NUL.',
    action: 'Correct the body.',
  },
  unknown_field: {
    meaning: 'The body has a field that is not known here, or that belongs to the other client type.',
    action: 'Leave it out.',
  },
  unknown_parameter: {
    meaning: 'A query parameter is not known here: a mistyped filter does not list everything.',
    action: 'Correct its name.',
  },
  invalid_cursor: {
    meaning: 'The cursor is not one of this list with these filters.',
    action: 'Take it from the `Link` of the page before, with the same filters.',
  },
  invalid_amount: { meaning: 'The amount is not a JSON number, or not above 0.', action: 'Send a number, not a text.' },
  invalid_amount_precision: {
    meaning: 'The amount has more decimal places than its currency.',
    action: 'Round it yourself: the bank never does.',
  },
  amount_too_large: { meaning: 'The amount is more than 10^15 - 1 minor units.', action: 'Split it.' },
  unsupported_currency: { meaning: 'Not an ISO 4217 code in upper case.', action: 'Correct it.' },
  insufficient_funds: {
    meaning: 'Less is available on the account than is to be taken.',
    action: 'Tell the customer. Kept: another try needs a new Idempotency-Key.',
  },
  inactive_account: {
    meaning: 'The account is Inactive or Frozen.',
    action: 'Have it activated, then send it with a new Idempotency-Key.',
  },
  invalid_account_type: {
    meaning: 'The operation is not possible on this type of account, such as a Deposit on a Loan.',
    action: 'Use another operation or account.',
  },
  duplicate_account_number: {
    meaning: 'An account has the `account_number` that was given.',
    action: 'Give another one, or none: the bank makes one.',
  },
  currency_mismatch: {
    meaning: 'An account is held in another currency; the bank does not exchange.',
    action: "Use the account's currency.",
  },
  same_account: { meaning: 'Source and destination of the transfer are one account.', action: 'Correct one of them.' },
  destination_refused: {
    meaning: "The destination cannot take this payment; of other people's accounts a bound caller is told no more.",
    action: 'Ask whoever is to be paid.',
  },
  amount_exceeds_outstanding: {
    meaning: 'More is paid to a Loan than is outstanding on it.',
    action: 'Pay what is outstanding: the balance of the Loan.',
  },
  amount_exceeds_hold: { meaning: 'More is captured than the hold has left.', action: 'Capture at most what is left.' },
  hold_not_active: { meaning: 'The hold is Captured, Released or Expired.', action: 'Place a new one.' },
  balance_limit_exceeded: {
    meaning: 'The balance would be more than 10^15 - 1 minor units.',
    action: 'Use another account.',
  },
  invalid_transaction_type: {
    meaning: 'POST /transactions takes Deposit and Withdrawal.',
    action: 'Transfers and payments to Loans go to POST /transfers.',
  },
  invalid_status_transition: {
    meaning: 'It has been decided already, or is in no state that allows this.',
    action: 'Read it again.',
  },
  duplicate_ussd_phone: {
    meaning: 'Another client has this USSD phone number active.',
    action: 'Deactivate it there first.',
  },
  duplicate_external_id: {
    meaning: 'Another client, or account, has this external_id.',
    action: 'Look for it with `?external_id=`: it may be yours.',
  },
  not_reversible: {
    meaning: 'The transaction is Failed or Pending, or a reversal itself.',
    action: 'Book the opposite as a transaction of its own.',
  },
  already_reversed: {
    meaning: 'It has been reversed; `details.reversal_transaction_id` names the reversal.',
    action: 'Nothing: it is done.',
  },
  erasure_refused: {
    meaning: 'Something stands against the erasure of the client.',
    action: 'See the message and `details`.',
  },
  approval_required: {
    meaning: 'A second person must approve this, and it cannot be asked for here.',
    action: 'Ask for it by itself, as a person.',
  },
  batch_refused: {
    meaning: 'An item of an atomic batch was refused, so that nothing was booked; `errors` names the items.',
    action: 'Correct or leave out those, and send it with a new Idempotency-Key.',
  },
  missing_idempotency_key: { meaning: 'This request must have an Idempotency-Key.', action: 'Send one.' },
  missing_credentials: {
    meaning: 'The request has no credentials.',
    action: 'Send `x-api-key` or `Authorization: Bearer`.',
  },
  invalid_credentials: {
    meaning: 'The credentials are unknown, expired or revoked; which one is not said.',
    action: 'Get a new token or key.',
  },
  ambiguous_credentials: { meaning: 'The request has both kinds of credentials.', action: 'Send one of them.' },
  insufficient_scope: {
    meaning: 'The caller may not do this; the message names the scope.',
    action: 'Have a key with that scope made.',
  },
  own_approval: { meaning: 'Nobody approves or rejects what they asked for.', action: 'Another person decides.' },
  client_not_found: { meaning: 'There is no such client, or not for this caller.', action: 'Correct the id.' },
  account_not_found: {
    meaning: 'There is no such account, or not for this caller; the message says which of several.',
    action: 'Correct the id or number.',
  },
  transaction_not_found: {
    meaning: 'There is no such transaction, or not for this caller.',
    action: 'Correct the id.',
  },
  transfer_not_found: { meaning: 'There is no such transfer, or not for this caller.', action: 'Correct the id.' },
  hold_not_found: { meaning: 'There is no such hold, or not for this caller.', action: 'Correct the id.' },
  batch_not_found: { meaning: 'There is no such batch, or not for this caller.', action: 'Correct the id.' },
  webhook_not_found: { meaning: 'There is no such webhook, or not for this caller.', action: 'Correct the id.' },
  delivery_not_found: { meaning: 'There is no such delivery of this webhook.', action: 'Correct the id.' },
  api_key_not_found: { meaning: 'There is no such API key.', action: 'Correct the id.' },
  dead_letter_not_found: { meaning: 'There is no such dead letter.', action: 'Correct the id.' },
  approval_not_found: { meaning: 'There is no such approval, or not for this caller.', action: 'Correct the id.' },
  erasure_not_found: { meaning: 'There is no such erasure.', action: 'Correct the id.' },
  route_not_found: { meaning: 'There is no such path.', action: 'Correct it; paths are case-sensitive.' },
  method_not_allowed: {
    meaning: 'The path is known, with other methods; `Allow` names them.',
    action: 'Use one of those.',
  },
  request_timeout: { meaning: 'The request did not arrive in time.', action: 'Send it again.' },
  deadline_exceeded: {
    meaning: 'The command was picked up too late: it was not executed and never will be.',
    action: 'Send it again with a new Idempotency-Key.',
  },
  approval_decided: { meaning: 'The approval is Approved, Rejected or Expired.', action: 'Read it.' },
  client_erased: {
    meaning: 'The client was erased: nothing of them can be changed any more.',
    action: 'Take on a new client.',
  },
  dead_letter_expired: { meaning: "Retention has deleted the dead letter's bytes.", action: 'Drop it.' },
  version_mismatch: {
    meaning: 'Somebody has changed it since the ETag of `If-Match` was read.',
    action: 'Read it again, and decide again.',
  },
  body_too_large: { meaning: 'The body is larger than is taken here.', action: 'Send less.' },
  unsupported_media_type: {
    meaning: 'The body is not application/json, or is compressed.',
    action: 'Correct Content-Type.',
  },
  idempotency_key_reused: {
    meaning: 'The Idempotency-Key was used for another request.',
    action: 'One key for one request: make a new one.',
  },
  rate_limited: {
    meaning: 'Too many requests, failed authentications, or lists at once.',
    action: 'Wait as long as `Retry-After` says.',
  },
  headers_too_large: { meaning: 'Request line and headers are larger than is taken.', action: 'Send less.' },
  internal_error: { meaning: 'A defect of ours.', action: 'Tell the operators the `request_id`.' },
  service_unavailable: {
    meaning: 'The bank cannot answer now; nothing was executed.',
    action: 'Send it again after `Retry-After`.',
  },
  outcome_unknown: {
    meaning: 'The request was sent on, and there is no answer yet; the message names what it would make.',
    action: 'Repeat it with the same Idempotency-Key, or look for that id.',
  },
};
