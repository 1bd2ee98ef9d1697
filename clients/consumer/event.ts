import type { KafkaMessage } from 'kafkajs';
import { type EventData, type EventType, events } from '../../libs/contracts/events.ts';

/** Events for downstream systems; what keeps the gateways' API keys is none of them. */
export type BankEventType = Exclude<EventType, 'corebanking.api_key.v1'>;

/** Where an event was read, and the message as it was. */
export interface Origin {
  topic: string;
  partition: number;
  offset: bigint;
  message: KafkaMessage;
}

interface EventHead {
  /** ce_id: the same whenever this event is delivered again. */
  id: string;
  source: string;
  /** What it is about: the message's key. */
  subject: string;
  /** When it happened, ISO 8601 UTC. */
  time: string;
  /** It was a dead letter, and comes out of its place in the sequence of its account. */
  redriven: boolean;
  origin: Origin;
}

/**
 * An event of a type that the contract has. `data` holds what the contract names; fields that were
 * added since are left out.
 */
export interface BankEvent<T extends BankEventType> extends EventHead {
  type: T;
  data: EventData<T>;
}

/** An event of any other type, its JSON as it came. */
export interface OtherEvent extends EventHead {
  type: string;
  data: unknown;
}

export type Handlers = { [T in BankEventType]?: (event: BankEvent<T>) => Promise<void> | void };

/** The events that carry the gap-free sequence of their account. */
export type SequencedEvent = BankEvent<'corebanking.transaction.completed.v1'>;

/** Events of one account that were never delivered: sequences `from` to `to`. */
export interface Gap {
  account_id: string;
  from: number;
  to: number;
}

/** Messages that the topic no longer had when this group came to read them: offsets `from` to `to` of the partition. */
export interface Loss {
  topic: string;
  partition: number;
  from: bigint;
  to: bigint;
}

/** Thrown by a handler: this event can never be handled. It is set aside as a dead letter, and the next one comes. */
export class DeadLetter extends Error {
  override name = 'DeadLetter';
}

/**
 * A message that is no event of the contract: no CloudEvents headers, no JSON, or not its type's
 * schema. Never retried.
 */
export class InvalidEventError extends Error {
  override name = 'InvalidEventError';
}

export function isBankEventType(type: string): type is BankEventType {
  return Object.hasOwn(events, type) && type !== 'corebanking.api_key.v1';
}

/** The topics of these types, each once. */
export function topicsOf(types: BankEventType[], topicPrefix = ''): string[] {
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

/** Reads the data by the contract's schema; fields that it does not know are accepted. Throws an InvalidEventError. */
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
    throw new InvalidEventError(`no JSON: ${(error as Error).message}`, { cause: error });
  }
}

export function isSequenced(event: { type: string }): event is SequencedEvent {
  return event.type === 'corebanking.transaction.completed.v1';
}

/** The handled type of which `type` is a newer major version; undefined when it is none. */
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
