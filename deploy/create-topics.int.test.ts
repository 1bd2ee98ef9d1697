import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, expect, it } from 'vitest';
import { eventTopics, topicName, topics } from '#libs/contracts/topics.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { changeSettings } from '#libs/kafka/topics.ts';
import { eventually } from '../tests/support/eventually.ts';
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

const config = (days?: string) =>
  topicsConfig.parse({
    KAFKA_BROKERS: brokers,
    TOPIC_PREFIX: prefix,
    EVENTS_RETENTION_DAYS: days,
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

/** Returns the setting of all topics once these have this value. Brokers learn of a change after it was answered. */
function whenSet(name: string, value: string, of: readonly string[]): Promise<Record<string, string | null>> {
  return eventually(async () => {
    const all = await setting(name);
    return of.every((topic) => all[topic] === value) && all;
  });
}

it('EVENTS_RETENTION_DAYS applies to new and existing topics, and no other setting changes', async () => {
  const kept = eventTopics.filter((name) => topics[name].config['cleanup.policy'] === 'delete');
  const others = Object.keys(topics).filter((name) => !kept.some((topic) => topic === name));
  const pickRetention = (names: readonly string[], all: Record<string, unknown>) => names.map((name) => all[name]);
  expect(await createTopics(kafka, config())).toMatchObject({ changed: [] });
  const before = await whenSet('retention.ms', String(400 * dayMs), kept);
  const own = { 'segment.ms': '86400000', 'compression.type': 'zstd' };
  await changeSettings(kafka, new Map([[topicName(prefix, 'transactions'), own]]));
  await whenSet('segment.ms', own['segment.ms'], ['transactions']);
  expect(await createTopics(kafka, config('30'))).toMatchObject({ created: [] });
  const after = await whenSet('retention.ms', String(30 * dayMs), kept);
  expect(pickRetention(others, after)).toEqual(pickRetention(others, before));
  expect((await setting('segment.ms'))['transactions']).toBe(own['segment.ms']);
  expect(await setting('compression.type')).toMatchObject({ transactions: 'zstd', balances: 'producer' });
  expect((await setting('message.timestamp.type'))['transactions']).toBe('LogAppendTime');
  expect((await setting('cleanup.policy'))['balances']).toBe('compact');
  await createTopics(kafka, config('-1'));
  await whenSet('retention.ms', '-1', kept);
  expect(await createTopics(kafka, config('-1'))).toEqual({ created: [], changed: [] });
  expect(() => config('0')).toThrow('must not be 0');
});
