import { statusMeanings } from '#libs/contracts/account-status.ts';
import { accountMeanings } from '#libs/contracts/accounts.ts';
import { apiKeyMeanings } from '#libs/contracts/api-keys.ts';
import { approvalMeanings } from '#libs/contracts/approvals.ts';
import { auditMeanings } from '#libs/contracts/audit.ts';
import { batchMeanings } from '#libs/contracts/batches.ts';
import { bookMeanings } from '#libs/contracts/books.ts';
import { clientMeanings } from '#libs/contracts/clients.ts';
import { dayMeanings } from '#libs/contracts/days.ts';
import { deadLetterMeanings } from '#libs/contracts/dead-letters.ts';
import { erasureMeanings } from '#libs/contracts/erasure.ts';
import type { ErrorCode } from '#libs/contracts/errors.ts';
import { feedMeanings } from '#libs/contracts/event-feed.ts';
import { holdMeanings } from '#libs/contracts/holds.ts';
import { limitMeanings } from '#libs/contracts/limits.ts';
import type { ErrorMeaning } from '#libs/contracts/meanings.ts';
import { noteMeanings } from '#libs/contracts/notes.ts';
import { operationsMeanings } from '#libs/contracts/operations.ts';
import { reversalMeanings } from '#libs/contracts/reversals.ts';
import { searchMeanings } from '#libs/contracts/search.ts';
import { signInMeanings } from '#libs/contracts/sign-ins.ts';
import { staffDayMeanings } from '#libs/contracts/staff-days.ts';
import { statementMeanings } from '#libs/contracts/statements.ts';
import { statisticsMeanings } from '#libs/contracts/statistics.ts';
import { example, type Meanings, meaning } from '#libs/contracts/subject.ts';
import { tillMeanings } from '#libs/contracts/tills.ts';
import { timelineMeanings } from '#libs/contracts/timeline.ts';
import { transactionMeanings } from '#libs/contracts/transactions.ts';
import { transferMeanings } from '#libs/contracts/transfers.ts';
import { webhookMeanings } from '#libs/contracts/webhooks.ts';

/** The meanings of all fields and errors: of each subject, and these of the envelope, of lists, and of money. */
const shared = {
  fields: {
    request_id: 'The X-Request-Id of the request; logs, events, and audit records contain it',
    external_id:
      "The caller's own id of the resource: 1 to 128 printable ASCII characters, stored unchanged; omitted if not set",
    metadata:
      "The caller's own texts for the resource, by name: at most 20 of at most 500 characters, names of 1 to 40 characters a-z 0-9 _ . -; stored unchanged, and published in events, so without personal data; omitted if not set",
    metadata_client_id: "The client whose credentials gave the metadata; omitted if it is the bank's",
    client_metadata:
      'What credentials of the client gave as metadata, in the same form; the bank sees it beside its own, which they do not see; omitted if not set',
    currency: 'ISO 4217 code in upper case',
    amount: `Greater than 0, ${meaning.inUnits}`,
    description: 'Free text, at most 255 characters; null: none',
    idempotency_key: 'Only what requests with this Idempotency-Key created: 1 to 255 printable ASCII characters',
    from: 'Posted at or after this time: ISO 8601 date or time; a date means midnight UTC',
    to: 'Posted before this time: ISO 8601 date or time; a date means midnight UTC',
    limit: 'Maximum number of items per page; a page also ends at 1 MiB',
    cursor: 'From the Link with rel="next" of the previous page; opaque, and valid only with the same filters',
    order: 'desc: newest first; asc: oldest first',
    created_at: `When the request was accepted, ${meaning.utc}`,
    updated_at: `When it was last changed, ${meaning.utc}`,
    message: 'A description of the error for people; programs should use `code`',
    'Health.message': 'Says that the service is running',
    'Health.status': 'Always success',
    'Health.apiVersion': 'Version of the running service, such as 1.4.2',
    'ErrorBody.status': 'Always error',
    'Problem.type': 'The name of the kind of error, by its `code`',
    'Problem.title': 'The kind of error for people',
    'Problem.status': 'The HTTP status',
    'Problem.detail': 'A description of the error for people',
    'Problem.instance': 'The name of this error, by its `request_id`',
    data: 'The requested or created resource',
    code: 'The error code; each code always has the same HTTP status',
    errors: 'All violations, if fields or parameters are invalid',
    details: 'Additional data, by name',
    field: 'The dotted path of the field, or the name of the parameter or header',
    created_by: `Who created it: ${meaning.actorForms}`,
    expires_at: `When it expires, ${meaning.utc}`,
    actor: `Who did it: ${meaning.actorForms}, \`unauthenticated\`, or \`various\` in a summary`,
    topic: 'Topic, without prefix',
    partition: 'Partition number, from 0',
    key: 'Key of the message; null: none',
    complete: 'false if the scan limit was reached and there is more',
    requested_by: `Who requested it: ${meaning.actorForms}`,
    decided_by: `Who decided: ${meaning.actorForms}; null: not decided`,
    decided_at: `When it was decided, ${meaning.utc}; null: not decided`,
  },
  eventFields: {
    actor: 'The caller: key:<family of the API key>, jwt:<issuer>|<subject>, or system',
    amount: 'Always positive; a decimal string',
    created_at: 'For an entry, when it was posted; otherwise when the request was accepted; ISO 8601 UTC',
    reason:
      'Why the account was frozen; for a webhook, gone (410), failing (for five days), or revoked (a key that set its URL or secret was revoked or has expired, or its client was erased)',
    request_channel: 'How it was requested: api_key, token, staff (a staff user), or system',
    sequence:
      'Number of the entry within its account (or of the link within its chain), gap-free from 1; in a balance, the last entry included, 0 before the first',
    status:
      'Of a transaction: Completed or Failed; of an activity: Success or Failure; of an account: Active, Inactive, or Frozen; of an approval: Approved, Rejected, or Expired; of a hold: Active, Captured, Released, or Expired',
  },
  errors: {
    validation_failed: {
      meaning: 'A field, parameter, or header is missing or malformed; `errors` lists all of them.',
      action: 'Correct what `errors` lists.',
      example: meaning.invalidExample('email', 'validation_failed', 'must be an e-mail address'),
    },
    malformed_json: {
      meaning:
        'The body is not valid JSON, has more than 30 levels, or contains duplicate keys, a lone surrogate, or NUL.',
      action: 'Correct the body.',
      example: ['the body is not JSON'],
    },
    unknown_field: {
      meaning: 'The body has a field that does not exist, or that belongs to the other client type.',
      action: 'Remove it.',
      example: meaning.invalidExample('foo', 'unknown_field', 'is not a known field'),
    },
    unknown_parameter: {
      meaning: 'A query parameter does not exist. It is refused so that a mistyped filter does not list everything.',
      action: 'Correct its name.',
      example: meaning.invalidExample('foo', 'unknown_parameter', 'is not a known parameter'),
    },
    invalid_cursor: {
      meaning: 'The cursor does not belong to this list with these filters.',
      action: 'Use the `Link` of the previous page, with the same filters.',
      example: meaning.invalidExample('cursor', 'invalid_cursor', 'is not one of this list with these filters'),
    },
    invalid_amount: {
      meaning: 'The amount is not a JSON number, or not greater than 0.',
      action: 'Send a number, not a string.',
      example: meaning.invalidExample('amount', 'invalid_amount', 'must be greater than 0'),
    },
    invalid_amount_precision: {
      meaning: 'The amount has more decimal places than its currency.',
      action: 'Round it; the bank never does.',
      example: meaning.invalidExample('amount', 'invalid_amount_precision', 'has more decimal places than USD has'),
    },
    amount_too_large: {
      meaning: 'The amount exceeds 10^15 - 1 minor units.',
      action: 'Split it.',
      example: meaning.invalidExample('amount', 'amount_too_large', 'exceeds 10^15 - 1 minor units'),
    },
    unsupported_currency: {
      meaning: 'The currency is not an ISO 4217 code in upper case, or no accounts are opened in it any more.',
      action: 'Correct it.',
      example: meaning.invalidExample(
        'currency',
        'unsupported_currency',
        'must be an ISO 4217 currency code in upper case',
      ),
    },
    invalid_status_transition: {
      meaning: 'It has already been decided, or its state does not allow this.',
      action: 'Read it again.',
      example: [`dead letter ${example.ids.dead_letter} is already dropped`],
    },
    duplicate_external_id: {
      meaning: 'Another client, or another account, has this external_id.',
      action: 'Look it up with `?external_id=`: it may be yours.',
      example: ['another client has this external_id'],
    },
    missing_idempotency_key: {
      meaning: 'This request requires an Idempotency-Key.',
      action: 'Send one.',
      example: ['a batch needs an Idempotency-Key'],
    },
    missing_credentials: {
      meaning: 'The request has no credentials.',
      action: 'Send `x-api-key` or `Authorization: Bearer`.',
      example: ['credentials are required: Authorization: Bearer <token>, or x-api-key'],
    },
    invalid_credentials: {
      meaning: 'The credentials are unknown, expired, or revoked; the response does not say which.',
      action: 'Get a new token or key.',
      example: ['the credentials are not valid'],
    },
    ambiguous_credentials: {
      meaning: 'The request has both kinds of credentials.',
      action: 'Send only one.',
      example: ['send either Authorization or x-api-key, not both'],
    },
    insufficient_scope: {
      meaning: 'The caller lacks a permission; the message names the scope.',
      action: 'Use a key with that scope.',
      example: ['the scope accounts:read is required'],
    },
    route_not_found: {
      meaning: 'The path does not exist.',
      action: 'Correct it; paths are case-sensitive.',
      example: ['the path does not exist'],
    },
    method_not_allowed: {
      meaning: 'The path exists, but not with this method; `Allow` lists its methods.',
      action: 'Use one of them.',
      example: ['DELETE is not allowed here, only GET, HEAD, POST'],
    },
    request_timeout: {
      meaning: 'The request was not received completely in time.',
      action: 'Send it again.',
      example: ['the request was not received in time'],
    },
    deadline_exceeded: {
      meaning: 'The command was received too late. It was not executed and never will be.',
      action: 'Send it again with a new Idempotency-Key.',
      example: [
        'the command was received after its deadline: it was not executed and never will be; repeat it with a new Idempotency-Key',
      ],
    },
    version_mismatch: {
      meaning: 'The resource has changed since the ETag in `If-Match` was read.',
      action: 'Read it again and repeat the change if it still applies.',
      example: [`client ${example.ids.client} has changed: If-Match does not name its current version`],
    },
    body_too_large: {
      meaning: 'The body exceeds the size limit, or has more than 40,000 names and values.',
      action: 'Send less.',
      example: ['the body must not exceed 64 KiB'],
    },
    unsupported_media_type: {
      meaning: 'The body is not application/json, or is compressed.',
      action: 'Correct Content-Type or Content-Encoding.',
      example: ['the Content-Type must be application/json'],
    },
    idempotency_key_reused: {
      meaning: 'The Idempotency-Key was used for a different request.',
      action: 'Use a new key for each request.',
      example: ['this Idempotency-Key was used for another request'],
    },
    rate_limited: {
      meaning:
        'Too many requests or failed authentications; or too many request bodies, searches, sums, or printed statements at once.',
      action: 'Wait as long as `Retry-After` says.',
      example: ['more than 600 requests a minute; try again in 12 s'],
    },
    headers_too_large: {
      meaning: 'Request line and headers exceed the size limit.',
      action: 'Send less.',
      example: ['the request line and headers must not exceed 80 KiB'],
    },
    internal_error: {
      meaning: 'A bug in the service.',
      action: 'Report the `request_id` to the operators.',
      example: ['an unexpected error occurred'],
    },
    service_unavailable: {
      meaning: 'The bank cannot process the request now; nothing was executed.',
      action: 'Send it again after `Retry-After`.',
      example: ['the service cannot answer now; nothing was executed, the request can be repeated'],
    },
    outcome_unknown: {
      meaning: 'The request was forwarded, but there is no reply yet; the message names the resource id.',
      action:
        'Repeat it with the same Idempotency-Key. Without one, GET that id first: 503 means that its outcome is still not known, 404 that nothing was executed or ever will be.',
      example: [
        `the outcome of ${example.ids.transaction} is not known yet: repeat the request with the same Idempotency-Key`,
        { details: { transaction_id: example.ids.transaction } },
      ],
    },
  },
} satisfies Meanings;

const subjects = [
  shared,
  clientMeanings,
  accountMeanings,
  statusMeanings,
  noteMeanings,
  statementMeanings,
  transactionMeanings,
  reversalMeanings,
  dayMeanings,
  transferMeanings,
  holdMeanings,
  limitMeanings,
  batchMeanings,
  feedMeanings,
  webhookMeanings,
  apiKeyMeanings,
  erasureMeanings,
  bookMeanings,
  searchMeanings,
  timelineMeanings,
  statisticsMeanings,
  staffDayMeanings,
  tillMeanings,
  operationsMeanings,
  auditMeanings,
  deadLetterMeanings,
  approvalMeanings,
  signInMeanings,
] as const;

/** Returns the tables of all subjects as one. A name has one meaning. */
function merged<T>(tables: Record<string, T>[]): Record<string, T> {
  const entries = tables.flatMap((table) => Object.entries(table));
  const names = entries.map(([name]) => name);
  const twice = names.filter((name, i) => names.indexOf(name) < i);
  if (twice.length > 0) throw new TypeError(`two subjects give a meaning of ${twice.join(', ')}`);
  return Object.fromEntries(entries);
}

export const fieldMeanings = merged<string>(subjects.map((subject: Meanings) => subject.fields));
/** A field of events without a meaning of its own has that of REST. */
export const eventFieldMeanings = {
  ...fieldMeanings,
  ...merged<string>(subjects.map((subject: Meanings) => subject.eventFields ?? {})),
};

type Subject = (typeof subjects)[number];
type ExplainedCode = Subject extends infer S ? (S extends { errors: infer E } ? keyof E : never) : never;
/** It is a compile error if no subject explains a code. */
export const errorMeanings: Record<ErrorCode, ErrorMeaning> = merged(
  subjects.map((subject: Meanings) => subject.errors ?? {}),
) as Record<ExplainedCode, ErrorMeaning>;
