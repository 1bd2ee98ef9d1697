import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { eventTopics, topics } from '#libs/contracts/topics.ts';
import { kafkaAcls, kafkaRights, kafkaUsers } from './kafka-rights.ts';

const may = (user: string, operation: string) =>
  kafkaRights()
    .filter(
      (right) =>
        right.user === `core-banking-${user}` && right.type === 'topic' && right.operations.includes(operation),
    )
    .map(({ name }) => name)
    .sort();

test('consumers can read the topics of events and their settings, and write their own dead letters, and nothing else', () => {
  const own = ['core-banking-consumer-'];
  expect(may('consumer', 'Read')).toEqual([...own, ...eventTopics].sort());
  expect(['Write', 'Create'].map((operation) => may('consumer', operation))).toEqual([own, own]);
  expect(may('consumer', 'DescribeConfigs')).toEqual([...eventTopics].sort());
  expect(may('consumer', 'AlterConfigs')).toEqual([]);
});

test('a gateway can send requests and read replies, but not write events', () => {
  expect(may('gateway', 'Write')).toEqual([
    'accounts.commands',
    'accounts.queries',
    'ledger.batches',
    'ledger.commands',
    'ledger.queries',
    'security',
    'sessions',
    'webhooks.commands',
    'webhooks.queries',
  ]);
  expect(may('gateway', 'Read')).toEqual(['api-keys', 'replies', 'sessions']);
});

test('every topic has a writer and a reader, and only accounts writes the state of keys', () => {
  for (const [name, { writers, readers }] of Object.entries(topics))
    expect(
      [writers.length, readers.length].every((count) => count > 0),
      name,
    ).toBe(true);
  expect(topics['api-keys'].writers).toEqual(['accounts']);
});

test('both formats grant the same rights, with the prefix of topics and groups', () => {
  const rights = kafkaRights('bank.');
  const users = parseAllDocuments(kafkaUsers('bank.')).map(
    (document) => document.toJS() as { metadata: { name: string }; spec: { authorization: { acls: object[] } } },
  );
  expect(users.map(({ metadata, spec }) => [metadata.name, spec.authorization.acls.length])).toEqual(
    [...Map.groupBy(rights, ({ user }) => user)].map(([user, own]) => [user, own.length]),
  );
  const lines = kafkaAcls('bank.')
    .split('\n')
    .filter((line) => line.startsWith('kafka-acls.sh'));
  expect(lines).toHaveLength(rights.length);
  const unprefixed = rights.filter(({ name, user }) => !name.startsWith('bank.') && !name.startsWith(user));
  expect(unprefixed.map(({ type, operations }) => [type, operations])).toEqual([['cluster', ['DescribeConfigs']]]);
  expect(lines).toContain(
    `kafka-acls.sh "$@" --add --allow-principal "User:core-banking-consumer" --operation DescribeConfigs --cluster`,
  );
  expect(lines).toContain(
    `kafka-acls.sh "$@" --add --allow-principal "User:core-banking-ledger" --operation Read --group 'bank.ledger' --resource-pattern-type prefixed`,
  );
});
