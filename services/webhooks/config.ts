import { z } from 'zod';
import { isNetwork } from '#libs/service/addresses.ts';
import {
  databaseConfig,
  eventsRetentionConfig,
  kafkaConfig,
  list,
  outboxConfig,
  processConfig,
  wholeNumber,
} from '#libs/service/config.ts';
import { secretKeysConfig, webhooksMacConfig } from '#libs/service/signing.ts';
import { tracingConfig } from '#libs/service/tracing.ts';

/** The environment variables of webhooks. */
export const webhooksConfig = z.object({
  ...processConfig,
  ...kafkaConfig,
  ...databaseConfig,
  ...tracingConfig,
  ...outboxConfig,
  ...webhooksMacConfig,
  ...secretKeysConfig,
  ...eventsRetentionConfig,
  WEBHOOK_ALLOW_NETWORKS: list
    .refine((networks) => networks.every(isNetwork), 'must hold addresses or networks such as 10.1.2.0/24')
    .prefault('')
    .describe(
      'Private networks in which receivers of webhooks are allowed, such as 10.1.2.0/24. Loopback is for development only',
    ),
  WEBHOOK_CONCURRENCY: wholeNumber(1, 10_000)
    .prefault('512')
    .describe('Maximum number of concurrent requests to receivers in this process, in addition to one per webhook'),
  SESSION_TIMEOUT_MS: wholeNumber(1000, 300_000)
    .prefault('6000')
    .describe('Time without a heartbeat after which other processes take over the partitions, in milliseconds'),
});
