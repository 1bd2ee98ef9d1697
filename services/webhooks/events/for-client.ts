import type { CloudEvent } from '#libs/contracts/event-feed.ts';
import { showNamesTo } from '#libs/contracts/names.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { readOwners } from './store-events.ts';

type Entry = { account_id: string };
const accountIds = /acc_[0-9a-f]{32}/g;

/** Returns rows with their events as the given clients may see them; unchanged for those without a client. */
export async function showTo<Row extends { event: string | null; client_id: string | null }>(
  queries: Queries,
  rows: readonly Row[],
): Promise<Row[]> {
  const named = rows.flatMap(({ event, client_id }) => (client_id === null ? [] : (event?.match(accountIds) ?? [])));
  const owners = await readOwners(queries, named);
  return rows.map((row) => {
    if (row.event === null || row.client_id === null) return row;
    const isOwn = (account: string) => owners.get(account) === row.client_id;
    const event = forClient(JSON.parse(row.event) as CloudEvent, isOwn, row.client_id);
    return { ...row, event: JSON.stringify(event) };
  });
}

/**
 * Keeps only entries of the client's own accounts. A status change has no reason or actor, a reversal no reason,
 * and a refusal no reason that concerns another client's account (contract: permission-27). There is no metadata that others
 * gave, nor that it has changed (contract: names-9), and no number that counts what the whole bank does.
 */
function forClient(event: CloudEvent, isOwn: (account: string) => boolean, clientId: string): CloudEvent {
  const { type } = event;
  const data = showNamesTo(clientId, event.data);
  for (const name of ['transaction', 'transfer', 'account', 'hold', 'batch']) {
    const named = data[name];
    if (typeof named === 'object' && named !== null) data[name] = showNamesTo(clientId, named);
  }
  if (Array.isArray(data['changed_fields']))
    data['changed_fields'] = data['changed_fields'].filter((field) => field !== 'metadata');
  if (Array.isArray(data['entries']))
    data['entries'] = (data['entries'] as Entry[]).filter(({ account_id }) => isOwn(account_id));
  const isOfAccount = type.startsWith('corebanking.account.');
  for (const name of [
    'actor',
    'approved_by',
    'request_channel',
    'batch_id',
    'batch_position',
    ...(isOfAccount ? ['reason', 'note'] : []),
  ])
    delete data[name];
  const failedFor = data['failure_account_id'];
  const failedForOthers = typeof failedFor === 'string' && !isOwn(failedFor);
  for (const name of ['transaction', 'transfer']) {
    const posting = data[name] as Record<string, unknown> | undefined;
    if (posting === undefined) continue;
    const isReversal =
      posting['reverses_transaction_id'] !== undefined || posting['reverses_transfer_id'] !== undefined;
    if (isReversal) posting['description'] = null;
    if (!failedForOthers) continue;
    posting['failure_code'] = 'destination_refused';
    if (name === 'transaction' && !isReversal) posting['transaction_type'] = 'Transfer';
  }
  return { ...event, data };
}
