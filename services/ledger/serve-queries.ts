import type { Logger } from 'pino';
import { replyAddress, type ReplyBody } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { decodeRequest } from '#libs/contracts/exchange.ts';
import { messages as table } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Publisher } from '#libs/kafka/publish/publish.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { isUnavailable } from '#libs/postgres/transaction.ts';
import { answerQuery, getLedgerAccounts, type Query } from './queries.ts';
import type { Verifier, VerifyCommand } from './verifications.ts';
import { failure, type ReplyDependencies, sendReplies, setAside } from './replies.ts';

export interface QueryDependencies {
  pool: Pool;
  publisher: Publisher;
  prefix: string;
  logger: Logger;
  /** The bank's time, in ms since 1970. */
  now: () => number;
  verifier: Pick<Verifier, 'verify'>;
  onDeadLetter?: ReplyDependencies['onDeadLetter'];
  onReplies?: ReplyDependencies['onReplies'];
}

/**
 * Answers what waits on the query topic: balance look-ups together by one statement, the rest each by its own. Where the
 * database is away that is the answer; nothing is asked again, since an old question is not worth keeping.
 */
export function queryHandler(deps: QueryDependencies): (messages: ReceivedMessage[]) => Promise<void> {
  return async (messages) => {
    const queries: Query[] = [];
    const commands: VerifyCommand[] = [];
    for (const message of messages) {
      const decoded = decodeRequest(message, (name) => table[name].topic === 'ledger.queries', deps.prefix);
      if (decoded.kind === 'bad') {
        await setAside(message, decoded, deps);
        continue;
      }
      const { name, data, context } = decoded;
      if (name === 'verify_books') commands.push({ name, data, context } as VerifyCommand);
      else queries.push({ name, data, context } as Query);
    }
    await Promise.all([answerQueries(queries, deps), ...commands.map((command) => answerWith(command, () => deps.verifier.verify(command), deps))]);
  };
}

type Answering = Pick<QueryDependencies, 'pool' | 'publisher' | 'logger' | 'now' | 'onReplies'>;

/** Never rejects: a read that fails is answered so, and what nobody waits for any more is not answered. */
export async function answerQueries(queries: Query[], deps: Answering): Promise<void> {
  const current = queries.filter(({ context }) => replyAddress(context) !== undefined && !abandoned(context.reply_by, deps.now()));
  const balances = current.filter((query) => query.name === 'get_ledger_accounts');
  const others = current.filter((query) => query.name !== 'get_ledger_accounts');
  await Promise.all([balances.length > 0 && answerTogether(balances, deps), ...others.map((query) => answerWith(query, () => answerQuery(deps.pool, query), deps))]);
}

/** Nobody waits for the answer any more. */
function abandoned(replyBy: string | undefined, now: number): boolean {
  return replyBy !== undefined && Date.parse(replyBy) < now;
}

async function answerTogether(queries: Extract<Query, { name: 'get_ledger_accounts' }>[], deps: Answering): Promise<void> {
  try {
    const ids = new Set(queries.flatMap((query) => query.data.account_ids));
    const found = new Map((await getLedgerAccounts(deps.pool, [...ids])).map((account) => [account.account_id, account]));
    const replies = queries.map((query) => ({
      context: query.context,
      reply: { ok: true as const, data: query.data.account_ids.flatMap((id) => found.get(id) ?? []) },
    }));
    sendReplies(replies, deps);
  } catch (error) {
    failed(error, queries, deps);
  }
}

async function answerWith(request: Pick<Query, 'context'>, answer: () => Promise<ReplyBody>, deps: Answering): Promise<void> {
  try {
    sendReplies([{ context: request.context, reply: await answer() }], deps);
  } catch (error) {
    failed(error, [request], deps);
  }
}

function failed(error: unknown, queries: Pick<Query, 'context'>[], deps: Answering): void {
  deps.logger.warn({ err: error, queries: queries.length, request_id: queries[0]?.context.request_id }, 'a query failed');
  const unavailable = refusal('service_unavailable', 'the ledger cannot answer at the moment');
  const reply: ReplyBody = isUnavailable(error) ? { ok: false, refusal: unavailable } : failure;
  sendReplies(queries.map(({ context }) => ({ context, reply })), deps);
}
