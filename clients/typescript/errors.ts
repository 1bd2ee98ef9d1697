import type { Approval, ErrorBody, ErrorCode } from './operations.ts';

/** The bank's error body for a refusal or a fault; `code` determines what to do. */
export class BankError extends Error {
  override name = 'BankError';
  readonly status: number;
  readonly code: ErrorCode;
  /** Identifies the request in the bank's logs and audit. */
  readonly request_id: string;
  /** All violations, if the request itself is invalid. */
  readonly errors: NonNullable<ErrorBody['errors']>;
  /** Ids of the resources concerned, such as `transaction_id`. */
  readonly details: Record<string, unknown>;
  /** The request's key, if it had one: after `outcome_unknown` repeat the call with it. */
  readonly idempotencyKey: string | undefined;
  /** The pause that the bank requests, in ms. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, body: ErrorBody, retryAfterMs?: number, idempotencyKey?: string) {
    super(body.message);
    this.status = status;
    this.code = body.code;
    this.request_id = body.request_id;
    this.errors = body.errors ?? [];
    this.details = body.details ?? {};
    this.retryAfterMs = retryAfterMs;
    this.idempotencyKey = idempotencyKey;
  }
}

/**
 * A second person must approve the request; nothing has been executed. Repeat the call with
 * `idempotencyKey` to get its outcome after the decision.
 */
export class ApprovalNeededError extends Error {
  override name = 'ApprovalNeededError';
  /** The current approval: Waiting, unless the call was a repeat. */
  readonly approval: Approval;
  readonly idempotencyKey: string | undefined;

  constructor(approval: Approval, idempotencyKey?: string) {
    super(`${approval.summary}: ${approval.status === 'Waiting' ? 'waits for approval' : approval.status}`);
    this.approval = approval;
    this.idempotencyKey = idempotencyKey;
  }
}

/**
 * The bank did not respond within the attempts and the time of a call. A write may have been
 * executed: repeat it with `idempotencyKey`.
 */
export class NoAnswerError extends Error {
  override name = 'NoAnswerError';
  readonly idempotencyKey: string | undefined;
  /** The resource in the bank's response, if it only accepted the request (202). */
  readonly pending: unknown;

  constructor(
    message: string,
    {
      cause,
      idempotencyKey,
      pending,
    }: { cause?: unknown; idempotencyKey?: string | undefined; pending?: unknown } = {},
  ) {
    super(message, { cause });
    this.idempotencyKey = idempotencyKey;
    this.pending = pending;
  }
}
