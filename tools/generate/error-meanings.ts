import type { ErrorCode } from '#libs/contracts/errors.ts';
import { holdMeanings } from '#libs/contracts/holds.ts';
import type { ErrorMeaning } from '#libs/contracts/meanings.ts';

/**
 * The meaning of each error code and the action for the caller. Published as docs/errors.md. The codes are
 * those of errors.ts.
 */
export const errorMeanings: Record<ErrorCode, Omit<ErrorMeaning, 'example'> & Partial<ErrorMeaning>> = {
  validation_failed: {
    meaning: 'A field, parameter, or header is missing or malformed; `errors` lists all of them.',
    action: 'Correct what `errors` lists.',
  },
  malformed_json: {
    meaning:
      'The body is not valid JSON, has more than 30 levels, or contains duplicate keys, a lone surrogate, or NUL.',
    action: 'Correct the body.',
  },
  unknown_field: {
    meaning: 'The body has a field that does not exist, or that belongs to the other client type.',
    action: 'Remove it.',
  },
  unknown_parameter: {
    meaning: 'A query parameter does not exist. It is refused so that a mistyped filter does not list everything.',
    action: 'Correct its name.',
  },
  invalid_cursor: {
    meaning: 'The cursor does not belong to this list with these filters.',
    action: 'Use the `Link` of the previous page, with the same filters.',
  },
  invalid_amount: {
    meaning: 'The amount is not a JSON number, or not greater than 0.',
    action: 'Send a number, not a string.',
  },
  invalid_amount_precision: {
    meaning: 'The amount has more decimal places than its currency.',
    action: 'Round it; the bank never does.',
  },
  amount_too_large: { meaning: 'The amount exceeds 10^15 - 1 minor units.', action: 'Split it.' },
  unsupported_currency: { meaning: 'The currency is not an ISO 4217 code in upper case.', action: 'Correct it.' },
  insufficient_funds: {
    meaning: 'The available balance is too low.',
    action: 'Tell the customer. A retry needs a new Idempotency-Key.',
  },
  inactive_account: {
    meaning: 'The account is Inactive or Frozen.',
    action: 'Activate it, then retry with a new Idempotency-Key.',
  },
  invalid_account_type: {
    meaning: 'This type of account does not support the operation, such as a Deposit on a Loan.',
    action: 'Use another operation or account.',
  },
  duplicate_account_number: {
    meaning: 'Another account has this `account_number`.',
    action: 'Use another one, or omit it: the bank then generates one.',
  },
  currency_mismatch: {
    meaning: 'An account has another currency; the bank does not exchange currencies.',
    action: "Use the account's currency.",
  },
  same_account: {
    meaning: 'Source and destination of the transfer are the same account.',
    action: 'Correct one of them.',
  },
  destination_refused: {
    meaning:
      "The destination cannot accept this payment. Bound callers are not told the reason for other clients' accounts.",
    action: 'Ask the recipient.',
  },
  amount_exceeds_outstanding: {
    meaning: 'The payment exceeds the outstanding amount of the Loan.',
    action: "Pay at most the Loan's balance.",
  },
  ...holdMeanings.errors,
  balance_limit_exceeded: {
    meaning: 'The balance would exceed 10^15 - 1 minor units.',
    action: 'Use another account.',
  },
  invalid_transaction_type: {
    meaning: 'POST /transactions accepts only Deposit and Withdrawal.',
    action: 'Use POST /transfers for transfers and loan payments.',
  },
  invalid_status_transition: {
    meaning: 'It has already been decided, or its state does not allow this.',
    action: 'Read it again.',
  },
  duplicate_ussd_phone: {
    meaning: 'Another client has this USSD phone number active.',
    action: 'Deactivate it there first.',
  },
  duplicate_external_id: {
    meaning: 'Another client, or another account, has this external_id.',
    action: 'Look it up with `?external_id=`: it may be yours.',
  },
  not_reversible: {
    meaning: 'The transaction is Failed or Pending, or is itself a reversal.',
    action: 'Post the opposite transaction instead.',
  },
  already_reversed: {
    meaning: 'It has already been reversed; `details.reversal_transaction_id` is the reversal.',
    action: 'Nothing.',
  },
  erasure_refused: { meaning: 'The client cannot be erased yet.', action: 'See the message and `details`.' },
  approval_required: {
    meaning: 'A second person must approve this, which is not possible in this request.',
    action: 'Request it separately, as a person.',
  },
  batch_refused: {
    meaning: 'An item of an atomic batch was refused, so nothing was posted; `errors` lists the refused items.',
    action: 'Correct or remove them, and retry with a new Idempotency-Key.',
  },
  missing_idempotency_key: { meaning: 'This request requires an Idempotency-Key.', action: 'Send one.' },
  missing_credentials: {
    meaning: 'The request has no credentials.',
    action: 'Send `x-api-key` or `Authorization: Bearer`.',
  },
  invalid_credentials: {
    meaning: 'The credentials are unknown, expired, or revoked; the response does not say which.',
    action: 'Get a new token or key.',
  },
  ambiguous_credentials: { meaning: 'The request has both kinds of credentials.', action: 'Send only one.' },
  insufficient_scope: {
    meaning: 'The caller lacks a permission; the message names the scope.',
    action: 'Use a key with that scope.',
  },
  own_approval: { meaning: 'Nobody can approve or reject their own request.', action: 'Ask another person.' },
  client_not_found: {
    meaning: 'The client does not exist, or is not visible to this caller.',
    action: 'Correct the id.',
  },
  account_not_found: {
    meaning: 'The account does not exist, or is not visible to this caller; the message says which account.',
    action: 'Correct the id or number.',
  },
  transaction_not_found: {
    meaning: 'The transaction does not exist, or is not visible to this caller.',
    action: 'Correct the id.',
  },
  transfer_not_found: {
    meaning: 'The transfer does not exist, or is not visible to this caller.',
    action: 'Correct the id.',
  },
  batch_not_found: {
    meaning: 'The batch does not exist, or is not visible to this caller.',
    action: 'Correct the id.',
  },
  webhook_not_found: {
    meaning: 'The webhook does not exist, or is not visible to this caller.',
    action: 'Correct the id.',
  },
  delivery_not_found: { meaning: 'The webhook has no such delivery.', action: 'Correct the id.' },
  api_key_not_found: { meaning: 'The API key does not exist.', action: 'Correct the id.' },
  dead_letter_not_found: { meaning: 'The dead letter does not exist.', action: 'Correct the id.' },
  approval_not_found: {
    meaning: 'The approval does not exist, or is not visible to this caller.',
    action: 'Correct the id.',
  },
  route_not_found: { meaning: 'The path does not exist.', action: 'Correct it; paths are case-sensitive.' },
  method_not_allowed: {
    meaning: 'The path exists, but not with this method; `Allow` lists its methods.',
    action: 'Use one of them.',
  },
  request_timeout: { meaning: 'The request was not received completely in time.', action: 'Send it again.' },
  deadline_exceeded: {
    meaning: 'The command was received too late. It was not executed and never will be.',
    action: 'Send it again with a new Idempotency-Key.',
  },
  approval_decided: { meaning: 'The approval is already Approved, Rejected, or Expired.', action: 'Read it.' },
  client_erased: { meaning: 'The client was erased and can no longer be changed.', action: 'Create a new client.' },
  dead_letter_expired: {
    meaning: 'Retention has deleted the message of the dead letter, or its key is no longer accepted.',
    action: 'Drop it.',
  },
  version_mismatch: {
    meaning: 'The resource has changed since the ETag in `If-Match` was read.',
    action: 'Read it again and repeat the change if it still applies.',
  },
  body_too_large: {
    meaning: 'The body exceeds the size limit, or has more than 40,000 names and values.',
    action: 'Send less.',
  },
  unsupported_media_type: {
    meaning: 'The body is not application/json, or is compressed.',
    action: 'Correct Content-Type or Content-Encoding.',
  },
  idempotency_key_reused: {
    meaning: 'The Idempotency-Key was used for a different request.',
    action: 'Use a new key for each request.',
  },
  rate_limited: {
    meaning:
      'Too many requests or failed authentications; or too many request bodies, searches, sums, or printed statements at once.',
    action: 'Wait as long as `Retry-After` says.',
  },
  headers_too_large: { meaning: 'Request line and headers exceed the size limit.', action: 'Send less.' },
  internal_error: { meaning: 'A bug in the service.', action: 'Report the `request_id` to the operators.' },
  service_unavailable: {
    meaning: 'The bank cannot process the request now; nothing was executed.',
    action: 'Send it again after `Retry-After`.',
  },
  outcome_unknown: {
    meaning: 'The request was forwarded, but there is no reply yet; the message names the resource id.',
    action:
      'Repeat it with the same Idempotency-Key. Without one, GET that id first: 503 means that its outcome is still not known, 404 that nothing was executed or ever will be.',
  },
};
