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
      'Private networks in which receivers of webhooks may be, such as 10.1.2.0/24; all others are refused. Loopback is for development',
    ),
  WEBHOOK_CONCURRENCY: wholeNumber(1, 10_000)
    .prefault('512')
    .describe('Requests to receivers under way in this process at most, besides one for each webhook'),
  SESSION_TIMEOUT_MS: wholeNumber(1000, 300_000)
    .prefault('6000')
    .describe('How long the consumer group waits for a silent process before others take its partitions'),
});

export type WebhooksConfig = z.output<typeof webhooksConfig>;
