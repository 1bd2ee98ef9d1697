import { z } from 'zod';
import { databaseConfig, kafkaConfig, outboxConfig, processConfig, wholeNumber } from '#libs/service/config.ts';
import { macConfig } from '#libs/service/signing.ts';
import { tracingConfig } from '#libs/service/tracing.ts';

/** The ledger's environment variables. */
export const ledgerConfig = z.object({
  ...processConfig,
  ...kafkaConfig,
  ...databaseConfig,
  ...tracingConfig,
  ...outboxConfig,
  ...macConfig,
  BATCH_MAX: wholeNumber(1, 5000).prefault('500').describe('Maximum number of commands per transaction'),
  BATCH_PACE_MS: wholeNumber(0, 100)
    .prefault('6')
    .describe(
      'Minimum time between the starts of batches with more than one command that are not full, in milliseconds: under load this makes batches larger, which costs less',
    ),
  SESSION_TIMEOUT_MS: wholeNumber(1000, 300_000)
    .prefault('6000')
    .describe('Time without a heartbeat after which other ledgers take over the partitions, in milliseconds'),
});

export type LedgerConfig = z.output<typeof ledgerConfig>;
