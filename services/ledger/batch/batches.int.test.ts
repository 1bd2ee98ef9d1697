import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Batch, BatchSummary, ItemResult } from '#libs/contracts/batches.ts';
import { source, toHeaders } from '#libs/contracts/envelope.ts';
import type { EventData } from '#libs/contracts/events.ts';
import { formatId, inBucket, itemBits } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import type { Answer } from '#libs/service/replies.ts';
import { signedForTest, testKeys } from '#libs/service/test/keys.ts';
import { freshBits, useLedger } from '../test/harness.ts';
import { verifyBooks } from '../verify/verify-books.ts';
import { ledgerBatches } from './batches.ts';
import type { DecidedBatch } from './commands.ts';
import { recordIn } from './dead-lettered.ts';

const ledger = useLedger();
let answers: Answer[];
let dead: ReceivedMessage[];
let decided: DecidedBatch[];
let hasSingles: boolean;

beforeEach(() => {
  [answers, dead, decided, hasSingles] = [[], [], [], false];
});
afterAll(async () => {
  expect(await verifyBooks(ledger.owner)).toEqual([]);
});

const handler = () =>
  ledgerBatches({
    pool: ledger.writes,
    replies: { send: (sent) => void answers.push(...sent), deadLetter: async (message) => void dead.push(message) },
    prefix: '',
    keys: testKeys,
    logger: silent,
    relay: { known: () => ({ ids: [], period: {} }), wake: () => undefined },
    partitions: () => [0],
    observe: (batch) => void decided.push(batch),
    answerQueries: async () => undefined,
    hasSingles: () => hasSingles,
  });

interface Asked {
  external_id?: string;
  metadata?: Record<string, string>;
  mode?: 'independent' | 'atomic';
  fingerprint?: string;
  bucket?: number;
}
const newBatchId = () => formatId('batch', freshBits());

/** A message of that batch, in partition `bucket`. */
function message(
  batch_id: string,
  items: object[],
  { mode = 'independent', fingerprint = 'f'.repeat(32), bucket = 0, ...names }: Asked = {},
): ReceivedMessage {
  const id = `bat_${inBucket(batch_id.slice(4), bucket)}`;
  const headers = toHeaders({
    message_id: id,
    type: messageType('create_batch'),
    source: source.gateway,
    time: new Date().toISOString(),
    subject: 'acc',
    request_id: 'req-1',
    actor: 'test',
    idempotency_key: 'k',
    fingerprint,
    reply_topic: 'replies',
    reply_partition: 0,
    correlation_id: id,
  });
  const value = Buffer.from(JSON.stringify({ batch_id, mode, items, ...names }));
  return signedForTest({
    topic: 'ledger.batches',
    partition: bucket,
    offset: 0n,
    key: 'acc',
    value,
    headers,
    timestamp_ms: Date.now(),
  });
}

const deposit = (account_id: string, amount = '1', description: string | null = null) => ({
  transaction: { account_id, transaction_type: 'Deposit', amount, currency: null, description, reference: null },
});
const times = <T>(count: number, item: () => T) => Array.from({ length: count }, item);
const itemResults = ({ body }: Answer) => (body.ok ? (body.data as { results: ItemResult[] }).results : []);
const codes = (answer: Answer | undefined) =>
  answer?.body.ok === false
    ? [answer.body.refusal.code]
    : itemResults(answer as Answer).map(({ status, error }) => error?.code ?? status);
const sizes = () =>
  decided.map(({ commands }) =>
    commands.map((command) => (command.name === 'create_batch' ? command.items.length : 1)),
  );

async function balance(account_id: string): Promise<bigint> {
  const { rows } = await ledger.owner.query<{ balance_minor: bigint }>(
    'select balance_minor from v_accounts where account_id = $1',
    [account_id],
  );
  return rows[0]?.balance_minor ?? -1n;
}

async function read(batch_id: string): Promise<Batch> {
  const reply = await ledger.ask({ name: 'get_batch', data: { batch_id } });
  if (!reply.ok) throw new Error(reply.refusal.code);
  return reply.data as Batch;
}

/** Makes the database reject entries of this amount with that SQLSTATE while `use` runs. */
async function refusing<T>(minor: number, state: string, use: () => Promise<T>): Promise<T> {
  await ledger.owner.query(
    `create function refuse() returns trigger language plpgsql as $$ begin if new.amount_minor = ${minor} then raise exception 'refused' using errcode = '${state}'; end if; return new; end $$`,
  );
  await ledger.owner.query('create trigger refuse before insert on entries for each row execute function refuse()');
  try {
    return await use();
  } finally {
    await ledger.owner.query('drop trigger refuse on entries');
    await ledger.owner.query('drop function refuse()');
  }
}

describe('size of a transaction', () => {
  it('without other load, messages are combined up to 500 items, and a larger one is divided', async () => {
    const account = await ledger.open('Savings', '0');
    await handler().handle(
      [400, 60, 40, 1, 700].map((count, i) =>
        message(
          newBatchId(),
          times(count, () => deposit(account)),
          { bucket: i },
        ),
      ),
    );
    expect(sizes()).toEqual([[400, 60, 40], [1], [500], [200]]);
    expect(answers.map((answer) => itemResults(answer).length)).toEqual([400, 60, 40, 1, 700]);
    expect(await balance(account)).toBe(120_100n);
  });

  it('while single commands arrive, it is 50 items, with a pause after each transaction as long as the transaction', async () => {
    hasSingles = true;
    const account = await ledger.open('Savings', '0');
    await handler().handle([
      message(
        newBatchId(),
        times(125, () => deposit(account)),
      ),
      message(
        newBatchId(),
        times(30, () => deposit(account)),
        { bucket: 1 },
      ),
    ]);
    expect(sizes()).toEqual([[50], [50], [25], [30]]);
    const begins = decided.map(({ times: { begun } }) => begun);
    const ends = decided.map(({ times: { committed } }) => committed);
    // A timer of Node is up to 2 ms early, because it counts in whole milliseconds.
    for (const i of [1, 2, 3])
      expect((begins[i] ?? 0) - (ends[i - 1] ?? 0)).toBeGreaterThan((ends[i - 1] ?? 0) - (begins[i - 1] ?? 0) - 2);
  });

  it('an atomic batch is one transaction, and the only one in it if it is large', async () => {
    hasSingles = true;
    const account = await ledger.open('Savings', '0');
    await handler().handle([
      message(
        newBatchId(),
        times(500, () => deposit(account)),
        { mode: 'atomic' },
      ),
      message(newBatchId(), [deposit(account)], { bucket: 1 }),
    ]);
    expect(sizes()).toEqual([[500], [1]]);
  });

  it('batches use their own slots, so that no deposit of a single request waits for them', async () => {
    const account = await ledger.open('Savings', '0', 'KES');
    await handler().handle([message(newBatchId(), [deposit(account)])]);
    const { rows } = await ledger.owner.query(
      "select account_number from v_accounts where client_id is null and currency = 'KES' and last_sequence > 0 order by 1",
    );
    expect(rows.map((row) => row['account_number'])).toEqual(['TLR-KES/12', 'VLT-KES/12']);
  });
});

describe('executed once', () => {
  it('a message that is delivered again gets the same reply and moves nothing', async () => {
    const account = await ledger.open('Savings', '0');
    const sent = message(
      newBatchId(),
      times(3, () => deposit(account)),
    );
    await handler().handle([sent]);
    await handler().handle([{ ...sent }]);
    expect(answers[1]?.body).toEqual({ ...answers[0]?.body, replayed: true });
    expect(await balance(account)).toBe(300n);
  });

  it('a message interrupted by a fault is completed later, and decided items are kept', async () => {
    hasSingles = true;
    const account = await ledger.open('Savings', '0');
    const batch_id = newBatchId();
    const sent = message(batch_id, [
      ...times(100, () => deposit(account)),
      deposit(account, '7.77'),
      ...times(10, () => deposit(account)),
    ]);
    await refusing(777, '53100', () => expect(handler().handle([sent])).rejects.toThrow('refused'));
    expect([dead, answers, (await read(batch_id)).counts]).toEqual([
      [],
      [],
      { completed: 100, failed: 0, pending: 11 },
    ]);
    await handler().handle([{ ...sent }]);
    expect((await read(batch_id)).counts).toEqual({ completed: 111, failed: 0, pending: 0 });
    expect([await balance(account), answers[0]?.body.replayed]).toEqual([11_777n, undefined]);
  });

  const batchEvents = async (batch_id: string) =>
    (await readOutbox(ledger.owner))
      .filter(({ topic, key }) => topic === 'batches' && key === batch_id)
      .map(
        ({ id, payload }) => [id, JSON.parse(payload ?? '') as EventData<'corebanking.batch.completed.v1'>] as const,
      );

  it('a batch has one event, when its last item is decided, with what all items came to', async () => {
    // contract: batches-16
    hasSingles = true;
    const account = await ledger.open('Savings', '0');
    const batch_id = newBatchId();
    const names = { external_id: 'wages', metadata: { file: 'wages.csv' } };
    const { transaction } = deposit(account, '1000000');
    const sent = message(
      batch_id,
      [
        ...times(100, () => deposit(account)),
        { transaction: { ...transaction, transaction_type: 'Withdrawal' } },
        deposit(account, '6.66'),
      ],
      names,
    );
    await refusing(666, '53100', () => expect(handler().handle([sent])).rejects.toThrow('refused'));
    expect(await batchEvents(batch_id)).toEqual([]);
    for (let i = 0; i < 2; i++) await handler().handle([{ ...sent }]);
    const { created_at, totals } = await read(batch_id);
    expect(await batchEvents(batch_id)).toEqual([
      [
        batch_id.slice(4),
        {
          batch: {
            batch_id,
            mode: 'independent',
            status: 'Completed',
            counts: { completed: 101, failed: 1 },
            totals: [{ currency: 'USD', amount: '106.66' }],
            created_at,
            ...names,
          },
          client_id: null,
          actor: 'test',
          request_channel: 'system',
        },
      ],
    ]);
    expect(totals).toEqual([{ currency: 'USD', amount: '106.66' }]);
  });

  it('an atomic batch has one event, and so has one that is refused', async () => {
    // contract: batches-16
    const account = await ledger.open('Savings', '0');
    const [done, refusedId] = [newBatchId(), newBatchId()];
    const { transaction } = deposit(account, '1000000');
    const withdrawal = { transaction: { ...transaction, transaction_type: 'Withdrawal' } };
    for (let i = 0; i < 2; i++) {
      await handler().handle([
        message(
          done,
          times(3, () => deposit(account)),
          { mode: 'atomic' },
        ),
      ]);
      await handler().handle([message(refusedId, [deposit(account), withdrawal], { mode: 'atomic' })]);
    }
    const shown = async (batch_id: string) =>
      (await batchEvents(batch_id)).map(([, { batch }]) => [batch.status, batch.counts, batch.totals]);
    expect(await shown(done)).toEqual([
      ['Completed', { completed: 3, failed: 0 }, [{ currency: 'USD', amount: '3.00' }]],
    ]);
    expect(await shown(refusedId)).toEqual([['Refused', { completed: 0, failed: 2 }, []]]);
  });

  it('if two ledgers get two bodies with one key, exactly one is posted, completely', async () => {
    const account = await ledger.open('Savings', '0');
    for (let round = 0; round < 10; round++) {
      const batch_id = newBatchId();
      const bodies = ['a', 'b'].map((letter) =>
        message(
          batch_id,
          times(5, () => deposit(account, letter === 'a' ? '1' : '2')),
          { fingerprint: letter.repeat(32), bucket: letter === 'a' ? 0 : 1 },
        ),
      );
      answers = [];
      const before = await balance(account);
      await Promise.all(bodies.map((body) => handler().handle([body])));
      const done = answers.filter(({ body }) => body.ok).length;
      expect([done, answers.length - done]).toEqual([1, 1]);
      expect([500n, 1000n]).toContain((await balance(account)) - before);
    }
  });
});

describe('poison', () => {
  it('an item is Failed internal_error in its place, for good, and the others stand', async () => {
    // contract: batches-9
    const account = await ledger.open('Savings', '0');
    const other = await ledger.open('Savings', '0');
    const batch_id = newBatchId();
    const transfer = {
      from_account_id: account,
      to_account_id: other,
      amount: '6.66',
      currency: 'USD',
      description: 'x',
    };
    const sent = message(batch_id, [
      ...times(20, () => deposit(account)),
      deposit(account, '6.66', 'a text'),
      { transfer },
      ...times(20, () => deposit(account)),
    ]);
    const next = message(newBatchId(), [deposit(account)], { bucket: 1 });
    await refusing(666, '22003', () => handler().handle([sent, next]));
    expect([dead, answers.length, await balance(account), await balance(other)]).toEqual([[], 2, 4100n, 0n]);
    const answered = itemResults(answers[0] as Answer);
    expect(codes(answers[0])).toEqual([
      ...times(20, () => 'Completed'),
      'internal_error',
      'internal_error',
      ...times(20, () => 'Completed'),
    ]);
    expect(answered[20]).toMatchObject({
      status: 'Failed',
      transaction: { account_id: account, amount: '6.66', description: null, failure_code: 'internal_error' },
    });
    expect(answered[21]).toMatchObject({
      status: 'Failed',
      transfer: { from_account_id: account, to_account_id: other, status: 'Failed', failure_code: 'internal_error' },
    });
    // What failed is not executed later, and reads and repeats return the same.
    await handler().handle([{ ...sent }]);
    expect(answers.at(-1)?.body).toEqual({ ...answers[0]?.body, replayed: true });
    const { counts, results } = await read(batch_id);
    expect([counts, results]).toEqual([{ completed: 40, failed: 2, pending: 0 }, answered]);
    const { transaction_id } = answered[20]?.transaction ?? { transaction_id: '' };
    expect(await ledger.ask({ name: 'get_transaction', data: { transaction_id } })).toMatchObject({
      data: { status: 'Failed', failure_code: 'internal_error' },
    });
  });

  it('an item waits if no other command can be executed either', async () => {
    const account = await ledger.open('Savings', '0');
    const sent = message(newBatchId(), [deposit(account), deposit(account, '6.66')]);
    const { handle, health } = handler();
    await ledger.owner.query('alter table transactions add constraint newer check (reference is not null) not valid');
    try {
      await expect(handle([sent])).rejects.toThrow('newer');
      expect([dead, answers, health().ok]).toEqual([[], [], false]);
    } finally {
      await ledger.owner.query('alter table transactions drop constraint newer');
    }
    await handle([sent]);
    expect([codes(answers[0]), health()]).toEqual([['Completed', 'Completed'], { ok: true }]);
  });

  it('a message becomes a dead letter if not even the failure of its item can be recorded', async () => {
    const account = await ledger.open('Savings', '0');
    const sent = message(newBatchId(), [deposit(account), deposit(account)]);
    await ledger.owner.query(
      `alter table transactions add constraint odd check (account_id <> '${account.slice(4)}') not valid`,
    );
    try {
      await handler().handle([sent]);
    } finally {
      await ledger.owner.query('alter table transactions drop constraint odd');
    }
    expect([dead, answers]).toEqual([[sent], []]);
  });

  it('an atomic batch becomes a dead letter with nothing posted, and its state is known', async () => {
    const account = await ledger.open('Savings', '0');
    const batch_id = newBatchId();
    const { handle } = handler();
    await handle([message(newBatchId(), [deposit(account)])]);
    const sent = message(batch_id, [deposit(account), deposit(account, '6.66')], { mode: 'atomic' });
    await refusing(666, '22003', () => handle([sent]));
    expect([dead, await balance(account)]).toEqual([[sent], 100n]);
    await expect(read(batch_id)).rejects.toThrow('service_unavailable');
    await handler().handle([{ ...sent }]);
    expect((await read(batch_id)).counts.completed).toBe(2);
  });

  it('the items of an atomic batch that became a dead letter and was refused later are unknown then', async () => {
    const [account, other] = [await ledger.open('Savings', '0'), await ledger.open('Savings', '0', 'KES')];
    const batch_id = newBatchId();
    const { handle } = handler();
    await handle([message(newBatchId(), [deposit(account)])]);
    const transfer = { from_account_id: account, to_account_id: other, amount: '1', currency: null, description: null };
    const sent = message(batch_id, [deposit(account, '6.66'), { transfer }], { mode: 'atomic' });
    await recordIn(ledger.writes)(sent);
    const first = formatId('transaction', itemBits(batch_id, 0));
    const read = async () => {
      const reply = await ledger.ask({ name: 'get_transaction', data: { transaction_id: first } });
      return !reply.ok && reply.refusal.code;
    };
    expect(await read()).toBe('service_unavailable');
    await handle([sent]);
    expect([codes(answers.at(-1)), await read()]).toEqual([['batch_refused'], 'transaction_not_found']);
  });

  it('a posting that became a dead letter is Pending, and therefore not reversible', async () => {
    // contract: transactions-28
    const [pending, unknown] = [formatId('transaction', freshBits()), formatId('transaction', freshBits())];
    const headers = { ce_id: pending, ce_type: messageType('create_transaction') };
    await recordIn(ledger.writes)({ headers, value: null });
    const replies = await ledger.book([ledger.reversal(pending), ledger.reversal(unknown)]);
    expect(replies.map((reply) => !reply.ok && reply.refusal.code)).toEqual([
      'not_reversible',
      'transaction_not_found',
    ]);
  });

  it.each([
    [
      'another message',
      (sent: ReceivedMessage) =>
        signedForTest({ ...sent, headers: { ...sent.headers, ce_type: messageType('create_transfer') } }),
    ],
    [
      'no items',
      (sent: ReceivedMessage) =>
        signedForTest({ ...sent, value: Buffer.from('{"batch_id":"bat_x","mode":"atomic","count":0,"items":[]}') }),
    ],
    [
      'an invalid id',
      (sent: ReceivedMessage) =>
        signedForTest({ ...sent, value: Buffer.from(String(sent.value).replace(/bat_[0-9a-f]{32}/, 'bat_x')) }),
    ],
    ['one without a MAC', ({ headers: { mac: _, ...headers }, ...sent }: ReceivedMessage) => ({ ...sent, headers })],
  ])('%s is not executed', async (_, change) => {
    const account = await ledger.open('Savings', '0');
    await handler().handle([change(message(newBatchId(), [deposit(account)]))]);
    expect([dead.length, await balance(account)]).toEqual([1, 0n]);
  });
});

describe('reading a batch', () => {
  it('returns nothing for another client or another bucket', async () => {
    const account = await ledger.open('Savings', '0');
    const batch_id = newBatchId();
    await handler().handle([message(batch_id, [deposit(account)])]);
    const code = async (id: string, context = {}) => {
      const reply = await ledger.ask({ name: 'get_batch', data: { batch_id: id } }, context);
      return reply.ok ? 'done' : reply.refusal.code;
    };
    expect(await code(batch_id)).toBe('done');
    expect(await code(`${batch_id.slice(0, -2)}07`)).toBe('idempotency_key_reused');
    expect(await code(batch_id, { bound_client_id: formatId('client', freshBits()) })).toBe('batch_not_found');
    expect([await code('bat_x'), await code(newBatchId())]).toEqual(['batch_not_found', 'batch_not_found']);
  });

  it('returns a batch that was refused as a whole with its refusal', async () => {
    const account = await ledger.open('Savings', '0');
    const batch_id = newBatchId();
    await handler().handle([
      message(
        batch_id,
        [
          deposit(account),
          {
            transfer: {
              from_account_id: account,
              to_account_id: account,
              amount: '1',
              currency: null,
              description: null,
            },
          },
        ],
        { mode: 'atomic' },
      ),
    ]);
    expect(codes(answers[0])).toEqual(['batch_refused']);
    expect(await ledger.ask({ name: 'get_batch', data: { batch_id } })).toEqual({
      ok: false,
      refusal: (answers[0]?.body as { refusal: object }).refusal,
    });
  });
});

describe('the list of batches', () => {
  const list = async (filters: object = {}, context = {}) => {
    const data = { limit: 100, order: 'desc' as const, ...filters };
    const reply = await ledger.ask({ name: 'list_batches', data }, context);
    if (!reply.ok) throw new Error(reply.refusal.code);
    return (reply.data as { items: BatchSummary[] }).items;
  };

  it('shows counts and totals as far as the items are decided', async () => {
    // contract: batches-14
    const [dollars, euros] = [await ledger.open('Savings', '0'), await ledger.open('Savings', '0', 'EUR')];
    const batch_id = newBatchId();
    hasSingles = true;
    const items = [
      ...times(50, () => deposit(dollars, '0.10')),
      deposit(euros, '7'),
      deposit(formatId('account', freshBits())),
      deposit(dollars, '13'),
    ];
    const names = { external_id: 'a file', metadata: { file_name: 'wages.csv' } };
    const interrupted = refusing(1300, '53100', () => handler().handle([message(batch_id, items, names)]));
    await expect(interrupted).rejects.toThrow();
    const head = { batch_id, mode: 'independent', actor: 'test', created_at: expect.any(String), ...names };
    const only = { external_id: 'a file' };
    expect(await list(only)).toEqual([
      {
        ...head,
        status: 'Pending',
        counts: { completed: 50, failed: 0, pending: 3 },
        totals: [{ currency: 'USD', amount: '5.00' }],
      },
    ]);
    await handler().handle([message(batch_id, items, names)]);
    expect(await list(only)).toEqual([
      {
        ...head,
        status: 'Completed',
        counts: { completed: 52, failed: 1, pending: 0 },
        totals: [
          { currency: 'EUR', amount: '7.00' },
          { currency: 'USD', amount: '18.00' },
        ],
      },
    ]);
    expect(await read(batch_id)).toMatchObject((await list(only))[0] as object);
    const { created_at } = (await list(only))[0] as BatchSummary;
    const found = async (filters: object) => (await list({ ...only, ...filters })).map((one) => one.batch_id);
    expect(await found({ actor: 'test', from: created_at })).toEqual([batch_id]);
    for (const filters of [{ actor: 'another' }, { to: created_at }]) expect(await found(filters)).toEqual([]);
  });

  it('finds those of a person by their index', async () => {
    const query = vi.spyOn(ledger.reads, 'query');
    await list({ actor: 'jwt:https://issuer.example|ada' });
    const [text, values] = query.mock.calls.at(-1) as unknown as [string, unknown[]];
    query.mockRestore();
    const client = await ledger.owner.connect();
    await client.query('begin');
    // Of a few rows, all of them in order, or no index, cost as little.
    await client.query('drop index batches_by_time');
    await client.query('set local enable_seqscan = off');
    const plan = await client.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
    await client.query('rollback');
    client.release();
    expect(plan.rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('batches_by_person');
  });
});
