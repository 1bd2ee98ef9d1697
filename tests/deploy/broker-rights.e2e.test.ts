import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DeadLetter } from '#libs/contracts/dead-letters.ts';
import { source, toHeaders } from '#libs/contracts/envelope.ts';
import { bucketForKey, formatId, withBucket } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { commandPartition, type TopicName, topics } from '#libs/contracts/topics.ts';
import { createKafka, type KafkaClient } from '#libs/kafka/client.ts';
import { readMessage } from '#libs/kafka/consume/read-message.ts';
import { createTestDatabase, silent, type TestDatabase } from '#libs/postgres/test/test-database.ts';
import { signedForTest, testMacSecrets } from '#libs/service/test/keys.ts';
import { kafkaAcls } from '../../tools/generate/kafka-rights.ts';
import {
  type BankSettings,
  createTopics,
  makeApiKey,
  migrateService,
  newKeyPair,
  type ServiceKind,
  startService,
} from '../../tools/local/bank.ts';
import { type Child, startChild } from '../../tools/local/child.ts';
import { chooseKafkaWay } from '../../tools/local/infra.ts';
import { startKafka } from '../../tools/local/kafka.ts';
import { awaitLogLine, logTail } from '../../tools/local/log-file.ts';
import { freePort } from '../../tools/local/ports.ts';
import { awaitReady } from '../../tools/local/ready.ts';
import { Api, type RestTransaction } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';

/**
 * A bank with a broker that enforces deploy/kafka/acls.sh: each service works with its own user,
 * and no user has more rights than it needs.
 */
const secret = () => randomBytes(24).toString('hex');
const names = ['gateway', 'ledger', 'accounts', 'webhooks', 'topics', 'consumer'] as const;
const passwords = Object.fromEntries(
  ['admin', ...names.map((name) => `core-banking-${name}`)].map((user) => [user, secret()]),
);
const dir = mkdtempSync(join(tmpdir(), 'core-banking-rights-'));
const children: Child[] = [];
let database: TestDatabase;
let settings: BankSettings;
let api: Api;

const sasl = (user: string) => ({
  mechanism: 'scram-sha-512' as const,
  username: user,
  password: passwords[user] ?? '',
});
const kafkaAs = (user: string): KafkaClient =>
  createKafka({ brokers: [settings.brokers], client_id: 'test', sasl: sasl(user) }, silent);
const as = (user: string): BankSettings => ({
  ...settings,
  env: { KAFKA_SASL_MECHANISM: 'scram-sha-512', KAFKA_SASL_USERNAME: user, KAFKA_SASL_PASSWORD: passwords[user] ?? '' },
});

async function startBroker(): Promise<string> {
  const [client, broker, controller] = await Promise.all([freePort(), freePort(), freePort()]);
  children.push(
    await startKafka({
      dir: join(dir, 'kafka'),
      log: join(dir, 'kafka.log'),
      ports: { client, broker, controller },
      way: 'java',
      users: passwords,
      settings: {
        'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        // The broker itself is a user on the listeners that are closed to clients.
        'super.users': 'User:admin;User:ANONYMOUS',
        'listener.security.protocol.map': 'CLIENT:SASL_PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT',
        'sasl.enabled.mechanisms': 'SCRAM-SHA-512',
        'listener.name.client.scram-sha-512.sasl.jaas.config':
          'org.apache.kafka.common.security.scram.ScramLoginModule required;',
        'broker.session.timeout.ms': '18000',
        // A week, as by default.
        'offsets.retention.minutes': '10080',
      },
    }),
  );
  return `127.0.0.1:${client}`;
}

/** Grants the ACLs in acls.sh. */
async function grantRights(kafka: KafkaClient): Promise<void> {
  const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafka.kafkajs;
  const constant = (text: string) => text.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
  const acl = kafkaAcls()
    .split('\n')
    .filter((line) => line.startsWith('kafka-acls.sh'))
    .flatMap((line) => {
      const [, principal = '', type = '', resourceName = 'kafka-cluster'] =
        /--allow-principal "([^"]+)".* --(topic|group|cluster)(?: '([^']+)')?/.exec(line) ?? [];
      const resourcePatternType = line.endsWith('--resource-pattern-type prefixed')
        ? ResourcePatternTypes.PREFIXED
        : ResourcePatternTypes.LITERAL;
      const resourceType = AclResourceTypes[type.toUpperCase() as keyof typeof AclResourceTypes];
      return [...line.matchAll(/--operation (\w+)/g)].map(([, operation = '']) => ({
        resourceType,
        resourceName,
        resourcePatternType,
        principal,
        host: '*',
        operation: AclOperationTypes[constant(operation) as keyof typeof AclOperationTypes],
        permissionType: AclPermissionTypes.ALLOW,
      }));
    });
  await kafka.withAdmin((admin) => admin.createAcls({ acl }));
}

async function startOne(kind: ServiceKind, port?: number): Promise<void> {
  const healthPort = await freePort();
  const log = join(dir, `${kind}.log`);
  const child = startService({ kind, name: kind, healthPort, log, port }, as(`core-banking-${kind}`));
  children.push(child);
  await awaitReady({ url: `http://127.0.0.1:${healthPort}/readyz` }, 60_000, () =>
    child.running() ? undefined : `${kind} died`,
  ).catch((error: Error) => {
    throw new Error(`${error.message}\n${logTail(log, 20)}`);
  });
}

beforeAll(async () => {
  mkdirSync(join(dir, 'kafka'));
  expect(chooseKafkaWay(), 'the broker of this test needs Java').toBe('java');
  database = await createTestDatabase();
  settings = {
    brokers: await startBroker(),
    topicPrefix: '',
    ownerUrl: database.url,
    rolePasswords: { ledger: secret(), accounts: secret(), webhooks: secret() },
    issuer: 'http://127.0.0.1:9',
    apiKeyPepper: secret(),
    webhookSecretKey: secret(),
    signing: { mac: testMacSecrets, keyPair: newKeyPair() },
  };
  await grantRights(kafkaAs('admin'));
  await Promise.all([
    migrateService('ledger', settings),
    migrateService('accounts', settings),
    migrateService('webhooks', settings),
    createTopics(as('core-banking-topics')),
  ]);
  const port = await freePort();
  const [key] = await Promise.all([
    makeApiKey(settings),
    startOne('ledger'),
    startOne('accounts'),
    startOne('webhooks'),
    startOne('gateway', port),
  ]);
  api = new Api(
    () => `http://127.0.0.1:${port}`,
    () => ({ 'x-api-key': key }),
  );
  await awaitReady({ url: `http://127.0.0.1:${port}/`, headers: { 'x-api-key': key } }, 30_000);
}, 240_000);

afterAll(async () => {
  for (const child of children.toReversed()) await child.stop(10_000);
  await database.drop();
  rmSync(dir, { recursive: true, force: true });
});

/** Writes a message without the publisher, which would retry. */
async function write(
  kafka: KafkaClient,
  topic: TopicName,
  message: { key: string | null; value: string | null; headers?: Record<string, string>; partition?: number },
): Promise<void> {
  const { client, close } = kafka.newProducer();
  try {
    await client.connect();
    await client.send({ topic, messages: [message] });
  } finally {
    await close(500);
  }
}

describe('Each service can', () => {
  test('open an account, deposit, transfer, freeze, create and revoke a key, and report consumer lag', async () => {
    // asvs: 13.2.2
    const from = await api.newAccount({ initial_deposit: 100 });
    const to = await api.newAccount();
    await api.transact(from.account_id, 'Deposit', 20);
    await api.transfer(from.account_id, to.account_id, 50);
    expect([await api.balance(from.account_id), await api.balance(to.account_id)]).toEqual([70, 50]);
    expect((await api.setStatus(from.account_id, 'Frozen', 'fraud')).status).toBe('Frozen');
    const { key_id } = await api.key({ scopes: ['accounts:read'] });
    expect((await api.post(`/admin/api-keys/${key_id}/revocation`)).status).toBe(200);
    const operations = await api.get('/admin/operations');
    expect(operations.data<{ consumer_lag: unknown[] | null }>().consumer_lag?.length).toBeGreaterThan(0);
  });

  test('list and redrive a dead letter', async () => {
    const { account_id } = await api.newAccount();
    const transaction_id = formatId('transaction', withBucket(randomBytes(16).toString('hex'), account_id));
    const headers = toHeaders({
      message_id: transaction_id,
      type: messageType('create_transaction'),
      source: source.gateway,
      time: new Date().toISOString(),
      subject: account_id,
      request_id: transaction_id,
      actor: 'test',
      reply_topic: 'nowhere',
      correlation_id: 'c',
      reply_partition: 0,
    });
    const value = JSON.stringify({
      transaction_id,
      account_id,
      transaction_type: 'Deposit',
      amount: '5',
      currency: null,
      description: null,
      reference: null,
    });
    await write(kafkaAs('core-banking-gateway'), 'ledger.commands', {
      ...signedForTest({ headers, value }),
      key: account_id,
      partition: commandPartition(bucketForKey(account_id)),
    });
    const letter = await eventually(async () =>
      (await api.all<DeadLetter>('/admin/dead-letters')).find(({ request_id }) => request_id === transaction_id),
    );
    expect((await api.post(`/admin/dead-letters/${letter.dead_letter_id}/redrive`)).status).toBe(200);
    const done = await eventually(async () => {
      const answer = await api.get(`/transactions/${transaction_id}`);
      return answer.status === 200 && answer.data<RestTransaction>();
    });
    expect(done).toMatchObject({ status: 'Completed', amount: 5 });
  });
});

describe('The consumer package', () => {
  // In a process of its own, because kafkajs is patched in this one.
  const program = `const { createConsumer } = await import(process.env.PACKAGE);
    const handlers = { 'corebanking.transaction.completed.v1': () => undefined };
    await createConsumer({ ...JSON.parse(process.env.OPTIONS), handlers }).start();`;

  test.each([
    ['consumer', 'brokers delete the offsets of a group sooner than these topics delete their events'],
    ['ledger', 'the retention of offsets cannot be read from the brokers'],
  ])('as core-banking-%s warns that %s', async (name, warning) => {
    const user = `core-banking-${name}`;
    const log = join(dir, `package-as-${name}.log`);
    const options = { kafka: { brokers: [settings.brokers], sasl: sasl(user) }, groupId: `${user}-test` };
    const child = startChild({
      name: 'package',
      command: process.execPath,
      args: ['--input-type=module', '--eval', program],
      env: {
        ...process.env,
        PACKAGE: import.meta.resolve('../../clients/consumer/index.ts'),
        OPTIONS: JSON.stringify(options),
      },
      log,
      marker: 'createConsumer',
    });
    children.push(child);
    await awaitLogLine(child, log, 0, warning, 30_000);
  });
});

describe('No user can do more', () => {
  test.each(['gateway', 'ledger', 'accounts', 'webhooks', 'consumer'] as const)(
    '%s cannot write to topics of other services',
    async (name) => {
      const kafka = kafkaAs(`core-banking-${name}`);
      const others = (Object.keys(topics) as TopicName[]).filter(
        (topic) => name === 'consumer' || !topics[topic].writers.includes(name),
      );
      expect(others).toContain(name === 'accounts' ? 'transactions' : 'api-keys');
      const outcomes = await Promise.all(
        others.map(
          async (topic) =>
            `${topic}: ${await write(kafka, topic, { key: 'k', value: 'forged' }).then(
              () => 'written',
              (error: Error) => error.message,
            )}`,
        ),
      );
      expect(outcomes.filter((outcome) => !/authoriz/i.test(outcome))).toEqual([]);
    },
  );

  test('a consumer can read events, and cannot use the groups of services', async () => {
    const kafka = kafkaAs('core-banking-consumer');
    expect(await readMessage(kafka, { topic: 'audit', partition: 0, offset: 0n }, 3_000)).toMatchObject({
      topic: 'audit',
    });
    // kafkajs keeps looking for a coordinator that it is not allowed to see.
    const fetchOffsets = (groupId: string) =>
      kafka.withAdmin((admin) => admin.fetchOffsets({ groupId, topics: ['audit'] }), 5_000);
    expect(await fetchOffsets('core-banking-consumer-1')).toMatchObject([{ topic: 'audit' }]);
    await expect(fetchOffsets('ledger')).rejects.toThrow();
  });

  test.each(['gateway', 'ledger', 'accounts', 'webhooks', 'consumer'] as const)(
    '%s cannot read topics of other services',
    async (name) => {
      const kafka = kafkaAs(`core-banking-${name}`);
      const reader = name === 'consumer' ? 'consumers' : name;
      const others = (Object.keys(topics) as TopicName[]).filter((topic) => !topics[topic].readers.includes(reader));
      expect(others).toContain(name === 'gateway' ? 'audit' : 'replies');
      const outcomes = await Promise.all(
        others.map(
          async (topic) =>
            `${topic}: ${await readMessage(kafka, { topic, partition: 0, offset: 0n }, 10_000).then(
              () => 'read',
              (error: Error) => error.message,
            )}`,
        ),
      );
      expect(outcomes.filter((outcome) => !/authoriz/i.test(outcome))).toEqual([]);
    },
  );
});
