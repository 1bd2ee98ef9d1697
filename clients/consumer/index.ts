/** The package `@core-banking/consumer`: these exports are its interface. */
export type { BankAccess, BankEntry } from './bank-reads.ts';
export { ReconciliationError } from './bank-reads.ts';
export { createConsumer } from './consumer.ts';
export type { Letter } from './dead-letter.ts';
export type { BankEvent, BankEventType, Gap, Handlers, Loss, OtherEvent, SequencedEvent } from './event.ts';
export { DeadLetter, InvalidEventError } from './event.ts';
export type { ConsumerMetrics, Standing } from './measures.ts';
export { prometheusText } from './measures.ts';
export type { BankConsumer, ConsumerOptions, Health, Logger, Redriven, SetAside } from './options.ts';
export type { AccountPositions, Queryable } from './positions.ts';
export { accountPositions } from './positions.ts';
export type {
  AccountDifference,
  ClosedDay,
  EntryDifference,
  ReconciledStore,
  ReconcileOptions,
  Reconciliation,
  StoredAccount,
  StoredEntry,
} from './reconcile.ts';
export { reconcile } from './reconcile.ts';
