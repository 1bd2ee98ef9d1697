import type { Account } from '#libs/contracts/accounts.ts';
import type { ApiKey } from '#libs/contracts/api-keys.ts';
import type { Approval } from '#libs/contracts/approvals.ts';
import type { BatchSummary, ItemResult } from '#libs/contracts/batches.ts';
import type { DeadLetter } from '#libs/contracts/dead-letters.ts';
import type { HoldStatus } from '#libs/contracts/holds.ts';
import type { Verification } from '#libs/contracts/operations.ts';
import type { Timeline } from '#libs/contracts/timeline.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import type { Delivery, Webhook } from '#libs/contracts/webhooks.ts';
import type { IconName } from './icons.ts';

/**
 * What a status asks of people: nothing, because it is done (`good`); a person must act (`wait`); it was refused or is
 * blocked (`bad`); the bank is still working (`info`); it is of no consequence any more (`plain`).
 */
export type Tone = 'good' | 'wait' | 'bad' | 'info' | 'plain';

/** Every status of the API. */
export type Status =
  | Account['status']
  | ApiKey['status']
  | Approval['status']
  | BatchSummary['status']
  | ItemResult['status']
  | DeadLetter['state']
  | HoldStatus
  | Verification['state']
  | Timeline['events'][number]['state']
  | Transaction['status']
  | Webhook['status']
  | Delivery['status'];

const done = ['good', 'done'] as const;
const waits = ['wait', 'waiting'] as const;
const refused = ['bad', 'refused'] as const;
const going = ['info', 'going'] as const;
const past = ['plain', 'idle'] as const;

export const statuses: Readonly<Record<Status, readonly [Tone, IconName]>> = {
  Active: done,
  Inactive: past,
  Frozen: ['bad', 'locked'],
  active: done,
  expired: past,
  revoked: ['plain', 'off'],
  Waiting: waits,
  Approved: done,
  Rejected: refused,
  Expired: past,
  Pending: going,
  Completed: done,
  Refused: refused,
  Failed: refused,
  open: ['wait', 'warning'],
  redriven: done,
  dropped: past,
  Captured: done,
  Released: past,
  running: going,
  passed: done,
  broken: ['bad', 'error'],
  interrupted: ['wait', 'warning'],
  waiting: going,
  published: done,
  not_kept: past,
  Paused: ['wait', 'paused'],
  Disabled: ['bad', 'off'],
  Delivered: done,
};
