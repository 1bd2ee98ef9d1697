import type { z } from 'zod';
import type { AuditCheck, administrationBodies, BookCheck } from '#libs/contracts/administration.ts';
import { hashApiKey, makeApiKey } from '#libs/contracts/api-key.ts';
import type { bodies } from '#libs/contracts/fields.ts';
import { bucketOfId, idOf, inBucket, withBucket } from '#libs/contracts/ids.ts';
import { namesOf } from '#libs/contracts/names.ts';
import { type ApiKey, identityFields } from '#libs/contracts/resources.ts';
import { scopes as allScopes } from '#libs/contracts/scopes.ts';
import type { SecretKeys } from '#libs/contracts/webhook-secret.ts';
import type { ApiKeys } from '../access/api-keys.ts';
import type { Caller } from '../access/caller.ts';
import type { FourEyes } from '../access/four-eyes.ts';
import { refuse } from '../http/errors.ts';
import { approvalPlanners } from './approval-decisions.ts';
import type { Forwarder, Origin } from './forward.ts';
import { holdPlanners } from './hold-commands.ts';
import { verificationOf } from './operations.ts';
import { about, type Input, type Plan } from './plan.ts';
import { knownForm, pathId } from './unknown-ids.ts';
import { webhookPlanners } from './webhooks.ts';

type Body<S extends z.ZodType> = z.output<S>;

export interface CommandDependencies {
  pepper: string;
  apiKeys: ApiKeys;
  /** The maximum lifetime of a new key. */
  keyMaxLifetimeMs: number;
  forwarder: Forwarder;
  fourEyes: FourEyes;
  secretKeys: SecretKeys;
}

/**
 * Only the bank sets an external_id, not its customers. Null sets none, but could remove one, so it is checked, too.
 */
function checkNames(caller: Caller, given: boolean): void {
  if (!given || caller.boundClientId === undefined) return;
  throw refuse('insufficient_scope', 'credentials bound to one client cannot give an external_id');
}

/** Only the bank changes the identity of a client, which it has verified. */
function checkIdentity(caller: Caller, body: Body<typeof bodies.updateClient>): void {
  const named = identityFields.filter((field) => body[field] !== undefined);
  if (caller.boundClientId === undefined || named.length === 0) return;
  throw refuse('insufficient_scope', `credentials bound to one client cannot change ${named.join(', ')}`);
}

/**
 * How long a request that changes an API key waits until this gateway knows the change (contract: effective on every
 * gateway within 2 s).
 */
export const seenWithinMs = 2_000;

export function createPlanners(dependencies: CommandDependencies) {
  return {
    ...clientPlanners,
    ...accountPlanners,
    ...notePlanners,
    ...moneyPlanners,
    ...holdPlanners,
    ...deadLetterPlanners,
    ...bookPlanners(dependencies),
    ...keyPlanners(dependencies),
    ...approvalPlanners(dependencies),
    ...webhookPlanners(dependencies),
  };
}

const clientPlanners = {
  create_client({ body, bits, caller }: Input<Body<typeof bodies.createClient>>): Plan<'create_client'> {
    if (caller.boundClientId !== undefined)
      throw refuse('insufficient_scope', 'credentials bound to one client cannot create clients');
    const client_id = idOf('client', bits);
    return {
      name: 'create_client',
      id: client_id,
      key: client_id,
      data: { client_id, client: body },
      resource: { client_id },
      location: `/clients/${client_id}`,
    };
  },
  update_client(input: Input<Body<typeof bodies.updateClient>>): Plan<'update_client'> {
    const { body, caller, ifMatch } = input;
    checkNames(caller, body.external_id !== undefined);
    checkIdentity(caller, body);
    return about('update_client', 'client_id', input, (client_id) => ({ client_id, changes: body, if_match: ifMatch }));
  },
  erase_client: (input: Input) => about('erase_client', 'client_id', input, (client_id) => ({ client_id })),
};

const accountPlanners = {
  open_account({ body, bits, caller }: Input<Body<typeof bodies.openAccount>>): Plan<'open_account'> {
    if (body.initial_deposit !== '0' && !caller.scopes.has('transactions:write'))
      throw refuse('insufficient_scope', 'an initial_deposit is cash: the scope transactions:write is required');
    if ((body.account_number || body.migrated) && !caller.scopes.has('accounts:import'))
      throw refuse(
        'insufficient_scope',
        'account_number and migrated are for accounts of another system: the scope accounts:import is required',
      );
    checkNames(caller, Boolean(body.external_id));
    knownForm('client', body.client_id);
    const account_id = idOf('account', bits);
    return {
      name: 'open_account',
      id: account_id,
      key: account_id,
      data: { account_id, ...body },
      resource: { account_id },
      location: `/accounts/${account_id}`,
    };
  },
  change_account_status({
    params,
    body,
    bits,
  }: Input<Body<typeof bodies.changeStatus>>): Plan<'change_account_status'> {
    const account_id = pathId('account_id', params);
    const transition_id = idOf('transition', bits);
    const data = {
      transition_id,
      account_id,
      status: body.status,
      reason: body.reason ?? null,
      note: body.note ?? null,
    };
    return {
      name: 'change_account_status',
      id: transition_id,
      key: account_id,
      data,
      resource: { account_id, transition_id },
    };
  },
};

/** A note is read in the list of its client or account. */
const notePlanners = {
  add_client_note({ params, body, bits }: Input<Body<typeof bodies.addNote>>): Plan<'add_client_note'> {
    const client_id = pathId('client_id', params);
    const note_id = idOf('note', bits);
    const data = { note_id, client_id, note: body.note };
    const location = `/clients/${client_id}/notes`;
    return { name: 'add_client_note', id: note_id, key: client_id, data, resource: { note_id }, location };
  },
  add_account_note({ params, body, bits }: Input<Body<typeof bodies.addNote>>): Plan<'add_account_note'> {
    const account_id = pathId('account_id', params);
    const note_id = idOf('note', bits);
    const data = { note_id, account_id, note: body.note };
    const location = `/accounts/${account_id}/notes`;
    return { name: 'add_account_note', id: note_id, key: account_id, data, resource: { note_id }, location };
  },
};

const moneyPlanners = {
  create_transaction({ body, bits }: Input<Body<typeof bodies.createTransaction>>): Plan<'create_transaction'> {
    const account_id = knownForm('account', body.account_id);
    const transaction_id = idOf('transaction', withBucket(bits, account_id));
    const { transaction_type, amount, currency = null, description = null, reference = null } = body;
    const data = {
      transaction_id,
      account_id,
      transaction_type,
      amount,
      currency,
      description,
      reference,
      ...namesOf(body),
    };
    const direction = transaction_type === 'Deposit' ? ('credit' as const) : ('debit' as const);
    return {
      name: 'create_transaction',
      id: transaction_id,
      key: account_id,
      data,
      resource: { transaction_id },
      location: `/transactions/${transaction_id}`,
      pending: (acceptedAt) => ({ ...data, status: 'Pending', created_at: acceptedAt.toISOString(), direction }),
    };
  },
  create_transfer({ body, bits, caller }: Input<Body<typeof bodies.createTransfer>>): Plan<'create_transfer'> {
    checkNames(caller, Boolean(body.external_id));
    const from_account_id = knownForm('account', body.from_account_id);
    const to_account_id = knownForm('account', body.to_account_id);
    const transfer_id = idOf('transfer', withBucket(bits, from_account_id));
    const { amount, currency = null, description = null } = body;
    const data = { transfer_id, from_account_id, to_account_id, amount, currency, description, ...namesOf(body) };
    return {
      name: 'create_transfer',
      id: transfer_id,
      key: from_account_id,
      data,
      resource: { transfer_id },
      location: `/transfers/${transfer_id}`,
      pending: (acceptedAt) => ({ ...data, status: 'Pending', created_at: acceptedAt.toISOString() }),
    };
  },
  reverse_transaction({ params, body, bits }: Input<Body<typeof bodies.reverse>>): Plan<'reverse_transaction'> {
    const original = pathId('transaction_id', params);
    // The command is in the bucket of the original transaction, which may still be waiting there.
    const bucket = bucketOfId(original);
    const transaction_id = idOf('transaction', inBucket(bits, bucket));
    const data = { transaction_id, reverses_transaction_id: original, reason: body.reason, ...namesOf(body) };
    return {
      name: 'reverse_transaction',
      id: transaction_id,
      key: original,
      bucket,
      data,
      resource: { transaction_id },
      location: `/transactions/${transaction_id}`,
    };
  },
};

const deadLetterPlanners = {
  redrive_dead_letter: (input: Input<Body<typeof administrationBodies.redriveDeadLetter>>) =>
    about('redrive_dead_letter', 'dead_letter_id', input, (dead_letter_id) => ({
      dead_letter_id,
      renew_deadline: input.body.renew_deadline,
    })),
  drop_dead_letter: (input: Input<Body<typeof administrationBodies.dropDeadLetter>>) =>
    about('drop_dead_letter', 'dead_letter_id', input, (dead_letter_id) => ({
      dead_letter_id,
      reason: input.body.reason ?? null,
    })),
};

/** The ledger checks the books, and accounts then checks the audit as part of the same verification, if it can. */
function bookPlanners({ forwarder }: CommandDependencies) {
  return {
    verify_books({ bits, acceptedAt }: Input): Plan<'verify_books'> {
      const verification_id = idOf('verification', bits);
      const finish = async (data: unknown, _replayed: boolean, origin: Origin): Promise<unknown> => {
        const books = data as BookCheck;
        const { verification_id: id } = books;
        const outcome = await forwarder.command(
          { name: 'verify_audit', id, key: id, data: { verification_id: id }, acceptedAt },
          origin,
        );
        return verificationOf(books, outcome.kind === 'done' ? (outcome.data as AuditCheck) : undefined);
      };
      return {
        name: 'verify_books',
        id: verification_id,
        key: verification_id,
        data: { verification_id },
        resource: { verification_id },
        finish,
      };
    },
  };
}

/**
 * The secret is generated here and shown once; only its hash is sent. A repeat gets the same body without the
 * secret.
 */
function keyPlanners({ pepper, apiKeys, keyMaxLifetimeMs }: CommandDependencies) {
  const withSecret = (apiKey: string, data: unknown, replayed: boolean): unknown =>
    replayed ? data : { ...(data as ApiKey), api_key: apiKey };
  return {
    create_api_key({ body, bits, caller, acceptedAt }: Input<Body<typeof bodies.createKey>>): Plan<'create_api_key'> {
      const { name, environment } = body;
      const scopes = [...new Set(body.scopes)];
      const lacking = scopes.filter((scope) => !caller.scopes.has(scope));
      if (lacking.length > 0)
        throw refuse('insufficient_scope', `a key cannot have scopes that its creator lacks: ${lacking.join(', ')}`);
      const client_id = body.client_id ?? null;
      if (client_id !== null) knownForm('client', client_id);
      const key_id = idOf('key', bits);
      const apiKey = makeApiKey(environment, key_id);
      const not_after = new Date(acceptedAt.getTime() + keyMaxLifetimeMs).toISOString();
      return {
        name: 'create_api_key',
        id: key_id,
        key: key_id,
        resource: { key_id },
        location: `/admin/api-keys/${key_id}`,
        data: {
          key_id,
          name,
          scopes,
          environment,
          client_id,
          expires_at: body.expires_at ?? null,
          not_after,
          maker_key_id: caller.keyId ?? null,
          secret_hash: hashApiKey(pepper, apiKey),
        },
        async finish(data, replayed) {
          await apiKeys.seen(key_id, () => true, seenWithinMs);
          return withSecret(apiKey, data, replayed);
        },
      };
    },
    rotate_api_key({
      params,
      body,
      bits,
      caller,
      acceptedAt,
    }: Input<Body<typeof bodies.rotateKey>>): Plan<'rotate_api_key'> {
      const rotates_key_id = pathId('key_id', params);
      const key_id = idOf('key', bits);
      // The environment is that of the old key. This gateway may not know it yet.
      const apiKey = makeApiKey(apiKeys.environment(rotates_key_id) ?? 'live', key_id);
      const maker_scopes = allScopes.filter((scope) => caller.scopes.has(scope));
      const endsMs = acceptedAt.getTime() + body.overlap_seconds * 1000 + seenWithinMs;
      return {
        name: 'rotate_api_key',
        id: key_id,
        key: rotates_key_id,
        resource: { key_id },
        location: `/admin/api-keys/${key_id}`,
        data: {
          key_id,
          rotates_key_id,
          overlap_seconds: body.overlap_seconds,
          maker_scopes,
          maker_key_id: caller.keyId ?? null,
          secret_hash: hashApiKey(pepper, apiKey),
        },
        async finish(data, replayed) {
          await Promise.all([
            apiKeys.seen(key_id, () => true, seenWithinMs),
            apiKeys.seen(
              rotates_key_id,
              (old) => old.revoked_at !== null || Date.parse(old.expires_at) <= endsMs,
              seenWithinMs,
            ),
          ]);
          return withSecret(apiKey, data, replayed);
        },
      };
    },
    revoke_api_key(input: Input<Body<typeof bodies.revokeKey>>): Plan<'revoke_api_key'> {
      const { descendants } = input.body;
      const plan = about('revoke_api_key', 'key_id', input, (key_id) => ({ key_id, descendants }));
      return {
        ...plan,
        async finish(data) {
          await apiKeys.seen(plan.key, (state) => state.revoked_at !== null, seenWithinMs);
          return data;
        },
      };
    },
  };
}

/** A planner as called by the routes. The body was parsed by the endpoint's schema. */
export type Planner = (input: Input) => Plan;
