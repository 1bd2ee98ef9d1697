import { randomUUID } from 'node:crypto';
import type { ApprovableCommand } from '#libs/contracts/approvals.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { isKept, type Refusal } from '#libs/contracts/errors.ts';
import { type EventData, type EventType, events } from '#libs/contracts/events.ts';
import type { MacKeys } from '#libs/contracts/mac.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import type { AuditDetails } from '#libs/service/audit-record.ts';

/** The request context and the time shared by all decisions of a transaction. */
export interface Moment {
  context: MessageContext;
  /** ISO 8601 UTC */
  now: string;
}

/**
 * Access to dead letters in Kafka. Topic names include the prefix. Both calls take far less time than a
 * transaction may be idle.
 */
export interface DeadLetterTopics {
  /** Returns undefined if nothing is stored at that position. Rejects if the broker does not respond in time. */
  read(topic: string, partition: number, offset: bigint): Promise<ReceivedMessage | undefined>;
  /** Rejects with a PublishError. */
  publish(message: OutgoingMessage): Promise<void>;
}

/** A moment with its open transaction. */
export interface Writing extends Moment {
  client: Queries;
}

/** The values that the handler of one command gets. */
export interface Work extends Writing {
  prefix: string;
  keys: MacKeys;
  deadLetters: DeadLetterTopics;
  retention: Retention;
}

/** Retention settings. */
export interface Retention {
  /** The minimum age of clients and accounts before an erasure. */
  years: number;
  /** The retention of event topics in days; -1: unlimited. */
  eventsDays: number;
  outboxHours: number;
}

/** One of several commands that are decided together, or of several queries that are answered together. */
export interface Asked<D> {
  context: MessageContext;
  data: D;
}

/** A step with its reply. */
export interface Finished {
  step: Step;
  body: ReplyBody;
}

/** A request of a saga. It is finished when the reply with correlation id step_id has been applied. */
export interface Step {
  /** account_id, transition_id, approval_id, or the command's id. */
  step_id: string;
  message: 'open_ledger_account' | 'change_ledger_account_status' | 'check_erasure' | ApprovableCommand;
  /**
   * The key of the message: the account_id, but the client_id for erasures, and for approved commands the key of the
   * command.
   */
  account_id: string;
  payload: object;
  /** The context of the command that started the saga. */
  context: MessageContext;
  /** The data that accounts needs when the reply arrives. */
  detail: Partial<Pick<MessageData<'change_account_status'>, 'reason' | 'note'>> & {
    approved?: ApprovedCommand;
    retention?: Retention;
  };
}

/** An approved command is sent under its own id, in the requester's name. */
interface ApprovedCommand {
  bucket: number;
  context: Pick<MessageContext, 'message_id' | 'time' | 'request_id' | 'actor' | 'approved_by'> &
    Partial<MessageContext>;
}

/** A decision. Its reply and audit record are stored if `kept`. */
export interface Decided {
  kind: 'decided';
  body: ReplyBody;
  events: OutboxEvent[];
  kept: boolean;
  details: AuditDetails;
}

/** A started saga, whose end will reply. */
export interface Begun {
  kind: 'begun';
  step: Step;
  events: OutboxEvent[];
}

export type Outcome = Decided | Begun;

export function done(data: unknown, events: OutboxEvent[], details: AuditDetails): Decided {
  return { kind: 'decided', body: { ok: true, data }, events, kept: true, details };
}

export function begun(step: Step, events: OutboxEvent[] = []): Begun {
  return { kind: 'begun', step, events };
}

/** Returns a refusal as a decision like any other. A repeat gets it again, also if the client was unknown (isKept). */
export function refused(refusal: Refusal): Decided {
  return { kind: 'decided', body: { ok: false, refusal }, events: [], kept: isKept(refusal), details: {} };
}

/** Returns the headers by which logs and traces refer to an event or step. */
function traceHeaders(context: MessageContext): Record<string, string> {
  return {
    'request-id': context.request_id,
    ...(context.traceparent === undefined ? {} : { traceparent: context.traceparent }),
  };
}

/** Creates an event of this transaction. The rows that order the events of `key` must be locked. */
export function createEvent<T extends EventType>(
  { context, now }: Moment,
  type: T,
  key: string,
  data: EventData<T>,
): OutboxEvent {
  return {
    id: randomUUID(),
    topic: events[type].topic,
    key,
    type,
    time: now,
    headers: traceHeaders(context),
    payload: JSON.stringify(data),
  };
}
