import { databaseUrlConfig, kafkaConfig, processConfig } from './config.ts';

/** The variables of the services with a database and an outbox. */
export const serviceConfig = {
  ...processConfig,
  ...kafkaConfig,
  ...databaseUrlConfig,
};
