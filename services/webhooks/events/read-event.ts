import { eventHeadersSchema, schemaId, schemaUrl } from '#libs/contracts/events.ts';
import { parseJson } from '#libs/contracts/exchange.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';

/** The stored part of an event. */
export interface FeedEvent {
  event_id: string;
  type: string;
  subject: string;
  occurred_at: string;
  /** The customer accounts that it is about, and the clients that it names, by which it is found. */
  subjects: string[];
  /** The CloudEvent in structured JSON. */
  event: string;
}

type Data = Record<string, unknown>;

/**
 * Reads a message of an event topic. Returns undefined if it is not a valid event, or if Postgres could not store it.
 * Its data is kept unchanged. Its dataschema is the address of the schema at `apiUrl`, the public URL of the API, if that
 * is given: on Kafka it is a URN, because the MAC covers it and must not depend on an address. Pure.
 */
export function readEvent({ headers, key: subject, value }: ReceivedMessage, apiUrl?: string): FeedEvent | undefined {
  const known = eventHeadersSchema.safeParse(headers);
  const data = parseJson(value);
  if (!known.success || subject === null || subject.includes('\0') || typeof data !== 'object' || data === null)
    return undefined;
  const { ce_id: id, ce_type: type, ce_source: source, ce_time: time, ce_dataschema: urn } = known.data;
  if (time < '0001') return undefined;
  const dataschema = urn === schemaId(type) && apiUrl !== undefined ? schemaUrl(apiUrl, type) : urn;
  const common = { specversion: '1.0', id, source, type, subject, time, datacontenttype: 'application/json' };
  const event = `${JSON.stringify({ ...common, dataschema }).slice(0, -1)},"data":${String(value)}}`;
  return { event_id: id, type, subject, occurred_at: time, subjects: listSubjects(type, data as Data), event };
}

function listSubjects(type: string, data: Data): string[] {
  // Those about approvals and about probing for accounts are visible only to the bank, whichever client they concern.
  if (/^corebanking\.(approval|transaction\.account_not_found)\./.test(type)) return [];
  // A change of metadata alone, which the bank gave, is not visible to the client.
  const { changed_fields: changed } = data;
  if (Array.isArray(changed) && changed.length > 0 && changed.every((field) => field === 'metadata')) return [];
  const parts = [data, data['transaction'], data['transfer'], data['account'], data['hold']].filter(
    (part) => typeof part === 'object' && part !== null,
  ) as Data[];
  // The owner of the destination does not learn that a transfer to it was refused.
  const others = type === 'corebanking.transfer.failed.v1' ? [] : ['to_account_id'];
  const named = parts.flatMap((part) =>
    ['account_id', 'from_account_id', 'client_id', ...others].map((id) => part[id]),
  );
  return [...new Set(named)].filter(
    (id) => typeof id === 'string' && (isId('account', id) || isId('client', id)),
  ) as string[];
}
