import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { source, toHeaders } from '#libs/contracts/envelope.ts';
import { formatId } from '#libs/contracts/ids.ts';
import { type MessageName, messageType } from '#libs/contracts/messages.ts';
import { topicTable } from '#libs/contracts/topics.ts';
import { createKafka } from '#libs/kafka/client.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { Publisher } from '#libs/kafka/publish/publish.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent, type TestDatabase } from '#libs/postgres/test/test-database.ts';
import { createReplies } from '#libs/service/replies.ts';
import { signedForTest, testKeys } from '#libs/service/test/keys.ts';
import { ledgerSchema, migrations } from '../schema.ts';
import { verifyBooks } from '../verify/verify-books.ts';
import { ledgerCommands } from './commands.ts';

const statementTimeoutMs = 1000;

let database: TestDatabase;
let owner: Pool;
let pool: Pool;
let publisher: Publisher;

beforeAll(async () => {
  database = await createTestDatabase();
  const role = `${database.name}_ledger`;
  await migrate({ ...migrations, owner_url: database.url, role, role_password: 'test-password' }, silent);
  const url = new URL(database.url);
  url.username = role;
  url.password = 'test-password';
  owner = createPool({ url: database.url, application_name: 'owner', schema: ledgerSchema, max: 2 }, silent);
  pool = createPool(
    {
      url: url.href,
      application_name: 'ledger',
      schema: ledgerSchema,
      max: 2,
      statement_timeout_ms: statementTimeoutMs,
    },
    silent,
  );
  publisher = new Publisher(
    createKafka({ brokers: (process.env['KAFKA_BROKERS'] ?? '').split(','), client_id: 'test' }, silent),
    { logger: silent, name: 'replies', topics: topicTable('') },
  );
  await publisher.start();
});

afterAll(async () => {
  await Promise.all([owner, pool].map((one) => one?.end()));
  await publisher?.stop();
  await database?.drop();
});

const bits = () => `${randomBytes(15).toString('hex')}00`;

function message(name: MessageName, id: string, data: object): ReceivedMessage {
  const headers = toHeaders({
    message_id: id,
    type: messageType(name),
    source: source.gateway,
    time: new Date().toISOString(),
    subject: id,
    request_id: 'req-1',
    actor: 'test',
  });
  return signedForTest({
    topic: 'ledger.commands',
    partition: 0,
    offset: 0n,
    key: id,
    value: Buffer.from(JSON.stringify(data)),
    headers,
    timestamp_ms: Date.now(),
  });
}

it('executes a batch in parts if it would take too long as a whole', async () => {
  const replies = createReplies({ publisher, source: source.ledger, logger: silent, now: Date.now });
  const { handle } = ledgerCommands({
    pool,
    replies,
    prefix: '',
    keys: testKeys,
    logger: silent,
    relay: { known: () => ({ ids: [], period: {} }), wake: () => undefined },
    partitions: () => [0],
    answerQueries: async () => undefined,
  });
  const account_id = formatId('account', bits());
  const opening = {
    account_id,
    client_id: formatId('client', bits()),
    account_number: 'SAV-1',
    account_type: 'Savings',
    currency: 'USD',
    status: 'Active',
    initial_deposit: '0',
  };
  await handle([message('open_ledger_account', account_id, opening)]);
  // Each deposit takes 40 ms for each of its four entries, so that one deposit is in time and sixteen are not.
  await owner.query(
    `create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.04); return new; end'`,
  );
  await owner.query('create trigger slow before insert on entries for each row execute function slow()');
  const deposits = Array.from({ length: 16 }, () => {
    const transaction_id = formatId('transaction', bits());
    return message('create_transaction', transaction_id, {
      transaction_id,
      account_id,
      transaction_type: 'Deposit',
      amount: '1.00',
      currency: null,
      description: null,
      reference: null,
    });
  });
  await handle(deposits);
  const { rows } = await owner.query<{ balance_minor: bigint }>(
    'select balance_minor from v_accounts where account_id = $1',
    [account_id],
  );
  expect(rows).toEqual([{ balance_minor: 1600n }]);
  expect(await verifyBooks(owner)).toEqual([]);
});
