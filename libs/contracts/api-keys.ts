import { z } from 'zod';
import { bankScopes, type Scope, scopes } from './scopes.ts';
import { type EndpointRows, event, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { text } from './texts.ts';

/** API keys (contract: permission): their scopes, expiry, rotation, and revocation. */

const keyEnvironment = z.enum(['live', 'test']);

export const apiKeySchema = z
  .object({
    key_id: z.string(),
    name: z.string(),
    scopes: z.array(z.string()),
    environment: keyEnvironment,
    client_id: z.string().nullable(),
    status: z.enum(['active', 'expired', 'revoked']),
    created_at: shown.time,
    created_by: z.string(),
    expires_at: shown.time,
    last_used_at: shown.time.nullable(),
    revoked_at: shown.time.nullable(),
    /** The key that was rotated to create this one. */
    rotated_from: z.string().nullable(),
  })
  .meta({ id: 'ApiKey' });
export type ApiKey = z.infer<typeof apiKeySchema>;

/** Returns the requested scopes that a key bound to a client cannot have. */
function findBankScopes({ client_id, scopes: asked }: field.Body): Scope[] {
  return typeof client_id === 'string' && Array.isArray(asked)
    ? bankScopes.filter((scope) => asked.includes(scope))
    : [];
}

const secret = { api_key: 'cbk_live_<id>_<secret>' };

/** With the key itself, which is shown once. */
const apiKeyWithSecretSchema = apiKeySchema.extend({ api_key: z.string().optional() }).meta({ id: 'ApiKeyWithSecret' });

export const apiKeyEndpoints = {
  create_api_key: {
    route: 'POST /admin/api-keys',
    summary: 'Create an API key',
    scope: 'keys:manage',
    body: z
      .strictObject({
        name: text(1, 100),
        scopes: z.array(z.enum(scopes)).min(1, 'must name at least one scope').max(scopes.length),
        expires_at: field.moment.nullish(),
        client_id: field.id.nullish(),
        environment: keyEnvironment.default('live'),
      })
      .check(
        field.rule(
          'validation_failed',
          'scopes',
          (body) => `cannot be given to a key bound to one client: ${findBankScopes(body).join(', ')}`,
          (body) => findBankScopes(body).length === 0,
        ),
      ),
    description:
      'The key expires at `expires_at`, but after at most KEY_MAX_LIFETIME_DAYS and no later than the key that creates it; without `expires_at`, at the latest of these times. A key bound to a client cannot have scopes that belong to the bank.',
    result: apiKeyWithSecretSchema,
    success: 201,
    errors: ['client_not_found', 'client_erased'],
    answers: { reader: secret },
  },
  list_api_keys: {
    route: 'GET /admin/api-keys',
    summary: 'List API keys',
    scope: 'keys:manage',
    shape: 'page',
  },
  get_api_key: {
    route: 'GET /admin/api-keys/:key_id',
    summary: 'Get an API key',
    scope: 'keys:manage',
  },
  rotate_api_key: {
    route: 'POST /admin/api-keys/:key_id/rotation',
    summary: 'Rotate an API key',
    scope: 'keys:manage',
    body: z.strictObject({ overlap_seconds: field.orNumber(3600, field.wholeNumber(0, 30 * 86400)) }),
    description:
      'The old key remains valid during the overlap. The new key expires when the old one would have, and no later than the key that rotates it.',
    result: apiKeyWithSecretSchema,
    success: 201,
    errors: ['invalid_status_transition'],
    requests: { hour: { overlap_seconds: 3600 } },
    answers: { hour: { ...secret, rotated_from: `key_${example.bits(1)}` } },
  },
  revoke_api_key: {
    route: 'POST /admin/api-keys/:key_id/revocation',
    summary: 'Revoke an API key and its family',
    scope: 'keys:manage',
    body: z.strictObject({ descendants: z.boolean().default(false) }),
    description:
      'Revokes every key that it was rotated from or to and, with `descendants`, every key that these created or rotated, recursively. `disabled_webhooks` lists the webhooks whose URL or secret these keys set last: they are disabled. It is left out if webhooks does not answer in time; they are disabled anyway.',
    result: apiKeySchema.extend({ disabled_webhooks: z.array(z.string()).optional() }).meta({ id: 'RevokedApiKey' }),
    answers: { revoke: { status: 'revoked', revoked_at: '2026-02-01T08:00:00.000Z', disabled_webhooks: [] } },
  },
} satisfies EndpointRows;

/**
 * The messages table: every command and query with its topic, data, and result. Sender and receiver validate
 * against it.
 */

const secretHash = z.string().regex(/^[0-9a-f]{64}$/);

const keyData = z.object({
  key_id: message.id,
  name: z.string(),
  scopes: z.array(z.string()),
  environment: keyEnvironment,
  client_id: message.text,
  /** null: the latest possible time. */
  expires_at: message.time.nullable(),
  /** The latest expiry that the bank allows. */
  not_after: message.time.nullish(),
  /** The API key that creates this one, if it was not created by a person. */
  maker_key_id: message.id.nullish(),
  /** HMAC-SHA-256 of the whole key under the pepper, in hex. The secret itself is never sent. */
  secret_hash: secretHash,
});

export const apiKeyMessages = {
  create_api_key: message.command('accounts.commands', keyData, apiKeySchema),
  rotate_api_key: message.command(
    'accounts.commands',
    keyData
      .pick({ key_id: true, secret_hash: true, maker_key_id: true })
      .extend({ rotates_key_id: message.id, overlap_seconds: z.number().int(), maker_scopes: z.array(z.string()) }),
    apiKeySchema,
  ),
  /** Revokes all keys of its family and, with `descendants`, the keys that they created. Returns the families, too. */
  revoke_api_key: message.accounts.command(
    { key_id: message.id, descendants: z.boolean().optional() },
    apiKeySchema.extend({ families: z.array(z.string()) }),
  ),
  /** No reply. Reports that a key was used, at most once a minute per key and gateway. */
  record_api_key_use: message.accounts.command({ key_id: message.id, used_at: message.time }, z.null()),
  /**
   * The number of keys, and of their changes since they were created, for a gateway that starts. Signed with the nonce by the
   * key that signs the states, so that no older reply is accepted.
   */
  count_api_keys: message.accounts.query(
    { nonce: z.string().regex(/^[0-9a-f]{32}$/) },
    z.object({ keys: z.number().int(), changes: z.number().int(), signature: z.string() }),
  ),
  /** No reply. A gateway that starts lacks states of API keys, so all are published again. */
  republish_api_keys: message.accounts.command({}, z.null()),
  /** Sets the secret of a key created by an approval. Its requester is shown the secret once. */
  claim_approved_key: message.accounts.command(
    { approval_id: message.id, key_id: message.id, secret_hash: secretHash },
    apiKeySchema,
  ),
  list_api_keys: message.accounts.query({ ...message.page }, message.pageSchema(apiKeySchema)),
  get_api_key: message.accounts.query({ key_id: message.id }, apiKeySchema),
};

export const apiKeyStates = {
  /** The data with which gateways verify a key. The topic is compacted. */
  'corebanking.api_key.v1': event.row('api-keys', {
    summary:
      'Internal, for gateways: what they need to verify a key. The topic keeps the latest state of each key forever',
    fields: {
      key_id: z.string(),
      family_id: z.string(),
      secret_hash: z.string(),
      scopes: z.array(z.string()),
      environment: keyEnvironment,
      client_id: z.string().nullable(),
      expires_at: shown.time,
      revoked_at: shown.time.nullable(),
      version: z.number().int(),
    },
  }),
};

export const apiKeyMeanings = {
  fields: {
    key_id: 'The API key: `key_` and 32 hexadecimal digits; not a secret',
    name: 'A name for people, 1 to 100 characters',
    scopes: 'The scopes of the key: at least one, and none that its creator lacks',
    environment: 'Gateways accept keys of their configured environments; production uses live',
    'ApiKey.client_id': 'The client to which the key is bound; null: it acts for the whole bank',
    'create_api_key.client_id': 'The client to bind the key to; default: it acts for the whole bank',
    'ApiKey.status': 'active, expired, or revoked',
    'RevokedApiKey.status': 'revoked',
    'create_api_key.expires_at':
      'Expiry, ISO 8601; default: KEY_MAX_LIFETIME_DAYS from now, and never later than that of the creating key',
    last_used_at: `When it was last used, to the minute, ${meaning.utc}; null: never`,
    disabled_webhooks: 'Ids of the webhooks whose URL or secret these keys set last; they are disabled',
    revoked_at: `When it was revoked, ${meaning.utc}; null: not revoked`,
    rotated_from: 'The key that was rotated to create this one; null: none',
    api_key: 'The key itself, shown only once, when it is created',
    overlap_seconds: 'How long the old key remains valid, in seconds',
    descendants: 'Also revoke the keys that it created, and those that they created',
  },
  eventFields: {
    family_id: 'The first key of the family',
    secret_hash: 'HMAC of the key',
    version: 'Incremented by each change of the key',
  },
  errors: {
    api_key_not_found: {
      meaning: 'The API key does not exist.',
      action: 'Correct the id.',
      example: [`API key ${example.ids.key} not found`],
    },
  },
} satisfies Meanings;
