import { randomUUID } from 'node:crypto';
import { replySchema, source, toHeaders } from '#libs/contracts/envelope.ts';
import { messages, messageType } from '#libs/contracts/messages.ts';
import { commandPartitions, topicName } from '#libs/contracts/topics.ts';
import type { Requester } from '#libs/kafka/request-reply/request-reply.ts';

const waitMs = 1_000;

/**
 * Asks a ledger for the database's time, in ms since 1970. Rejects if there is no reply within a second. Each
 * request uses the next partition, so that one stalled partition cannot block it permanently.
 */
export function createTimeReader(request: Requester['request'], prefix: string): () => Promise<number> {
  let partition = Math.floor(Math.random() * commandPartitions);
  return async () => {
    partition = (partition + 1) % commandPartitions;
    const id = `qry_${randomUUID()}`;
    // There is no deadline and no reply_by, because these would contain the time of the clock that is being checked.
    const headers = toHeaders({
      message_id: id,
      type: messageType('get_time'),
      source: source.gateway,
      time: new Date().toISOString(),
      subject: 'time',
      request_id: id,
      actor: '',
    });
    const message = { topic: topicName(prefix, messages.get_time.topic), partition, key: 'time', value: '{}', headers };
    const { value } = await request(message, { ackTimeoutMs: waitMs, replyTimeoutMs: waitMs });
    const reply = replySchema.parse(JSON.parse(value === null ? '' : value.toString()));
    if (!reply.ok) throw new Error(reply.refusal.message);
    return Date.parse(messages.get_time.result.parse(reply.data).time);
  };
}
