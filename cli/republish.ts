import { createInterface } from 'node:readline/promises';
import { type Command, Option } from 'commander';
import { countRepublishable, republish } from '#libs/postgres/outbox/republish.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { republishApiKeys } from '#services/accounts/api-keys/api-keys.ts';
import { restateAllBalances } from '#services/ledger/batch/restate.ts';
import { Failure, moment, openDatabase, print, say } from './api.ts';

const services = ['ledger', 'accounts', 'webhooks'] as const;

/** Marking a day of batches takes longer than any statement of the services may. */
const statementTimeoutMs = 600_000;

interface RepublishOptions {
  since?: Date;
  balances?: true;
  keys?: true;
  service?: (typeof services)[number];
  yes?: true;
}

/** `bank republish`: for the day on which Kafka was lost with its disks. It works on the database, not over REST. */
export function addRepublish(program: Command): void {
  program
    .command('republish')
    .description(
      'Have the relays publish again what topics have lost: events since a moment, every balance, every API key',
    )
    .option('--since <time>', 'what was published at this time or later (ISO 8601), with the same ce_ids', moment)
    .option('--balances', 'the present balance of every account, from the books: the topic balances is complete again')
    .option('--keys', 'the present state of every API key: gateways know them again')
    .addOption(
      new Option('--service <name>', 'with --since the outbox of this one only; default: all').choices(services),
    )
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      `
The database is DATABASE_URL (the owner's, or that service's own: of the ledger for --balances, of accounts for --keys), else that of the
local bank. The outbox keeps what was published for OUTBOX_RETENTION_HOURS; of what is older the books have everything
(docs/operations.md, Kafka is lost). Of --since, --balances and --keys at least one; the order is that.

Examples:
  bank republish --since 2026-01-31T06:00:00Z
  bank republish --balances --keys`,
    )
    .action(async ({ since, balances, keys, service, yes }: RepublishOptions) => {
      if (since === undefined && !balances && !keys) throw new Failure(2, 'name --since, --balances or --keys');
      for (const name of since === undefined ? [] : service === undefined ? services : [service])
        await withOutbox(name, (pool) => republishOne(name, pool, since as Date, yes));
      if (balances)
        await withOutbox('ledger', async (pool) =>
          print(`ledger: the balances of ${await restateAllBalances(pool, 'ledger')} accounts are on their way`),
        );
      if (keys)
        await withOutbox('accounts', async (pool) =>
          print(`accounts: ${await republishApiKeys(pool, 'accounts', new Date())} API keys are on their way`),
        );
    });
}

async function withOutbox(schema: string, use: (pool: Pool) => Promise<void>): Promise<void> {
  const { url, logger } = openDatabase();
  const pool = createPool(
    { url, application_name: 'bank republish', schema, max: 1, statement_timeout_ms: statementTimeoutMs },
    logger,
  );
  try {
    await use(pool);
  } catch (error) {
    throw error instanceof Failure
      ? error
      : new Failure(3, `the outbox of ${schema} cannot be used: ${(error as Error).message}`);
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
    say('what was published before that is not there any more: the books have it, as entries and transactions');
  }
  if (batches === 0n) return;
  if (!yes && !(await isConfirmed(name)))
    throw new Failure(2, 'nothing is published again: it was not confirmed (--yes)');
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
