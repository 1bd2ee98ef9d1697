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
  COMMAND_CONCURRENCY: wholeNumber(1, 100)
    .prefault('6')
    .describe('Number of partitions whose commands are executed concurrently'),
  QUERY_CONCURRENCY: wholeNumber(1, 100).prefault('4').describe('Number of query batches that run concurrently'),
  ...eventsRetentionConfig,
  RETENTION_YEARS: wholeNumber(0, 100)
    .prefault('10')
    .describe(
      "Years since a client's accounts were last opened, posted to, or changed before the client can be erased",
    ),
  SESSION_TIMEOUT_MS: wholeNumber(1000, 300_000)
    .prefault('6000')
    .describe('Time without a heartbeat after which other processes take over the partitions, in milliseconds'),
});

export type AccountsConfig = z.output<typeof accountsConfig>;
