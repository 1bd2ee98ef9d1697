import type { Approval, ErrorBody, ErrorCode } from './operations.ts';

/** The bank refused, or could not: its error body, and what to do is told by `code`. */
export class BankError extends Error {
  override name = 'BankError';
  readonly status: number;
  readonly code: ErrorCode;
  /** Names the request in the bank's logs and audit. */
  readonly request_id: string;
  /** Each violation, where the request itself is wrong. */
  readonly errors: NonNullable<ErrorBody['errors']>;
  /** Ids of what it is about, such as `transaction_id`. */
  readonly details: Record<string, unknown>;
  /** That of the request, where it had one: after `outcome_unknown` repeat the call with it. */
  readonly idempotencyKey: string | undefined;
  /** How long the bank asks to wait, in ms. */
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
 * A second person must approve the request: nothing has happened. Repeat the call with
 * `idempotencyKey` for its outcome, once there is one.
 */
export class ApprovalNeededError extends Error {
  override name = 'ApprovalNeededError';
  /** As it is now: Waiting, unless the call was a repeat. */
  readonly approval: Approval;
  readonly idempotencyKey: string | undefined;

  constructor(approval: Approval, idempotencyKey?: string) {
    super(`${approval.summary}: ${approval.status === 'Waiting' ? 'waits for approval' : approval.status}`);
    this.approval = approval;
    this.idempotencyKey = idempotencyKey;
  }
}

/**
 * No answer of the bank in the attempts and the time that a call has. A write may have been done:
 * repeat it with `idempotencyKey`.
 */
export class NoAnswerError extends Error {
  override name = 'NoAnswerError';
  readonly idempotencyKey: string | undefined;
  /** The resource as the bank answered it, where all that is known is that it took the request (202). */
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
