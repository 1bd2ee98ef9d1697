import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { source, toHeaders } from '#libs/contracts/envelope.ts';
import { formatId } from '#libs/contracts/ids.ts';
import { MacKeys } from '#libs/contracts/mac.ts';
import { messageType } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { signedForTest, testKeys } from '#libs/service/test/keys.ts';
import { closingLock } from '../rows.ts';
import { freshBits, useLedger } from '../test/harness.ts';
import { verifyBooks } from '../verify/verify-books.ts';
import { ledgerCommands } from './commands.ts';
import { probe } from './probe.ts';

/** A command is blamed only while the ledger can post: with a real Postgres whose schema differs from the ledger's. */
const ledger = useLedger();
let dead: ReceivedMessage[] = [];
let replied = 0;
let account: string;

beforeAll(async () => {
  account = await ledger.open('Savings', '0');
});
afterAll(async () => {
  expect(await verifyBooks(ledger.owner)).toEqual([]);
});

const consumer = (keys = testKeys) =>
  ledgerCommands({
    pool: ledger.writes,
    replies: { send: (answers) => void (replied += answers.length), deadLetter: async (one) => void dead.push(one) },
    prefix: '',
    keys,
    logger: silent,
    relay: { known: () => ({ ids: [], period: {} }), wake: () => undefined },
    partitions: () => [0],
    answerQueries: async () => undefined,
  });

function deposit(description: string | null = null): ReceivedMessage {
  const transaction_id = formatId('transaction', freshBits());
  const data = { transaction_id, account_id: account, transaction_type: 'Deposit', amount: '1' };
  const headers = toHeaders({
    message_id: transaction_id,
    type: messageType('create_transaction'),
    source: source.gateway,
    time: new Date().toISOString(),
    subject: account,
    request_id: 'req-1',
    actor: 'test',
  });
  const value = Buffer.from(JSON.stringify({ ...data, currency: null, description, reference: null }));
  const place = { topic: 'ledger.commands', partition: 0, offset: 0n, timestamp_ms: Date.now() };
  return signedForTest({ ...place, key: account, value, headers });
}

const owned = (sql: string) => ledger.owner.query(sql);
async function count(table: string): Promise<number> {
  const { rows } = await owned(`select count(*)::int as n from ${table}`);
  return (rows[0] as { n: number }).n;
}

const tables = [
  'accounts',
  'transactions',
  'entries',
  'holds',
  'commands',
  'batches',
  'audit_outbox',
  'outbox_batches',
  'outbox',
] as const;

describe('the probe', () => {
  it('can be executed, also by a writer without slots, and leaves nothing', async () => {
    const before = await Promise.all(tables.map(count));
    await probe(ledger.writes, 0);
    await probe(ledger.writes, 11);
    expect(await Promise.all(tables.map(count))).toEqual(before);
  });

  it('waits for no posting, and no posting for it', async () => {
    const posting = await ledger.owner.connect();
    try {
      await posting.query(`begin; select pg_advisory_xact_lock_shared(${closingLock})`);
      await Promise.all([probe(ledger.writes, 0), probe(ledger.writes, 11)]);
    } finally {
      await posting.query('rollback');
      posting.release();
    }
  });

  it.each(tables)('fails if nothing can be inserted into %s', async (table) => {
    await owned(`alter table ${table} add constraint newer check (false) not valid`);
    try {
      await expect(probe(ledger.writes, 0)).rejects.toMatchObject({ code: '23514', constraint: 'newer' });
    } finally {
      await owned(`alter table ${table} drop constraint newer`);
    }
  });

  it.each(['accounts', 'holds'])('fails if no row of %s can be updated', async (table) => {
    await owned(`create function refuse_update() returns trigger language plpgsql as $$
      begin raise exception 'refused' using errcode = 'check_violation'; end $$`);
    await owned(`create trigger refuse_update before update on ${table} for each row execute function refuse_update()`);
    try {
      await expect(probe(ledger.writes, 0)).rejects.toMatchObject({ code: '23514' });
    } finally {
      await owned(`drop function refuse_update cascade`);
    }
  });

  it('fails if a constraint that is checked only by COMMIT is violated', async () => {
    await owned(`create function refuse_late() returns trigger language plpgsql as $$
      begin raise exception 'refused' using errcode = 'check_violation'; end $$`);
    await owned(
      'create constraint trigger refuse_late after insert on commands initially deferred for each row execute function refuse_late()',
    );
    try {
      await expect(probe(ledger.writes, 0)).rejects.toMatchObject({ code: '23514' });
    } finally {
      await owned(`drop function refuse_late cascade`);
    }
  });
});

/** What a database can be in that looks healthy, how it is mended, and the error that the process reports. */
const faults: [string, string, string, string][] = [
  [
    'the sequence of the outbox is behind its table',
    `with highest as (insert into outbox_batches (batch_id, size, published_at) overriding system value
       select g, 1, now() from generate_series((select max(batch_id) + 1 from outbox_batches),
         (select max(batch_id) + 100 from outbox_batches)) as g returning batch_id)
     select setval(pg_get_serial_sequence('outbox_batches', 'batch_id'), min(batch_id), false) from highest`,
    `select setval(pg_get_serial_sequence('outbox_batches', 'batch_id'), max(batch_id)) from outbox_batches`,
    'outbox_batches_pkey',
  ],
  [
    'a newer schema has a constraint',
    'alter table transactions add constraint newer check (reference is not null) not valid',
    'alter table transactions drop constraint newer',
    'newer',
  ],
  [
    'a newer schema has a column that must be filled',
    'alter table transactions add column newer int not null default 0; alter table transactions alter column newer drop default',
    'alter table transactions drop column newer',
    'newer',
  ],
];

describe.each(faults)('%s', (_, breaking, mending, reason) => {
  it('commands wait, alone and together, the process is not ready, and nothing is dead-lettered', async () => {
    const { handle, health } = consumer();
    const batches = [[deposit()], Array.from({ length: 20 }, () => deposit())];
    [dead, replied] = [[], 0];
    await owned(breaking);
    try {
      for (const batch of batches) await expect(handle(batch)).rejects.toThrow(reason);
      expect([dead, replied, health()]).toEqual([[], 0, { ok: false, reason: expect.stringContaining(reason) }]);
    } finally {
      await owned(mending);
    }
    for (const batch of batches) await handle(batch);
    expect([dead, replied, health()]).toEqual([[], 21, { ok: true }]);
  });
});

it('a command that alone is rejected is dead-lettered by a process that has executed nothing yet', async () => {
  [dead, replied] = [[], 0];
  const [bad, good] = [deposit('rejected'), deposit()];
  await owned(
    `alter table transactions add constraint newer check (description is distinct from 'rejected') not valid`,
  );
  try {
    await consumer().handle([bad]);
    await consumer().handle([bad, good]);
  } finally {
    await owned('alter table transactions drop constraint newer');
  }
  expect([dead, replied]).toEqual([[bad, bad], 1]);
});

it('a command that is signed with a key that this ledger lacks waits for the key; a wrong MAC is forged', async () => {
  [dead, replied] = [[], 0];
  const [good, other, forged] = [deposit(), deposit(), deposit()];
  forged.headers['mac'] = `${forged.headers['mac']}x`;
  const lacking = consumer(new MacKeys({ gateway: ['another key of gateways, for this test'] }));
  for (const batch of [[other, good], [good]])
    await expect(lacking.handle(batch)).rejects.toThrow(/ledger.commands\/0\/0 .*gateway\/[\w-]{8}, which is not in/);
  expect([dead, replied, lacking.health()]).toEqual([
    [],
    0,
    { ok: false, reason: expect.stringContaining('GATEWAY_MAC_KEYS') },
  ]);
  await consumer().handle([other, forged, good]);
  expect([dead, replied]).toEqual([[forged], 2]);
});
