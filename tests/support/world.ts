import { afterAll, beforeAll, expect } from 'vitest';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { verifyBooks } from '#services/ledger/verify/verify-books.ts';
import { type Bank, type BankOptions, type SharedBank, sharedBank, startBank } from './bank.ts';
import { Api } from './client.ts';

export { eventually } from './eventually.ts';

/** A running bank and the clients for it, available from `beforeAll` on. */
export interface World<B extends SharedBank = Bank> {
  readonly bank: B;
  /** The owner's connections to the bank's database, search_path ledger. */
  readonly pool: Pool;
  /** A REST client of the first gateway with every scope. */
  api: Api;
  /** One REST client per gateway. */
  gateway(index: number): Api;
  /** Returns the rows of a read-only query. */
  sql<T extends object = Record<string, unknown>>(text: string, values?: unknown[]): Promise<T[]>;
  /** Reports whether ledger and accounts have published all their events. */
  isPublished(): Promise<boolean>;
  expectBooksInOrder(): Promise<void>;
}

/** Starts one bank for all tests of a file, whose books must balance at the end. */
export function useBank(options: BankOptions = {}): World {
  return useWorld(
    () => startBank(options),
    (bank) => bank.stop(),
  );
}

/**
 * Uses a bank with two gateways and two ledgers that other files use at the same time, which is cheaper than a bank per
 * file. It is for tests that neither stop processes nor count data that other tests can add. The books must balance
 * after each file.
 */
export function useSharedBank(): World<SharedBank> {
  return useWorld(sharedBank, async () => undefined);
}

function useWorld<B extends SharedBank>(start: () => Promise<B>, stop: (bank: B) => Promise<void>): World<B> {
  let bank: B | undefined;
  let pool: Pool | undefined;
  const running = (): B => bank ?? fail();
  const createApi = (index: number) =>
    new Api(
      () => running().base_urls[index] ?? fail(),
      () => ({ 'x-api-key': running().api_key }),
    );
  const world: World<B> = {
    get bank() {
      return running();
    },
    get pool() {
      return pool ?? fail();
    },
    api: createApi(0),
    gateway: createApi,
    async sql<T extends object>(text: string, values: unknown[] = []) {
      return (await world.pool.query<T & Record<string, unknown>>(text, values)).rows;
    },
    async isPublished() {
      const unpublished = (schema: string) => `select from ${schema}.outbox_batches where published_at is null`;
      return (await world.sql(`${unpublished('ledger')} union all ${unpublished('accounts')}`)).length === 0;
    },
    async expectBooksInOrder() {
      expect(await verifyBooks(world.pool)).toEqual([]);
    },
  };
  beforeAll(async () => {
    bank = await start();
    pool = createPool({ url: bank.database_url, application_name: 'test', schema: 'ledger', max: 3 }, silent);
  });
  afterAll(async () => {
    try {
      if (pool) await world.expectBooksInOrder();
    } finally {
      await pool?.end();
      if (bank) await stop(bank);
    }
  });
  return world;
}

function fail(): never {
  throw new Error('the bank does not run yet: use it inside tests and hooks');
}

/**
 * Runs the calls concurrently, at most `atOnce` at a time: by default fewer than a gateway accepts
 * even on a slow machine (`enough` of services/gateway/overload/load-shedding.ts), so that none is
 * refused.
 */
export async function together<T>(count: number, call: (index: number) => Promise<T>, atOnce = 50): Promise<T[]> {
  const answers: T[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const index = next++;
      answers[index] = await call(index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(count, atOnce) }, lane));
  return answers;
}
