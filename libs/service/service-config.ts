import { databaseUrlConfig, kafkaConfig, outboxConfig, processConfig } from './config.ts';
import { tracingConfig } from './tracing.ts';

/** The variables of the services with a database and an outbox. */
export const serviceConfig = {
  ...processConfig,
  ...kafkaConfig,
  ...databaseUrlConfig,
  ...tracingConfig,
  ...outboxConfig,
};
