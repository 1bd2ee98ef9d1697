import { expect, test } from 'vitest';
import { z } from 'zod';
import { databaseUrlConfig, kafkaConfig, processConfig } from '#libs/service/config.ts';
import { describeConfig } from './describe-config.ts';

test('the variables of a schema are described', () => {
  const described = describeConfig(
    z.object({ ...databaseUrlConfig, ...kafkaConfig, HEALTH_PORT: processConfig.HEALTH_PORT }),
  );
  expect(described).toContainEqual({
    name: 'DATABASE_URL',
    type: 'URL, postgres or postgresql',
    description: expect.stringContaining("Database URL with the service's own role"),
    required: true,
    default: undefined,
    secret: true,
  });
  expect(described).toContainEqual({
    name: 'TOPIC_PREFIX',
    type: 'text',
    description: 'Prefix of every topic and group name',
    required: false,
    default: '',
    secret: false,
  });
  expect(described).toContainEqual(
    expect.objectContaining({
      name: 'KAFKA_SASL_MECHANISM',
      type: 'plain, scram-sha-256, scram-sha-512',
      required: false,
      default: undefined,
    }),
  );
  expect(described).toContainEqual(
    expect.objectContaining({ name: 'HEALTH_PORT', type: 'port, or address:port', default: '9090' }),
  );
  expect(described).toContainEqual(
    expect.objectContaining({ name: 'KAFKA_SSL_CA', type: 'system, or PEM', default: undefined }),
  );
});
