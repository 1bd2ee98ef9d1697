import type { AccountReply } from '#libs/contracts/accounts.ts';
import { type Refusal, refusal } from '#libs/contracts/errors.ts';
import { askedBy } from '#libs/contracts/event-fields.ts';
import { type MessageData, messages } from '#libs/contracts/messages.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { clientStates } from '../clients/client-store.ts';
import { refusedFor } from '../clients/clients.ts';
import {
  type Asked,
  begun,
  createEvent,
  type Decided,
  done,
  type Finished,
  type Outcome,
  refused,
} from '../outcome.ts';
import { findAccounts, followStatus, insertTransition } from './account-store.ts';

export function accountNotFound(accountId: string): Refusal {
  return refusal('account_not_found', `account ${accountId} not found`);
}

/**
 * The status saga. Only the ledger knows the previous status and whether the change is a no-op, so every change is sent
 * to it. The change takes effect with the ledger's commit.
 */
export async function changeAccountStatuses(
  client: Queries,
  asked: Asked<MessageData<'change_account_status'>>[],
): Promise<Outcome[]> {
  const accounts = await findAccounts(
    client,
    asked.map(({ data }) => data.account_id),
  );
  const clients = await clientStates(
    client,
    [...accounts.values()].map(({ client_id }) => client_id),
  );
  return asked.map(({ context, data }) => {
    const { transition_id, account_id, status, reason, note, if_match } = data;
    const account = accounts.get(account_id);
    const bound = context.bound_client_id;
    if (!account || (bound !== undefined && bound !== account.client_id)) return refused(accountNotFound(account_id));
    const gone = refusedFor(account.client_id, clients.get(account.client_id));
    if (gone) return refused(gone);
    const payload = { transition_id, account_id, status, if_match };
    const step = { step_id: transition_id, account_id, payload, context, detail: { reason, note } };
    return begun({ ...step, message: 'change_ledger_account_status' });
  });
}

/**
 * Applies the ledger's status if its version is newer, and writes a history row and an event only if the ledger changed
 * the status.
 */
export async function finishStatusChange(client: Queries, { step, body }: Finished, now: string): Promise<Decided> {
  if (!body.ok) return refused(body.refusal);
  const result = messages.change_ledger_account_status.result.parse(body.data);
  const { from_status, to_status, status_version, balance, available_balance = balance, changed_at } = result;
  const { account_id, step_id: transition_id, context } = step;
  const row = await followStatus(client, account_id, to_status, status_version, changed_at);
  const account: AccountReply = { ...row, status: to_status, balance, available_balance, status_version };
  const { reason = null, note = null } = step.detail;
  // The note is free text about a person.
  const details = { from_status, to_status, reason };
  if (!result.changed) return done(account, [], details);
  const { client_id, account_number } = row;
  const change = { transition_id, account_id, status_version, ...details, actor: context.actor };
  await insertTransition(client, { ...change, note, created_at: changed_at });
  const { request_channel } = askedBy(context);
  const event = { ...change, client_id, account_number, changed_at, request_channel };
  const events = [createEvent({ context, now }, 'corebanking.account.status_changed.v1', account_id, event)];
  return done(account, events, details);
}
