import { randomUUID } from 'node:crypto';
import type { ApprovableCommand } from '#libs/contracts/approvals.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import type { Refusal } from '#libs/contracts/errors.ts';
import { errorCodes } from '#libs/contracts/errors.ts';
import type { EventData, EventType } from '#libs/contracts/events.ts';
import { events } from '#libs/contracts/events.ts';
import type { MacKeys } from '#libs/contracts/mac.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import type { AuditDetails } from './audit/audit.ts';

export type { AuditDetails };

/** Who asks, and the moment that all decisions of a transaction share. */
export interface Moment {
  context: MessageContext;
  /** ISO 8601 UTC */
  now: string;
}

/** Dead letters in Kafka; topics with their prefix. Both are bounded far below what a transaction may idle. */
export interface DeadLetterTopics {
  /** Undefined when nothing is kept at that place. Rejects when the broker does not answer in time. */
  read(topic: string, partition: number, offset: bigint): Promise<ReceivedMessage | undefined>;
  /** Rejects with a PublishError. */
  publish(message: OutgoingMessage): Promise<void>;
}

/** What a handler of one command works with: with the open transaction. */
export interface Work extends Moment {
  client: Queries;
  prefix: string;
  keys: MacKeys;
  deadLetters: DeadLetterTopics;
  retention: Retention;
}

/** How long the bank keeps what. */
export interface Retention {
  /** Of clients and their accounts, before they may be erased. */
  years: number;
  /** Of the topics of events; -1: for ever. */
  eventsDays: number;
  outboxHours: number;
}

/** One of the commands that are decided together. */
export interface Asked<D> {
  context: MessageContext;
  data: D;
}

/** A step with the answer to it. */
export interface Finished {
  step: Step;
  body: ReplyBody;
}

/** What a saga asks for; finished when the reply with correlation id step_id has been applied. */
export interface Step {
  /** account_id, transition_id, approval_id, or the id of the command. */
  step_id: string;
  message: 'open_ledger_account' | 'change_ledger_account_status' | 'erase_ledger_texts' | ApprovableCommand;
  /** Key of the message: account_id, but for approved commands and erasures (client_id). */
  account_id: string;
  payload: object;
  /** The context of the command that began the saga. */
  context: MessageContext;
  /** What accounts alone must remember until the reply. */
  detail: Partial<Pick<MessageData<'change_account_status'>, 'reason' | 'note'>> & {
    approved?: ApprovedCommand;
    retention?: Retention;
  };
}

/** How an approved command is sent: under its own id, in the name of whoever asked for it. */
interface ApprovedCommand {
  bucket: number;
  context: Pick<MessageContext, 'message_id' | 'time' | 'request_id' | 'actor' | 'approved_by'> &
    Partial<MessageContext>;
}

export type Outcome =
  | { kind: 'decided'; body: ReplyBody; events: OutboxEvent[]; kept: boolean; details: AuditDetails }
  | { kind: 'begun'; step: Step; events: OutboxEvent[] };

/** `details` are for the audit. */
export function done(data: unknown, written: OutboxEvent[], details: AuditDetails): Outcome {
  return { kind: 'decided', body: { ok: true, data }, events: written, kept: true, details };
}

export function begun(step: Step, written: OutboxEvent[] = []): Outcome {
  return { kind: 'begun', step, events: written };
}

/**
 * A refusal is a decision like any other, and a repeat gets it again, that a client is unknown too.
 * But 403 is about the caller, 5xx decides nothing, and what is not valid may be corrected: they
 * are answered anew (contract: Idempotency).
 */
export function refused(refusal: Refusal): Outcome {
  const { status } = errorCodes[refusal.code];
  return {
    kind: 'decided',
    body: { ok: false, refusal },
    events: [],
    kept: status < 500 && status !== 403 && refusal.code !== 'validation_failed',
    details: {},
  };
}

/** Headers by which an event or a step is found again in logs and traces. */
function traceHeaders(context: MessageContext): Record<string, string> {
  return {
    'request-id': context.request_id,
    ...(context.traceparent === undefined ? {} : { traceparent: context.traceparent }),
  };
}

/** An event of this transaction. The rows that order the events of `key` must be locked. */
export function eventOf<T extends EventType>(
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
