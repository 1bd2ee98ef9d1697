import { z } from 'zod';
import { type EndpointRows, event, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { text } from './texts.ts';

/** The audit log, and security events for a SIEM (contract: audit). */

/**
 * A record of one action, kept for auditors and never changed. Its details are short facts. They never contain
 * secrets, nor personal data except a client's previous and new names.
 */
export const auditRecordSchema = z
  .object({
    audit_id: z.string(),
    created_at: shown.time,
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
  })
  .meta({ id: 'AuditRecord' });
export type AuditRecord = z.infer<typeof auditRecordSchema>;

/**
 * An activity that a gateway counted during one minute for one address, caller, and route. Classes and
 * activities are those of OCSF.
 */
const securityActivitySchema = z.object({
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

const exact = (max: number) => z.string().trim().max(max).optional();
const listFilters = z.strictObject({
  actor: exact(1000),
  action: exact(100),
  resource_id: exact(100),
  subject: z
    .string()
    .regex(/^(acc|cli)_[0-9a-f]{32}$/, 'must be the id of a client or an account')
    .optional(),
  outcome: exact(100),
  request_id: exact(128),
  reads: z.enum(['with', 'without']).optional(),
  from: field.time.optional(),
  to: field.time.optional(),
  ...field.page,
});

/** Somebody who acted: a person, a key, or the bank itself. */
const auditActorSchema = z
  .object({
    actor: z.string(),
    /** The name of the key or person, or the subject of the person's token. */
    name: z.string(),
  })
  .meta({ id: 'AuditActor' });
export type AuditActor = z.infer<typeof auditActorSchema>;

const maxNamed = 50;
/** Persons and API keys. */
export const splitActors = (actors: string): string[] => actors.split(/,(?=jwt:|key:)/);

const freeze = {
  resource_id: example.ids.account,
  details: { from_status: 'Active', to_status: 'Frozen', reason: 'fraud' },
  address: '203.0.113.7',
};

const ada = { actor: 'jwt:https://id.example.com|ada', name: 'Ada Lovelace' };

export const auditEndpoints = {
  list_audit: {
    route: 'GET /admin/audit',
    summary: 'List audit records',
    scope: 'audit:read',
    query: listFilters,
    shape: 'page',
    answers: { freeze },
  },
  list_audit_actors: {
    route: 'GET /admin/audit/actors',
    summary: 'List who acted, by name',
    scope: 'audit:read',
    query: z.strictObject({ q: text(1, 255).optional() }),
    shape: 'list',
    description:
      'Returns at most 100 of the persons and keys in the audit log whose name or subject contains `q`, by name. Of a log with more than 2,000 actors, the others are found only by their complete subject or actor.',
    answers: { ada },
  },
  list_staff_names: {
    route: 'GET /admin/staff-names',
    summary: 'List the names of persons and keys',
    scope: null,
    bankOnly: true,
    query: z.strictObject({
      actors: text(1, 16_384).refine(
        (actors) => splitActors(actors).length <= maxNamed,
        `must be at most ${maxNamed} persons and keys, separated by commas`,
      ),
    }),
    shape: 'list',
    description:
      'For persons of the bank. Returns the API keys, and those of the persons who have signed in with a name (`POST /admin/sign-ins`), by actor.',
    errors: ['insufficient_scope'],
    answers: { ada },
  },
} satisfies EndpointRows;

export const auditMessages = {
  /**
   * No reply. Records what the gateway refused and what the ledger posted for staff. Duplicates are recognized
   * by audit_id.
   */
  record_audit: message.command(
    'accounts.commands',
    // `actor_name`: the display name of a person who has signed in, which is kept beside the audit, not in it.
    auditRecordSchema.extend({ actor_name: z.string().optional() }),
    z.null(),
  ),
  list_audit_actors: message.accounts.query({ q: z.string().optional() }, z.array(auditActorSchema)),
  list_staff_names: message.accounts.query({ actors: z.string() }, z.array(auditActorSchema)),
  list_audit: message.accounts.query(message.listRequest(listFilters), message.pageSchema(auditRecordSchema)),
};

export const auditEvents = {
  /** Every audit record, keyed by its actor. */
  'corebanking.audit.recorded.v1': event.row('audit', {
    summary: 'An act that is kept for auditors',
    fields: { ...auditRecordSchema.shape, audit_id: event.idField('audit'), created_at: event.moment },
    example: freeze,
  }),
  /** The last link of each chain of audit records (decision 30). */
  'corebanking.audit.head.v1': event.row('audit', {
    summary:
      'The last link of each chain of audit records, published every minute with new records. It proves later that no earlier record was changed or removed',
    fields: {
      heads: z.array(
        event.named(
          'AuditHead',
          z.object({
            chain: z.number().int().min(0),
            sequence: event.count,
            audit_id: event.idField('audit'),
            hash: z.string().regex(/^[0-9a-f]{64}$/),
          }),
        ),
      ),
    },
  }),
  /** The key is the actor. Gateways publish a summary each minute; a crash loses the current minute. */
  'corebanking.security.activity.v1': event.row('security', {
    summary:
      'A security activity for a SIEM: refused credentials and permissions, API keys, sign-ins, exports. One event per minute, address, caller, and route, with its count',
    fields: { ...securityActivitySchema.shape, since: event.moment, until: event.moment, count: event.count },
    example: {
      class_uid: 3002,
      class_name: 'Authentication',
      activity_name: 'Logon',
      status: 'Failure',
      actor: 'unauthenticated',
      address: '203.0.113.7',
      outcome: 'invalid_credentials',
    },
  }),
};

export const auditMeanings = {
  fields: {
    'list_audit_actors.q': 'A part of the name, in any case, 1 to 255 characters; default: every actor',
    'list_staff_names.actors': `At most ${maxNamed} persons as \`jwt:<issuer>|<subject>\` or keys as \`key:<key_id>\`, separated by commas`,
    'AuditActor.actor': 'The actor, as in audit records',
    'AuditActor.name':
      "The name of the key or person; for programs, or if it is not known, the subject of the person's token",
    audit_id: 'The audit record, an opaque string',
    action: 'The name of the operation, or sign_in, sign_out, export, page:…, form:…, various',
    resource_id: 'Id of the affected resource; null: none',
    'list_audit.subject':
      'Id of an account or a client: records about it, also of postings, holds, and approvals that name it; of a client, those about its accounts too',
    reads: 'without: omit records of reads, sign-ins, and sign-outs; with (default): include them',
    'list_audit.from': 'Recorded at or after this time: ISO 8601 date or time',
    'list_audit.to': 'Recorded before this time: ISO 8601 date or time',
    outcome: '`success`, or the error code of the refusal',
    'AuditRecord.address': 'Network address of the caller; in a summary, the /64 of an IPv6 address; null: several',
    'AuditRecord.details': 'Facts by name, without secrets',
    'AuditRecord.created_at': `When it was recorded, ${meaning.utc}`,
  },
  eventFields: {
    action: 'The operation, as named in OpenAPI',
    activity_name: 'OCSF activity: Logon, Logoff, Create, Read, Update, Delete, or Other',
    address: "The caller's network address; in a summary, the /64 of an IPv6 address, null for several addresses",
    chain: 'Number of the chain, 0 to 15',
    class_name: 'OCSF class: Authentication, Entity Management, or API Activity',
    class_uid: 'Number of the OCSF class',
    count: 'Number of occurrences between since and until',
    details: 'Short facts; no personal data, no secrets',
    hash: 'SHA-256 over the record and the previous hash, in hex',
    heads: 'One per chain that has records',
    since: 'First occurrence; ISO 8601 UTC',
    until: 'When it was summarized; ISO 8601 UTC',
  },
} satisfies Meanings;
