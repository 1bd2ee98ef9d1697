import { z } from 'zod';
import { statusMessages } from './account-status.ts';
import { accountMessages } from './accounts.ts';
import { apiKeyMessages } from './api-keys.ts';
import { approvableCommand, approvalMessages } from './approvals.ts';
import { auditMessages } from './audit.ts';
import { batchMessages } from './batches.ts';
import { bookMessages } from './books.ts';
import { clientMessages } from './clients.ts';
import { dayMessages } from './days.ts';
import { deadLetterMessages } from './dead-letters.ts';
import { erasureMessages } from './erasure.ts';
import { feedMessages } from './event-feed.ts';
import { holdMessages } from './holds.ts';
import { limitMessages } from './limits.ts';
import type { Signer } from './mac.ts';
import * as message from './message-fields.ts';
import { noteMessages } from './notes.ts';
import { operationsMessages } from './operations.ts';
import { reversalMessages } from './reversals.ts';
import { searchMessages } from './search.ts';
import { staffDayMessages } from './staff-days.ts';
import { statementMessages } from './statements.ts';
import { statisticsMessages } from './statistics.ts';
import { tillMessages } from './tills.ts';
import { timelineMessages } from './timeline.ts';
import type { TopicName } from './topics.ts';
import { transactionMessages } from './transactions.ts';
import { transferMessages } from './transfers.ts';
import { webhookMessages } from './webhooks.ts';

/**
 * The messages table: every command and query with its topic, data, and result. Sender and receiver validate
 * against it.
 */
export const messages = {
  ...clientMessages,
  ...erasureMessages,
  ...accountMessages,
  ...statusMessages,
  ...noteMessages,
  ...apiKeyMessages,
  ...auditMessages,
  ...deadLetterMessages,
  ...approvalMessages,
  ...searchMessages,
  ...operationsMessages,
  ...transactionMessages,
  ...reversalMessages,
  ...transferMessages,
  ...batchMessages,
  ...holdMessages,
  ...limitMessages,
  /**
   * Returns the time of the database, which determines posting times, and the time zone of the bank's days, which ledgers
   * of 0.1.0 do not have.
   */
  get_time: message.ledger.query({}, z.object({ time: message.time, time_zone: z.string().optional() })),
  ...statementMessages,
  ...timelineMessages,
  ...statisticsMessages,
  ...staffDayMessages,
  ...tillMessages,
  ...bookMessages,
  ...dayMessages,
  ...webhookMessages,
  ...feedMessages,
};

export type MessageName = keyof typeof messages;
export type MessageData<N extends MessageName> = z.output<(typeof messages)[N]['data']>;
export type MessageResult<N extends MessageName> = z.output<(typeof messages)[N]['result']>;

/** The messages on a topic. The service that takes them has a handler for each, or it is a compile error. */
export type MessageOn<T extends TopicName> = {
  [N in MessageName]: (typeof messages)[N]['topic'] extends T ? N : never;
}[MessageName];

/** The senders of messages that not only the gateway sends. */
const senders: Partial<Record<MessageName, readonly Signer[]>> = {
  open_ledger_account: ['accounts'],
  change_ledger_account_status: ['accounts'],
  check_erasure: ['accounts'],
  disable_webhooks: ['accounts'],
  record_audit: ['gateway', 'ledger', 'webhooks'],
  // Approvable commands are also sent by accounts, after an approval.
  ...Object.fromEntries(approvableCommand.options.map((name) => [name, ['gateway', 'accounts'] as const])),
};

export function maySend(signer: Signer, name: MessageName): boolean {
  return senders[name]?.includes(signer) ?? signer === 'gateway';
}

/**
 * Messages that this version reads, and sends only from the next release on: during an upgrade the services of two releases run
 * side by side, and the release before does not know them (docs/releases.md).
 */
export const notYetSent: ReadonlySet<MessageName> = new Set<MessageName>([]);

/** Returns the ce_type of a command or query. */
export function messageType(name: MessageName): string {
  return `corebanking.${messages[name].kind}.${name}.v1`;
}

const byType = new Map((Object.keys(messages) as MessageName[]).map((name) => [messageType(name), name]));

/** Returns the message of a ce_type, or undefined if the type is unknown. */
export function messageOfType(type: string): MessageName | undefined {
  return byType.get(type);
}
