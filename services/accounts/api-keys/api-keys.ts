import { randomBytes } from 'node:crypto';
import {
  earlier,
  expiryRefusal,
  hashApiKey,
  type KeyEnvironment,
  latestExpiry,
  makeApiKey,
} from '#libs/contracts/api-key.ts';
import { approvalRequired, isUnapproved } from '#libs/contracts/approvals.ts';
import { type MessageContext, source, toHeaders } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal } from '#libs/contracts/errors.ts';
import { bucketForKey, formatId } from '#libs/contracts/ids.ts';
import { type MessageData, messageType } from '#libs/contracts/messages.ts';
import { rotationRefusal, scopes } from '#libs/contracts/scopes.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import { type OutboxEvent, wakeRelay, writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { buildAuditRecord } from '#libs/service/audit-record.ts';
import { requireSameTime } from '#libs/service/clock.ts';
import { writeAudit } from '../audit/audit.ts';
import { refusalFor } from '../clients/clients.ts';
import { createEvent, done, type Outcome, refused, type Work, type Writing } from '../outcome.ts';
import {
  changeKey,
  familiesMadeBy,
  insertKey,
  type KeyRow,
  keyColumns,
  lockKey,
  readClientFamilies,
  readLatestExpiry,
  revokeFamily,
  toApiKey,
} from './key-store.ts';

const defaultLifetimeMs = 365 * 24 * 60 * 60 * 1000;

export function keyNotFound(keyId: string): Refusal {
  return refusal('api_key_not_found', `API key ${keyId} not found`);
}

function later(time: string, ms: number): string {
  return new Date(Date.parse(time) + ms).toISOString();
}

/**
 * Returns the state of a key for the gateways, to be published on the compacted topic; never a tombstone. A state that
 * reduces rights (a revocation, an earlier expiry) is also written under a second record key that no other state uses.
 * A late copy of an older state may become the last record under the key's own record key, but cannot replace the
 * record under the second one.
 */
function stateEvents(work: Writing, row: KeyRow): OutboxEvent[] {
  const { key_id, family_id, secret_hash, environment, client_id, expires_at, revoked_at, version } = row;
  const rights = { scopes: row.scopes, environment, client_id, expires_at, revoked_at };
  const state = { key_id, family_id, secret_hash, ...rights, version };
  const recordKeys = version === 1 ? [key_id] : [key_id, `${key_id}/${version}`];
  return recordKeys.map((recordKey) => createEvent(work, 'corebanking.api_key.v1', recordKey, state));
}

const revokedMaker = refusal('insufficient_scope', 'the API key that creates it has been revoked');

/**
 * Locks the key that creates another one, so that the other one is either committed before a revocation, which then
 * includes it, or never. null: a person creates it. While a request waited for its approval, its key may have been
 * rotated: it then has the expiry of the latest key of the family, whose holder asked.
 */
async function lockMaker(
  { client, context }: Pick<Work, 'client' | 'context'>,
  maker_key_id: string | null | undefined,
): Promise<KeyRow | null> {
  const maker = (maker_key_id && (await lockKey(client, maker_key_id))) || null;
  if (maker === null || context.approved_by === undefined) return maker;
  return { ...maker, expires_at: (await readLatestExpiry(client, maker.family_id)) ?? maker.expires_at };
}

export async function createApiKey(
  work: Writing,
  { not_after, maker_key_id, ...data }: MessageData<'create_api_key'>,
): Promise<Outcome> {
  const { client, context, now } = work;
  const foreign = data.client_id === null ? undefined : await refusalFor(client, data.client_id);
  if (foreign) return refused(foreign);
  const maker = await lockMaker(work, maker_key_id);
  if (maker?.revoked_at) return refused(revokedMaker);
  const latest = latestExpiry(not_after, maker);
  const expires_at = data.expires_at === null ? latest : new Date(data.expires_at).toISOString();
  const wrong = expiryRefusal(expires_at, latest, now);
  if (wrong) return refused(wrong);
  const unapproved = refusedUnapproved(context, data.scopes);
  if (unapproved) return unapproved;
  const row: KeyRow = { ...data, expires_at, family_id: data.key_id, ...creation(context), rotated_from: null };
  await insertKey(client, row);
  const { scopes: granted, environment, client_id } = row;
  return done(toApiKey(row, now), stateEvents(work, row), { scopes: granted, environment, client_id, expires_at });
}

/** A key that only reads needs no approval. */
function refusedUnapproved(context: MessageContext, granted: readonly string[]): Outcome | undefined {
  const mayWrite = granted.some((scope) => !scope.endsWith(':read'));
  return mayWrite && isUnapproved(context, 'create_key') ? refused(approvalRequired()) : undefined;
}

function creation(context: MessageContext) {
  return { created_at: context.time, created_by: context.actor, last_used_at: null, revoked_at: null, version: 1 };
}

/**
 * Rotates a key: the new one has the same family, name, scopes, environment, and client. It expires with the
 * old key's remaining lifetime, and no later than the key that rotates. The old key expires after the overlap
 * or at its own expiry. A key that is no longer valid cannot be rotated.
 */
export async function rotateApiKey(work: Work, data: MessageData<'rotate_api_key'>): Promise<Outcome> {
  const { client, context, now } = work;
  const old = await lockKey(client, data.rotates_key_id);
  if (!old) return refused(keyNotFound(data.rotates_key_id));
  const { status } = toApiKey(old, now);
  if (status !== 'active')
    return refused(
      refusal('invalid_status_transition', `the API key is ${status} and cannot be rotated: create a new one`),
    );
  const lacking = rotationRefusal(old.scopes, data.maker_scopes);
  if (lacking) return refused(lacking);
  const maker = await lockMaker(work, data.maker_key_id);
  if (maker?.revoked_at) return refused(revokedMaker);
  const unapproved = refusedUnapproved(context, old.scopes);
  if (unapproved) return unapproved;
  const { key_id, secret_hash } = data;
  const row: KeyRow = {
    ...old,
    key_id,
    secret_hash,
    ...creation(context),
    expires_at: earlier(old.expires_at, maker?.expires_at),
    rotated_from: old.key_id,
  };
  const endsAt = earlier(old.expires_at, later(now, data.overlap_seconds * 1000));
  const ended = await changeKey(client, old.key_id, 'expires_at', endsAt);
  await insertKey(client, row);
  return done(toApiKey(row, now), [...stateEvents(work, row), ...stateEvents(work, ended)], {
    new_key_id: key_id,
    expires_at: row.expires_at,
    old_key_ends_at: ended.expires_at,
  });
}

/** Replaces the secret of a key and publishes its new state. */
export async function replaceSecret(work: Writing, keyId: string, secretHash: string): Promise<Outcome> {
  const { client, now } = work;
  const row = await lockKey(client, keyId);
  if (!row) return refused(keyNotFound(keyId));
  const { status } = toApiKey(row, now);
  if (status !== 'active') return refused(refusal('invalid_status_transition', `the API key is ${status}`));
  const changed = await changeKey(client, keyId, 'secret_hash', secretHash);
  return done(toApiKey(changed, now), stateEvents(work, changed), {});
}

/** What the contexts of changes without a request have in common. */
const ofSystem = { message_id: '', type: '', source: source.accounts, subject: '' };

/** The maximum number of key ids in the audit record of a revocation. */
const maxNamed = 100;

/**
 * Revokes the key and its family and, with `descendants`, the keys that they created. Revoking a revoked key returns it
 * unchanged.
 */
export async function revokeApiKey(
  work: Work,
  { key_id, descendants = false }: MessageData<'revoke_api_key'>,
): Promise<Outcome> {
  const { client, now } = work;
  const row = await lockKey(client, key_id);
  if (!row) return refused(keyNotFound(key_id));
  const revoked = await revokeFamily(client, row.family_id, descendants, now);
  const own = revoked.find((one) => one.key_id === key_id) ?? row;
  const families = descendants ? await familiesMadeBy(client, row.family_id) : [row.family_id];
  return done(
    { ...toApiKey(own, now), families },
    [...revoked.flatMap((one) => stateEvents(work, one)), disableWebhooks(work, key_id, families, null)],
    { revoked: revoked.slice(0, maxNamed).map((one) => one.key_id) },
  );
}

/** Asks webhooks to disable the webhooks whose URL or secret keys of these families set last, or those of the client. */
function disableWebhooks(
  { context, now }: Writing,
  subject: string,
  families: string[],
  client_id: string | null,
): OutboxEvent {
  const id = `cmd_${randomBytes(16).toString('hex')}`;
  const type = messageType('disable_webhooks');
  const { request_id, actor, address, approved_by } = context;
  const message = { message_id: id, type, source: source.accounts, time: now, subject };
  return {
    id,
    topic: 'webhooks.commands',
    key: subject,
    type,
    time: now,
    headers: toHeaders({ ...message, request_id, actor, address, approved_by }),
    payload: JSON.stringify({ set_by: families.map((family) => `key:${family}`), client_id }),
    partition: commandPartition(bucketForKey(subject)),
  };
}

/**
 * Revokes every key that is bound to the client, with its family, and disables their webhooks. Returns the number of
 * keys, their families, and the events for the gateways and webhooks.
 */
export async function revokeClientKeys(
  work: Writing,
  clientId: string,
): Promise<{ count: number; families: string[]; events: OutboxEvent[] }> {
  const revoked: KeyRow[] = [];
  const families = await readClientFamilies(work.client, clientId);
  for (const family of families) revoked.push(...(await revokeFamily(work.client, family, false, work.now)));
  return {
    count: revoked.length,
    families,
    events: [...revoked.flatMap((one) => stateEvents(work, one)), disableWebhooks(work, clientId, families, clientId)],
  };
}

/** The maximum number of expired keys in one transaction. */
const perSweep = 200;
const toTell = 'not expiry_told and expires_at <= clock_timestamp()';

/**
 * Has the webhooks of families disabled whose last key has expired, and returns their number. A rotation never extends a
 * lifetime, so no such family has a valid key again. Several processes can do this concurrently. Rejects, and no key is
 * told of, if the database's clock may be wrong.
 */
export async function tellExpiries(pool: Pool): Promise<number> {
  if ((await pool.query({ name: 'expired_keys', text: `select from api_keys where ${toTell} limit 1` })).rowCount === 0)
    return 0;
  return transaction(pool, async (client) => {
    // Checked before, because the statement below may mark keys without returning a family.
    const { rows: times } = await client.query<{ now: string }>('select clock_timestamp() as now');
    requireSameTime(times[0]?.now ?? '');
    const { rows } = await client.query<{ family_id: string; now: string }>(
      `with expired as (
         update api_keys set expiry_told = true
         where key_id in (
           select key_id from api_keys where ${toTell} order by expires_at limit $1 for no key update skip locked)
         returning family_id
       ) select family_id, clock_timestamp() as now from expired group by family_id
       having not exists (
         select from api_keys k where k.family_id = expired.family_id and k.expires_at > clock_timestamp())`,
      [perSweep],
    );
    const ended = rows.map(({ family_id, now }) => {
      const context = { ...ofSystem, time: now, request_id: `expiry of ${family_id}`, actor: 'system' };
      return disableWebhooks({ client, context, now }, family_id, [family_id], null);
    });
    await writeOutbox(client, ended);
    return ended.length;
  });
}

/**
 * Publishes the current state of every key again, for brokers that lost the topic `api-keys` or never had it. Returns
 * the number of keys. Keys that change at the same time are published with a higher version.
 */
export async function publishAgain(client: Queries, now: string): Promise<number> {
  const context = { ...ofSystem, time: now, request_id: `republish ${now}`, actor: 'system:republish' };
  const { rows } = await client.query<KeyRow>(`select ${keyColumns} from api_keys order by key_id for update`);
  await writeOutbox(
    client,
    rows.flatMap((row) => stateEvents({ client, context, now }, row)),
  );
  return rows.length;
}

/** Does the same in a transaction of its own, and wakes the relay. */
export async function republishApiKeys(pool: Pool, schema: string, now: Date): Promise<number> {
  const count = await transaction(pool, (client) => publishAgain(client, now.toISOString()));
  await wakeRelay(pool, schema);
  return count;
}

/**
 * Creates the first key of an installation: named "bootstrap", with all scopes. Returns the key itself, which is not
 * stored.
 */
export async function createBootstrapKey(
  pool: Pool,
  options: { pepper: string; environment: KeyEnvironment; schema: string; now: Date },
): Promise<string> {
  const key_id = formatId('key', randomBytes(16).toString('hex'));
  const apiKey = makeApiKey(options.environment, key_id);
  const now = options.now.toISOString();
  const context: MessageContext = {
    message_id: key_id,
    type: messageType('create_api_key'),
    source: source.accounts,
    time: now,
    subject: key_id,
    request_id: key_id,
    actor: 'system:bootstrap',
  };
  const data = {
    key_id,
    name: 'bootstrap',
    scopes: [...scopes],
    environment: options.environment,
    client_id: null,
    expires_at: later(now, defaultLifetimeMs),
    secret_hash: hashApiKey(options.pepper, apiKey),
  };
  await transaction(pool, async (client) => {
    const outcome = await createApiKey({ client, context, now }, data);
    if (outcome.kind !== 'decided') return;
    await writeOutbox(client, outcome.events);
    await writeAudit(client, [buildAuditRecord(context, outcome.body, outcome.details, now)]);
  });
  await wakeRelay(pool, options.schema);
  return apiKey;
}
