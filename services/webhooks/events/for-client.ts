import type { CloudEvent } from '#libs/contracts/webhooks.ts';

/** Returns an event as shown to a caller bound to a client. Pure. */

type Entry = { account_id: string };
type Posting = Record<string, unknown>;

/** Returns the accounts whose owners must be known to show the event. */
export function accountsIn(event: string): string[] {
  const { data } = JSON.parse(event) as CloudEvent;
  const failedFor = data['failure_account_id'];
  return [
    ...((data['entries'] ?? []) as Entry[]).map(({ account_id }) => account_id),
    ...(typeof failedFor === 'string' ? [failedFor] : []),
  ];
}

/**
 * Keeps only entries of the client's own accounts. A status change has no reason or actor, a reversal no reason,
 * and a refusal no reason that concerns another client's account (contract: Authentication and permission).
 */
export function forClient(event: string, clientId: string, owners: ReadonlyMap<string, string>): string {
  const shown = JSON.parse(event) as CloudEvent;
  const { data } = shown;
  if (Array.isArray(data['entries']))
    data['entries'] = (data['entries'] as Entry[]).filter(({ account_id }) => owners.get(account_id) === clientId);
  for (const name of ['actor', 'approved_by', 'request_channel']) delete data[name];
  if (shown.type.startsWith('corebanking.account.')) for (const name of ['reason', 'note']) delete data[name];
  const failedFor = data['failure_account_id'];
  const failedForOthers = typeof failedFor === 'string' && owners.get(failedFor) !== clientId;
  for (const name of ['transaction', 'transfer']) {
    const posting = data[name] as Posting | undefined;
    if (posting === undefined) continue;
    const isReversal =
      posting['reverses_transaction_id'] !== undefined || posting['reverses_transfer_id'] !== undefined;
    if (isReversal) posting['description'] = null;
    if (!failedForOthers) continue;
    posting['failure_code'] = 'destination_refused';
    if (name === 'transaction' && !isReversal) posting['transaction_type'] = 'Transfer';
  }
  return JSON.stringify(shown);
}
