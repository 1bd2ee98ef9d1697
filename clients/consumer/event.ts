import type { KafkaMessage } from 'kafkajs';
import { type EventData, type EventType, events } from '../../libs/contracts/events.ts';

/** Events for downstream systems, without the states of API keys, which only gateways read. */
export type BankEventType = Exclude<EventType, 'corebanking.api_key.v1'>;

/** Where an event was read, and the original message. */
export interface Origin {
  topic: string;
  partition: number;
  offset: bigint;
  message: KafkaMessage;
}

interface EventHead {
  /** ce_id: the same for every delivery of this event. */
  id: string;
  source: string;
  /** The message's key. */
  subject: string;
  /** The time of the change, ISO 8601 UTC. */
  time: string;
  /** True if the event was a dead letter, and is therefore out of order in the sequence of its account. */
  redriven: boolean;
  origin: Origin;
}

/**
 * An event of a type in the contract. `data` contains the fields of the contract; fields added later
 * are omitted.
 */
export interface BankEvent<T extends BankEventType> extends EventHead {
  type: T;
  data: EventData<T>;
}

/** An event of any other type, with its JSON unchanged. */
export interface OtherEvent extends EventHead {
  type: string;
  data: unknown;
}

export type Handlers = { [T in BankEventType]?: (event: BankEvent<T>) => Promise<void> | void };

/** The events that contain the gap-free sequence of their account. */
export type SequencedEvent = BankEvent<'corebanking.transaction.completed.v1'>;

/** Events of one account that were never delivered: sequences `from` to `to`. */
export interface Gap {
  account_id: string;
  from: number;
  to: number;
}

/** Messages that the topic had deleted before this group read them: offsets `from` to `to` of the partition. */
export interface Loss {
  topic: string;
  partition: number;
  from: bigint;
  to: bigint;
}

/**
 * Thrown by a handler if an event can never be handled. The event becomes a dead letter, and the next one is
 * handled.
 */
export class DeadLetter extends Error {
  override name = 'DeadLetter';
}

/**
 * A message that is not an event of the contract: without CloudEvents headers, not JSON, or not
 * valid for its type's schema. Never retried.
 */
export class InvalidEventError extends Error {
  override name = 'InvalidEventError';
}

export function isBankEventType(type: string): type is BankEventType {
  return Object.hasOwn(events, type) && type !== 'corebanking.api_key.v1';
}

/** Returns the topics of these types, each once. */
export function listTopics(types: BankEventType[], topicPrefix = ''): string[] {
  return [...new Set(types.map((type) => topicPrefix + events[type].topic))];
}

/** Reads the headers of an event. Throws an InvalidEventError. */
export function readHead(origin: Origin, redriven = false): EventHead & { type: string } {
  const header = (name: string): string => {
    const value = origin.message.headers?.[name];
    const last = Array.isArray(value) ? value.at(-1) : value;
    if (last === undefined) throw new InvalidEventError(`no header ${name}`);
    return last.toString();
  };
  return {
    id: header('ce_id'),
    type: header('ce_type'),
    source: header('ce_source'),
    subject: header('ce_subject'),
    time: header('ce_time'),
    redriven,
    origin,
  };
}

export function readOther(head: EventHead & { type: string }): OtherEvent {
  return { ...head, data: readJson(head.origin.message.value) };
}

/** Validates the data with the contract's schema, which accepts unknown fields. Throws an InvalidEventError. */
export function readEvent<T extends BankEventType>(head: EventHead, type: T): BankEvent<T> {
  const parsed = events[type].data.safeParse(readJson(head.origin.message.value));
  if (!parsed.success) throw new InvalidEventError(`not ${type}: ${parsed.error.message}`, { cause: parsed.error });
  return { ...head, type, data: parsed.data as EventData<T> };
}

function readJson(value: Buffer | null): unknown {
  if (value === null) throw new InvalidEventError('no value');
  try {
    return JSON.parse(value.toString());
  } catch (error) {
    throw new InvalidEventError(`not JSON: ${(error as Error).message}`, { cause: error });
  }
}

export function isSequenced(event: { type: string }): event is SequencedEvent {
  return event.type === 'corebanking.transaction.completed.v1';
}

/** Returns the handled type of which `type` is a newer major version, if there is one. */
export function olderVersion(type: string, handlers: Handlers): BankEventType | undefined {
  const [name, version] = splitVersion(type);
  return (Object.keys(handlers) as BankEventType[]).find((handled) => {
    const [handledName, handledVersion] = splitVersion(handled);
    return handledName === name && handledVersion < version;
  });
}

function splitVersion(type: string): [string, number] {
  const at = type.lastIndexOf('.v');
  return [type.slice(0, at), Number(type.slice(at + 2))];
}
