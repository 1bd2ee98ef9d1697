import type { Logger } from 'pino';
import { auditId, idBits, itemBits } from '#libs/contracts/ids.ts';
import { type MessageData, type MessageName, messageOfType } from '#libs/contracts/messages.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { readToEnd } from '#libs/kafka/consume/read-to-end.ts';

/**
 * What the published events prove about commands of which a restored database may know nothing: what was decided, and in
 * which order.
 */

/**
 * A place in the order of all decisions. The time comes first, because accounts' commands have nothing else, and because
 * an earlier restore may have used numbers of batches twice. Among the decisions about an account, the later one never
 * has the earlier time.
 */
export interface Place {
  /** The posting time, ISO 8601 UTC with milliseconds. */
  at: string;
  batch: number;
  position: number;
}

export function compare(a: Place, b: Place): number {
  if (a.at !== b.at) return a.at < b.at ? -1 : 1;
  return a.batch === b.batch ? a.position - b.position : a.batch - b.batch;
}

/** The decision about a command, or about one item of a batch. */
export interface Decided extends Place {
  request_id: string | undefined;
  /** The code of the refusal. */
  code?: string;
}

export interface Evidence {
  /** By the bits of a transaction, by `placed` or `released` and those of a hold, by audit_id, or by transition_id. */
  decisions: Map<string, Decided>;
  /** The first decision on each account that proves that it was open. */
  firsts: Map<string, Place>;
  /** The first publication of every event of the ledger, because it has the original time. */
  events: ReceivedMessage[];
}

const evidenceTopics = ['transactions', 'transfers', 'holds', 'balances'] as const;

export const json = (message: ReceivedMessage) =>
  JSON.parse(message.value?.toString() ?? '{}') as Record<string, unknown>;

const idleMs = 60_000;

/** Reads topics from that time on. The time of an event is that of its publication, which follows its command. */
export function readSince(
  kafka: KafkaClient,
  topics: string[],
  from: Date,
  logger: Logger,
  take: (message: ReceivedMessage) => void,
): Promise<void> {
  return readToEnd(kafka, {
    topics,
    from,
    idleMs,
    logger,
    take: async (messages) => messages.filter(({ timestamp_ms }) => timestamp_ms >= from.getTime()).forEach(take),
  });
}

export async function readEvidence(
  kafka: KafkaClient,
  { prefix, from, logger }: { prefix: string; from: Date; logger: Logger },
): Promise<Evidence> {
  const evidence: Evidence = { decisions: new Map(), firsts: new Map(), events: [] };
  const names = [...evidenceTopics, 'accounts', 'audit'] as const;
  const known = new Set<string>();
  await readSince(
    kafka,
    names.map((name) => topicName(prefix, name)),
    from,
    logger,
    (message) => {
      const id = message.headers['ce_id'] ?? '';
      if (known.has(id)) return;
      known.add(id);
      if (evidenceTopics.some((name) => message.topic === topicName(prefix, name))) addLedgerEvent(message, evidence);
      else addAccountsEvent(message, evidence);
    },
  );
  return evidence;
}

interface LedgerData {
  batch_id?: number;
  batch_position?: number;
  transaction?: { account_id: string; failure_code?: string };
  hold?: { hold_id: string };
}

export function addLedgerEvent(message: ReceivedMessage, { events, decisions, firsts }: Evidence): void {
  events.push(message);
  const { ce_id = '', ce_time: at = '', ce_type = '', 'request-id': request_id } = message.headers;
  const { batch_id: batch = 0, batch_position: position = 0, transaction, hold } = json(message) as LedgerData;
  const code = transaction?.failure_code;
  const decided: Decided = { at, batch, position, request_id, ...(code === undefined ? {} : { code }) };
  if (transaction) decisions.set(ce_id.replaceAll('-', ''), decided);
  const change = /^corebanking\.hold\.(placed|released)\.v1$/.exec(ce_type)?.[1];
  if (hold && change) decisions.set(`${change} ${idBits(hold.hold_id)}`, decided);
  const account = code === 'account_not_found' ? undefined : message.key;
  const first = firsts.get(account ?? '');
  if (account?.startsWith('acc_') && (!first || compare(decided, first) < 0)) firsts.set(account, decided);
}

/** Audit records of accounts' commands, and the ledger's times of changes of status. */
export function addAccountsEvent(message: ReceivedMessage, { decisions }: Evidence): void {
  const { 'request-id': request_id } = message.headers;
  const data = json(message) as Record<string, string>;
  if (data['transition_id'] !== undefined) {
    // In a batch that also posted to the account, the status was Active for everything that was posted.
    const batch = data['to_status'] === 'Active' ? -1 : Number.POSITIVE_INFINITY;
    decisions.set(data['transition_id'], { at: data['changed_at'] ?? '', batch, position: 0, request_id });
  } else if (data['audit_id'] !== undefined && data['outcome'] === 'success')
    decisions.set(data['audit_id'], {
      at: data['created_at'] ?? '',
      batch: -1,
      position: 0,
      request_id: data['request_id'],
    });
}

/** Returns the decision about a single command, if there is evidence of one. */
export function readDecision(
  message: ReceivedMessage,
  name: MessageName,
  { decisions, firsts }: Evidence,
): Decided | undefined {
  const id = message.headers['ce_id'] ?? '';
  const recorded = decisions.get(auditId(id));
  const data = json(message) as Record<string, string>;
  if (name === 'place_hold') return decisions.get(`placed ${idBits(id)}`);
  if (name === 'release_hold') {
    // Only one of several requests released it.
    const released = decisions.get(`released ${idBits(data['hold_id'] ?? '')}`);
    return released?.request_id === message.headers['request-id'] ? released : undefined;
  }
  if (name === 'open_account') {
    const first = firsts.get(data['account_id'] ?? '');
    const opened = first && { ...first, batch: -1, request_id: message.headers['request-id'] };
    return opened && recorded && compare(recorded, opened) < 0 ? recorded : (opened ?? recorded);
  }
  if (name === 'change_account_status') return decisions.get(data['transition_id'] ?? '') ?? recorded;
  return decisions.get(idBits(id)) ?? recorded;
}

/** Returns the decisions about the items of a batch, by index. */
export function decisionsOfItems(message: ReceivedMessage, { decisions }: Evidence): (Decided | undefined)[] {
  const { batch_id, items } = json(message) as unknown as MessageData<'create_batch'>;
  return items.map((_, index) => decisions.get(itemBits(batch_id, index)));
}

/** Returns the name of a command that a caller sent; undefined for anything else. */
export function callersCommand({ headers }: ReceivedMessage): MessageName | undefined {
  // The services repeat steps of sagas and their replies; queries need no reply.
  if (headers['deadline'] === undefined) return undefined;
  const name = messageOfType(headers['ce_type'] ?? '');
  return name?.startsWith('get_') ? undefined : name;
}
