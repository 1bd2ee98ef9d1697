import { z } from 'zod';
import { refusalSchema } from './errors.ts';
import { page } from './fields.ts';
import { scopes } from './scopes.ts';
import { text } from './texts.ts';

/**
 * Four eyes: actions that a second person must approve (contract: four-eyes). `reverse`: a reversal.
 * `unfreeze`: any change of status from Frozen. `create_key`: creating or rotating a key with writing scopes.
 * `redrive`: redriving with a renewed deadline. `post_above`: a posting above the limit of its currency.
 * `erase`: the erasure of a client.
 */
export const approvalActions = ['reverse', 'unfreeze', 'create_key', 'redrive', 'post_above', 'erase'] as const;
export const approvalAction = z.enum(approvalActions);
export type ApprovalAction = z.infer<typeof approvalAction>;

export const approvalStatus = z.enum(['Waiting', 'Approved', 'Rejected', 'Expired']);
export type ApprovalStatus = z.infer<typeof approvalStatus>;

/** The requester, relative to the caller that lists approvals. */
const approvalAsker = z.enum(['me', 'others']);

export const approvalLifetimeMs = 24 * 60 * 60 * 1000;

/** The commands that can require an approval. */
export const approvableCommand = z.enum([
  'reverse_transaction',
  'change_account_status',
  'create_api_key',
  'rotate_api_key',
  'redrive_dead_letter',
  'create_transaction',
  'create_transfer',
  'capture_hold',
  'open_account',
  'erase_client',
]);
export type ApprovableCommand = z.infer<typeof approvableCommand>;

/** The outcome of an approved command: the response that the request would have received without approval. */
const outcomeSchema = z.discriminatedUnion('status', [
  z.object({ status: z.literal('success'), data: z.record(z.string(), z.unknown()) }),
  z.object({ status: z.literal('error'), ...refusalSchema.shape }),
]);
export type ApprovalOutcome = z.infer<typeof outcomeSchema>;

const time = z.string();

export const approvalSchema = z.object({
  approval_id: z.string(),
  action: approvalAction,
  /** One sentence without personal data. */
  summary: z.string(),
  /** The original request: API operation, route, and body. */
  request: z.object({
    operation: approvableCommand,
    method: z.string(),
    path: z.string(),
    body: z.record(z.string(), z.unknown()),
  }),
  /** The changes, as of the time of the request. null means that there is no value before, or none after. */
  changes: z.array(z.object({ field: z.string(), before: z.string().nullable(), after: z.string().nullable() })),
  requested_by: z.string(),
  requested_at: time,
  expires_at: time,
  status: approvalStatus,
  decided_by: z.string().nullable(),
  decided_at: time.nullable(),
  /** The reason for approving or rejecting. */
  reason: z.string().nullable(),
  /** Set once an approved request has been executed or refused. */
  outcome: outcomeSchema.optional(),
});
export type Approval = z.infer<typeof approvalSchema>;

/** The data that accounts stores until the request is approved. */
export const approvalRequestSchema = approvalSchema
  .pick({ approval_id: true, action: true, summary: true, request: true, changes: true })
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

export const approvalBodies = {
  approve: z.strictObject({ reason: text(1, 500, { lines: true }).nullish() }),
  reject: z.strictObject({ reason: text(1, 500, { lines: true }) }),
};

export const approvalParameters = {
  list: z.strictObject({
    status: approvalStatus.optional(),
    action: approvalAction.optional(),
    requested_by: approvalAsker.optional(),
    ...page,
  }),
};
