import { z } from 'zod';
import { accountReplySchema, accountSchema, accountStatus } from './accounts.ts';
import { money } from './money.ts';
import { type EndpointRows, event, example, field, type Meanings, message, shown } from './subject.ts';
import { text } from './texts.ts';

/** The status of accounts (contract: accounts): Active, Inactive, or Frozen, and its history. */

export const freezeReason = z.enum(['fraud', 'legal', 'customer_request', 'deceased', 'other']);

export const statusTransitionSchema = z
  .object({
    transition_id: z.string(),
    account_id: z.string(),
    from_status: accountStatus,
    to_status: accountStatus,
    /** Not shown to callers bound to a client. */
    reason: freezeReason.nullable().optional(),
    note: z.string().nullable().optional(),
    actor: z.string().optional(),
    created_at: shown.time,
  })
  .meta({ id: 'StatusTransition' });
export type StatusTransition = z.infer<typeof statusTransitionSchema>;

export const statusEndpoints = {
  change_account_status: {
    route: 'POST /accounts/:account_id/status-transitions',
    summary: 'Activate, deactivate, or freeze an account',
    scope: 'accounts:status',
    body: z
      .strictObject({
        status: accountStatus,
        reason: freezeReason.nullish(),
        note: text(0, 500, { lines: true }).nullish(),
      })
      .check(
        field.rule(
          'validation_failed',
          'reason',
          'is required to freeze an account',
          (body) => body['status'] !== 'Frozen' || Boolean(body['reason']),
        ),
      )
      .meta(field.needsWhen('status', 'Frozen', 'reason')),
    result: accountSchema,
    versioned: true,
    description:
      'With `If-Match`, the status is changed only if the account still has this `ETag`, or has the requested status already.',
    errors: ['client_erased', 'approval_required'],
    requests: {
      freeze: { status: 'Frozen', reason: 'fraud', note: 'reported by the owner' },
      activate: { status: 'Active' },
    },
    answers: { freeze: { status: 'Frozen' }, activate: {} },
  },
  list_status_transitions: {
    route: 'GET /accounts/:account_id/status-transitions',
    summary: 'List the status history of an account',
    scope: 'accounts:read',
    shape: 'page',
    answers: { freeze: { to_status: 'Frozen', reason: 'fraud', note: 'reported by the owner', actor: example.actor } },
  },
} satisfies EndpointRows;

export const statusMessages = {
  change_account_status: message.accounts.command(
    {
      transition_id: message.id,
      account_id: message.id,
      status: accountStatus,
      reason: freezeReason.nullable(),
      note: message.text,
      if_match: z.array(z.string()).optional(),
    },
    accountReplySchema,
  ),
  /** A step of the status saga. The ledger decides the previous and new status, no-ops, and the order. */
  change_ledger_account_status: message.ledger.command(
    {
      transition_id: message.id,
      account_id: message.accountId,
      status: accountStatus,
      if_match: z.array(z.string()).optional(),
    },
    z.object({
      account_id: message.id,
      from_status: accountStatus,
      to_status: accountStatus,
      changed: z.boolean(),
      status_version: z.number().int(),
      balance: money,
      /** Missing in replies from before holds existed. */
      available_balance: money.optional(),
      changed_at: message.time,
    }),
  ),
  list_status_transitions: message.accounts.query(
    { account_id: message.id, ...message.page },
    message.pageSchema(statusTransitionSchema),
  ),
};

export const statusEvents = {
  'corebanking.account.status_changed.v1': event.row('accounts', {
    summary: 'An account was activated, deactivated, or frozen',
    fields: {
      account_id: event.idField('account'),
      client_id: event.idField('client'),
      transition_id: event.idField('transition'),
      from_status: accountStatus,
      to_status: accountStatus,
      reason: freezeReason.nullable(),
      status_version: event.count,
      actor: z.string(),
      changed_at: event.moment,
      account_number: event.ownership.account_number,
      request_channel: event.asked.request_channel,
    },
    example: { to_status: 'Frozen', reason: 'fraud', status_version: 2 },
  }),
};

export const statusMeanings = {
  fields: {
    transition_id: 'The status change, an opaque string',
    from_status: 'The previous status',
    to_status: 'The new status',
    note: 'Remark of the person who made the change, at most 500 characters; null: none; omitted for bound callers',
    'change_account_status.note': 'Remark for the status history, at most 500 characters',
    'change_account_status.reason': 'The reason; required for Frozen',
    'StatusTransition.reason': 'The reason; null: none; omitted for bound callers',
    'change_account_status.status': 'The new status',
  },
  eventFields: {
    changed_at: 'When the new status took effect; ISO 8601 UTC',
    status_version: 'Incremented by each status change; 1 when the account is opened',
  },
} satisfies Meanings;
