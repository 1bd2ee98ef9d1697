import { randomUUID } from 'node:crypto';
import { replySchema } from '#libs/contracts/envelope.ts';
import { messages } from '#libs/contracts/messages.ts';
import { commandPartitions } from '#libs/contracts/topics.ts';
import type { Requester } from '#libs/kafka/request-reply/request-reply.ts';
import { encodeNotice } from '../messages/encode.ts';

const waitMs = 1_000;

/**
 * Asks a ledger for the database's time, in ms since 1970. Rejects if there is no reply within a second. Each
 * request uses the next partition, so that one stalled partition cannot block it permanently.
 */
export function createTimeReader(request: Requester['request'], prefix: string): () => Promise<number> {
  let bucket = Math.floor(Math.random() * commandPartitions);
  return async () => {
    const id = `qry_${randomUUID()}`;
    const query = { name: 'get_time' as const, id, key: 'time', bucket: ++bucket, data: {}, acceptedAt: new Date() };
    const message = encodeNotice(query, id, prefix);
    const { value } = await request(message, { ackTimeoutMs: waitMs, replyTimeoutMs: waitMs });
    const reply = replySchema.parse(JSON.parse(value === null ? '' : value.toString()));
    if (!reply.ok) throw new Error(reply.refusal.message);
    return Date.parse(messages.get_time.result.parse(reply.data).time);
  };
}
