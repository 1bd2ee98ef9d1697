import type { MessageResult } from '#libs/contracts/messages.ts';
import type { Replay } from '#libs/contracts/administration.ts';
import { dataOf, isNotFound } from './answer.ts';
import { type Page, type ReadDependencies, type ReadInput, readPage } from './reads.ts';
import { knownForm, notFound } from './unknown-ids.ts';

/** Replays lie with the service whose outbox keeps the events; callers see one list. */

export async function readReplay({ params, origin }: ReadInput, { forwarder }: ReadDependencies): Promise<unknown> {
  const replay_id = knownForm('replay', params['replay_id']);
  const outcomes = await Promise.all([forwarder.query('get_ledger_replay', { replay_id }, replay_id, origin), forwarder.query('get_accounts_replay', { replay_id }, replay_id, origin)]);
  // Who does not answer may be the one that has it.
  const decisive = outcomes.find(({ kind }) => kind === 'done') ?? outcomes.find((outcome) => !isNotFound(outcome));
  if (!decisive) throw notFound('replay', replay_id);
  return dataOf(decisive);
}

/** A page of both: of each as many as there might be of one alone, then the first ones of them together. */
export async function readReplays(input: ReadInput, deps: ReadDependencies): Promise<Page> {
  const { limit, order } = input.query as { limit: number; order: 'asc' | 'desc' };
  const pages = (await Promise.all((['list_ledger_replays', 'list_accounts_replays'] as const).map((name) => readPage(name, input, deps)))) as MessageResult<'list_ledger_replays'>[];
  const key = ({ created_at, replay_id }: Replay): string => `${created_at} ${replay_id}`;
  const sorted = pages.flatMap(({ items }) => items).sort((a, b) => (key(a) < key(b) === (order === 'asc') ? -1 : 1));
  const items = sorted.slice(0, limit);
  const last = items.at(-1);
  const isMore = sorted.length > limit || pages.some(({ next }) => next !== undefined);
  return isMore && last ? { items, next: { at: last.created_at, id: last.replay_id } } : { items };
}
