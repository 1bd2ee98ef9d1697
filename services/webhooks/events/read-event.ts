import { eventHeadersSchema } from '#libs/contracts/events.ts';
import { parseJson } from '#libs/contracts/exchange.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';

/** The stored part of an event. */
export interface FeedEvent {
  event_id: string;
  type: string;
  subject: string;
  occurred_at: string;
  /** The customer accounts that it is about, by which it is found. */
  account_ids: string[];
  /** The clients that it names. Owners of accounts are added when it is stored. */
  client_ids: string[];
  /** The CloudEvent in structured JSON. */
  event: string;
}

type Data = Record<string, unknown>;

/** Reads a message of an event topic. Returns undefined if it is not a valid event. Its data is kept unchanged. Pure. */
export function readEvent({ headers, key: subject, value }: ReceivedMessage): FeedEvent | undefined {
  const known = eventHeadersSchema.safeParse(headers);
  const data = parseJson(value);
  if (!known.success || subject === null || subject.includes('\0') || typeof data !== 'object' || data === null)
    return undefined;
  const { ce_id: id, ce_type: type, ce_source: source, ce_time: time, ce_dataschema: dataschema } = known.data;
  const common = { specversion: '1.0', id, source, type, subject, time, datacontenttype: 'application/json' };
  const event = `${JSON.stringify({ ...common, dataschema }).slice(0, -1)},"data":${String(value)}}`;
  return { event_id: id, type, subject, occurred_at: time, ...subjectsOf(type, data as Data), event };
}

/** Events about approvals and about probing for accounts are visible only to the bank, whichever client they concern. */
const isOfTheBank = (type: string): boolean =>
  type.startsWith('corebanking.approval.') || type === 'corebanking.transaction.account_not_found.v1';

function subjectsOf(type: string, data: Data): Pick<FeedEvent, 'account_ids' | 'client_ids'> {
  if (isOfTheBank(type)) return { account_ids: [], client_ids: [] };
  const parts = [data, data['transaction'], data['transfer'], data['account'], data['hold']].filter(
    (part) => typeof part === 'object' && part !== null,
  ) as Data[];
  const ids = (kind: 'account' | 'client', ...fields: string[]) => {
    const found = parts.flatMap((part) => fields.map((field) => part[field]));
    return [...new Set(found.filter((id): id is string => typeof id === 'string' && isId(kind, id)))];
  };
  // The owner of the destination does not learn that a transfer to it was refused.
  const others = type === 'corebanking.transfer.failed.v1' ? [] : ['to_account_id'];
  return {
    account_ids: ids('account', 'account_id', 'from_account_id', ...others),
    client_ids: ids('client', 'client_id'),
  };
}
