import { randomBytes } from 'node:crypto';
import type { AccountType } from '#libs/contracts/accounts.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { idOf } from '#libs/contracts/ids.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent } from '#libs/postgres/test/test-database.ts';
import { useStarted } from '../../../tests/support/use-started.ts';
import { runBatch } from '../batch/engine.ts';
import type { Command } from '../domain/decision.ts';
import { answerQuery, type Query } from '../queries/queries.ts';
import { ledgerSchema, migrations } from '../schema.ts';

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

  const testContext = (bits: string, rest: Partial<MessageContext> = {}): MessageContext => ({
    message_id: idOf('transaction', bits),
    type: '',
    source: '',
    time: new Date().toISOString(),
    subject: '',
    request_id: 'req-1',
    actor: 'test',
    ...rest,
  });
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
      const account_id = idOf('account', freshBits());
      const data = {
        account_id,
        client_id: idOf('client', freshBits()),
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
    cash(
      transaction_type: 'Deposit' | 'Withdrawal',
      account_id: string,
      amount: string,
      rest: Partial<MessageContext> & { reference?: string; external_id?: string } = {},
      bits = freshBits(),
    ): Command {
      const { reference = null, external_id, ...context } = rest;
      return {
        name: 'create_transaction',
        data: {
          transaction_id: idOf('transaction', bits),
          account_id,
          transaction_type,
          amount,
          currency: null,
          description: null,
          reference,
          ...(external_id !== undefined && { external_id }),
        },
        context: testContext(bits, context),
      };
    },
    transfer(
      from_account_id: string,
      to_account_id: string,
      amount: string,
      rest: Partial<MessageContext> = {},
      bits = freshBits(),
    ): Command {
      const data = {
        transfer_id: idOf('transfer', bits),
        from_account_id,
        to_account_id,
        amount,
        currency: null,
        description: null,
      };
      return { name: 'create_transfer', data, context: testContext(bits, { message_id: data.transfer_id, ...rest }) };
    },
    reversal(reverses_transaction_id: string, bits = freshBits()): Command {
      return {
        name: 'reverse_transaction',
        data: { transaction_id: idOf('transaction', bits), reverses_transaction_id, reason: 'mistake' },
        context: testContext(bits),
      };
    },
    ask(query: Omit<Query, 'context'>, context: Partial<MessageContext> = {}): Promise<ReplyBody> {
      return answerQuery(reads, { ...query, context: testContext(freshBits(), context) } as Query);
    },
    async stop() {
      await Promise.all([owner, writes, reads].map((pool) => pool.end()));
      await database.drop();
    },
  };
}
