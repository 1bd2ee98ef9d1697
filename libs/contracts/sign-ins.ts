import { z } from 'zod';
import { idPrefix } from './ids.ts';
import { type Scope, scopes } from './scopes.ts';
import type { EndpointRows, Meanings } from './subject.ts';
import { text } from './texts.ts';

/** What an application for staff, such as the dashboard, reports about the person who uses it. */

const session_id = z.string().regex(/^ses_[0-9a-f]{32}$/, 'must be ses_ and 32 hexadecimal digits');

/** The person of an access token. */
const signInSchema = z
  .object({
    session_id: z.string(),
    actor: z.string(),
    name: z
      .string()
      .nullable()
      .meta({ description: 'The display name from the ID token; null: there is none, or it was not verified' }),
    scopes: z.array(z.enum(scopes as readonly [Scope, ...Scope[]])),
  })
  .meta({ id: 'Session' });
export type SignIn = z.infer<typeof signInSchema>;

const resource_id = z
  .string()
  .regex(new RegExp(`^(${Object.values(idPrefix).join('|')})_[0-9a-f]{32}$`), 'must be the id of a resource');

const maxFilters = 20;
const filters = z
  .record(z.string().regex(/^[a-z_]{1,40}$/, 'must be the name of a filter'), text(0, 500))
  .refine((given) => Object.keys(given).length <= maxFilters, `must be at most ${maxFilters}`)
  .meta({ maxProperties: maxFilters });

/** The maximum number of sign-ins and reports of one person a minute, on each gateway: each may leave a permanent record. */
export const maxReportsPerMinute = 60;

const signOutSchema = z.object({ session_id: z.string() }).meta({ id: 'EndedSession' });

/** An export, or a page or form that the application refused. */
const activitySchema = z
  .object({
    action: z.string(),
    outcome: z.enum(['success', 'insufficient_scope', 'invalid_credentials']),
  })
  .meta({ id: 'Activity' });

/** Longer ID tokens, of persons with very many groups, are not sent: nobody is kept out for want of a display name. */
export const maxIdTokenLength = 16_384;

export const signInEndpoints = {
  sign_in: {
    route: 'POST /admin/sign-ins',
    summary: 'Sign a person in',
    scope: null,
    bankOnly: true,
    body: z.strictObject({ session_id, id_token: text(1, maxIdTokenLength).optional() }),
    description:
      "For an application for staff, such as the dashboard, with the person's access token; `session_id` is the application's. Responds when the audit has the sign-in. With the `id_token` of the same sign-in, the bank keeps its `name`, or `preferred_username`, for colleagues to see; one that cannot be verified, or is of another person or OAuth client, changes no name. From then on, earlier tokens of the person for the same OAuth client are refused. A request without a valid token counts as a failed sign-in of its address.",
    result: signInSchema,
    message: null,
    errors: ['insufficient_scope'],
    answers: { officer: { actor: 'jwt:https://issuer.example|olivia', name: 'Olivia Officer' } },
  },
  sign_out: {
    route: 'POST /admin/sign-outs',
    summary: 'Sign a person out',
    scope: null,
    bankOnly: true,
    body: z.strictObject({ session_id }),
    description: 'The access token of the request is refused from then on, on every gateway within 2 s.',
    result: signOutSchema,
    message: null,
    errors: ['insufficient_scope'],
  },
  record_activity: {
    route: 'POST /admin/activities',
    summary: 'Record an export, or a page or form that an application for staff refused',
    scope: null,
    bankOnly: true,
    body: z.strictObject({
      action: z
        .string()
        .regex(/^(export|(page|form):[\w:/.-]{0,100})$/, 'must be export, or page: or form: with a path'),
      outcome: activitySchema.shape.outcome,
      resource_id: resource_id.nullish(),
      file: z
        .string()
        .regex(/^[\w.-]{1,100}$/, 'must have 1 to 100 letters, digits, or - _ .')
        .optional(),
      filters: filters.optional(),
    }),
    description:
      'An export (`success`) has an audit record when this responds. Refusals are counted, and have one record a minute. `filters` are query parameters of the API; values that may be personal are not recorded. With sign-ins, at most 60 a minute for one person.',
    result: activitySchema,
    message: null,
    errors: ['insufficient_scope'],
    requests: {
      export: { action: 'export', outcome: 'success', file: 'transactions.csv', filters: { currency: 'KES' } },
      refused: { action: 'page:api-keys/new', outcome: 'insufficient_scope' },
    },
    answers: { refused: { action: 'page:api-keys/new', outcome: 'insufficient_scope' } },
  },
} satisfies EndpointRows;

/**
 * The value of a record in the topic `sessions`, with its key, which a gateway's MAC covers with it. The key is either an access token's id (its SHA-256), or a person with
 * an OAuth client, all of whose tokens that were issued before `before` have ended, and of those that were issued in the
 * same second, all but `kept`. After `expires_at` these tokens have expired in any case.
 */
export const endedTokenSchema = z.object({
  key: z.string(),
  expires_at: z.iso.datetime(),
  before: z.iso.datetime().optional(),
  kept: z.string().optional(),
});

export const signInMeanings = {
  fields: {
    id_token: 'The ID token that the issuer gave the application with the access token',
    session_id: "The application's id of the session: ses_ and 32 hexadecimal digits",
    'record_activity.action': 'export, or page: or form: with the path of what was refused',
    'record_activity.outcome': 'success for an export, otherwise why it was refused',
    'record_activity.resource_id': 'Id of the exported resource; null: none',
    file: 'The name of the exported file',
    filters: 'The filters of the export; values that may be personal are not recorded',
  },
} satisfies Meanings;
