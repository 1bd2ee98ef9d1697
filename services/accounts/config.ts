import { z } from 'zod';
import {
  databaseConfig,
  eventsRetentionConfig,
  kafkaConfig,
  outboxConfig,
  processConfig,
  wholeNumber,
} from '#libs/service/config.ts';
import { keySigningConfig, macConfig, webhooksMac } from '#libs/service/signing.ts';
import { tracingConfig } from '#libs/service/tracing.ts';

/** The environment variables of accounts. */
export const accountsConfig = z.object({
  ...processConfig,
  ...kafkaConfig,
  ...databaseConfig,
  ...tracingConfig,
  ...outboxConfig,
  ...macConfig,
  ...webhooksMac,
  ...keySigningConfig,
  COMMAND_CONCURRENCY: wholeNumber(1, 100).prefault('6').describe('Partitions whose commands run at the same time'),
  QUERY_CONCURRENCY: wholeNumber(1, 100).prefault('4').describe('Batches of queries that run at the same time'),
  ...eventsRetentionConfig,
  RETENTION_YEARS: wholeNumber(0, 100)
    .prefault('10')
    .describe(
      'Years for which a client is kept after the last of their accounts was opened, booked on or changed: before that nobody can erase them',
    ),
  SESSION_TIMEOUT_MS: wholeNumber(1000, 300_000)
    .prefault('6000')
    .describe('How long the consumer group waits for a silent process before others take its partitions'),
});

export type AccountsConfig = z.output<typeof accountsConfig>;
