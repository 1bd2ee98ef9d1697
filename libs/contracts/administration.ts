import { z } from 'zod';
import { currency, page, time } from './fields.ts';
import { entrySchema, money, transactionSchema } from './resources.ts';
import { text } from './texts.ts';
import { deadLetterTopics } from './topics.ts';

/** Audit and dead letters: resources, bodies, and parameters of endpoints for staff and operators. */

/**
 * A record of one action, kept for auditors and never changed. Its details are short facts. They never contain
 * secrets, nor personal data except a client's previous and new names.
 */
export const auditRecordSchema = z.object({
  audit_id: z.string(),
  created_at: z.string(),
  /** `key:<family>`, `jwt:<iss>|<sub>`, `system…`, `unauthenticated`, or `various` in a summary. */
  actor: z.string(),
  /**
   * The endpoint's name. The dashboard also records `sign_in`, `sign_out`, and `export`, and for a refused page
   * or form `page:` or `form:` with its path. `unknown_route` if no route matched; `various` if a summary
   * covers several actions.
   */
  action: z.string(),
  resource_id: z.string().nullable(),
  /** `success`, or the error code of the refusal. */
  outcome: z.string(),
  request_id: z.string(),
  details: z.record(z.string(), z.unknown()),
  /**
   * The caller's network address. In a summary of refusals an IPv6 address is a /64, and null means several
   * addresses.
   */
  address: z.string().nullable(),
});
export type AuditRecord = z.infer<typeof auditRecordSchema>;

/**
 * An activity that a gateway counted during one minute for one address, caller, and route. Classes and
 * activities are those of OCSF.
 */
export const securityActivitySchema = z.object({
  class_uid: z.number().int(),
  class_name: z.string(),
  activity_name: z.string(),
  status: z.enum(['Success', 'Failure']),
  since: z.string(),
  until: z.string(),
  count: z.number().int().min(0),
  actor: z.string(),
  address: z.string().nullable(),
  action: z.string(),
  outcome: z.string(),
  resource_id: z.string().nullable(),
  request_id: z.string(),
});

export const deadLetterState = z.enum(['open', 'redriven', 'dropped']);

/** A message that could not be processed. Topic names have no prefix. */
export const deadLetterSchema = z.object({
  dead_letter_id: z.string(),
  topic: z.string(),
  partition: z.number().int().min(0),
  offset: z.number().int().min(0),
  source_topic: z.string(),
  source_partition: z.number().int().min(0).nullable(),
  source_offset: z.number().int().min(0).nullable(),
  key: z.string().nullable(),
  code: z.string().nullable(),
  reason: z.string().nullable(),
  /** The size of the value in bytes. */
  size_bytes: z.number().int().min(0),
  /** The name of the command or query, if its type is known. */
  message: z.string().nullable(),
  request_id: z.string().nullable(),
  dead_at: z.string(),
  state: deadLetterState,
  decided_by: z.string().nullable(),
  decided_at: z.string().nullable(),
  drop_reason: z.string().nullable(),
});
export type DeadLetter = z.infer<typeof deadLetterSchema>;

/** A dead letter with the message stored in its topic. `available` is false once retention has deleted the message. */
export const deadLetterContentSchema = deadLetterSchema.extend({
  available: z.boolean(),
  headers: z.record(z.string(), z.string()),
  /** The first 64 KiB: as text if they are valid UTF-8, otherwise in base64. */
  value: z.string().nullable(),
  encoding: z.enum(['utf-8', 'base64']).nullable(),
  truncated: z.boolean(),
});
export type DeadLetterContent = z.infer<typeof deadLetterContentSchema>;

export const searchKind = z.enum(['client', 'account', 'transaction', 'transfer', 'audit_record']);
export type SearchKind = z.infer<typeof searchKind>;

/** One search result and the field that matched. `id` is the resource's id. */
export const searchHitSchema = z.object({
  kind: searchKind,
  id: z.string(),
  title: z.string(),
  subtitle: z.string(),
  matched: z.enum([
    'id',
    'account_number',
    'external_id',
    'name',
    'phone',
    'email',
    'registration_number',
    'reference',
    'idempotency_key',
    'operation_id',
    'request_id',
  ]),
  created_at: z.string(),
});
export type SearchHit = z.infer<typeof searchHitSchema>;

/** The maximum number of hits of one kind. */
export const maxHits = 20;

/** Everything recorded about one transaction, from its request to its events. */
export const timelineSchema = z.object({
  transaction: transactionSchema,
  request: z.object({
    request_id: z.string(),
    actor: z.string(),
    idempotency_key: z.string().nullable(),
    accepted_at: z.string(),
  }),
  /** The command that the ledger received: ce_id, topic without prefix, partition. */
  command: z.object({ name: z.string(), id: z.string(), topic: z.string(), partition: z.number().int().min(0) }),
  /** null if the transaction was refused and nothing was posted. */
  booked_at: z.string().nullable(),
  /** All entries of the operation, including those of the other party, Teller, and Vault. */
  entries: z.array(entrySchema.extend({ account_number: z.string(), account_type: z.string() })),
  /** `not_kept` if the outbox, which keeps published events for OUTBOX_RETENTION_HOURS, no longer has them. */
  events: z.array(
    z.object({
      ce_id: z.string(),
      type: z.string(),
      topic: z.string(),
      key: z.string().nullable(),
      state: z.enum(['waiting', 'published', 'not_kept']),
      recorded_at: z.string().nullable(),
      published_at: z.string().nullable(),
    }),
  ),
});
export type Timeline = z.infer<typeof timelineSchema>;

export const statisticsUnit = z.enum(['minute', 'hour', 'day']);
/** The maximum number of buckets in one response. It allows more than one day in minutes. */
export const maxBuckets = 1500;

/** Applied operations by time of acceptance, in UTC. Empty buckets are omitted. */
export const postingStatisticsSchema = z.object({
  currency: z.string(),
  unit: statisticsUnit,
  from: z.string(),
  to: z.string(),
  /** False if the period has more transactions than are scanned; then only those since `counted_from` are counted. */
  complete: z.boolean(),
  counted_from: z.string(),
  /** A transfer or reversal counts as one operation with one amount. */
  buckets: z.array(z.object({ start: z.string(), operations: z.number().int().min(0), amount: money })),
});
export type PostingStatistics = z.infer<typeof postingStatisticsSchema>;

/** Totals of a period by currency, the currency with the most operations first. */
export const postingTotalsSchema = z.object({
  from: z.string(),
  to: z.string(),
  /** As in the statistics. */
  complete: z.boolean(),
  counted_from: z.string(),
  totals: z.array(
    z.object({
      currency: z.string(),
      operations: z.number().int().min(0),
      refused: z.number().int().min(0),
      /** Cash deposited and withdrawn. Reversals count in the opposite direction. */
      money_in: money,
      money_out: money,
      /** Transferred between customers. */
      transferred: money,
    }),
  ),
});
export type PostingTotals = z.infer<typeof postingTotalsSchema>;

/**
 * The value of a record in the topic `sessions`. Its key is either the id of an ended session, or an actor all of whose
 * sessions that began before `before` have ended. After `expires_at` these sessions have expired in any case.
 */
export const endedSessionSchema = z.object({ expires_at: z.iso.datetime(), before: z.iso.datetime().optional() });

/** The violated rules, each with the first rows that violate it. */
const findings = z.array(z.object({ rule: z.string(), rows: z.array(z.record(z.string(), z.unknown())) }));

/** A check of the books, or of the audit, against every rule of verify-books. */
export const checkSchema = z.object({
  verification_id: z.string(),
  requested_by: z.string(),
  started_at: z.string(),
  ended_at: z.string().nullable(),
  /** `broken`: at least one rule is violated. `interrupted`: the check did not finish, so nothing is known. */
  state: z.enum(['running', 'passed', 'broken', 'interrupted']),
  findings,
});
export type Check = z.infer<typeof checkSchema>;

/** Both checks as one. `covers` lacks `audit` if accounts could not check the audit or did not finish. */
export const verificationSchema = checkSchema.extend({ covers: z.array(z.enum(['books', 'audit'])) });
export type Verification = z.infer<typeof verificationSchema>;

/** The unpublished part of a service's outbox. */
export const outboxStateSchema = z.object({ rows: z.number().int().min(0), oldest_age_ms: z.number() });

/** The state of the bank. A part that could not be queried is null. */
export const operationsSchema = z.object({
  services: z.array(
    z.object({
      service: z.enum(['ledger', 'accounts', 'webhooks']),
      answers: z.boolean(),
      outbox: outboxStateSchema.nullable(),
    }),
  ),
  /** The breakers of the gateway that responds. While a breaker is open, the gateway sends nothing to that service. */
  breakers: z.array(
    z.object({ service: z.enum(['ledger', 'accounts', 'webhooks']), state: z.enum(['closed', 'open']) }),
  ),
  dead_letters_open: z.number().int().min(0).nullable(),
  /** Messages that a group has not yet committed, per partition. Topic names have no prefix. */
  consumer_lag: z
    .array(
      z.object({
        group: z.string(),
        topic: z.string(),
        partition: z.number().int().min(0),
        lag: z.number().int().min(0),
      }),
    )
    .nullable(),
  last_verification: verificationSchema.nullable(),
  /** Responses of this gateway in the last minute. */
  requests: z.object({
    window_seconds: z.number().int().min(0).max(60),
    count: z.number().int().min(0),
    server_errors: z.number().int().min(0),
    mean_ms: z.number().nullable(),
    slowest_ms: z.number().nullable(),
  }),
});
export type Operations = z.infer<typeof operationsSchema>;

/** The text that replaces an erased one. */
export const erasedText = '(erased)';

/** The number of records of a client that an erasure replaced, and where data of the client remains and until when. */
export const erasureSchema = z.object({
  client_id: z.string(),
  erased_at: z.string(),
  /** The number of each that this request replaced, not counting earlier requests. */
  replaced: z.object({
    kept_replies: z.number().int().min(0),
    audit_records: z.number().int().min(0),
    approvals: z.number().int().min(0),
    status_notes: z.number().int().min(0),
  }),
  revoked_keys: z.number().int().min(0),
  /** `gone_at`: the time after which nothing remains; null if it is never deleted automatically. */
  remaining: z.array(z.object({ place: z.string(), holds: z.string(), gone_at: z.string().nullable() })),
});
export type Erasure = z.infer<typeof erasureSchema>;

export const administrationBodies = {
  redriveDeadLetter: z.strictObject({ renew_deadline: z.boolean().default(false) }),
  dropDeadLetter: z.strictObject({ reason: text(1, 255, { lines: true }).nullish() }),
};

const exact = (max: number) => z.string().max(max).optional();

export const administrationParameters = {
  search: z.strictObject({ q: text(1, 255) }),
  postingStatistics: z.strictObject({
    currency,
    unit: statisticsUnit.default('hour'),
    from: time.optional(),
    to: time.optional(),
  }),
  postingTotals: z.strictObject({ from: time.optional(), to: time.optional() }),
  listAudit: z.strictObject({
    actor: exact(1000),
    action: exact(100),
    resource_id: exact(100),
    outcome: exact(100),
    request_id: exact(128),
    reads: z.enum(['with', 'without']).optional(),
    from: time.optional(),
    to: time.optional(),
    ...page,
  }),
  listDeadLetters: z.strictObject({
    topic: z.enum(deadLetterTopics).optional(),
    state: deadLetterState.optional(),
    from: time.optional(),
    to: time.optional(),
    ...page,
  }),
};
