import { z } from 'zod';
import { approvalAction } from './approvals.ts';
import { type EndpointRows, example, type Meanings, meaning, message, shown } from './subject.ts';

/** The state of the bank for operators, and the verification of the books and the audit log (contract: double-entry). */

/** The violated rules, each with the first rows that violate it. */
const findings = z.array(
  z.object({ rule: z.string(), rows: z.array(z.record(z.string(), z.unknown())) }).meta({ id: 'VerificationFinding' }),
);

/** A check of the books, or of the audit, against every rule of verify-books. */
const checkSchema = z.object({
  verification_id: z.string(),
  requested_by: z.string(),
  started_at: shown.time,
  ended_at: shown.time.nullable(),
  /** `broken`: at least one rule is violated. `interrupted`: the check did not finish, so nothing is known. */
  state: z.enum(['running', 'passed', 'broken', 'interrupted']),
  findings,
});
export type Check = z.infer<typeof checkSchema>;

/** Both checks as one. `covers` lacks `audit` if accounts could not check the audit or did not finish. */
const verificationSchema = checkSchema
  .extend({ covers: z.array(z.enum(['books', 'audit'])) })
  .meta({ id: 'Verification' });
export type Verification = z.infer<typeof verificationSchema>;

/** The unpublished part of a service's outbox. */
export const outboxStateSchema = z
  .object({ rows: z.number().int().min(0), oldest_age_ms: z.number() })
  .meta({ id: 'OutboxState' });

/** The state of the bank. A part that could not be queried is null. */
const operationsSchema = z
  .object({
    services: z.array(
      z
        .object({
          service: z.enum(['ledger', 'accounts', 'webhooks']),
          answers: z.boolean(),
          outbox: outboxStateSchema.nullable(),
        })
        .meta({ id: 'ServiceState' }),
    ),
    /** The breakers of the gateway that responds. While a breaker is open, the gateway sends nothing to that service. */
    breakers: z.array(
      z
        .object({ service: z.enum(['ledger', 'accounts', 'webhooks']), state: z.enum(['closed', 'open']) })
        .meta({ id: 'BreakerState' }),
    ),
    dead_letters_open: z.number().int().min(0).nullable(),
    /** Without those of clients, whose receivers are not the bank's. */
    webhooks_failing: z.number().int().min(0).nullable(),
    /** Tills that were closed with a difference within the last 24 hours. */
    tills_different: z.number().int().min(0).nullable(),
    /** Messages that a group has not yet committed, per partition. Topic names have no prefix. */
    consumer_lag: z
      .array(
        z
          .object({
            group: z.string(),
            topic: z.string(),
            partition: z.number().int().min(0),
            lag: z.number().int().min(0),
          })
          .meta({ id: 'ConsumerLag' }),
      )
      .nullable(),
    last_verification: verificationSchema.nullable(),
    /** The actions that no second person must approve, and why. */
    four_eyes: z.object({ off: z.array(approvalAction), reason: z.string().nullable() }).meta({ id: 'FourEyesState' }),
    /** Responses of this gateway in the last minute. */
    requests: z
      .object({
        window_seconds: z.number().int().min(0).max(60),
        count: z.number().int().min(0),
        server_errors: z.number().int().min(0),
        mean_ms: z.number().nullable(),
        slowest_ms: z.number().nullable(),
      })
      .meta({ id: 'RequestStatistics' }),
    /** The last hour of this gateway, a sample a minute, oldest first. */
    history: z.array(
      z
        .object({
          at: shown.time,
          lag: z.number().int().min(0).nullable(),
          count: z.number().int().min(0),
          mean_ms: z.number().nullable(),
          slowest_ms: z.number().nullable(),
        })
        .meta({ id: 'OperationsSample' }),
    ),
  })
  .meta({ id: 'Operations' });
export type Operations = z.infer<typeof operationsSchema>;

export const operationsEndpoints = {
  get_operations: {
    route: 'GET /admin/operations',
    summary: 'Get outboxes, consumer lag, dead letters, breakers, and the last verification',
    scope: 'books:read',
    description: 'A part that does not respond is null; the status is still 200.',
    result: operationsSchema,
    message: 'get_ledger_operations',
    answers: {
      calm: {
        services: [{ outbox: { rows: 0, oldest_age_ms: 0 } }],
        dead_letters_open: 0,
        webhooks_failing: 0,
        tills_different: 0,
        consumer_lag: [{ lag: 0 }],
        last_verification: { ended_at: example.time, state: 'passed', findings: [] },
      },
    },
  },
  verify_books: {
    route: 'POST /admin/verifications',
    summary: 'Verify the books and the audit log',
    scope: 'books:read',
    description:
      'Responds when the verification has started; its result is in `last_verification` of GET /admin/operations. It checks every entry, in one snapshot, and every audit record; `covers` says whether the audit log could be checked. If a verification is already running, returns that one.',
    result: verificationSchema,
    answers: { verify: { findings: [] } },
  },
} satisfies EndpointRows;

export const operationsMessages = {
  get_accounts_operations: message.accounts.query(
    {},
    z.object({
      outbox: outboxStateSchema,
      dead_letters_open: z.number().int(),
      last_audit_check: checkSchema.nullable(),
    }),
  ),
  get_ledger_operations: message.ledger.query(
    {},
    z.object({
      outbox: outboxStateSchema,
      last_verification: checkSchema.nullable(),
      tills_different: z.number().int(),
    }),
  ),
  /** On the queries topic, so that no command waits for the check. The reply is sent when the check has started. */
  verify_audit: message.command('accounts.queries', z.object({ verification_id: message.id }), checkSchema),
  /** Also on the queries topic. */
  verify_books: message.command('ledger.queries', z.object({ verification_id: message.id }), checkSchema),
};

export const operationsMeanings = {
  fields: {
    services: 'The services behind the gateways',
    service: 'Name of the service',
    answers: 'Whether it is responding',
    outbox: 'What it has not yet published; null: it does not respond',
    'OutboxState.rows': 'Number of events waiting to be published',
    oldest_age_ms: 'Age of the oldest unpublished event in milliseconds',
    breakers: 'The circuit breakers of the gateway that responds',
    'BreakerState.state': 'open: requests to that service are currently not sent',
    dead_letters_open: 'Number of open dead letters; null: currently unknown',
    webhooks_failing:
      'Number of active webhooks of the whole bank, not of a client, of which the last delivery failed; null: currently unknown',
    tills_different:
      'Number of tills that were closed with a difference within the last 24 hours; null: currently unknown',
    consumer_lag: 'Uncommitted messages per consumer group and partition; null: currently unknown',
    group: 'Consumer group, without prefix',
    lag: 'Number of uncommitted messages',
    last_verification: 'The latest verification of books and audit; null: none, or currently unknown',
    four_eyes: 'Whether the control by a second person is switched off',
    off: 'The actions that one person may do alone (FOUR_EYES)',
    'FourEyesState.reason': 'Why (FOUR_EYES_OFF_REASON); null: no reason is given',
    requests: 'Recent requests of the gateway that responds',
    window_seconds: 'Length of the counted period in seconds',
    count: 'Number of responses in that period',
    server_errors: 'Number of responses with a status of 500 or more',
    mean_ms: 'Mean response time in milliseconds; null: no responses',
    slowest_ms: 'Longest response time in milliseconds; null: no responses',
    history: 'The last hour of the gateway that responds, a sample a minute, oldest first; empty after its start',
    'OperationsSample.at': `When the sample was taken, ${meaning.utc}`,
    'OperationsSample.lag': 'Uncommitted messages of all consumer groups except those of queries; null: unknown',
    'OperationsSample.count': 'Number of responses in the minute before',
    verification_id: 'The verification, an opaque string',
    'Verification.state':
      'running; passed; broken: a rule is violated; interrupted: it did not finish and says nothing about the books',
    started_at: `When it started, ${meaning.utc}`,
    ended_at: `When it ended, ${meaning.utc}; null: still running`,
    findings: 'The violated rules; empty if everything is in order',
    covers: 'What was checked',
    rule: 'Name of the rule',
    rows: 'The first rows that violate it',
  },
} satisfies Meanings;
