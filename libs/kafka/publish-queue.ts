import type { Message } from 'kafkajs';
import type { EncodedMessage } from '#libs/contracts/record.ts';
import type { MessageInput } from './produce-request.ts';

/** A message on its way out. `partition` overrides the key; without both, partitions take turns. */
export interface OutgoingMessage {
  topic: string;
  key: string | null;
  value: string | Buffer | null;
  headers: Record<string, string>;
  partition?: number;
}

export type AnyMessage = OutgoingMessage | EncodedMessage;

/**
 * Why a message was not published. `sent: false`: it never left this process and never will.
 * `sent: true`: it was handed to the broker, and whether it was written is not known.
 */
export class PublishError extends Error {
  override name = 'PublishError';
  readonly sent: boolean;

  constructor(message: string, sent: boolean, options?: { cause?: unknown }) {
    super(message, options);
    this.sent = sent;
  }
}

/** What is accepted or refused as one: the messages of one publish or publishAll. */
export interface Unit {
  messages: readonly AnyMessage[];
  sizes: readonly number[];
  /** Index of the first message that no flight has taken yet. */
  next: number;
  acknowledged: number;
  deadline: number;
  done: boolean;
  resolve(): void;
  reject(error: PublishError): void;
}

/** What goes out in one send: one producer has at most one flight in the air. */
export interface Flight {
  parts: { unit: Unit; from: number; copies: Message[] }[];
  topics: Map<string, Message[]>;
  messages: number;
}

/** Bounds of one flight. A record batch is limited by the topic's max.message.bytes, so bytes count per topic too. */
export interface FlightLimits {
  messages: number;
  bytes: number;
  topicBytes: number;
}

const recordOverheadBytes = 64;

/** About what a message takes on the wire, never much less. */
export function sizeOf(message: AnyMessage): number {
  if ('content' in message) return recordOverheadBytes + message.content.end - message.content.start;
  let size = recordOverheadBytes + (message.key?.length ?? 0);
  if (message.value !== null) size += Buffer.byteLength(message.value);
  for (const name in message.headers) size += name.length + (message.headers[name]?.length ?? 0) + 4;
  return size;
}

/** A message as kafkajs takes it; what is encoded goes past it to produce-request.ts. */
function copyOf(message: AnyMessage): Message {
  const { key, partition } = message;
  const copy: Message & MessageInput = 'content' in message ? { key, value: null, content: message.content } : { key, value: message.value, headers: message.headers };
  if (partition !== undefined) copy.partition = partition;
  return copy;
}

/** The units that wait, in the order of their calls. */
export class PublishQueue {
  #units: Unit[] = [];
  #head = 0;
  #messages = 0;

  /** Messages that wait, those of a unit partly taken included. */
  get messages(): number {
    return this.#messages;
  }

  push(unit: Unit): void {
    this.#units.push(unit);
    this.#messages += unit.messages.length;
  }

  /** Puts the parts of a flight that never left back to the front, in their old order. */
  putBack(flight: Flight): void {
    const units: Unit[] = [];
    for (const { unit, from, copies } of flight.parts) {
      if (unit.done) continue;
      unit.next = from;
      this.#messages += copies.length;
      if (unit !== this.#units[this.#head]) units.push(unit);
    }
    this.#units = [...units, ...this.#units.slice(this.#head)];
    this.#head = 0;
  }

  /**
   * Takes what fits into one flight, at least one message. A topic that the broker has not taken anything for
   * yet flies alone, so that a missing or forbidden one fails nobody else.
   */
  take(limits: FlightLimits, isProven: (topic: string) => boolean): Flight | undefined {
    const flight: Flight = { parts: [], topics: new Map(), messages: 0 };
    const bytes = { all: 0, topics: new Map<string, number>() };
    for (; this.#head < this.#units.length; this.#head++) {
      const unit = this.#units[this.#head] as Unit;
      if (unit.done) {
        this.#messages -= unit.messages.length - unit.next;
        continue;
      }
      if (!this.#takeFrom(unit, flight, bytes, limits, isProven)) break;
    }
    this.#compact();
    return flight.messages > 0 ? flight : undefined;
  }

  /** Calls `expire` for every waiting unit whose deadline has passed. */
  sweep(now: number, expire: (unit: Unit) => void): void {
    for (let i = this.#head; i < this.#units.length; i++) {
      const unit = this.#units[i] as Unit;
      if (!unit.done && unit.deadline <= now) expire(unit);
    }
  }

  /** Drops the units that are done from the front on, so that they do not count as waiting. */
  dropDone(): void {
    const rest: Unit[] = [];
    let messages = 0;
    for (let i = this.#head; i < this.#units.length; i++) {
      const unit = this.#units[i] as Unit;
      if (unit.done) continue;
      rest.push(unit);
      messages += unit.messages.length - unit.next;
    }
    this.#units = rest;
    this.#head = 0;
    this.#messages = messages;
  }

  /** Returns true when the whole unit was taken. */
  #takeFrom(unit: Unit, flight: Flight, bytes: { all: number; topics: Map<string, number> }, limits: FlightLimits, isProven: (topic: string) => boolean): boolean {
    const from = unit.next;
    const copies: Message[] = [];
    for (; unit.next < unit.messages.length; unit.next++) {
      const message = unit.messages[unit.next] as AnyMessage;
      const size = unit.sizes[unit.next] as number;
      const topicBytes = (bytes.topics.get(message.topic) ?? 0) + size;
      const fits = flight.messages < limits.messages && bytes.all + size <= limits.bytes && topicBytes <= limits.topicBytes;
      const mayJoin = flight.topics.has(message.topic) ? true : isProven(message.topic) && [...flight.topics.keys()].every(isProven);
      if (flight.messages > 0 && !(fits && mayJoin)) break;
      const messages = flight.topics.get(message.topic);
      // A copy, because kafkajs and the partitioner write into it.
      const copy = copyOf(message);
      if (messages) messages.push(copy);
      else flight.topics.set(message.topic, [copy]);
      copies.push(copy);
      bytes.topics.set(message.topic, topicBytes);
      bytes.all += size;
      flight.messages += 1;
    }
    if (copies.length > 0) flight.parts.push({ unit, from, copies });
    this.#messages -= copies.length;
    return unit.next === unit.messages.length;
  }

  #compact(): void {
    if (this.#head < 1024 && this.#head < this.#units.length) return;
    this.#units = this.#units.slice(this.#head);
    this.#head = 0;
  }
}
