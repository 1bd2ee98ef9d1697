import { createInterface } from 'node:readline/promises';
import { type Command, Option } from 'commander';
import { countRepublishable, republish } from '#libs/postgres/outbox/republish.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { errorMessage } from '#libs/service/logger.ts';
import { republishApiKeys } from '#services/accounts/api-keys/api-keys.ts';
import { republishSnapshots } from '#services/accounts/snapshot-events.ts';
import { republishAllBalances } from '#services/ledger/batch/republish.ts';
import { Failure, moment, openDatabase, print, say } from './api.ts';

const services = ['ledger', 'accounts', 'webhooks'] as const;

/** Marking the batches of a day takes longer than the services' statement timeout. */
const statementTimeoutMs = 600_000;

interface RepublishOptions {
  since?: Date;
  balances?: true;
  masters?: true;
  keys?: true;
  service?: (typeof services)[number];
  yes?: true;
}

/** `bank republish`: for a loss of Kafka including its disks. It uses the database, not REST. */
export function addRepublish(command: Command): void {
  command
    .option('--since <time>', 'messages published at this time or later (ISO 8601), with the same ce_ids', moment)
    .option('--balances', 'the current balance of every account, for the topic balances')
    .option('--masters', 'the current master data of every account and client, for the topics of master data')
    .option('--keys', 'the current state of every API key, for the gateways')
    .addOption(
      new Option('--service <name>', 'with --since, only the outbox of this service; default: all').choices(services),
    )
    .option('--yes', 'do not ask for confirmation')
    .addHelpText(
      'after',
      `
The database is DATABASE_URL (as the owner, or as the service's role: ledger for --balances, accounts for --masters and --keys), or else that of the
local bank. The outbox keeps published messages for 24 hours; older history is only in the books
(docs/operations.md, Kafka is lost). At least one of --since, --balances, --masters, and --keys is required;
they are executed in this order.

Examples:
  bank republish --since 2026-01-31T06:00:00Z
  bank republish --balances --masters --keys`,
    )
    .action(async ({ since, balances, masters, keys, service, yes }: RepublishOptions) => {
      if (since === undefined && !balances && !masters && !keys)
        throw new Failure(2, 'name --since, --balances, --masters or --keys');
      for (const name of since === undefined ? [] : service === undefined ? services : [service])
        await withOutbox(name, (pool) => republishOne(name, pool, since as Date, yes));
      if (balances)
        await withOutbox('ledger', async (pool) =>
          print(`ledger: the balances of ${await republishAllBalances(pool, 'ledger')} accounts will be published`),
        );
      if (masters)
        await withOutbox('accounts', async (pool) => {
          const { accounts, clients } = await republishSnapshots(pool, 'accounts', new Date().toISOString());
          print(`accounts: the master data of ${accounts} accounts and ${clients} clients will be published`);
        });
      if (keys)
        await withOutbox('accounts', async (pool) =>
          print(`accounts: ${await republishApiKeys(pool, 'accounts', new Date())} API keys will be published`),
        );
    });
}

async function withOutbox(schema: string, use: (pool: Pool) => Promise<void>): Promise<void> {
  const { url, logger } = await openDatabase();
  const pool = createPool(
    { url, application_name: 'bank republish', schema, max: 1, statement_timeout_ms: statementTimeoutMs },
    logger,
  );
  try {
    await use(pool);
  } catch (error) {
    throw error instanceof Failure
      ? error
      : new Failure(3, `the outbox of ${schema} cannot be used: ${errorMessage(error)}`);
  } finally {
    await pool.end();
  }
}

async function republishOne(name: string, pool: Pool, since: Date, yes: true | undefined): Promise<void> {
  const { batches, messages, kept_since } = await countRepublishable(pool, since);
  const reach = kept_since === null ? 'keeps nothing that was published' : `reaches back to ${kept_since}`;
  print(
    `${name}: ${messages} messages in ${batches} batches were published since ${since.toISOString()}; the outbox ${reach}`,
  );
  if (kept_since === null || since.toISOString() < kept_since) {
    say('older messages no longer exist; the books contain their entries and transactions');
  }
  if (batches === 0n) return;
  if (!yes && !(await isConfirmed(name))) throw new Failure(2, 'not confirmed (--yes): nothing was published again');
  print(`${name}: the relay publishes ${await republish(pool, since)} batches again`);
}

async function isConfirmed(name: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await terminal.question(`Publish them again, from the outbox of ${name}? (yes) `)).trim() === 'yes';
  } finally {
    terminal.close();
  }
}
