import { z } from 'zod';
import { type EndpointRows, example, type Meanings, message, shown } from './subject.ts';
import { text } from './texts.ts';
import { violation } from './violation.ts';

/** The search over clients, accounts, postings, and audit records. */

const searchKind = z.enum(['client', 'account', 'transaction', 'transfer', 'audit_record']);
export type SearchKind = z.infer<typeof searchKind>;

/** One search result and the field that matched. `id` is the resource's id. */
const searchHitSchema = z
  .object({
    kind: searchKind,
    id: z.string(),
    title: z.string(),
    subtitle: z.string(),
    matched: z.enum([
      'id',
      'receipt_number',
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
    created_at: shown.time,
  })
  .meta({ id: 'SearchHit' });
export type SearchHit = z.infer<typeof searchHitSchema>;

const trimmed = text(1, 255);

/** A text, as it was sent: it is compared with trimmed fields, and with an external_id, which is not trimmed. */
const searchText = z
  .string()
  .transform((value, ctx) => {
    const broken = trimmed.safeParse(value).error?.issues[0];
    return broken === undefined ? value : violation(ctx, 'validation_failed', broken.message);
  })
  .meta({ ...trimmed.meta() });

/** The maximum number of hits of one kind. */
export const maxHits = 20;

export const searchEndpoints = {
  search: {
    route: 'GET /admin/search',
    summary: 'Search clients, accounts, postings, and audit records',
    scope: null,
    bankOnly: true,
    query: z.strictObject({ q: searchText }),
    description:
      'Finds clients (clients:read) by id, by the words of their name in any script, case, and usual spelling, by e-mail address, registration number, and external_id, and by contact or USSD phone number; accounts (accounts:read) by id or number; ' +
      'transactions and transfers (transactions:read) by id, operation id, receipt number, reference, or Idempotency-Key, and by request id, unless it is a number, among the newest 20,000, or 20,000 of the time that an id of the form of the bank contains; audit records (audit:read) by request id. ' +
      'Values other than names must match completely; blanks around the text count only for an external_id. Returns at most 20 hits per kind and omits kinds that the scopes do not allow. Not available to credentials bound to a client. Client data shown to a staff user is audited.',
    shape: 'list',
    message: 'search_records',
    errors: ['insufficient_scope'],
    answers: {
      client: { id: example.ids.client, title: 'Ada Lovelace', subtitle: 'Retail, +254700000001', matched: 'name' },
    },
  },
} satisfies EndpointRows;

export const searchMessages = {
  search_records: message.accounts.query(
    // The text as a phone number of the bank's country, if it can be one; an older gateway does not send it.
    { q: z.string(), phone: z.string().optional(), kinds: z.array(searchKind) },
    z.array(searchHitSchema),
  ),
  search_postings: message.ledger.query({ q: z.string() }, z.array(searchHitSchema)),
};

export const searchMeanings = {
  fields: {
    q: 'The search text: an id, external_id, number, name, phone number, reference, request id, or Idempotency-Key, 1 to 255 characters',
    id: 'Id of the resource',
    'SearchHit.kind': 'The kind of resource',
    title: 'The name of the resource',
    subtitle: 'Distinguishes it from others with the same name',
    matched: 'The field that matched',
  },
} satisfies Meanings;
