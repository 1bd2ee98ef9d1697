import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { replyType } from '#libs/contracts/envelope.ts';
import { events } from '#libs/contracts/events.ts';
import { type MessageName, messageOfType } from '#libs/contracts/messages.ts';
import { type TopicName, topics } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { migrationFiles } from '#libs/postgres/migrate.ts';
import { migrations as accounts } from '#services/accounts/schema.ts';
import { migrations as ledger } from '#services/ledger/schema.ts';
import { migrations as webhooks } from '#services/webhooks/schema.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';
import { newKey } from '../support/client.ts';
import { readTopics } from '../support/kafka.ts';
import { staffEnv } from '../support/staff.ts';
import { eventually, useBank } from '../support/world.ts';
import { messageSchemas } from './readable.ts';
import { decode, folderOf, type Recorded, readAnswer } from './recording.ts';
import { type Asked, useEverything } from './story.ts';

/**
 * `npm run record` writes tests/released/<version> for the version in package.json, once: with the programs of PostgreSQL 15,
 * whose dumps all supported versions can restore.
 */
const bin = process.env['TEST_POSTGRES_BIN'] ?? '';
const { version } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as { version: string };
const release = version.replace(/-.*/, '');
const world = useBank({
  webhooks: 1,
  env: {
    ...staffEnv,
    FOUR_EYES: 'all',
    FOUR_EYES_LIMITS: 'USD:1000',
    RETENTION_YEARS: '0',
  },
});

const write = (file: string, content: string | Buffer) => writeFileSync(join(folderOf(release), file), content);
const asJson = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;

it(`records release ${release}`, async () => {
  const { bank, api } = world;
  mkdirSync(folderOf(release), { recursive: true });
  write(
    'migrations.sha256',
    [...new Set([ledger, accounts, webhooks].flatMap(migrationFiles))]
      .map((file) => `${createHash('sha256').update(readFileSync(file)).digest('hex')}  ${relative(PROJECT, file)}\n`)
      .join(''),
  );
  write('topics.json', asJson(topics));
  write('schemas.json.gz', gzipSync(JSON.stringify(messageSchemas()), { level: 9 }));
  const asked = await useEverything(world, api);
  const answers: Asked[] = [];
  for (const one of asked) {
    const { status, text } = await (one.key ? api.once(one.key, one.path, one.body) : api.get(one.path));
    if (status >= 500) throw new Error(`${one.path} is answered ${status}: ${text}`);
    answers.push({ ...one, answer: readAnswer(text) });
  }
  write('answers.json', asJson({ apiKey: bank.api_key.split('_'), asked: answers }));
  await underWay();
  await eventually(() => world.isPublished());
  await recordMessages();
  const dump = execFileSync(
    join(bin, 'pg_dump'),
    [
      '--inserts',
      '--no-owner',
      '--no-privileges',
      ...['ledger', 'accounts', 'webhooks'].map((name) => `--schema=${name}`),
      bank.database_url,
    ],
    { maxBuffer: 1 << 28, encoding: 'utf8' },
  );
  write('dump.sql.gz', gzipSync(dump, { level: 9 }));
  expect(dump.length).toBeGreaterThan(10_000);
});

/** An opening that the ledger has not received: a step of a saga, and a repeat that waits for its reply. */
async function underWay(): Promise<void> {
  const { bank, api } = world;
  const { client_id } = await api.client({ first_name: 'Under', last_name: 'Way' });
  await bank.process('ledger').stop();
  const key = newKey();
  for (let i = 0; i < 2; i++)
    await api.once(key, '/accounts', { client_id, account_type: 'Savings', currency: 'USD', initial_deposit: 4 });
}

/** Of each topic, the first message of each type; of replies, the first to each message. */
async function recordMessages(): Promise<void> {
  const { bank } = world;
  const names = Object.keys(topics) as TopicName[];
  const read = await readTopics(bank, names);
  const publicKey = bank.public_key;
  const asked = new Map<string, MessageName>();
  for (const messages of read.values())
    for (const { headers } of messages) {
      const name = messageOfType(headers['ce_type'] ?? '');
      if (name && headers['correlation-id']) asked.set(headers['correlation-id'], name);
    }
  const found = new Map<string, Omit<Recorded, 'decoded'>>();
  const isBetter = (message: ReceivedMessage) => message.value?.includes('"ok":true') ?? false;
  for (const [topic, messages] of read)
    for (const message of messages) {
      const { headers, key, value } = message;
      const type = headers['ce_type'] ?? '';
      const answers = type === replyType ? asked.get(headers['correlation-id'] ?? '') : undefined;
      const place = `${topic} ${type} ${answers}`;
      if (found.has(place) && !(answers && isBetter(message) && !found.get(place)?.value?.includes('"ok":true')))
        continue;
      found.set(place, {
        topic,
        key,
        value: value?.toString('utf8') ?? null,
        headers,
        ...(answers ? { answers } : {}),
      });
    }
  const reader = { prefix: bank.topic_prefix, publicKey };
  const messages = [...found.values()].map((message) => ({ ...message, decoded: decode(message, reader) }));
  recordEvents(messages);
  write('messages.json.gz', gzipSync(JSON.stringify({ ...reader, messages }), { level: 9 }));
}

/** The schemas of events, each with a sample. */
function recordEvents(messages: readonly Recorded[]): void {
  const folder = join(PROJECT, 'tests/events/released', release);
  mkdirSync(folder, { recursive: true });
  for (const type of Object.keys(events)) {
    copyFileSync(join(PROJECT, 'docs/events', `${type}.schema.json`), join(folder, `${type}.schema.json`));
    const samples = messages
      .filter(({ headers }) => headers['ce_type'] === type)
      .map(({ value }) => JSON.parse(value ?? ''));
    writeFileSync(join(folder, `${type}.samples.json`), asJson(samples));
  }
}
