import type { Logger } from 'pino';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { source, toHeaders } from '#libs/contracts/envelope.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { OutgoingMessage, Publisher } from '#libs/kafka/publish/publish.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { type Sweeping, sweeping } from '#libs/service/sweeping.ts';

export interface AuditSenderOptions {
  pool: Pool;
  /** A separate publisher, so that its failures delay no other messages. */
  publisher: Pick<Publisher, 'publishAll'>;
  prefix: string;
  logger: Logger;
  pollMs?: number;
}

const maxRecords = 200;
/** Less than the 5 s for which a transaction may be idle. */
const publishTimeoutMs = 3000;

/** Stores audit records, in the transaction that makes the change, until they are sent to accounts. */
export async function insertAudits(client: Queries, records: readonly AuditRecord[]): Promise<void> {
  if (records.length === 0) return;
  await client.query(
    'insert into audit_outbox (audit_id, record) select * from unnest($1::text[], $2::text[]) on conflict do nothing',
    [records.map(({ audit_id }) => audit_id), records.map((record) => JSON.stringify(record))],
  );
}

/**
 * Sends the ledger's audit records to accounts through a separate table and topic, so that they delay no event.
 * Their order does not matter, so every ledger sends the records that no other ledger is sending. Accounts
 * recognizes repeats by audit_id.
 */
export function createAuditSender({ pool, publisher, prefix, logger, pollMs = 1000 }: AuditSenderOptions): Sweeping {
  const turn = async () => (await sendSome(pool, publisher, prefix)) === maxRecords;
  return sweeping('sending audit records', turn, pollMs, logger);
}

/** Deletes records when the broker has acknowledged them. Returns their number. */
async function sendSome(pool: Pool, publisher: AuditSenderOptions['publisher'], prefix: string): Promise<number> {
  return transaction(pool, async (client) => {
    const { rows } = await client.query<{ record: string }>(
      `delete from audit_outbox where audit_id = any(array(select audit_id from audit_outbox limit $1 for update skip locked)) returning record`,
      [maxRecords],
    );
    const messages = rows.map(({ record }) => toMessage(JSON.parse(record) as AuditRecord, prefix));
    if (messages.length > 0) await publisher.publishAll(messages, { timeoutMs: publishTimeoutMs });
    return messages.length;
  });
}

function toMessage(record: AuditRecord, prefix: string): OutgoingMessage {
  const { audit_id, actor, created_at: time, request_id } = record;
  const type = messageType('record_audit');
  const headers = toHeaders({
    message_id: audit_id,
    type,
    source: source.ledger,
    time,
    subject: actor,
    request_id,
    actor,
  });
  return { topic: topicName(prefix, 'ledger.audit'), key: actor, value: JSON.stringify(record), headers };
}
