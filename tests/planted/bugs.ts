/** One bug on purpose: texts to replace, each found exactly once in its file, and the tests that must then fail. */
export interface PlantedBug {
  name: string;
  edits: { file: string; find: string; replace: string }[];
  caughtBy: { file: string; test: string }[];
}

const engine = 'services/ledger/batch/engine.ts';
const batchTests = 'services/ledger/batch/engine.int.test.ts';
const lockTests = 'services/ledger/batch/engine-locks.int.test.ts';
const relay = 'libs/postgres/outbox/relay.ts';
const relayRead = 'libs/postgres/outbox/relay-read.ts';

/** So that the write of a batch can begin a transaction of its own. */
const poolReachesWrite: PlantedBug['edits'] = [
  { file: engine, find: 'runOnce(client, commands, slot));', replace: 'runOnce(client, commands, slot, pool));' },
  { file: engine, find: 'async function runOnce(client: Queries, commands: Command[], slot: number)', replace: 'async function runOnce(client: Queries, commands: Command[], slot: number, pool: Pool)' },
  { file: engine, find: 'await write(client, commands, decisions, books);', replace: 'await write(client, commands, decisions, books, pool);' },
  { file: engine, find: 'decisions: Decision[], books: Books): Promise<void>', replace: 'decisions: Decision[], books: Books, pool: Pool): Promise<void>' },
];

export const bugs: PlantedBug[] = [
  {
    name: 'no key check',
    edits: [{ file: 'services/ledger/domain/posting.ts', find: 'return replayed(command, books) ?? createTransaction(command, books);', replace: 'return createTransaction(command, books);' }],
    caughtBy: [
      { file: 'services/ledger/domain/repeats.test.ts', test: 'create_transaction: the same answer, marked as replayed, and nothing more to write' },
      { file: 'services/ledger/domain/posting-properties.test.ts', test: 'gives a repeat the same answer and books nothing' },
    ],
  },
  {
    // With the unique index it would only be slow: the bug is to trust the check alone.
    name: 'key check outside the transaction',
    edits: [
      { file: 'services/ledger/migrations/0001-ledger.sql', find: 'create unique index transactions_id_key on', replace: 'create index transactions_id_key on' },
      {
        file: engine,
        find: 'const outcome = await transaction(pool, (client) => runOnce(client, commands, slot));',
        replace: `const early = await readTransactions(pool, commands.flatMap((c) => (c.name === 'open_ledger_account' || c.name === 'change_ledger_account_status' ? [] : [recordId(c)])));
      const outcome = await transaction(pool, (client) => runOnce(client, commands, slot, early));`,
      },
      { file: engine, find: 'async function runOnce(client: Queries, commands: Command[], slot: number)', replace: 'async function runOnce(client: Queries, commands: Command[], slot: number, early: TransactionRecord[])' },
      { file: engine, find: 'await openBooks(client, commands, slot);', replace: 'await openBooks(client, commands, slot, early);' },
      { file: engine, find: 'async function openBooks(client: Queries, commands: Command[], slot: number)', replace: 'async function openBooks(client: Queries, commands: Command[], slot: number, early: TransactionRecord[])' },
      { file: engine, find: 'known.length === 0 ? [] : await readTransactions(client, known);', replace: 'early;' },
    ],
    caughtBy: [{ file: lockTests, test: 'recognises a command that a rival commits while it waits for the account' }],
  },
  {
    name: 'offset committed before the database',
    edits: [{ file: 'libs/kafka/consume/message-pool.ts', find: '    for (let attempt = 1; ; attempt++) {', replace: '    for (const { chunk } of batch.parts) tenure.tracker.done(chunk);\n    for (let attempt = 1; ; attempt++) {' }],
    caughtBy: [{ file: 'libs/kafka/consume/consume.int.test.ts', test: 'offsets are committed after handle only, in the background, and a restart goes on there' }],
  },
  {
    name: 'event sent before commit',
    edits: [
      ...poolReachesWrite,
      {
        file: engine,
        find: 'return writeOutbox(client, events);',
        replace: 'return transaction(pool, (other) => writeOutbox(other, events)).then(() => writeOutbox(client, source.ledger, []));',
      },
    ],
    caughtBy: [{ file: lockTests, test: 'leaves no event of what was rolled back' }],
  },
  {
    name: 'outbox mark before ack',
    edits: [
      { file: relay, find: '      await publisher.publishAll(piece, { timeoutMs });', replace: '      void publisher.publishAll(piece, { timeoutMs }).catch(() => undefined);' },
    ],
    caughtBy: [{ file: 'libs/postgres/outbox/relay.int.test.ts', test: 'the broker: everything in order, tried at least once a second, soon after it is back' }],
  },
  {
    name: 'relay by id > last',
    edits: [
      { file: relayRead, find: 'where published_at is null and batch_id <> all($2::bigint[])', replace: 'where batch_id > $3 and batch_id <> all($2::bigint[])' },
      { file: relayRead, find: 'const values = [maxEvents, bigintArray(published)];', replace: 'const values = [maxEvents, bigintArray(published), seen.last];' },
      { file: relayRead, find: 'const readStatement =', replace: 'export const seen = { last: 0n };\n\nconst readStatement =' },
      { file: relay, find: 'readUnpublished } from', replace: 'readUnpublished, seen } from' },
      { file: relay, find: '    this.#unmarked.push(...batches', replace: '    seen.last = last.batch_id;\n    this.#unmarked.push(...batches' },
    ],
    caughtBy: [{ file: 'libs/postgres/outbox/relay.int.test.ts', test: 'a batch that commits while a larger one behind it is under way comes before those that follow its key' }],
  },
  {
    name: 'no row lock',
    edits: [{ file: 'services/ledger/batch/store.ts', find: 'and client_id is not null order by account_id for no key update', replace: 'and client_id is not null order by account_id' }],
    caughtBy: [{ file: lockTests, test: 'waits for who holds the account, and decides on what he commits' }],
  },
  {
    name: 'float money',
    edits: [{ file: 'libs/contracts/money.ts', find: "const minor = BigInt(whole + fraction.slice(0, digits).padEnd(digits, '0'));", replace: 'const minor = BigInt(Math.trunc(Number(decimal) * 10 ** digits));' }],
    caughtBy: [{ file: 'libs/contracts/money.test.ts', test: 'survive the way out and in again, and a double in between' }],
  },
  {
    name: 'a leg outside the transaction',
    edits: [
      ...poolReachesWrite,
      {
        file: engine,
        find: '&& writeBatch(client, transactions, entries, moved)',
        replace: '&& (setImmediate(() => void transaction(pool, (other) => writeBatch(other, [], entries.slice(-1), []))), writeBatch(client, transactions, entries.slice(0, -1), moved))',
      },
    ],
    caughtBy: [{ file: batchTests, test: 'books openings, deposits, transfers, loans and reversals in one transaction, with their events' }],
  },
  {
    name: '"Failed" on time-out',
    edits: [{ file: 'services/gateway/api/commands.ts', find: "pending: (acceptedAt) => ({ ...data, status: 'Pending', created_at: acceptedAt.toISOString(), direction }),", replace: "pending: (acceptedAt) => ({ ...data, status: 'Failed', created_at: acceptedAt.toISOString(), direction }) as never," }],
    caughtBy: [{ file: 'services/gateway/api/replies.test.ts', test: 'no reply in time: 202 Pending for transactions and transfers, and GET is 503 while nobody answers' }],
  },
  {
    name: 'stale balance read',
    edits: [
      { file: 'services/ledger/queries/queries.ts', find: '/** Balance and status of the accounts that exist among these', replace: 'const cache = new Map<string, MessageResult<\'get_ledger_accounts\'>>();\n\n/** Balance and status of the accounts that exist among these' },
      { file: 'services/ledger/queries/queries.ts', find: '  const { rows } = await pool.query<AccountView>({\n    name: \'get_ledger_accounts\',', replace: '  const name = accountIds.join();\n  const cached = cache.get(name);\n  if (cached) return cached;\n  setTimeout(() => cache.delete(name), 1000);\n  const { rows } = await pool.query<AccountView>({\n    name: \'get_ledger_accounts\',' },
      { file: 'services/ledger/queries/queries.ts', find: '  return rows.map(({ balance_minor, account_id, ...rest }) =>', replace: '  const put = (found: MessageResult<\'get_ledger_accounts\'>) => (cache.set(name, found), found);\n  return put(rows.map(({ balance_minor, account_id, ...rest }) =>' },
      { file: 'services/ledger/queries/queries.ts', find: 'balance: fromMinor(balance_minor, rest.currency) }));\n}\n\nasync function getBalanceByNumber', replace: 'balance: fromMinor(balance_minor, rest.currency) })));\n}\n\nasync function getBalanceByNumber' },
    ],
    caughtBy: [{ file: lockTests, test: 'is seen by every read that begins after its reply, on any connection' }],
  },
  {
    name: 'locks without order',
    edits: [{ file: 'services/ledger/batch/store.ts', find: 'and client_id is not null order by account_id for no key update', replace: 'and client_id is not null for no key update' }],
    caughtBy: [{ file: lockTests, test: 'locks accounts in id order, whatever order they lie in: while it waits for the first it holds no other' }],
  },
];
