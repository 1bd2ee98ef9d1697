import type { Logger } from 'pino';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import type { Reader } from '#libs/contracts/exchange.ts';
import { type MessageData, type MessageName, messages as table } from '#libs/contracts/messages.ts';
import { isScan } from '#libs/contracts/searches.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import type { Item } from '#libs/service/command-consumer.ts';
import type { Watched } from '#libs/service/faults.ts';
import { createQueryConsumer, type Request } from '#libs/service/query-consumer.ts';
import type { Replies } from '#libs/service/replies.ts';
import type { Verifier } from '#libs/service/verifications.ts';
import { type AccountsQuery, answerQuery, getLedgerAccounts, type Query } from './queries.ts';

export interface QueryDependencies extends Reader {
  pool: Pool;
  /** For queries that scan many rows; its number of connections limits how many run. */
  searches: Pool;
  replies: Replies;
  logger: Logger;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  /** The number of concurrent answers. */
  concurrency: number;
  verifier: Pick<Verifier, 'verify'>;
}

const isBatched = (name: MessageName): boolean => name === 'get_ledger_accounts';

/** Reports whether a query scans many rows. Other queries do not wait for such a query. */
function isExpensive({ name, data, context }: Request): boolean {
  return isScan(name, data as Record<string, unknown>, context.bound_client_id);
}

/** Answers the waiting queries. Balance lookups are combined into one statement. */
export function ledgerQueries(deps: QueryDependencies): Watched {
  const apart = { takes: isExpensive, concurrency: deps.searches.options.max };
  return createQueryConsumer({
    ...deps,
    takes: (name) => table[name].topic === 'ledger.queries',
    isBatched,
    apart,
    answer: (requests) => answer(requests, deps),
  });
}

async function answer(requests: Item<Request>[], deps: QueryDependencies): Promise<ReplyBody[]> {
  const queries = requests.map(({ content }) => content);
  const [query] = queries as [Request];
  const { name, data, context } = query;
  if (name === 'verify_books')
    return [await deps.verifier.verify({ data: data as MessageData<'verify_books'>, context })];
  if (name === 'get_ledger_accounts')
    return (await getLedgerAccounts(deps.pool, queries as AccountsQuery[])).map((result) => ({
      ok: true,
      data: result,
    }));
  return [await answerQuery(isExpensive(query) ? deps.searches : deps.pool, query as Request & Query)];
}
