import { type Refusal, refusal } from '#libs/contracts/errors.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Note } from '#libs/contracts/notes.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { insertRows } from '#libs/postgres/rows.ts';
import { clientNotFound, refusalFor } from '../clients/clients.ts';
import { done, type Outcome, refused, type Work } from '../outcome.ts';
import { findAccounts } from '../sagas/account-store.ts';
import { accountNotFound } from '../sagas/status.ts';

/** Notes of staff on clients and accounts. Their text appears in no event and no audit record. */

export const noteColumns = 'note_id, client_id, account_id, note, actor, created_at';

export const notForBound = refusal('insufficient_scope', 'credentials bound to one client have no notes');

type Subject = { client_id?: string | undefined; account_id?: string | undefined };

/** Returns the client of a note's subject, or undefined if the account is unknown. */
async function readClientId(db: Queries, { client_id, account_id }: Subject): Promise<string | undefined> {
  return account_id === undefined ? client_id : (await findAccounts(db, [account_id])).get(account_id)?.client_id;
}

/** Returns the refusal if the client or account does not exist. */
export async function missingSubject(db: Queries, subject: Subject): Promise<Refusal | undefined> {
  const clientId = await readClientId(db, subject);
  if (clientId === undefined) return accountNotFound(subject.account_id ?? '');
  const { rowCount } = await db.query('select from clients where client_id = $1', [clientId]);
  return rowCount === 0 ? clientNotFound(clientId) : undefined;
}

export async function addNote(
  { client, context }: Work,
  data: MessageData<'add_client_note'> | MessageData<'add_account_note'>,
): Promise<Outcome> {
  if (context.bound_client_id !== undefined) return refused(notForBound);
  const { note_id, note } = data;
  const account_id = 'account_id' in data ? data.account_id : null;
  const client_id = await readClientId(client, data);
  if (client_id === undefined) return refused(accountNotFound(account_id ?? ''));
  const gone = await refusalFor(client, client_id);
  if (gone) return refused(gone);
  const made: Note = { note_id, client_id, account_id, note, actor: context.actor, created_at: context.time };
  await client.query(insertRows('notes', noteColumns), [JSON.stringify([made])]);
  return done(made, [], { note_id });
}
