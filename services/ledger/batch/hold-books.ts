import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import type { Books, Command, HoldChange } from '../domain/decision.ts';
import { expireHolds, type HoldBooks } from '../domain/holds.ts';
import type { AccountState } from '../domain/records.ts';
import { balanceEvent, holdEvent } from './events.ts';
import { readHoldAccounts, readHolds, writeHolds } from './hold-store.ts';
import { lockAccounts, look, writeBatch } from './store.ts';

/**
 * What a batch needs to know of holds. Where it names none, and none of its accounts has one whose
 * time is over, nothing is read.
 */

/**
 * The account of each hold that the commands name, as far as it exists or is placed by one of them.
 * Before anything is locked.
 */
export async function accountsOfHolds(client: Queries, commands: Command[]): Promise<Map<string, string>> {
  const named = commands.flatMap(({ name, data }) =>
    name === 'capture_hold' || name === 'release_hold' ? [data.hold_id] : [],
  );
  const placed = commands.flatMap(({ name, data }) =>
    name === 'place_hold' ? [[data.hold_id, data.account_id] as const] : [],
  );
  return new Map([...placed, ...(named.length === 0 ? [] : await readHoldAccounts(client, named))]);
}

/** Reads the holds of these ids, and ends those of locked accounts whose time is over: they count in no decision. */
export async function openHolds(client: Queries, books: Books, ids: string[]): Promise<void> {
  const due = dueAccounts(books.accounts.values(), books.now);
  if (due.length + ids.length === 0) return;
  const holds = await readHolds(
    client,
    ids,
    due.map(({ account_id }) => account_id),
  );
  for (const hold of holds) books.holds.set(hold.hold_id, hold);
  books.expired.push(...expireHolds(due, holds, books));
}

function dueAccounts(accounts: Iterable<AccountState>, now: string): AccountState[] {
  return [...accounts].filter(({ hold_expires_at }) => hold_expires_at !== null && hold_expires_at <= now);
}

/** Records holds of these accounts as Expired whose time is over. */
export async function recordExpired(pool: Pool, accountIds: string[]): Promise<void> {
  await transaction(pool, async (client) => {
    const accounts = await lockAccounts(client, accountIds);
    const { now } = await look(client, []);
    const due = dueAccounts(accounts, now);
    const holds = await readHolds(
      client,
      [],
      due.map(({ account_id }) => account_id),
    );
    const books: HoldBooks = { now, changedHolds: new Set(), reheld: new Set() };
    const expired = expireHolds(due, holds, books);
    const byId = new Map(accounts.map((account) => [account.account_id, account]));
    await writeHeld(client, books);
    await writeBatch(client, [], [], [...books.reheld], true);
    await writeOutbox(client, [
      ...expired.map((change) => holdEvent(change, byId, now)),
      ...shownBy(expired, accounts).map((account) => balanceEvent(account, now)),
    ]);
  });
}

/** Writes the holds that were changed; what is held of accounts is written with their balances. */
export async function writeHeld(client: Queries, { changedHolds }: HoldBooks): Promise<void> {
  if (changedHolds.size > 0) await writeHolds(client, [...changedHolds]);
}

/** The accounts of which these changes tell. */
function shownBy(changes: HoldChange[], accounts: AccountState[]): AccountState[] {
  const ids = new Set(changes.map(({ hold }) => hold.account_id));
  return accounts.filter(({ account_id }) => ids.has(account_id));
}
