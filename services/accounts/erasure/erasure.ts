import { approvalRequired, isUnapproved } from '#libs/contracts/approvals.ts';
import type { Erasure } from '#libs/contracts/erasure.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { askedBy } from '#libs/contracts/event-fields.ts';
import { auditId } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { deadLetterTopics, longestKept, storedDays, type TopicName } from '#libs/contracts/topics.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { revokeClientKeys } from '../api-keys/api-keys.ts';
import { rejectWaitingRequests } from '../approvals/revoked.ts';
import { lockClient } from '../clients/client-store.ts';
import { clientNotFound } from '../clients/clients.ts';
import {
  begun,
  createEvent,
  type Decided,
  done,
  type Finished,
  type Outcome,
  type Retention,
  refused,
  type Work,
} from '../outcome.ts';
import { eraseClientRow, eraseRecords, eraseReplies, type OwnAccount, settledAccounts } from './erasure-store.ts';

/**
 * The erasure saga (decision 46). The client's accounts must have been Inactive for RETENTION_YEARS before the saga
 * asks the ledger, which refuses if it finds money or later entries, and changes nothing: books keep their texts.
 * accounts then replaces all personal data in its own tables in one transaction. Until the ledger has replied, nothing
 * new can be started for the client.
 */
export async function eraseClient(work: Work, { client_id }: MessageData<'erase_client'>): Promise<Outcome> {
  const { client, context, now, retention } = work;
  const row = context.bound_client_id === undefined ? await lockClient(client, client_id, 'update') : undefined;
  if (!row) return refused(clientNotFound(client_id));
  const accounts = await settledAccounts(client, client_id);
  if (!accounts) {
    const busy = `an account of client ${client_id} is being opened or changed; nothing was done, the request can be repeated`;
    return refused(refusal('service_unavailable', busy));
  }
  const kept_since = yearsBefore(now, retention.years);
  const kept = accounts.flatMap((account) => keptAccount(account, kept_since, retention.years));
  if (kept.length > 0) {
    const message = `client ${client_id} cannot be erased: ${kept.length} of their accounts must be kept`;
    return refused(refusal('erasure_refused', message, { details: { accounts: kept.slice(0, maxNamed) } }));
  }
  if (isUnapproved(context, 'erase')) return refused(approvalRequired());
  const payload = { client_id, kept_since };
  const step = { step_id: context.message_id, account_id: client_id, payload, context, detail: { retention } };
  return begun({ ...step, message: 'check_erasure' });
}

const maxNamed = 100;

function yearsBefore(time: string, years: number): string {
  const date = new Date(time);
  date.setUTCFullYear(date.getUTCFullYear() - years);
  return date.toISOString();
}

/** Returns why the account must be kept, in the same form as the ledger's reasons. */
function keptAccount({ account_id, status, changed_at }: OwnAccount, keptSince: string, years: number) {
  // With a retention of 0, no account is too recent, even if the clocks of two services differ.
  const isYoung = years > 0 && changed_at > keptSince;
  const reasons = [...(status === 'Inactive' ? [] : ['not_inactive']), ...(isYoung ? ['within_retention'] : [])];
  if (reasons.length === 0) return [];
  return [{ account_id, reasons, ...(isYoung ? { kept_until: yearsBefore(changed_at, -years) } : {}) }];
}

/** Handles the ledger's reply: no account must be kept, or it refuses. A refusal is the outcome of the erasure. */
export async function finishErasure(client: Queries, { step, body }: Finished, now: string): Promise<Decided> {
  if (!body.ok) return refused(body.refusal);
  const { context, account_id: client_id, detail } = step;
  if (!detail.retention) throw new TypeError(`step ${step.step_id} contains no retention`);
  await lockClient(client, client_id, 'update');
  const row = await eraseClientRow(client, client_id, now);
  const replies = await eraseReplies(client, row);
  const records = await eraseRecords(client, client_id, auditId(context.message_id));
  const work = { client, context, now };
  const keys = await revokeClientKeys(work, client_id);
  const rejected = await rejectWaitingRequests(work, keys.families);
  const replaced = { ...records, kept_replies: replies + records.kept_replies };
  const erased_at = row.erased_at ?? now;
  const erasure: Erasure = {
    client_id,
    erased_at,
    replaced,
    revoked_keys: keys.count,
    remaining: remainingAt(now, detail.retention),
  };
  const event = { client_id, client_type: row.client_type, erased_at, ...askedBy(context) };
  const events = [
    createEvent({ context, now }, 'corebanking.client.erased.v1', client_id, event),
    ...keys.events,
    ...rejected,
  ];
  return done(erasure, events, { ...replaced, revoked_keys: keys.count });
}

/** The personal data in topics. All other topics contain only ids, enumeration values, and amounts. */
const held: [TopicName, string][] = [
  ['accounts.commands', 'requests: names, contacts, notes'],
  ['ledger.commands', 'requests: descriptions, references, reasons'],
  ['accounts.queries', 'what was searched for'],
  ['ledger.queries', 'what was searched for'],
  ['replies', 'answers'],
  ['transactions', 'descriptions and references'],
  ['transfers', 'descriptions'],
  ['holds', 'descriptions and references'],
  ['accounts', 'external_id and metadata'],
  ['clients', 'external_id and metadata'],
  ['account-masters', 'external_id and metadata, until the topic is compacted'],
  ['client-masters', 'external_id and metadata, until the topic is compacted'],
  ['audit', 'details of records'],
  ...deadLetterTopics.map((name): [TopicName, string] => [name, 'messages that could not be processed']),
];

/** Where data of the client remains: the books, what is deleted by age, and what is sent. */
function remainingAt(now: string, { eventsDays, outboxHours }: Retention): Erasure['remaining'] {
  const at = (ms: number) => new Date(Date.parse(now) + ms).toISOString();
  const outbox = at(outboxHours * 60 * 60 * 1000);
  const webhooksDays = storedDays(eventsDays);
  return [
    ...held.map(([name, holds]) => {
      const keptMs = longestKept(name, eventsDays);
      return { place: `topic ${name}`, holds, gone_at: keptMs === undefined ? null : at(keptMs) };
    }),
    {
      place: 'schema ledger',
      holds: 'descriptions, references, external_id and metadata of postings, holds and batches, kept with the books',
      gone_at: null,
    },
    {
      place: 'schema webhooks',
      holds: 'descriptions, references, external_id and metadata, in the events of GET /events',
      gone_at: webhooksDays === -1 ? null : at(webhooksDays * 24 * 60 * 60 * 1000),
    },
    {
      place: 'webhooks, in schema webhooks',
      holds: 'URLs and descriptions of webhooks until they are deleted, and kept replies that show them',
      gone_at: null,
    },
    { place: 'audit, in schema accounts', holds: 'request ids that callers chose, in audit records', gone_at: null },
    { place: 'outbox of accounts', holds: 'messages that were published', gone_at: outbox },
    { place: 'outbox of the ledger', holds: 'messages that were published', gone_at: outbox },
  ];
}
