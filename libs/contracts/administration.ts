import { z } from 'zod';
import { page, text, time } from './fields.ts';
import { deadLetterTopics } from './topics.ts';

/** Audit and dead letters: resources, bodies and parameters of what staff and operators use. */

/** One act that is kept for auditors; never changed. Details are short facts, never personal data or secrets. */
export const auditRecordSchema = z.object({
  audit_id: z.string(),
  created_at: z.string(),
  /** `key:<family>`, `jwt:<iss>|<sub>`, `system…`, or `unauthenticated`. */
  actor: z.string(),
  /** The endpoint's name; `unknown_route` where there is none. */
  action: z.string(),
  resource_id: z.string().nullable(),
  /** `success`, or the error code of the refusal. */
  outcome: z.string(),
  request_id: z.string(),
  details: z.record(z.string(), z.unknown()),
  /** The caller's network address, where the gateway itself refused. */
  address: z.string().nullable(),
});
export type AuditRecord = z.infer<typeof auditRecordSchema>;

export const deadLetterState = z.enum(['open', 'redriven', 'dropped']);

/** A message that could not be processed. Topics are named without the common prefix. */
export const deadLetterSchema = z.object({
  dead_letter_id: z.string(),
  topic: z.string(),
  partition: z.number().int(),
  offset: z.number().int(),
  source_topic: z.string(),
  source_partition: z.number().int().nullable(),
  source_offset: z.number().int().nullable(),
  key: z.string().nullable(),
  code: z.string().nullable(),
  reason: z.string().nullable(),
  /** Of the value. */
  size_bytes: z.number().int(),
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

export const administrationBodies = {
  redriveDeadLetter: z.strictObject({ renew_deadline: z.boolean().default(false) }),
  dropDeadLetter: z.strictObject({ reason: text(1, 255).nullish() }),
};

const exact = (max: number) => z.string().max(max).optional();

export const administrationParameters = {
  listAudit: z.strictObject({
    actor: exact(1000), action: exact(100), resource_id: exact(100), outcome: exact(100), request_id: exact(128), from: time.optional(), to: time.optional(), ...page,
  }),
  listDeadLetters: z.strictObject({ topic: z.enum(deadLetterTopics).optional(), state: deadLetterState.optional(), from: time.optional(), to: time.optional(), ...page }),
};
