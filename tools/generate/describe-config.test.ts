import { expect, test } from 'vitest';
import { z } from 'zod';
import { databaseUrlConfig, kafkaConfig } from '#libs/service/config.ts';
import { describeConfig } from './describe-config.ts';

test('the variables of a schema are described', () => {
  const described = describeConfig(z.object({ ...databaseUrlConfig, ...kafkaConfig }));
  expect(described).toContainEqual({
    name: 'DATABASE_URL',
    type: 'URL, postgres or postgresql',
    description: "Database URL with the service's own role",
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
    expect.objectContaining({ name: 'KAFKA_SSL', type: 'true or false', default: 'false' }),
  );
});
