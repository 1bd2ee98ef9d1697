import { z } from 'zod';
import { refusal, refusalSchema } from './errors.ts';
import { fromMinor, isCurrency, money, toMinor } from './money.ts';
import { scopes } from './scopes.ts';
import { type EndpointRows, event, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { text } from './texts.ts';

/**
 * Four eyes: actions that a second person must approve (contract: four-eyes). `reverse`: a reversal.
 * `unfreeze`: any change of status from Frozen. `create_key`: creating or rotating a key with writing scopes.
 * `post_above`: postings above the limit of their currency. `erase`: the erasure of a client. `client_contact`: changes of
 * contactFields. `webhook`: creating a webhook, and changing its URL, event types, or secret. `backdate`: postings with a
 * value date before the bank's day.
 */
export const approvalActions = [
  'reverse',
  'unfreeze',
  'create_key',
  'post_above',
  'erase',
  'client_contact',
  'webhook',
  'close_day',
  'raise_limit',
  'backdate',
] as const;
export const approvalAction = z.enum(approvalActions);
export type ApprovalAction = z.infer<typeof approvalAction>;

export const approvalStatus = z.enum(['Waiting', 'Approved', 'Rejected', 'Expired']);
export type ApprovalStatus = z.infer<typeof approvalStatus>;

/** The requester, relative to the caller that lists approvals. */
const approvalAsker = z.enum(['me', 'others']);

export const approvalLifetimeMs = 24 * 60 * 60 * 1000;

/** The maximum number of approvals of a caller that are waiting. */
export const maxWaitingApprovals = 20;

/**
 * The rules under which a command needs an approval, in its header `four-eyes`. The gateway adds them to commands of
 * callers whose actions may need one; the service that executes the command decides.
 */
const approvalRules = z.object({
  /**
   * The actions that the command can be. A service that does not know it, because it is older than the gateway, cannot
   * decide and dead-letters the command: without the action it would execute what needs an approval. Other commands do not
   * name the action, and are executed. So postings with earlier value dates wait until all ledgers know `backdate`.
   */
  actions: z.array(approvalAction),
  /** The largest amount per currency that needs no approval, for postings of a person on this day of the bank. */
  limits: z.record(z.string(), z.string()),
  day: z.string(),
});
export type ApprovalRules = z.infer<typeof approvalRules>;

/** Rules that were parsed, by their text. A bank has one for each action and day; a posting asks for its own several times. */
const parsedRules = new Map<string, Readonly<ApprovalRules>>();
const maxParsedRules = 100;

export function rulesIn({ four_eyes }: { four_eyes?: string | undefined }): Readonly<ApprovalRules> | undefined {
  if (four_eyes === undefined) return undefined;
  const known = parsedRules.get(four_eyes);
  if (known) return known;
  const rules = approvalRules.parse(JSON.parse(four_eyes));
  if (parsedRules.size >= maxParsedRules) parsedRules.clear();
  parsedRules.set(four_eyes, rules);
  return rules;
}

/**
 * Reports whether the command needs an approval if it is this action. Commands that are sent again after a restore keep
 * their decisions.
 */
export function isUnapproved(
  context: { four_eyes?: string | undefined; decided?: string | undefined },
  action: ApprovalAction,
): boolean {
  return context.decided === undefined && rulesIn(context)?.actions.includes(action) === true;
}

/** Reports whether this amount alone needs an approval. That of a currency without a limit does. */
export function isAboveLimit({ limits }: Pick<ApprovalRules, 'limits'>, amount: string, currency: string): boolean {
  const [minor, most] = [toMinor(amount, currency), toMinor(limits[currency] ?? '0', currency)];
  return minor === 'amount_too_large' || (typeof minor === 'bigint' && typeof most === 'bigint' && minor > most);
}

/** What a person has posted without approval on their latest day in one currency. */
export interface PostedOnDay {
  day: string;
  minor: bigint;
}

/** Returns the sum of the person's day and the limit of the currency, which is below every sum if there is none. */
export function allowance(
  { limits = {}, day = '' }: Partial<Pick<ApprovalRules, 'limits' | 'day'>>,
  currency: string,
  posted: PostedOnDay | undefined,
): { sum: bigint; most: bigint; day: string } {
  const limit = limits[currency];
  const most = limit === undefined ? -1n : toMinor(limit, currency);
  // A message from yesterday counts to today.
  const isSameDay = posted !== undefined && posted.day >= day;
  return {
    sum: isSameDay ? posted.minor : 0n,
    most: typeof most === 'bigint' ? most : -1n,
    day: isSameDay ? posted.day : day,
  };
}

/** Creates the refusal of a command that was not executed, because a second person must approve it. */
export function approvalRequired(what?: string) {
  return refusal('approval_required', `a second person must approve this${what === undefined ? '' : ` ${what}`}`);
}

/** What a reversal would post, in the details of its refusal: its command names only the id of the transaction. */
export const waitingPosting = z.object({ amount: z.string(), currency: z.string(), account_ids: z.array(z.string()) });
export type WaitingPosting = z.infer<typeof waitingPosting>;

/** The commands that can require an approval. */
export const approvableCommand = z.enum([
  'reverse_transaction',
  'change_account_status',
  'create_api_key',
  'rotate_api_key',
  'create_transaction',
  'create_transfer',
  'capture_hold',
  'open_account',
  'erase_client',
  'set_account_limits',
  'update_client',
  'create_webhook',
  'update_webhook',
  'rotate_webhook_secret',
  'close_day',
]);
export type ApprovableCommand = z.infer<typeof approvableCommand>;

/** The outcome of an approved command: the response that the request would have received without approval. */
const outcomeSchema = z
  .discriminatedUnion('status', [
    z.object({ status: z.literal('success'), data: z.record(z.string(), z.unknown()) }).meta({ id: 'ApprovalSuccess' }),
    z.object({ status: z.literal('error'), ...refusalSchema.shape }).meta({ id: 'ApprovalRefusal' }),
  ])
  .meta({ id: 'ApprovalOutcome' });
export type ApprovalOutcome = z.infer<typeof outcomeSchema>;

export const approvalSchema = z
  .object({
    approval_id: z.string(),
    action: approvalAction,
    /** One sentence without personal data. */
    summary: z.string(),
    /** The original request: API operation, route, and body. */
    request: z
      .object({
        operation: approvableCommand,
        method: z.string(),
        path: z.string(),
        body: z.record(z.string(), z.unknown()),
      })
      .meta({ id: 'ApprovalRequest' }),
    requested_by: z.string(),
    /** The display names of people who have signed in, where approvals are read. */
    requested_by_name: z.string().optional(),
    requested_at: shown.time,
    expires_at: shown.time,
    status: approvalStatus,
    decided_by: z.string().nullable(),
    decided_by_name: z.string().optional(),
    decided_at: shown.time.nullable(),
    /** The reason for approving or rejecting. */
    reason: z.string().nullable(),
    /** Set once an approved request has been executed or refused. */
    outcome: outcomeSchema.optional(),
  })
  .meta({ id: 'Approval' });
export type Approval = z.infer<typeof approvalSchema>;

/** The data that accounts stores until the request is approved. */
const approvalRequestSchema = approvalSchema
  .pick({ approval_id: true, action: true, summary: true, request: true })
  .extend({
    /** The scopes that the approver needs in addition to approvals:write. */
    scopes: z.array(z.enum(scopes)),
    /** The command that the gateway would have published. */
    command: z.object({
      name: approvableCommand,
      id: z.string().max(64),
      key: z.string().max(64),
      bucket: z.number().int().min(0).max(255).optional(),
      data: z.record(z.string(), z.unknown()),
    }),
  });
export type ApprovalRequest = z.infer<typeof approvalRequestSchema>;

/** The rules for the requests of a caller, with what is left of the limits of this day. */
const ownRulesSchema = z
  .object({
    day: shown.day,
    actions: z.array(approvalAction),
    limits: z.array(
      z.object({ currency: z.string(), limit: money, posted: money, left: money }).meta({ id: 'ApprovalLimit' }),
    ),
  })
  .meta({ id: 'ApprovalRules' });
export type OwnRules = z.infer<typeof ownRulesSchema>;

/** Returns what a caller with these sums, by currency, may still post alone. Pure. */
export function ownRules({ actions, limits, day }: ApprovalRules, posted: ReadonlyMap<string, PostedOnDay>): OwnRules {
  const currencies = actions.includes('post_above') ? Object.keys(limits).filter(isCurrency) : [];
  const shown = currencies.map((currency) => {
    const { sum, most } = allowance({ limits, day }, currency, posted.get(currency));
    const text = (minor: bigint) => fromMinor(minor > 0n ? minor : 0n, currency);
    return { currency, limit: text(most), posted: text(sum), left: text(most - sum) };
  });
  return { day, actions, limits: shown };
}

const listFilters = z.strictObject({
  status: approvalStatus.optional(),
  action: approvalAction.optional(),
  requested_by: approvalAsker.optional(),
  ...field.page,
});

const decided = { decided_by: 'jwt:https://issuer.example|manager', decided_at: '2026-01-02T09:00:00.000Z' };
const approved = {
  ...decided,
  status: 'Approved',
  reason: 'seen the receipt',
  outcome: { data: { transaction_id: `txn_${example.bits(2)}`, reverses_transaction_id: example.ids.transaction } },
};

export const approvalEndpoints = {
  list_approvals: {
    route: 'GET /admin/approvals',
    summary: 'List approvals',
    scope: null,
    query: listFilters,
    description:
      "Returns the caller's own approvals and, with `approvals:write`, those whose action's scope the caller has; to a person with `audit:read` and `clients:read`, all. `requested_by`: only those of the caller (`me`), or only those of others (`others`), which the caller can decide.",
    shape: 'page',
  },
  get_approval: {
    route: 'GET /admin/approvals/:approval_id',
    summary: 'Get an approval',
    scope: null,
    description:
      "Visible to its requester, to everyone who may decide it, and to persons with `audit:read` and `clients:read`. If it created an API key, the requester's first GET contains `api_key`: the key itself, shown only once.",
    result: approvalSchema.extend({ api_key: z.string().optional() }).meta({ id: 'ApprovalWithKey' }),
    errors: ['insufficient_scope', 'outcome_unknown'],
    answers: { waiting: {}, approved },
  },
  get_approval_rules: {
    route: 'GET /admin/approval-rules',
    summary: 'Get what needs an approval',
    scope: null,
    bankOnly: true,
    description:
      'Returns the actions of the caller that need an approval now. A posting is `post_above` if its amount, or all items of a batch or captures of a hold together, is more than `limit` or more than `left` of its currency, or if its currency is not listed. It promises nothing: another posting of the caller, midnight, or a change of the settings may come before the request.',
    result: ownRulesSchema,
    message: 'list_posted',
    answers: {
      rules: {
        day: '2026-01-02',
        actions: ['reverse', 'post_above'],
        limits: [{ limit: 10000, posted: 2500, left: 7500 }],
      },
    },
  },
  approve_request: {
    route: 'POST /admin/approvals/:approval_id/approval',
    summary: 'Approve a request',
    scope: 'approvals:write',
    body: z.strictObject({ reason: text(1, 500, { lines: true }).nullish() }),
    description:
      "Also requires the scope of the action. The command is executed in the requester's name; its outcome is added to the approval when it is known.",
    errors: ['own_approval', 'approval_decided'],
    requests: { approve: {}, reason: { reason: 'seen the receipt' } },
    answers: { approve: approved },
  },
  reject_request: {
    route: 'POST /admin/approvals/:approval_id/rejection',
    summary: 'Reject a request',
    scope: 'approvals:write',
    body: z.strictObject({ reason: text(1, 500, { lines: true }) }),
    description: 'Also requires the scope of the action.',
    errors: ['own_approval', 'approval_decided'],
    requests: { reject: { reason: 'the customer keeps the money' } },
    answers: { reject: { ...decided, status: 'Rejected', reason: 'the customer keeps the money' } },
  },
} satisfies EndpointRows;

/** `scopes`: the scopes of the person who decides. */
const verdict = z.object({ approval_id: message.id, reason: message.text, scopes: z.array(z.string()) });

export const approvalMessages = {
  /** Sent instead of a command that a second person must approve. */
  request_approval: message.command('accounts.commands', approvalRequestSchema, approvalSchema),
  approve_request: message.command('accounts.commands', verdict, approvalSchema),
  reject_request: message.command('accounts.commands', verdict, approvalSchema),
  /** `scopes`: those of the caller, which say what approvals of others they see. */
  list_approvals: message.accounts.query(
    { ...message.listRequest(listFilters), scopes: z.array(z.string()) },
    message.pageSchema(approvalSchema),
  ),
  /** What the caller posted without approval on the latest day of each currency. */
  list_posted: message.ledger.query(
    {},
    z.array(z.object({ currency: z.string(), day: z.string(), amount: z.string() })),
  ),
  get_approval: message.accounts.query(
    { approval_id: message.id, scopes: z.array(z.string()) },
    z.object({
      approval: approvalSchema,
      /** True if the approval created a key whose secret has not been shown. */ has_unread_key: z.boolean(),
    }),
  ),
};

export const approvalEvents = {
  /** Contains only ids and enumeration values. Approvers read the request through the API. */
  'corebanking.approval.requested.v1': event.row('approvals', {
    summary: 'A request needs the approval of a second person. Nothing has been executed',
    fields: {
      approval_id: event.idField('approval'),
      action: approvalAction,
      operation: z.string(),
      requested_by: z.string(),
      requested_at: event.moment,
      expires_at: event.moment,
    },
  }),
  /** Approved, Rejected, or Expired without a decision. */
  'corebanking.approval.decided.v1': event.row('approvals', {
    summary: 'An approval was approved or rejected, or expired',
    fields: {
      approval_id: event.idField('approval'),
      action: approvalAction,
      operation: z.string(),
      requested_by: z.string(),
      status: approvalStatus.exclude(['Waiting']),
      decided_by: z.string().nullable(),
      decided_at: event.moment,
    },
    example: { decided_by: decided.decided_by },
  }),
};

export const approvalMeanings = {
  fields: {
    approval_id: 'The approval: `apr_` and 32 hexadecimal digits',
    requested_by_name: "The person's display name in reads by persons of the bank; omitted: it is not known",
    decided_by_name:
      "The person's display name in reads by persons of the bank; omitted: it is not known, or nobody has decided",
    'Approval.action': 'Why a second person is required',
    'Approval.reason': 'The reason for approving or rejecting; null: none',
    'Approval.status': 'Waiting; Approved; Rejected; Expired: not decided within 24 hours',
    'Approval.outcome': 'The response to the approved request; omitted until it has been executed',
    'list_approvals.requested_by': 'me: only those of the caller; others: only those that the caller can decide',
    'ApprovalRules.day': 'The current day of the bank, to which `posted` belongs',
    'ApprovalRules.actions': 'The actions of the caller that need an approval; empty: none',
    'ApprovalRules.limits': 'The limits of postings; empty unless `post_above` is one of the actions',
    'ApprovalLimit.limit': 'The most that one person posts without approval, at once and on one day',
    'ApprovalLimit.posted': 'What the caller has posted without approval on this day',
    'ApprovalLimit.left': 'The most that the caller can post now without approval',
    'approve_request.reason': 'The reason for approving, 1 to 500 characters',
    'reject_request.reason': 'The reason for rejecting, 1 to 500 characters',
    request: 'The original request',
    summary: 'What would be done, in one sentence without personal data',
    requested_at: `When it was requested, ${meaning.utc}`,
    operation: 'Name of the operation',
    method: 'HTTP method of the request',
    path: 'Path of the request',
    body: 'Body of the request, without secrets',
    'ApprovalSuccess.status': 'Always success',
    'ApprovalRefusal.status': 'Always error',
    'ApprovalSuccess.data': 'The `data` of the response',
  },
  eventFields: {
    decided_by: 'The second person; system if the key that asked was no longer valid; null if the approval expired',
  },
  errors: {
    approval_required: {
      meaning:
        'A second person must approve this: the response to a batch, and to GET of the id of a posting that waits.',
      action:
        'Send the items of the batch separately. A posting: read its approval; if none was requested, send the request again, with the same Idempotency-Key.',
      example: ['a second person must approve this'],
    },
    own_approval: {
      meaning: 'Nobody can approve or reject their own request.',
      action: 'Ask another person.',
      example: ['a second person must decide: nobody can approve or reject their own request'],
    },
    approval_decided: {
      meaning: 'The approval is already Approved, Rejected, or Expired.',
      action: 'Read it.',
      example: [
        `approval ${example.ids.approval} is already Rejected`,
        { details: { approval_id: example.ids.approval, status: 'Rejected' } },
      ],
    },
    approval_not_found: meaning.notFound('approval', example.ids.approval),
  },
} satisfies Meanings;
