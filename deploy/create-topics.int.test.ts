import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, expect, it } from 'vitest';
import { eventTopics, topicName, topics } from '#libs/contracts/topics.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { changeSettings } from '#libs/kafka/topics.ts';
import { createTopics, topicsConfig } from './create-topics.ts';

const prefix = `topics-${randomUUID().slice(0, 8)}.`;
const brokers = process.env['KAFKA_BROKERS'] ?? '';
const kafka = createKafka({ brokers: brokers.split(','), client_id: 'test' }, pino({ level: 'silent' }));
const dayMs = 24 * 60 * 60 * 1000;

afterAll(() =>
  kafka.withAdmin(async (admin) => {
    await admin.deleteTopics({ topics: (await admin.listTopics()).filter((name) => name.startsWith(prefix)) });
  }),
);

const config = (days?: string, compression?: string) =>
  topicsConfig.parse({
    KAFKA_BROKERS: brokers,
    TOPIC_PREFIX: prefix,
    REPLICATION_FACTOR: '1',
    EVENTS_RETENTION_DAYS: days,
    EVENTS_COMPRESSION: compression,
  });

async function setting(name: string): Promise<Record<string, string | null>> {
  const { resources } = await kafka.withAdmin((admin) =>
    admin.describeConfigs({
      includeSynonyms: false,
      resources: Object.keys(topics).map((topic) => ({ type: 2, name: prefix + topic })),
    }),
  );
  return Object.fromEntries(
    resources.map(({ resourceName, configEntries }) => {
      return [
        resourceName.slice(prefix.length),
        configEntries.find(({ configName }) => configName === name)?.configValue ?? null,
      ];
    }),
  );
}

it('EVENTS_RETENTION_DAYS and EVENTS_COMPRESSION apply to new and existing topics, and no other setting changes', async () => {
  const kept = eventTopics.filter((name) => topics[name].config['cleanup.policy'] === 'delete');
  const others = Object.keys(topics).filter((name) => !kept.some((topic) => topic === name));
  const retentionOf = (names: readonly string[], all: Record<string, unknown>) => names.map((name) => all[name]);
  expect(await createTopics(kafka, config())).toMatchObject({ changed: [] });
  const before = await setting('retention.ms');
  expect(new Set(retentionOf(kept, before))).toEqual(new Set([String(400 * dayMs)]));
  const own = { 'segment.ms': '86400000' };
  await changeSettings(kafka, new Map([[topicName(prefix, 'transactions'), own]]));
  expect(await createTopics(kafka, config('30'))).toMatchObject({ created: [] });
  const after = await setting('retention.ms');
  expect(new Set(retentionOf(kept, after))).toEqual(new Set([String(30 * dayMs)]));
  expect(retentionOf(others, after)).toEqual(retentionOf(others, before));
  expect((await setting('segment.ms'))['transactions']).toBe(own['segment.ms']);
  expect((await setting('message.timestamp.type'))['transactions']).toBe('LogAppendTime');
  expect((await setting('cleanup.policy'))['balances']).toBe('compact');
  await createTopics(kafka, config('-1'));
  expect(new Set(retentionOf(kept, await setting('retention.ms')))).toEqual(new Set(['-1']));
  expect(await createTopics(kafka, config('-1'))).toEqual({ created: [], changed: [] });
  expect(await setting('compression.type')).toMatchObject({ transactions: 'producer', balances: 'producer' });
  await createTopics(kafka, config('-1', 'zstd'));
  expect(await setting('compression.type')).toMatchObject({
    transactions: 'zstd',
    balances: 'zstd',
    'ledger.commands': 'producer',
  });
  expect((await setting('cleanup.policy'))['balances']).toBe('compact');
  expect(() => config('0')).toThrow('must not be 0');
});
