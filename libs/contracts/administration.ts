import { z } from 'zod';
import { currency, page, time } from './fields.ts';
import { entrySchema, money, transactionSchema } from './resources.ts';
import { text } from './texts.ts';
import { deadLetterTopics } from './topics.ts';

/** Audit and dead letters: resources, bodies and parameters of what staff and operators use. */

/**
 * One act that is kept for auditors; never changed. Details are short facts, never secrets, nor
 * personal data but the names that a client had and has.
 */
export const auditRecordSchema = z.object({
  audit_id: z.string(),
  created_at: z.string(),
  /** `key:<family>`, `jwt:<iss>|<sub>`, `system…`, `unauthenticated`, or `various` in a summary. */
  actor: z.string(),
  /**
   * The endpoint's name; in the dashboard `sign_in`, `sign_out` and `export`, and where a page or
   * form was refused `page:` or `form:` with its path; `unknown_route` where there is none,
   * `various` where a summary adds several up.
   */
  action: z.string(),
  resource_id: z.string().nullable(),
  /** `success`, or the error code of the refusal. */
  outcome: z.string(),
  request_id: z.string(),
  details: z.record(z.string(), z.unknown()),
  /**
   * The caller's network address; in a summary of refusals a /64 where it is IPv6, null where they
   * came from several.
   */
  address: z.string().nullable(),
});
export type AuditRecord = z.infer<typeof auditRecordSchema>;

/**
 * What a gateway saw so many times in a minute, of one address, caller and route; classes and
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

/** A message that could not be processed. Topics are named without the common prefix. */
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
  /** Of the value. */
  size_bytes: z.number().int().min(0),
  /** The command or query, where its type can be read. */
  message: z.string().nullable(),
  request_id: z.string().nullable(),
  dead_at: z.string(),
  state: deadLetterState,
  decided_by: z.string().nullable(),
  decided_at: z.string().nullable(),
  drop_reason: z.string().nullable(),
});
export type DeadLetter = z.infer<typeof deadLetterSchema>;

/** With what lies in the topic. `available` is false once retention has deleted it there. */
export const deadLetterContentSchema = deadLetterSchema.extend({
  available: z.boolean(),
  headers: z.record(z.string(), z.string()),
  /** As it is where it is UTF-8, else in base64; the first 64 KiB. */
  value: z.string().nullable(),
  encoding: z.enum(['utf-8', 'base64']).nullable(),
  truncated: z.boolean(),
});
export type DeadLetterContent = z.infer<typeof deadLetterContentSchema>;

export const searchKind = z.enum(['client', 'account', 'transaction', 'transfer', 'audit_record']);
export type SearchKind = z.infer<typeof searchKind>;

/** One thing that a search has found, and by what. `id` is that of its resource. */
export const searchHitSchema = z.object({
  kind: searchKind,
  id: z.string(),
  title: z.string(),
  subtitle: z.string(),
  matched: z.enum([
    'id',
    'account_number',
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

/** Hits of one kind at most. */
export const maxHits = 20;

/** From the request to the events of one transaction. */
export const timelineSchema = z.object({
  transaction: transactionSchema,
  request: z.object({
    request_id: z.string(),
    actor: z.string(),
    idempotency_key: z.string().nullable(),
    accepted_at: z.string(),
  }),
  /** What the ledger was sent: ce_id, topic without the common prefix, partition. */
  command: z.object({ name: z.string(), id: z.string(), topic: z.string(), partition: z.number().int().min(0) }),
  /** null: refused, nothing was posted. */
  booked_at: z.string().nullable(),
  /** All of the operation, of both parties, Teller and Vault. */
  entries: z.array(entrySchema.extend({ account_number: z.string(), account_type: z.string() })),
  /**
   * `not_kept`: so old that the outbox, which keeps what it has published for
   * OUTBOX_RETENTION_HOURS, tells nothing of it any more.
   */
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
/** Buckets of one answer at most: a day of minutes, and some. */
export const maxBuckets = 1500;

/** Operations that were applied, by the time of their acceptance, in UTC; buckets without any are left out. */
export const postingStatisticsSchema = z.object({
  currency: z.string(),
  unit: statisticsUnit,
  from: z.string(),
  to: z.string(),
  /** False where the period has more transactions than are looked at: then those since `counted_from` are counted. */
  complete: z.boolean(),
  counted_from: z.string(),
  /** A transfer, and a reversal, is one operation of its one amount. */
  buckets: z.array(z.object({ start: z.string(), operations: z.number().int().min(0), amount: money })),
});
export type PostingStatistics = z.infer<typeof postingStatisticsSchema>;

/** What was posted in a period, by currency: those with most operations first. */
export const postingTotalsSchema = z.object({
  from: z.string(),
  to: z.string(),
  /** As of the statistics. */
  complete: z.boolean(),
  counted_from: z.string(),
  totals: z.array(
    z.object({
      currency: z.string(),
      operations: z.number().int(),
      refused: z.number().int(),
      /** Cash paid in and paid out, reversals the other way around. */
      money_in: money,
      money_out: money,
      /** Between customers. */
      transferred: money,
    }),
  ),
});
export type PostingTotals = z.infer<typeof postingTotalsSchema>;

/**
 * Value of the topic `sessions`. Its key is the id of a session that has ended, or an actor: then
 * those of its sessions have ended that began before `before`. From `expires_at` on they have
 * expired by themselves.
 */
export const endedSessionSchema = z.object({ expires_at: z.iso.datetime(), before: z.iso.datetime().optional() });

/** The rules that do not hold, each with the first rows that break it. */
const findings = z.array(z.object({ rule: z.string(), rows: z.array(z.record(z.string(), z.unknown())) }));

/** One check of the books against every rule of verify-books. */
export const bookCheckSchema = z.object({
  verification_id: z.string(),
  requested_by: z.string(),
  started_at: z.string(),
  ended_at: z.string().nullable(),
  /** `broken`: some rules do not hold. `interrupted`: it came to no end, and says nothing about the books. */
  state: z.enum(['running', 'passed', 'broken', 'interrupted']),
  findings,
});
export type BookCheck = z.infer<typeof bookCheckSchema>;

/** One check of the chains of audit records, of that verification; it is under way while it has not ended. */
export const auditCheckSchema = z.object({ verification_id: z.string(), ended_at: z.string().nullable(), findings });
export type AuditCheck = z.infer<typeof auditCheckSchema>;

/** Both as one. `covers`: without `audit` where accounts could not check it, or did not come to an end. */
export const verificationSchema = bookCheckSchema.extend({ covers: z.array(z.enum(['books', 'audit'])) });
export type Verification = z.infer<typeof verificationSchema>;

/** What a service's outbox holds that is not published yet. */
export const outboxStateSchema = z.object({ rows: z.number().int().min(0), oldest_age_ms: z.number() });

/** How the bank is, as far as each part answers: what cannot be asked is null. */
export const operationsSchema = z.object({
  services: z.array(
    z.object({ service: z.enum(['ledger', 'accounts']), answers: z.boolean(), outbox: outboxStateSchema.nullable() }),
  ),
  /** Of the gateway that answers: open, it asks that service nothing for a moment. */
  breakers: z.array(
    z.object({ service: z.enum(['ledger', 'accounts', 'webhooks']), state: z.enum(['closed', 'open']) }),
  ),
  dead_letters_open: z.number().int().min(0).nullable(),
  /** Messages that a group has not committed, per partition. Names without the common prefix. */
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
  /** Answers of the gateway that answers this one, in the last minute. */
  requests: z.object({
    window_seconds: z.number().int().min(0),
    count: z.number().int().min(0),
    server_errors: z.number().int().min(0),
    mean_ms: z.number().nullable(),
    slowest_ms: z.number().nullable(),
  }),
});
export type Operations = z.infer<typeof operationsSchema>;

/** Stands where a text was that an erasure has replaced. */
export const erasedText = '(erased)';
export const erasedMetadata = { erased: erasedText };

/** What the erasure of a client has replaced, and what is left of them elsewhere, until when. */
export const erasureSchema = z.object({
  client_id: z.string(),
  erased_at: z.string(),
  /** How many of each, by this request: what a request before it has replaced is not counted again. */
  replaced: z.object({
    transactions: z.number().int().min(0),
    kept_replies: z.number().int().min(0),
    audit_records: z.number().int().min(0),
    approvals: z.number().int().min(0),
    status_notes: z.number().int().min(0),
  }),
  revoked_keys: z.number().int().min(0),
  /** `gone_at`: when nothing of it is kept any more; null: never by itself. */
  remaining: z.array(z.object({ place: z.string(), holds: z.string(), gone_at: z.string().nullable() })),
});
export type Erasure = z.infer<typeof erasureSchema>;

export const administrationBodies = {
  eraseClient: z.strictObject({}),
  verifyBooks: z.strictObject({}),
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
