import type { Replay } from '#libs/contracts/administration.ts';
import { type MessageContext, type ReplyBody, source } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { auditId, idBits } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { CommittedBatch } from '#libs/postgres/handover.ts';
import { writeOutbox } from '#libs/postgres/outbox.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { findReplay, insertReplay } from '#libs/postgres/replays.ts';
import { transaction, uniqueViolation } from '#libs/postgres/transaction.ts';
import { messageOf } from './audit.ts';

export interface ReplayCommand {
  name: 'create_ledger_replay';
  data: MessageData<'create_ledger_replay'>;
  context: MessageContext;
}

export interface ReplayDependencies {
  pool: Pool;
  wake: (batch: CommittedBatch) => void;
  /** The bank's time, in ms since 1970. */
  now: () => number;
}

/** Takes a replay, with the audit record of who asked for it, in one transaction; a repeat is answered as the first was. */
export async function createReplay(command: ReplayCommand, deps: ReplayDependencies): Promise<ReplyBody> {
  try {
    return await takeReplay(command, deps);
  } catch (error) {
    // The same request, taken by two ledgers at once.
    if (uniqueViolation(error) === undefined) throw error;
    return takeReplay(command, deps);
  }
}

async function takeReplay({ data, context }: ReplayCommand, { pool, wake, now }: ReplayDependencies): Promise<ReplyBody> {
  const { account_id, replay_id } = data;
  const { actor, request_id, message_id, deadline } = context;
  const time = new Date(now()).toISOString();
  const known = await findReplay(pool, replay_id);
  if (known) return isSame(data, known) ? { ok: true, replayed: true, data: asTaken(known) } : { ok: false, refusal: refusal('idempotency_key_reused', 'this Idempotency-Key was used with another request') };
  if (deadline !== undefined && deadline < time) return { ok: false, refusal: refusal('deadline_exceeded', 'the command came after its deadline and was not executed') };
  const { reply, batch } = await transaction(pool, async (client): Promise<{ reply: ReplyBody; batch?: CommittedBatch | undefined }> => {
    const account = account_id === null || (await client.query('select from accounts where account_id = $1 and client_id is not null', [idBits(account_id)])).rowCount === 1;
    if (!account) return { reply: { ok: false, refusal: refusal('account_not_found', `account ${account_id} not found`) } };
    const replay = await insertReplay(client, data, actor || 'system');
    if ('refusal' in replay) return { reply: { ok: false, refusal: replay.refusal } };
    const { topic, from, to } = replay;
    const record = messageOf({ audit_id: auditId(message_id), created_at: time, actor: actor || 'system', action: 'create_replay', resource_id: replay_id, outcome: 'success', request_id, details: { topic, from, to, account_id }, address: null });
    return { reply: { ok: true, data: replay }, batch: await writeOutbox(client, source.ledger, [record]) };
  });
  if (batch) wake(batch);
  return reply;
}

/** As it was answered first: what became of it since is for GET to tell. */
function asTaken(replay: Replay): Replay {
  return { ...replay, ended_at: null, state: 'running', failure: null, event_count: 0, first_ce_id: null, last_ce_id: null };
}

/** Without `to` the first request chose it. */
function isSame({ topic, from, to, account_id }: ReplayCommand['data'], known: { topic: string; from: string; to: string; account_id: string | null }): boolean {
  return topic === known.topic && from === known.from && (to === null || to === known.to) && account_id === known.account_id;
}
