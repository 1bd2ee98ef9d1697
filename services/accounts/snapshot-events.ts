import { randomUUID } from 'node:crypto';
import type { EventData } from '#libs/contracts/events.ts';
import { events } from '#libs/contracts/events.ts';
import { pickNames } from '#libs/contracts/names.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import { wakeRelay, writeStatesAgain } from '#libs/postgres/outbox/outbox.ts';
import type { States } from '#libs/postgres/outbox/stale-states.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import type { ClientRow } from './clients/client-store.ts';
import { clientColumns } from './clients/client-store.ts';
import type { AccountRow } from './sagas/account-store.ts';
import { accountColumns, toAccountMaster } from './sagas/account-store.ts';

/**
 * Snapshot events, on the compacted topics account-masters and client-masters: the current master data of every account
 * and client, without personal data. The transaction that writes the event of a change also writes the new state, while it holds the
 * lock of the row. The outbox therefore has the states in the order of the changes.
 */
const clientType = 'corebanking.client.v1';
const accountType = 'corebanking.account.v1';

/**
 * Returns the snapshot events of the accounts and clients in these events, and of the accounts of an erased client. Each
 * names the request of its event.
 */
export async function snapshotsAfter(
  client: Queries,
  changes: readonly OutboxEvent[],
  now: string,
): Promise<OutboxEvent[]> {
  const selectKeys = (topic: string) => changes.flatMap((change) => (change.topic === topic ? (change.key ?? []) : []));
  const erased = changes.flatMap(({ type, key }) => (type === 'corebanking.client.erased.v1' ? (key ?? []) : []));
  const ofEvents = changes.filter(({ topic }) => topic === 'accounts' || topic === 'clients');
  const headers = new Map(ofEvents.map((event) => [event.key, event.headers]));
  const accounts = selectKeys('accounts');
  if (erased.length > 0) {
    const { rows } = await client.query<{ account_id: string }>(
      "select account_id from accounts where client_id = any($1::text[]) and state = 'open'",
      [erased],
    );
    accounts.push(...rows.map(({ account_id }) => account_id));
  }
  return readSnapshots(client, { accounts, clients: selectKeys('clients'), headers }, now);
}

interface Wanted {
  accounts: readonly string[];
  clients: readonly string[];
  /** By account or client. */
  headers?: Map<string | null, OutboxEvent['headers']>;
}

async function readSnapshots(
  client: Queries,
  { accounts, clients, headers = new Map() }: Wanted,
  time: string,
): Promise<OutboxEvent[]> {
  const states: OutboxEvent[] = [];
  if (accounts.length > 0) {
    // The state is not a condition, because Postgres could then read all of a list's index instead of the primary key.
    const { rows } = await client.query<AccountRow & { status_version: number; state: string }>({
      name: 'account_snapshots',
      text: `select ${accountColumns}, status_version, state from accounts where account_id = any($1::text[]) order by account_id for share`,
      values: [accounts],
    });
    for (const { status_version, state, ...row } of rows) {
      if (state !== 'open') continue;
      const cause = headers.get(row.account_id) ?? headers.get(row.client_id);
      states.push(
        snapshotEvent(accountType, row.account_id, { account: toAccountMaster(row), status_version }, time, cause),
      );
    }
  }
  if (clients.length > 0) {
    const { rows } = await client.query<ClientRow>({
      name: 'client_snapshots',
      text: `select ${clientColumns} from clients where client_id = any($1::text[]) order by client_id for share`,
      values: [clients],
    });
    for (const row of rows) {
      const { client_id, client_type, created_at, updated_at, erased_at } = row;
      const data = { client_id, client_type, created_at, updated_at, erased_at, ...pickNames(row) };
      states.push(snapshotEvent(clientType, client_id, data, time, headers.get(client_id)));
    }
  }
  return states;
}

function snapshotEvent<T extends typeof accountType | typeof clientType>(
  type: T,
  key: string,
  data: EventData<T>,
  time: string,
  headers: OutboxEvent['headers'] = {},
): OutboxEvent {
  return { id: randomUUID(), topic: events[type].topic, key, type, time, headers, payload: JSON.stringify(data) };
}

/** The states that the relay publishes again, because late copies of older ones may be the last records (decision 25). */
export function snapshotStates(pool: Pool, now: () => number): States {
  const [accounts, clients] = [events[accountType].topic, events[clientType].topic];
  return {
    topics: [accounts, clients],
    republish(names) {
      const selectKeys = (name: string) => names.flatMap(({ topic, key }) => (topic === name ? (key ?? []) : []));
      const wanted = { accounts: selectKeys(accounts), clients: selectKeys(clients) };
      return republish(pool, wanted, new Date(now()).toISOString());
    },
  };
}

const atOnce = 500;

/** Publishes the master data of every account and client again, and returns their numbers. */
export async function republishSnapshots(
  pool: Pool,
  schema: string,
  now: string,
): Promise<{ accounts: number; clients: number }> {
  const counts = { accounts: 0, clients: 0 };
  for (const kind of ['clients', 'accounts'] as const) {
    const id = kind === 'clients' ? 'client_id' : 'account_id';
    for (let last = ''; ; ) {
      const { rows } = await pool.query<{ id: string }>(
        `select ${id} as id from ${kind} where ${id} > $1 order by ${id} limit ${atOnce}`,
        [last],
      );
      const next = rows.at(-1)?.id;
      if (next === undefined) break;
      const none = { accounts: [], clients: [] };
      counts[kind] += await republish(pool, { ...none, [kind]: rows.map((row) => row.id) }, now);
      await wakeRelay(pool, schema);
      last = next;
    }
  }
  return counts;
}

function republish(pool: Pool, wanted: Wanted, now: string): Promise<number> {
  return transaction(pool, async (client) => {
    const states = await readSnapshots(client, wanted, now);
    await writeStatesAgain(client, states);
    return states.length;
  });
}
