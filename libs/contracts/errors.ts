import { z } from 'zod';
import type { ResourceKind } from './ids.ts';

/**
 * All error codes with their HTTP status (contract: errors). The message of a business error begins with its
 * name, which is stored here as `title`.
 */
export const errorCodes = {
  validation_failed: { status: 400 },
  malformed_json: { status: 400 },
  unknown_field: { status: 400 },
  unknown_parameter: { status: 400 },
  invalid_cursor: { status: 400 },
  invalid_amount: { status: 400 },
  invalid_amount_precision: { status: 400 },
  amount_too_large: { status: 400 },
  unsupported_currency: { status: 400 },
  insufficient_funds: { status: 400, title: 'Insufficient Funds' },
  inactive_account: { status: 400, title: 'Inactive Account' },
  invalid_account_type: { status: 400, title: 'Invalid Account Type' },
  duplicate_account_number: { status: 400, title: 'Duplicate Account Number' },
  currency_mismatch: { status: 400, title: 'Currency Mismatch' },
  same_account: { status: 400 },
  destination_refused: { status: 400 },
  amount_exceeds_hold: { status: 400, title: 'Amount Exceeds Hold' },
  hold_not_active: { status: 400, title: 'Hold Not Active' },
  too_many_holds: { status: 400, title: 'Too Many Holds' },
  limit_exceeded: { status: 400, title: 'Limit Exceeded' },
  amount_exceeds_outstanding: { status: 400, title: 'Amount Exceeds Outstanding' },
  balance_limit_exceeded: { status: 400, title: 'Balance Limit Exceeded' },
  invalid_effective_date: { status: 400 },
  day_not_closable: { status: 400, title: 'Day Not Closable' },
  day_closed: { status: 400, title: 'Day Closed' },
  invalid_transaction_type: { status: 400 },
  invalid_status_transition: { status: 400 },
  duplicate_ussd_phone: { status: 400, title: 'Duplicate USSD Phone' },
  duplicate_external_id: { status: 400, title: 'Duplicate External ID' },
  till_not_counted: { status: 400 },
  till_difference: { status: 400 },
  not_reversible: { status: 400, title: 'Not Reversible' },
  erasure_refused: { status: 400 },
  already_reversed: { status: 400, title: 'Already Reversed' },
  approval_required: { status: 400 },
  batch_refused: { status: 400 },
  missing_idempotency_key: { status: 400 },
  missing_credentials: { status: 401 },
  invalid_credentials: { status: 401 },
  ambiguous_credentials: { status: 401 },
  insufficient_scope: { status: 403 },
  own_approval: { status: 403 },
  client_not_found: { status: 404 },
  account_not_found: { status: 404 },
  transaction_not_found: { status: 404 },
  transfer_not_found: { status: 404 },
  hold_not_found: { status: 404 },
  api_key_not_found: { status: 404 },
  dead_letter_not_found: { status: 404 },
  approval_not_found: { status: 404 },
  batch_not_found: { status: 404 },
  webhook_not_found: { status: 404 },
  delivery_not_found: { status: 404 },
  day_not_found: { status: 404 },
  till_not_found: { status: 404 },
  route_not_found: { status: 404 },
  method_not_allowed: { status: 405 },
  deadline_exceeded: { status: 409 },
  approval_decided: { status: 409 },
  till_open: { status: 409 },
  till_closed: { status: 409 },
  client_erased: { status: 410 },
  /** Retention has deleted the message from the dead letter topic. */
  dead_letter_expired: { status: 410 },
  /** The client did not send the whole request in time. */
  request_timeout: { status: 408 },
  /** If-Match does not name the current version of the resource. */
  version_mismatch: { status: 412 },
  body_too_large: { status: 413 },
  unsupported_media_type: { status: 415 },
  idempotency_key_reused: { status: 422 },
  rate_limited: { status: 429 },
  headers_too_large: { status: 431 },
  internal_error: { status: 500 },
  service_unavailable: { status: 503 },
  outcome_unknown: { status: 504 },
} as const satisfies Record<string, { status: number; title?: string }>;

export type ErrorCode = keyof typeof errorCodes;

export const errorCodeSchema = z.enum(Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]]).meta({ id: 'ErrorCode' });

/** Returns the error for a resource that does not exist. */
export function notFoundCode(kind: ResourceKind): ErrorCode {
  return kind === 'key' ? 'api_key_not_found' : `${kind}_not_found`;
}

/** A violation of a validation rule. `field` is a dotted path or a parameter name. */
const violationSchema = z
  .object({ field: z.string(), code: errorCodeSchema, message: z.string() })
  .meta({ id: 'Violation' });
export type Violation = z.infer<typeof violationSchema>;

/**
 * A refusal: a business decision against a request. It is returned in a reply like any outcome and, if it is
 * decided for good (contract: idempotency-6), stored.
 */
export const refusalSchema = z
  .object({
    code: errorCodeSchema,
    message: z.string(),
    errors: z.array(violationSchema).optional(),
    details: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'Refusal' });
export type Refusal = z.infer<typeof refusalSchema>;

/** The name of the kind of error, the same for each occurrence. */
const titleFor = (code: ErrorCode): string => {
  const entry: { status: number; title?: string } = errorCodes[code];
  return entry.title ?? `${code.charAt(0).toUpperCase()}${code.slice(1).replaceAll('_', ' ')}`;
};

/** Creates a refusal. The message of a business error begins with the error's title. */
export function refusal<C extends ErrorCode>(
  code: C,
  message: string,
  rest: Omit<Refusal, 'code' | 'message'> = {},
): Refusal & { code: C } {
  const entry: { status: number; title?: string } = errorCodes[code];
  return { code, message: entry.title === undefined ? message : `${entry.title}: ${message}`, ...rest };
}

/**
 * Reports whether the refusal is stored, so that a repeat returns it again. 403 depends on the caller, 5xx decides
 * nothing, 429 passes, and an invalid request may be corrected, so these are decided again (contract: idempotency-7).
 */
export function isKept({ code }: Refusal): boolean {
  const { status } = errorCodes[code];
  return status < 500 && status !== 403 && status !== 429 && code !== 'validation_failed';
}

/** Creates the reply to a query for the outcome of a command that was dead-lettered. */
export function deadLettered(id: string): Refusal {
  const message = `the outcome of ${id} is not known yet: its command was dead-lettered, and an operator must redrive or drop it`;
  return refusal('service_unavailable', message);
}

/**
 * Creates a 400 refusal from violations. Its code is the violations' code if they all have the same one,
 * otherwise validation_failed.
 */
export function violationsRefusal(errors: Violation[]): Refusal {
  const first = errors[0]?.code ?? 'validation_failed';
  const code = errors.every((e) => e.code === first) ? first : 'validation_failed';
  const message =
    errors.length === 1 && errors[0]
      ? errors[0].message
      : `${errors.length} violations: ${errors.map((e) => e.message).join('; ')}`;
  return { code, message: message.slice(0, 2000), errors };
}

/** Creates the refusal of a request because of one field. */
export function invalidField(field: string, message: string, code: ErrorCode = 'validation_failed'): Refusal {
  return violationsRefusal([{ field, code, message }]);
}

/** The body of every error response. */
export const errorBodySchema = z
  .object({
    status: z.literal('error'),
    ...refusalSchema.shape,
    request_id: z.string(),
  })
  .meta({ id: 'ErrorBody' });
export type ErrorBody = z.infer<typeof errorBodySchema>;

/** The same error as problem details (RFC 9457), for clients that accept `application/problem+json`. */
export const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.number().int().min(400).max(599),
    detail: z.string(),
    instance: z.string(),
    ...errorBodySchema.omit({ status: true, message: true }).shape,
  })
  .meta({ id: 'Problem' });

/** Returns the problem details of an error. Its type and its instance are names, not addresses. */
export function toProblem({ status: _error, message, code, ...rest }: ErrorBody): z.infer<typeof problemSchema> {
  return {
    type: `urn:core-banking:error:${code}`,
    title: titleFor(code),
    status: errorCodes[code].status,
    detail: message,
    instance: `urn:core-banking:request:${encodeURIComponent(rest.request_id)}`,
    code,
    ...rest,
  };
}
