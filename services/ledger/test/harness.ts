import { randomBytes } from 'node:crypto';
import type { AccountType } from '#libs/contracts/accounts.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { formatId } from '#libs/contracts/ids.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent } from '#libs/postgres/test/test-database.ts';
import { useStarted } from '../../../tests/support/use-started.ts';
import { runBatch } from '../batch/engine.ts';
import type { Command } from '../domain/decision.ts';
import { answerQuery, type Query } from '../queries/queries.ts';
import { ledgerSchema, migrations } from '../schema.ts';
import * as kit from './test-kit.ts';

/** A ledger without Kafka and with its own database, for tests of reads. */

export const freshBits = () => `${randomBytes(15).toString('hex')}00`;

export type LedgerHarness = Awaited<ReturnType<typeof startLedger>>;

export const useLedger = (): LedgerHarness => useStarted(startLedger);

export async function startLedger() {
  const database = await createTestDatabase();
  const role = `${database.name}_ledger`;
  await migrate({ ...migrations, owner_url: database.url, role, role_password: 'test-password' }, silent);
  const url = new URL(database.url);
  url.username = role;
  url.password = 'test-password';
  const owner = createPool(
    { url: database.url, application_name: 'owner', schema: ledgerSchema, max: 2, statement_timeout_ms: 60_000 },
    silent,
  );
  const writes = createPool({ url: url.href, application_name: 'ledger', schema: ledgerSchema, max: 2 }, silent);
  const reads = createPool({ url: url.href, application_name: 'ledger reads', schema: ledgerSchema, max: 4 }, silent);

  const live = <T extends Partial<MessageContext>>(rest?: T) => ({
    time: new Date().toISOString(),
    request_id: 'req-1',
    actor: 'test',
    ...rest,
  });
  const testContext = (bits: string, rest: Partial<MessageContext> = {}) => kit.testContext(bits, live(rest));
  const book = async (commands: Command[], slot = 0): Promise<ReplyBody[]> =>
    (await runBatch(writes, commands, slot)).replies;
  return {
    owner,
    writes,
    reads,
    serviceUrl: url.href,
    ownerUrl: database.url,
    testContext,
    /** Executes one batch as if this command partition were assigned. */
    book,
    async open(type: AccountType, amount: string, currency = 'USD'): Promise<string> {
      const account_id = formatId('account', freshBits());
      const data = {
        account_id,
        client_id: formatId('client', freshBits()),
        account_number: `N-${account_id}`,
        account_type: type,
        currency,
        status: 'Active' as const,
        initial_deposit: amount,
      };
      const [reply] = await book([
        { name: 'open_ledger_account', data, context: testContext(account_id, { message_id: account_id }) },
      ]);
      if (!reply?.ok) throw new Error(JSON.stringify(reply));
      return account_id;
    },
    cash: (...[type, account, amount, rest, bits = freshBits()]: Parameters<typeof kit.cash>) =>
      kit.cash(type, account, amount, live(rest), bits),
    transfer: (...[from, to, amount, rest, bits = freshBits()]: Parameters<typeof kit.transfer>) =>
      kit.transfer(from, to, amount, live(rest), bits),
    reversal: (...[original, rest, bits = freshBits()]: Parameters<typeof kit.reversal>) =>
      kit.reversal(original, live(rest), bits),
    ask(query: Omit<Query, 'context'>, context: Partial<MessageContext> = {}): Promise<ReplyBody> {
      return answerQuery(reads, { ...query, context: testContext(freshBits(), context) } as Query);
    },
    async stop() {
      await Promise.all([owner, writes, reads].map((pool) => pool.end()));
      await database.drop();
    },
  };
}
