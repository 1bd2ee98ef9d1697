import { defaultBank, pageSize, readCursor, startBank } from '../bank.ts';
import { generateData } from '../growth-data.ts';
import type { Target } from '../load-plan.ts';
import type { World } from '../world.ts';
import { type Contender, offer } from './peer.ts';

/** The number of transactions of each account in the filled bank. */
const perAccount = 101;

/** The bank, measured in the same rows as its peers. It is stopped at the end of the run. */
export async function bankContender(world: World): Promise<Contender> {
  const bank = await defaultBank(world);
  const { accounts, numbers } = bank;
  const callers = [64, 128, 256, 512, 1000];
  const transfers: Target = { kind: 'transfer', accounts };
  const offers = {
    transfers: offer(world, bank, transfers, callers),
    paced: offer(world, bank, transfers, [64]),
    deposits: offer(world, bank, { kind: 'deposit', accounts: accounts.slice(0, 1) }, callers),
    bulk: offer(world, bank, { kind: 'batch', accounts, items: 100 }, [2, 4, 8]),
    reads: offer(world, bank, { kind: 'balance', numbers }, [16, 32, ...callers]),
  };
  return {
    offers,
    async fill(transactions, deepPage) {
      const grown = await startBank(world, { name: 'past', accounts: 1 });
      const size = { transactions, accounts: Math.round(transactions / perAccount) };
      await world.withPool(grown.databaseUrl, 'ledger', (pool) => generateData(pool, size, world.say));
      const first = `/transactions?limit=${pageSize}`;
      const deep = `${first}&cursor=${await readCursor(grown, deepPage)}`;
      Object.assign(offers, {
        first: offer(world, grown, { kind: 'get', paths: [first] }, [1]),
        deep: offer(world, grown, { kind: 'get', paths: [deep] }, [1]),
      });
    },
    stop: async () => undefined,
  };
}
