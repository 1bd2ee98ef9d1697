/** The package `@core-banking/consumer`: what is exported here is its interface. */
export { createConsumer } from './consumer.ts';
export type { BankConsumer, ConsumerOptions, Logger } from './options.ts';
export type { BankEvent, BankEventType, Gap, Handlers, OtherEvent, SequencedEvent } from './event.ts';
export { InvalidEventError } from './event.ts';
export type { DeadLetter } from './dead-letter.ts';
export { accountPositions } from './positions.ts';
export type { AccountPositions, Queryable } from './positions.ts';
