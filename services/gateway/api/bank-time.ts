import { randomUUID } from 'node:crypto';
import { replySchema } from '#libs/contracts/envelope.ts';
import { messages } from '#libs/contracts/messages.ts';
import { commandPartitions } from '#libs/contracts/topics.ts';
import type { Requester } from '#libs/kafka/request-reply/request-reply.ts';
import { isSameZone } from '#libs/service/days.ts';
import type { CheckResult } from '#libs/service/health.ts';
import { encodeNotice } from '../messages/encode.ts';

const waitMs = 1_000;

/** Asks ledgers for the database's time and for the time zone of the bank's days. `timeZone`: that of this process. */
export function createTimeReader(request: Requester['request'], prefix: string, timeZone: string) {
  let bucket = Math.floor(Math.random() * commandPartitions);
  let zone: CheckResult = { ok: true };
  return {
    /**
     * Returns the database's time, in ms since 1970. Rejects if there is no reply within a second. Each request uses the
     * next partition, so that one stalled partition cannot block it permanently.
     */
    async read(): Promise<number> {
      const id = `qry_${randomUUID()}`;
      const query = { name: 'get_time' as const, id, key: 'time', bucket: ++bucket, data: {}, acceptedAt: new Date() };
      const message = encodeNotice(query, id, prefix);
      const { value } = await request(message, { ackTimeoutMs: waitMs, replyTimeoutMs: waitMs });
      const reply = replySchema.parse(JSON.parse(value === null ? '' : value.toString()));
      if (!reply.ok) throw new Error(reply.refusal.message);
      const { time, time_zone = timeZone } = messages.get_time.result.parse(reply.data);
      zone = isSameZone(time_zone, timeZone)
        ? { ok: true }
        : { ok: false, reason: `BANK_TIME_ZONE is ${timeZone}, but ${time_zone} in the ledger` };
      return Date.parse(time);
    },
    /** Ok unless the last ledger asked has another time zone: which day needs transactions:backdate would be decided wrongly. */
    zone: () => zone,
  };
}
