import { hashApiKey, makeApiKey } from '#libs/contracts/api-key.ts';
import type { ApiKey } from '#libs/contracts/api-keys.ts';
import { identityFields } from '#libs/contracts/clients.ts';
import { pickDay } from '#libs/contracts/days.ts';
import { deadLettered, errorCodes, refusal } from '#libs/contracts/errors.ts';
import { bucketForKey, bucketOfId, formatId, inBucket, withBucket } from '#libs/contracts/ids.ts';
import type { MessageResult } from '#libs/contracts/messages.ts';
import { type GivenNames, pickNames } from '#libs/contracts/names.ts';
import type { Check } from '#libs/contracts/operations.ts';
import type { SecretKeys } from '#libs/contracts/webhook-secret.ts';
import { type ApiKeys, seenWithinMs } from '../access/api-keys.ts';
import { type Caller, listScopes } from '../access/caller.ts';
import type { FourEyes } from '../access/four-eyes.ts';
import { refuse, refuseViolations } from '../http/errors.ts';
import { knownForm, pathId } from '../http/unknown-ids.ts';
import { isNotFound } from './answer.ts';
import { approvalPlanners } from './approval-decisions.ts';
import { awaitClosing } from './closings.ts';
import type { Forwarder, Outcome } from './forward.ts';
import { holdPlanners } from './hold-commands.ts';
import { HotAccounts } from './hot-accounts.ts';
import { answered, combineChecks } from './operations.ts';
import { type Input, type Planners, planCreate, planFor } from './plan.ts';
import { queryAfterPendingCommands } from './reads.ts';
import { tillPlanners } from './staff.ts';
import { webhookPlanners } from './webhooks.ts';

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
export function checkNames(caller: Caller, given: boolean): void {
  if (!given || caller.boundClientId === undefined) return;
  throw refuse('insufficient_scope', 'credentials bound to one client cannot give an external_id');
}

/** Returns the names of a posting with the client whose credentials give them, for a response while it is Pending. */
export function namesBy({ boundClientId }: Caller, given: GivenNames) {
  const names = pickNames(given);
  return names.metadata && boundClientId !== undefined ? { ...names, metadata_client_id: boundClientId } : names;
}

/**
 * Returns the body about a client or account with whose metadata it is: the bank's, or that of the client whose
 * credentials give it, under either name.
 */
function withWhose<B extends GivenNames>(caller: Caller, body: B): B {
  const { metadata, client_metadata, ...rest } = body;
  if (caller.boundClientId === undefined) {
    if (client_metadata === undefined) return body;
    throw refuse('insufficient_scope', 'only credentials bound to the client give client_metadata');
  }
  if (metadata !== undefined && client_metadata !== undefined)
    throw refuseViolations([
      { field: 'metadata', code: 'validation_failed', message: 'metadata cannot be given beside client_metadata' },
    ]);
  const own = client_metadata === undefined ? metadata : client_metadata;
  return own === undefined ? body : ({ ...rest, client_metadata: own } as B);
}

/** Only the bank changes the identity of a client, which it has verified. */
function checkIdentity(caller: Caller, body: { [N in (typeof identityFields)[number]]?: string | undefined }): void {
  const named = identityFields.filter((field) => body[field] !== undefined);
  if (caller.boundClientId === undefined || named.length === 0) return;
  throw refuse('insufficient_scope', `credentials bound to one client cannot change ${named.join(', ')}`);
}

export function createPlanners(dependencies: CommandDependencies): Planners {
  return {
    ...clientPlanners,
    ...accountPlanners,
    ...notePlanners,
    ...cashPlanners,
    ...transferPlanners(new HotAccounts()),
    ...reversalPlanners(dependencies),
    ...holdPlanners,
    ...tillPlanners,
    ...deadLetterPlanners,
    ...bookPlanners(dependencies),
    ...keyPlanners(dependencies),
    ...approvalPlanners(dependencies),
    ...webhookPlanners(dependencies),
  };
}

const clientPlanners = {
  create_client: ({ body, bits }) => planCreate('client_id', bits, (client_id) => ({ client_id, client: body })),
  update_client(input) {
    const { body, caller, ifMatch } = input;
    checkNames(caller, body.external_id !== undefined);
    checkIdentity(caller, body);
    const changes = withWhose(caller, body);
    return planFor('client_id', input, (client_id) => ({ client_id, changes, if_match: ifMatch }));
  },
  erase_client: (input) => planFor('client_id', input, (client_id) => ({ client_id })),
} satisfies Partial<Planners>;

const accountPlanners = {
  open_account({ body, bits, caller }) {
    if (body.initial_deposit !== '0' && !caller.scopes.has('transactions:write'))
      throw refuse('insufficient_scope', 'an initial_deposit is cash: the scope transactions:write is required');
    if ((body.account_number || body.migrated) && !caller.scopes.has('accounts:import'))
      throw refuse(
        'insufficient_scope',
        'account_number and migrated are for accounts of another system: the scope accounts:import is required',
      );
    checkNames(caller, Boolean(body.external_id));
    if (caller.boundClientId !== undefined && (body.status !== 'Active' || body.account_type === 'Loan'))
      throw refuse('insufficient_scope', 'credentials bound to one client open Active accounts only, and no Loans');
    const fields = withWhose(caller, body);
    knownForm('client', body.client_id);
    return planCreate('account_id', bits, (account_id) => ({ account_id, ...fields }));
  },
  set_account_limits: (input) => planFor('account_id', input, (account_id) => ({ account_id, ...input.body })),
  change_account_status({ params, body: { status, reason = null, note = null }, bits, ifMatch }) {
    const account_id = pathId('account_id', params);
    const transition_id = formatId('transition', bits);
    return {
      id: transition_id,
      key: account_id,
      data: { transition_id, account_id, status, reason, note, if_match: ifMatch },
      resource: { account_id, transition_id },
    };
  },
} satisfies Partial<Planners>;

/** A note is read in the list of its client or account. */
function notePlan<F extends 'client_id' | 'account_id'>(field: F, { params, body, bits }: Input<{ note: string }>) {
  const id = pathId(field, params);
  const note_id = formatId('note', bits);
  const data = { note_id, [field]: id, note: body.note } as { note_id: string; note: string } & Record<F, string>;
  return { id: note_id, key: id, data, resource: { note_id }, location: `/${field.replace('_id', 's')}/${id}/notes` };
}

const notePlanners = {
  add_client_note: (input) => notePlan('client_id', input),
  add_account_note: (input) => notePlan('account_id', input),
} satisfies Partial<Planners>;

const cashPlanners = {
  create_transaction({ body, bits }) {
    const account_id = knownForm('account', body.account_id);
    const { transaction_type, amount, currency = null, description = null, reference = null } = body;
    const fields = {
      account_id,
      transaction_type,
      amount,
      currency,
      description,
      reference,
      ...pickDay(body),
      ...pickNames(body),
    };
    const direction = transaction_type === 'Deposit' ? ('credit' as const) : ('debit' as const);
    const plan = planCreate(
      'transaction_id',
      withBucket(bits, account_id),
      (transaction_id) => ({ transaction_id, ...fields }),
      account_id,
    );
    return {
      ...plan,
      pending: (acceptedAt) => ({ ...plan.data, status: 'Pending', created_at: acceptedAt.toISOString(), direction }),
    };
  },
} satisfies Partial<Planners>;

function transferPlanners(hotAccounts: HotAccounts) {
  return {
    create_transfer({ body, bits, caller }) {
      checkNames(caller, Boolean(body.external_id));
      const from_account_id = knownForm('account', body.from_account_id);
      const to_account_id = knownForm('account', body.to_account_id);
      const { amount, currency = null, description = null } = body;
      const fields = {
        from_account_id,
        to_account_id,
        amount,
        currency,
        description,
        ...pickDay(body),
        ...pickNames(body),
      };
      const plan = planCreate(
        'transfer_id',
        withBucket(bits, from_account_id),
        (transfer_id) => ({ transfer_id, ...fields }),
        from_account_id,
      );
      return {
        ...plan,
        // The id stays that of the source: it must be the same on every repeat.
        bucket: bucketForKey(hotAccounts.route(from_account_id, to_account_id)),
        pending: (acceptedAt) => ({
          ...plan.data,
          ...namesBy(caller, body),
          status: 'Pending',
          created_at: acceptedAt.toISOString(),
        }),
      };
    },
  } satisfies Partial<Planners>;
}

/**
 * Reports whether the outcome is the ledger's answer about the transaction: what was decided, that its command was
 * dead-lettered, or that it is unknown. No reply and a failed query are no answer, nor that it waits for an approval.
 */
function isAnswer(outcome: Outcome, id: string): boolean {
  if (outcome.kind !== 'refused') return outcome.kind === 'done';
  const { code, message } = outcome.refusal;
  if (code === 'approval_required') return false;
  return errorCodes[code].status < 500 || message === deadLettered(id).message;
}

/** Returns the response if the original transaction waits for an approval. It is not kept: the approval may come. */
function refusedWaiting(outcome: Outcome, id: string): Outcome | undefined {
  const isWaiting = outcome.kind === 'refused' && outcome.refusal.code === 'approval_required';
  return isWaiting
    ? { ...outcome, refusal: refusal('not_reversible', `transaction ${id} waits for an approval`) }
    : undefined;
}

function reversalPlanners({ forwarder }: CommandDependencies) {
  return {
    reverse_transaction({ params, body, bits }) {
      const reverses_transaction_id = pathId('transaction_id', params);
      // The command is in the bucket of the original transaction, which may still be waiting there.
      const bucket = bucketOfId(reverses_transaction_id);
      const fields = { reverses_transaction_id, reason: body.reason, ...pickDay(body), ...pickNames(body) };
      const plan = planCreate(
        'transaction_id',
        inBucket(bits, bucket),
        (transaction_id) => ({ transaction_id, ...fields }),
        reverses_transaction_id,
      );
      return {
        ...plan,
        bucket,
        /**
         * Waits until the original transaction is decided: items of batches are on another topic than reversals. The
         * ledger itself refuses the reversal of an unknown transaction, because that refusal is kept.
         */
        async precondition(origin) {
          // Half of the time remains for the queries behind the commands, and for the reversal.
          const early = { ...origin, answerBy: (performance.now() + origin.answerBy) / 2 };
          const data = { transaction_id: reverses_transaction_id };
          const original = await forwarder.query('get_transaction', data, reverses_transaction_id, early);
          if (isAnswer(original, reverses_transaction_id) && !isNotFound(original)) return undefined;
          const decided = await queryAfterPendingCommands(
            'get_transaction',
            data,
            reverses_transaction_id,
            origin,
            forwarder,
          );
          // Otherwise the reversal could be refused for good before the transaction is decided.
          if (isAnswer(decided, reverses_transaction_id)) return undefined;
          return refusedWaiting(decided, reverses_transaction_id) ?? decided;
        },
      };
    },
  } satisfies Partial<Planners>;
}

const deadLetterPlanners = {
  redrive_dead_letter(input) {
    const { renew_deadline } = input.body;
    return planFor('dead_letter_id', input, (dead_letter_id) => ({ dead_letter_id, renew_deadline }));
  },
  drop_dead_letter(input) {
    const { reason = null } = input.body;
    return planFor('dead_letter_id', input, (dead_letter_id) => ({ dead_letter_id, reason }));
  },
} satisfies Partial<Planners>;

/** The ledger checks the books, and accounts then checks the audit as part of the same verification, if it can. */
function bookPlanners({ forwarder }: CommandDependencies) {
  return {
    close_day({ body: { date }, bits }) {
      const location = `/admin/day-closings/${date}`;
      return {
        id: `cmd_${bits}`,
        // All are in one partition.
        key: 'days',
        data: { date },
        resource: { date },
        location,
        /** The day is closed now. Its totals follow, which takes longer the more accounts have moved. */
        async enrichResponse(_data, _replayed, origin) {
          const closing = await awaitClosing(date, origin, forwarder);
          if (closing) return closing;
          const message = `day ${date} is closed, but its totals are not calculated yet: GET ${location}`;
          throw refuse('outcome_unknown', message, { details: { date } });
        },
      };
    },
    verify_books({ bits, acceptedAt }) {
      const verification_id = formatId('verification', bits);
      return {
        id: verification_id,
        key: verification_id,
        data: { verification_id },
        resource: { verification_id },
        async enrichResponse(data, _replayed, origin) {
          const books = data as Check;
          const { verification_id: id } = books;
          const command = { name: 'verify_audit' as const, id, key: id, data: { verification_id: id }, acceptedAt };
          return combineChecks(books, answered(await forwarder.command(command, origin)));
        },
      };
    },
  } satisfies Partial<Planners>;
}

/**
 * The secret is generated here and shown once; only its hash is sent. A repeat gets the same body without the
 * secret.
 */
function keyPlanners({ pepper, apiKeys, keyMaxLifetimeMs, forwarder }: CommandDependencies) {
  const withSecret = (apiKey: string, data: unknown, replayed: boolean): unknown =>
    replayed ? data : { ...(data as ApiKey), api_key: apiKey };
  return {
    create_api_key({ body, bits, caller, acceptedAt }) {
      const { name, environment, client_id = null, expires_at = null } = body;
      const scopes = [...new Set(body.scopes)];
      const lacking = scopes.filter((scope) => !caller.scopes.has(scope));
      if (lacking.length > 0)
        throw refuse('insufficient_scope', `a key cannot have scopes that its creator lacks: ${lacking.join(', ')}`);
      if (client_id !== null) knownForm('client', client_id);
      const apiKey = makeApiKey(environment, formatId('key', bits));
      const not_after = new Date(acceptedAt.getTime() + keyMaxLifetimeMs).toISOString();
      const plan = planCreate('key_id', bits, (key_id) => ({
        key_id,
        name,
        scopes,
        environment,
        client_id,
        expires_at,
        not_after,
        maker_key_id: caller.keyId ?? null,
        secret_hash: hashApiKey(pepper, apiKey),
      }));
      return {
        ...plan,
        async enrichResponse(data, replayed) {
          await apiKeys.seen(plan.id, () => true);
          return withSecret(apiKey, data, replayed);
        },
      };
    },
    rotate_api_key({ params, body: { overlap_seconds }, bits, caller, acceptedAt }) {
      const rotates_key_id = pathId('key_id', params);
      // The environment is that of the old key. This gateway may not know it yet.
      const apiKey = makeApiKey(apiKeys.environment(rotates_key_id) ?? 'live', formatId('key', bits));
      const endsMs = acceptedAt.getTime() + overlap_seconds * 1000 + seenWithinMs;
      const fields = {
        rotates_key_id,
        overlap_seconds,
        maker_scopes: listScopes(caller),
        maker_key_id: caller.keyId ?? null,
        secret_hash: hashApiKey(pepper, apiKey),
      };
      const plan = planCreate('key_id', bits, (key_id) => ({ key_id, ...fields }), rotates_key_id);
      return {
        ...plan,
        // In the bucket of the new key, whose id a caller may read.
        bucket: bucketForKey(plan.id),
        async enrichResponse(data, replayed) {
          await Promise.all([
            apiKeys.seen(plan.id, () => true),
            apiKeys.seen(rotates_key_id, (old) => old.revoked_at !== null || Date.parse(old.expires_at) <= endsMs),
          ]);
          return withSecret(apiKey, data, replayed);
        },
      };
    },
    revoke_api_key(input) {
      const { descendants } = input.body;
      const plan = planFor('key_id', input, (key_id) => ({ key_id, descendants }));
      return {
        ...plan,
        async enrichResponse(data, _replayed, origin) {
          const { families, ...key } = data as MessageResult<'revoke_api_key'>;
          const actors = families.map((family) => `key:${family}`);
          const [set] = await Promise.all([
            forwarder.query('list_webhooks_set_by', { actors }, plan.key, origin),
            apiKeys.seen(plan.key, (state) => state.revoked_at !== null),
          ]);
          return { ...key, ...(set.kind === 'done' && { disabled_webhooks: set.data }) };
        },
      };
    },
  } satisfies Partial<Planners>;
}
