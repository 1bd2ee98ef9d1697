import { databaseConfig, kafkaConfig, outboxConfig, processConfig, wholeNumber } from './config.ts';
import { tracingConfig } from './tracing.ts';

/** The variables of the services with a database and an outbox. */
export const serviceConfig = {
  ...processConfig,
  ...kafkaConfig,
  ...databaseConfig,
  ...tracingConfig,
  ...outboxConfig,
  SESSION_TIMEOUT_MS: wholeNumber(1000, 300_000)
    .prefault('6000')
    .describe('Time without a heartbeat after which other processes take over the partitions, in milliseconds'),
};
