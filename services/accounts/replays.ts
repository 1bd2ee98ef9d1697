import { refusal } from '#libs/contracts/errors.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { insertReplay } from '#libs/postgres/replays.ts';
import { done, refused } from './outcome.ts';
import type { Outcome, Work } from './outcome.ts';

/** Takes a replay of events that our outbox keeps; see libs/postgres/replayer.ts for what becomes of it. */
export async function createReplay({ client, context }: Work, data: MessageData<'create_accounts_replay'>): Promise<Outcome> {
  const { account_id } = data;
  const isKnown = account_id === null || (await client.query('select from accounts where account_id = $1', [account_id])).rowCount === 1;
  if (!isKnown) return refused(refusal('account_not_found', `account ${account_id} not found`));
  const replay = await insertReplay(client, data, context.actor || 'system');
  if ('refusal' in replay) return refused(replay.refusal);
  const { topic, from, to } = replay;
  return done(replay, [], { topic, from, to, account_id });
}
