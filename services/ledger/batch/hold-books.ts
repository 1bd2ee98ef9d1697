import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import type { Books, Command, HoldChange } from '../domain/decision.ts';
import { expireHolds, type HoldBooks } from '../domain/holds.ts';
import type { AccountState } from '../domain/records.ts';
import { balanceEvent, holdEvent } from './events.ts';
import { readHoldAccounts, readHolds, writeHolds } from './hold-store.ts';
import { lockAccounts, look, writeHeldAmounts } from './store.ts';

/**
 * Reads and writes the holds of a batch. If the batch names no hold, and none of its accounts has an expired
 * one, nothing is read.
 */

/**
 * Returns the account of each hold that the commands name, if the hold exists or is placed by one of the
 * commands. Called before anything is locked.
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

/** Reads these holds, and expires those of locked accounts whose expires_at has passed, before any decision. */
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

/** Records expired holds of these accounts. */
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
    const books: HoldBooks = { now, changedHolds: new Set(), heldAmountChanged: new Set() };
    const expired = expireHolds(due, holds, books);
    const byId = new Map(accounts.map((account) => [account.account_id, account]));
    await writeHeld(client, books);
    await writeHeldAmounts(client, [...books.heldAmountChanged], 'less');
    await writeOutbox(client, [
      ...expired.map((change) => holdEvent(change, byId, now)),
      ...shownBy(expired, accounts).map((account) => balanceEvent(account, now)),
    ]);
  });
}

/** Writes changed holds. The held amounts of accounts are written by writeHeldAmounts. */
export async function writeHeld(client: Queries, { changedHolds }: HoldBooks): Promise<void> {
  if (changedHolds.size > 0) await writeHolds(client, [...changedHolds]);
}

/** Returns the accounts affected by these changes. */
function shownBy(changes: HoldChange[], accounts: AccountState[]): AccountState[] {
  const ids = new Set(changes.map(({ hold }) => hold.account_id));
  return accounts.filter(({ account_id }) => ids.has(account_id));
}
