import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { replySchema } from '#libs/contracts/envelope.ts';
import { messages } from '#libs/contracts/messages.ts';
import { countedText, type createVerifier } from '#libs/contracts/signature.ts';
import { commandPartitions } from '#libs/contracts/topics.ts';
import type { Publisher } from '#libs/kafka/publish/publish.ts';
import type { Requester } from '#libs/kafka/request-reply/request-reply.ts';
import type { CheckResult } from '#libs/service/health.ts';
import type { ApiKeys } from '../access/api-keys.ts';
import { type Command, encodeNotice } from './encode.ts';

export interface KeyFloorOptions {
  apiKeys: Pick<ApiKeys, 'counted'>;
  request: Requester['request'];
  publisher: Pick<Publisher, 'publish'>;
  isSigned: ReturnType<typeof createVerifier>;
  prefix: string;
  logger: Logger;
}

const waitMs = 1_000;
const pauseMs = 200;
/** States that accounts has just written may still be on their way. */
const patienceMs = 2_000;
const republishEveryMs = 10_000;

/**
 * Makes sure that a gateway starts with no older state of an API key than accounts has: a topic that lost states, was
 * restored, or to which somebody wrote an older signed state, may contain a revoked key as a valid one (decision 10). From
 * then on, the gateway keeps the highest version of each key itself.
 */
export function createKeyFloor({ apiKeys, request, publisher, isSigned, prefix, logger }: KeyFloorOptions) {
  const stopping = new AbortController();
  let state: CheckResult = { ok: false, reason: 'API keys have not been compared with what accounts counts' };
  let bucket = Math.floor(Math.random() * commandPartitions);

  const notice = (name: 'count_api_keys' | 'republish_api_keys', data: object) => {
    const id = `${name === 'count_api_keys' ? 'qry' : 'cmd'}_${randomUUID()}`;
    const command: Command = { name, id, key: 'api-keys', bucket: ++bucket, data, acceptedAt: new Date() };
    return encodeNotice(command, id, prefix);
  };

  /** Returns whether this gateway knows everything that accounts counts at this moment. Rejects without a signed reply. */
  async function isReached(): Promise<boolean> {
    const nonce = randomBytes(16).toString('hex');
    const { value } = await request(notice('count_api_keys', { nonce }), {
      ackTimeoutMs: waitMs,
      replyTimeoutMs: waitMs,
    });
    const reply = replySchema.parse(JSON.parse(value === null ? '' : value.toString()));
    if (!reply.ok) throw new Error(reply.refusal.message);
    const { signature, ...counted } = messages.count_api_keys.result.parse(reply.data);
    if (!isSigned(Buffer.from(countedText(nonce, counted)), signature)) throw new Error('accounts has not signed it');
    const { keys, changes } = apiKeys.counted();
    return keys >= counted.keys && changes >= counted.changes;
  }

  async function reach(): Promise<void> {
    let republishAt = performance.now() + patienceMs;
    while (!stopping.signal.aborted) {
      const reached = await isReached().catch(
        (error: unknown) =>
          void logger.debug({ err: error }, 'API keys could not be compared with what accounts counts'),
      );
      if (reached === true) return void (state = { ok: true });
      if (reached === false) {
        state = { ok: false, reason: 'states of API keys that accounts counts are missing in the topic api-keys' };
        if (performance.now() >= republishAt) {
          republishAt = performance.now() + republishEveryMs;
          logger.warn(`${state.reason}: accounts is asked to publish all of them again`);
          await publisher.publish(notice('republish_api_keys', {}), { timeoutMs: waitMs }).catch(() => undefined);
        }
      }
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  return {
    /** Resolves when the states that the gateway has read are those that accounts counts. Accounts must answer. */
    start: reach,
    stop: () => stopping.abort(),
    health: () => state,
  };
}
