import { createInterface } from 'node:readline/promises';
import { type Command, Option } from 'commander';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { countRepublishable, republish } from '#libs/postgres/outbox/republish.ts';
import { Failure, moment, openDatabase, print, say } from './api.ts';

const services = ['ledger', 'accounts'] as const;

/** Marking a day of batches takes longer than any statement of the services may. */
const statementTimeoutMs = 600_000;

interface RepublishOptions {
  since: Date;
  service?: (typeof services)[number];
  yes?: true;
}

/** `bank republish`: for the day on which Kafka was lost with its disks. It works on the database, not over REST. */
export function addRepublish(program: Command): void {
  program
    .command('republish')
    .description(
      'Have the relays publish again what they have published since a moment, with the same ce_ids: after Kafka has lost its disks',
    )
    .requiredOption('--since <time>', 'what was published at this time or later (ISO 8601)', moment)
    .addOption(new Option('--service <name>', 'the outbox of this one only; default: both').choices(services))
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      `
The database is DATABASE_URL (the owner's, or with --service that service's own), else that of the local bank. The outbox keeps
what was published for OUTBOX_RETENTION_HOURS; of what is older the books have everything (docs/operations.md, Kafka is lost).

Example:
  bank republish --since 2026-01-31T06:00:00Z`,
    )
    .action(async ({ since, service, yes }: RepublishOptions) => {
      for (const name of service === undefined ? services : [service])
        await withOutbox(name, (pool) => republishOne(name, pool, since, yes));
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
