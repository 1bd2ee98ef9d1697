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
  BATCH_MAX: wholeNumber(1, 5000).prefault('500').describe('Most commands decided and written in one transaction'),
  BATCH_PACE_MS: wholeNumber(0, 100)
    .prefault('6')
    .describe(
      'Batches of more than one command that are not full begin at least so many milliseconds apart: under load fewer and larger ones, which cost less',
    ),
  SESSION_TIMEOUT_MS: wholeNumber(1000, 300_000)
    .prefault('6000')
    .describe('How long the consumer group waits for a silent ledger before others take its partitions'),
});

export type LedgerConfig = z.output<typeof ledgerConfig>;
