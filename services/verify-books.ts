import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { createKafka } from '#libs/kafka/client.ts';
import type { Finding } from '#libs/postgres/findings.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { zoneConfig } from '#libs/service/bank-config.ts';
import { databaseUrlConfig, kafkaConfig, kafkaOptions, loadToolConfig } from '#libs/service/config.ts';
import { calendarIn } from '#libs/service/days.ts';
import { createLogger, errorMessage } from '#libs/service/logger.ts';
import { auditRules, headsRule, verifyAudit, verifyHeads } from './accounts/audit/verify-audit.ts';
import { checkZone } from './ledger/closings/zone.ts';
import { setCalendar } from './ledger/domain/calendar.ts';
import { eventRules } from './ledger/verify/event-checks.ts';
import { bookRules, verifyBooks } from './ledger/verify/verify-books.ts';
import { verifyEvents } from './ledger/verify/verify-events.ts';
import { accountRules, verifyAccounts } from './verify-accounts.ts';

/** `npm run verify-books`: checks the books, the published events, the accounts, and the audit, as an auditor would. */

function print(rules: string[], findings: Finding[]): void {
  for (const rule of rules) {
    const finding = findings.find((f) => f.rule === rule);
    process.stdout.write(`${finding ? 'BROKEN' : 'ok    '} ${rule}\n`);
    for (const row of finding?.rows ?? [])
      process.stdout.write(
        `         ${JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))}\n`,
      );
  }
}

export const verifyConfig = z.object({
  ...kafkaConfig,
  KAFKA_BROKERS: kafkaConfig.KAFKA_BROKERS.optional().describe(
    'Brokers whose events are compared with the books; default: those of the local bank (npm start), if DATABASE_URL is not set',
  ),
  ...databaseUrlConfig,
  DATABASE_URL: databaseUrlConfig.DATABASE_URL.optional().describe(
    'Any role that may read the schemas ledger and accounts; default: that of the local bank',
  ),
  ...zoneConfig,
});

type Config = z.output<typeof verifyConfig>;

/** Database and brokers that are named, or those of the local bank. */
function servers(config: Config): { databaseUrl: string; brokers: string[] | undefined } {
  if (config.DATABASE_URL !== undefined) return { databaseUrl: config.DATABASE_URL, brokers: config.KAFKA_BROKERS };
  const { LOCAL_DIR: dir } = loadToolConfig(z.object({ LOCAL_DIR: z.string().default('.local') }));
  const file = join(dir, 'connection.json');
  if (!existsSync(file)) throw new Error(`DATABASE_URL is not set, and no bank runs in ${dir} (npm start)`);
  const local = JSON.parse(readFileSync(file, 'utf8')) as { database_url: string; kafka_brokers: string };
  return { databaseUrl: local.database_url, brokers: config.KAFKA_BROKERS ?? local.kafka_brokers.split(',') };
}

async function main(): Promise<boolean> {
  const config = loadToolConfig(verifyConfig);
  const { databaseUrl, brokers } = servers(config);
  setCalendar(calendarIn(config.BANK_TIME_ZONE));
  const logger = createLogger({ service: 'verify-books', instance: 'cli', level: 'warn' });
  const openPool = (schema: string) =>
    createPool(
      { application_name: 'verify-books', schema, max: 2, idle_in_transaction_session_timeout_ms: 0, url: databaseUrl },
      logger,
    );
  const [ledger, accounts] = [openPool('ledger'), openPool('accounts')];
  const kafka = brokers && createKafka(kafkaOptions({ ...config, KAFKA_BROKERS: brokers }, 'verify-books'), logger);
  try {
    await checkZone(ledger);
    const findings = await verifyBooks(ledger);
    print(bookRules, findings);
    if (kafka) {
      const eventFindings = await verifyEvents(ledger, kafka, config.TOPIC_PREFIX, logger);
      print(Object.values(eventRules), eventFindings);
      findings.push(...eventFindings);
    }
    findings.push(...(await checkAccounts(accounts, kafka, config.TOPIC_PREFIX, logger)));
    if (!kafka) process.stdout.write('       events not compared: KAFKA_BROKERS is not set\n');
    process.stdout.write(findings.length === 0 ? 'the books balance\n' : `${findings.length} rules are broken\n`);
    return findings.length === 0;
  } finally {
    await Promise.all([ledger.end(), accounts.end()]);
  }
}

async function checkAccounts(
  accounts: Pool,
  kafka: KafkaClient | undefined,
  prefix: string,
  logger: Logger,
): Promise<Finding[]> {
  const { rows } = await accounts
    .query<{ may: boolean | null }>("select has_table_privilege(to_regclass('accounts.audit_chain'), 'select') as may")
    .catch(() => ({ rows: [] }));
  if (rows[0]?.may !== true) {
    process.stdout.write('       accounts and audit not checked: this role may not read the schema accounts\n');
    return [];
  }
  const ofAccounts = await verifyAccounts(accounts);
  print(accountRules, ofAccounts);
  const findings = await verifyAudit(accounts);
  print(auditRules, findings);
  const ofHeads = kafka ? await verifyHeads(accounts, kafka, prefix, logger) : [];
  if (kafka) print([headsRule], ofHeads);
  return [...ofAccounts, ...findings, ...ofHeads];
}

if (import.meta.main) {
  try {
    process.exitCode = (await main()) ? 0 : 1;
  } catch (error) {
    process.stderr.write(`verify-books cannot run: ${errorMessage(error)}\n`);
    process.exitCode = 2;
  }
}
