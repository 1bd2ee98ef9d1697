/**
 * One bug: texts to replace, each of which occurs once in its file, and the folder with the tests of which one must
 * then fail.
 */
export interface PlantedBug {
  name: string;
  edits: { file: string; find: string; replace: string }[];
  tests: string;
}

const engine = 'services/ledger/batch/engine.ts';
const handed = 'libs/postgres/outbox/handed.ts';
const relay = 'libs/postgres/outbox/relay.ts';
const batchBooks = 'services/ledger/batch/books.ts';
const staleStates = 'libs/postgres/outbox/stale-states.ts';
const relayRead = 'libs/postgres/outbox/relay-read.ts';

/** The edits with which writing a batch can begin a separate transaction. */
const poolReachesWrite: PlantedBug['edits'] = [
  {
    file: engine,
    find: 'return runOnce(client, commands, slot, ids, relay);',
    replace: 'return runOnce(client, commands, slot, ids, relay, pool);',
  },
  {
    file: engine,
    find: "  relay?: Pick<Relay, 'known'>,\n): Promise<Sent<Outcome | 'again'>> {",
    replace:
      "  relay?: Pick<Relay, 'known'>,\n  pool: Pool = undefined as never,\n): Promise<Sent<Outcome | 'again'>> {",
  },
  {
    file: engine,
    find: 'await write(client, commands, decisions, books, relay);',
    replace: 'await write(client, commands, decisions, books, relay, pool);',
  },
  {
    file: engine,
    find: "  relay?: Pick<Relay, 'known'>,\n): Promise<Sent<WrittenBatch | undefined>> {",
    replace:
      "  relay?: Pick<Relay, 'known'>,\n  pool: Pool = undefined as never,\n): Promise<Sent<WrittenBatch | undefined>> {",
  },
  {
    file: engine,
    find: '  transactionInTwoTrips,\n} from',
    replace: '  transaction,\n  transactionInTwoTrips,\n} from',
  },
];

export const bugs: PlantedBug[] = [
  {
    name: 'no key check',
    edits: [
      {
        file: 'services/ledger/domain/posting.ts',
        find: 'return replayed(command, books) ?? replayedWaiting(command, books) ?? createTransaction(command, books);',
        replace: 'return replayedWaiting(command, books) ?? createTransaction(command, books);',
      },
    ],
    tests: 'services/ledger/domain',
  },
  {
    // With the unique index, this would only be slow. The bug is to rely on the check alone.
    name: 'key check outside the transaction',
    edits: [
      {
        file: 'services/ledger/migrations/0001-schema.sql',
        find: 'create unique index transactions_id_key on',
        replace: 'create index transactions_id_key on',
      },
      {
        file: engine,
        find: 'const outcome = await transactionInTwoTrips(pool, async (client) => {',
        replace: `const early = await readTransactions(pool, commands.filter(isPosting).map(recordId));
      const outcome = await transactionInTwoTrips(pool, async (client) => {`,
      },
      {
        file: engine,
        find: 'return runOnce(client, commands, slot, ids, relay);',
        replace: 'return runOnce(client, commands, slot, ids, relay, early);',
      },
      {
        file: engine,
        find: "  relay?: Pick<Relay, 'known'>,\n): Promise<Sent<Outcome | 'again'>> {",
        replace:
          "  relay?: Pick<Relay, 'known'>,\n  early: TransactionRecord[] = [],\n): Promise<Sent<Outcome | 'again'>> {",
      },
      {
        file: engine,
        find: 'await openBooks(client, commands, slot, ids);',
        replace: 'await openBooks(client, commands, slot, ids, early);',
      },
      {
        file: engine,
        find: "import { openBooks } from './books.ts';",
        replace: `import { recordId } from '../domain/posting.ts';
import type { TransactionRecord } from '../domain/records.ts';
import { readTransactions } from '../rows.ts';
import { isPosting, openBooks } from './books.ts';`,
      },
      { file: batchBooks, find: 'function isPosting(', replace: 'export function isPosting(' },
      {
        file: batchBooks,
        find: 'function openBooks(client: Queries, commands: Command[], slot: number, ids: string[])',
        replace:
          'function openBooks(client: Queries, commands: Command[], slot: number, ids: string[], early: TransactionRecord[])',
      },
      {
        file: batchBooks,
        find: 'const repeated = await readTransactions(client, known);',
        replace: 'const repeated = early;',
      },
    ],
    tests: 'services/ledger/batch',
  },
  {
    name: 'offset committed before the database',
    edits: [
      {
        file: 'libs/kafka/consume/message-pool.ts',
        find: '    for (let attempt = 1; ; attempt++) {',
        replace: '    this.#advance(batch, generation);\n    for (let attempt = 1; ; attempt++) {',
      },
    ],
    tests: 'libs/kafka/consume',
  },
  {
    name: 'event sent before commit',
    edits: [
      ...poolReachesWrite,
      {
        file: engine,
        find: 'writeOutbox(client, events, relay?.known())',
        replace: 'transaction(pool, (other) => writeOutbox(other, events, relay?.known()))',
      },
    ],
    tests: 'services/ledger/batch',
  },
  {
    name: 'outbox mark before ack',
    edits: [
      {
        file: relay,
        find: '      await publisher.publishAll(piece, { timeoutMs });',
        replace: '      void publisher.publishAll(piece, { timeoutMs }).catch(() => undefined);',
      },
    ],
    tests: 'libs/postgres/outbox',
  },
  {
    name: 'relay by id > last',
    edits: [
      {
        file: relayRead,
        find: "readStatement('published_at is null",
        replace: "readStatement('batch_id > $3",
      },
      {
        file: relayRead,
        find: 'const values = [maxEvents, published];',
        replace: 'const values = [maxEvents, published, seen.last];',
      },
      {
        file: relayRead,
        find: 'const readStatement =',
        replace: 'export const seen = { last: 0n };\n\nconst readStatement =',
      },
      { file: relay, find: 'readUnpublished } from', replace: 'readUnpublished, seen } from' },
      {
        file: relay,
        find: '    this.#unmarked.ids.push(...ids',
        replace: '    seen.last = last.batch_id;\n    this.#unmarked.ids.push(...ids',
      },
    ],
    tests: 'libs/postgres/outbox',
  },
  {
    name: 'no row lock',
    edits: [
      {
        file: 'services/ledger/batch/store.ts',
        find: 'and client_id is not null order by account_id for no key update',
        replace: 'and client_id is not null order by account_id',
      },
    ],
    tests: 'services/ledger/batch',
  },
  {
    name: 'float money',
    edits: [
      {
        file: 'libs/contracts/money.ts',
        find: "const minor = BigInt(whole + fraction.slice(0, digits).padEnd(digits, '0'));",
        replace: 'const minor = BigInt(Math.trunc(Number(decimal) * 10 ** digits));',
      },
    ],
    tests: 'libs/contracts',
  },
  {
    name: 'transactions outside the database transaction of their entries',
    edits: [
      ...poolReachesWrite,
      {
        file: engine,
        find: '&& writeBatch(client, transactions, entries)',
        replace:
          '&& (setImmediate(() => void transaction(pool, (other) => writeBatch(other, transactions, []))), writeBatch(client, [], entries))',
      },
    ],
    tests: 'services/ledger/batch',
  },
  {
    name: '"Failed" on time-out',
    edits: [
      {
        file: 'services/gateway/api/commands.ts',
        find: "pending: (acceptedAt) => ({ ...plan.data, status: 'Pending', created_at: acceptedAt.toISOString(), direction }),",
        replace:
          "pending: (acceptedAt) => ({ ...plan.data, status: 'Failed', created_at: acceptedAt.toISOString(), direction }) as never,",
      },
    ],
    tests: 'services/gateway/api',
  },
  {
    name: 'stale balance read',
    edits: [
      {
        file: 'services/ledger/queries/queries.ts',
        find: 'export interface AccountsQuery {',
        replace:
          "const cache = new Map<string, MessageResult<'get_ledger_accounts'>[]>();\n\nexport interface AccountsQuery {",
      },
      {
        file: 'services/ledger/queries/queries.ts',
        find: "filter((id) => isId('account', id))));",
        replace:
          "filter((id) => isId('account', id))));\n  const name = [...ids].join();\n  const cached = cache.get(name);\n  if (cached) return cached;\n  setTimeout(() => cache.delete(name), 1000);",
      },
      {
        file: 'services/ledger/queries/queries.ts',
        find: 'return queries.map(({ data, context: { bound_client_id: bound } }) =>',
        replace: 'const result = queries.map(({ data, context: { bound_client_id: bound } }) =>',
      },
      {
        file: 'services/ledger/queries/queries.ts',
        find: 'bound === found.owner) ? [found.account] : [];\n    }),\n  );',
        replace:
          'bound === found.owner) ? [found.account] : [];\n    }),\n  );\n  cache.set(name, result);\n  return result;',
      },
    ],
    tests: 'services/ledger/batch',
  },
  {
    name: 'what is held can be taken',
    edits: [
      {
        file: 'services/ledger/domain/records.ts',
        find: 'return balance_minor - held_minor;',
        replace: 'return balance_minor + 0n * held_minor;',
      },
    ],
    tests: 'services/ledger/domain',
  },
  {
    name: 'a hold counts until it is swept',
    edits: [
      {
        file: batchBooks,
        find: 'hold_expires_at !== null && hold_expires_at <= books.now',
        replace: "hold_expires_at !== null && hold_expires_at <= ''",
      },
    ],
    tests: 'services/ledger/batch',
  },
  {
    name: 'locks without order',
    edits: [
      {
        file: 'services/ledger/batch/store.ts',
        find: 'and client_id is not null order by account_id for no key update',
        replace: 'and client_id is not null for no key update',
      },
    ],
    tests: 'services/ledger/batch',
  },
  {
    name: 'a collision is never repeated',
    edits: [{ file: engine, find: 'collisions >= maxCollisions) throw', replace: 'collisions >= 0) throw' }],
    tests: 'services/ledger/batch',
  },
  {
    name: 'the time is read before the lock is waited for',
    edits: [
      {
        file: 'services/ledger/batch/store.ts',
        find: 'select clock_timestamp() as now',
        replace: 'select now() as now',
      },
    ],
    tests: 'services/ledger/batch',
  },
  {
    name: 'every ledger on slot 0',
    edits: [
      {
        file: 'services/ledger/batch/commands.ts',
        find: 'return Math.min(first, ...others);',
        replace: 'return 0 * (first + others.length);',
      },
    ],
    tests: 'services/ledger/batch',
  },
  {
    name: 'a posting is dead-lettered unrecorded',
    edits: [
      {
        file: 'libs/service/dead-lettered.ts',
        find: 'if (why.code !== notAuthentic.code) await record',
        replace: 'if (why.code === notAuthentic.code) await record',
      },
    ],
    tests: 'services/ledger/batch',
  },
  {
    name: 'the lease is trusted for longer than it lasts',
    edits: [
      { file: 'libs/postgres/outbox/lease.ts', find: 'const trustMs = 2500;', replace: 'const trustMs = 60_000;' },
    ],
    tests: 'libs/postgres/outbox',
  },
  {
    name: 'what is handed over precedes what another process wrote',
    edits: [{ file: handed, find: 'if (!isNext || !isLater', replace: 'if (!isLater' }],
    tests: 'libs/postgres/outbox',
  },
  {
    name: 'what is handed over precedes what could not be published',
    edits: [{ file: handed, find: ' || known.period !== this.#period', replace: '' }],
    tests: 'libs/postgres/outbox',
  },
  {
    name: 'what a read found before it was handed over follows later batches',
    edits: [{ file: handed, find: ' && first.batch_id > last', replace: '' }],
    tests: 'libs/postgres/outbox',
  },
  {
    name: 'every process that asks gets the lease',
    edits: [
      {
        file: 'libs/postgres/outbox/lease.ts',
        find: 'where outbox_lease.holder = excluded.holder or outbox_lease.expires_at <= clock_timestamp()',
        replace: 'where true',
      },
    ],
    tests: 'libs/postgres/outbox',
  },
  {
    name: 'what a lost lease left unmarked is marked',
    edits: [
      {
        file: relay,
        find: '    this.#forgetUnmarked();\n    if',
        replace: '    if',
      },
    ],
    tests: 'libs/postgres/outbox',
  },
  {
    name: 'a takeover doubts only what is unpublished',
    edits: [
      { file: relayRead, find: '- $2::int * interval', replace: '- 0 * $2::int * interval' },
      {
        file: relayRead,
        find: "created_at < (select created_at from published) - interval '1 minute'",
        replace: 'created_at <= (select created_at from published)',
      },
    ],
    tests: 'tests/events',
  },
  {
    name: 'a takeover doubts nothing',
    edits: [
      {
        file: relay,
        find: 'if (taken && taken.formerEndedAt !== null)',
        replace: 'if (taken && taken.formerEndedAt === "")',
      },
    ],
    tests: 'tests/events',
  },
  {
    name: 'a failed send is not in doubt',
    edits: [{ file: relay, find: '      this.#stale?.add(batchRange(ids), this.#lateAt());\n', replace: '' }],
    tests: 'tests/events',
  },
  {
    name: 'what was published without the lease is not in doubt',
    edits: [{ file: relay, find: '    this.#stale?.add(batchRange(this.#unmarked.ids), 0);\n', replace: '' }],
    tests: 'tests/events',
  },
  {
    name: 'states are not swept',
    edits: [{ file: relay, find: 'Math.min(maxSweepMs, retainMs / 2)', replace: 'maxSweepMs * 1000' }],
    tests: 'tests/events',
  },
  {
    name: 'a sweep publishes again what sweeps wrote',
    edits: [{ file: staleStates, find: '      if (isSweep && isAgain) continue;\n', replace: '' }],
    tests: 'libs/postgres/outbox',
  },
  {
    name: 'what was written again is never in doubt',
    edits: [{ file: staleStates, find: 'isSweep && isAgain', replace: 'isAgain' }],
    tests: 'libs/postgres/outbox',
  },
  {
    name: 'what is in doubt waits for a sweep',
    edits: [{ file: staleStates, find: 'doubtful.length > 0 ? doubtful : due', replace: 'due' }],
    tests: 'libs/postgres/outbox',
  },
  {
    name: 'a relay in doubt leaves the lease as if it were in none',
    edits: [{ file: relay, find: '.release(this.#stale?.isEmpty === false)', replace: '.release(false)' }],
    tests: 'libs/postgres/outbox',
  },
  {
    name: '202 before the broker has the command',
    edits: [
      {
        file: 'libs/kafka/request-reply/request-reply.ts',
        find: '        acknowledged: false,',
        replace: '        acknowledged: true,',
      },
    ],
    tests: 'libs/kafka/request-reply',
  },
  {
    name: "another process's replies are taken",
    edits: [
      {
        file: 'libs/kafka/request-reply/request-reply.ts',
        find: 'if (id.startsWith(this.#origin)) this.#deliver',
        replace: "if (id !== '') this.#deliver",
      },
    ],
    tests: 'libs/kafka/request-reply',
  },
  {
    name: 'a command under way is claimed again',
    edits: [
      {
        file: 'services/accounts/commands/inbox.ts',
        find: 'do update set repeats = c.repeats + 1',
        replace: 'do update set repeats = c.repeats + 1, reply = null',
      },
    ],
    tests: 'services/accounts',
  },
  {
    name: 'a fault of the ledger ends a saga',
    edits: [
      {
        file: 'services/accounts/commands/execute.ts',
        find: 'errorCodes[body.refusal.code].status < 500)',
        replace: 'errorCodes[body.refusal.code].status < 600)',
      },
    ],
    tests: 'services/accounts/sagas',
  },
  {
    name: 'a command that comes late is executed',
    edits: [
      {
        file: 'libs/service/repeats.ts',
        find: 'deadline === undefined || deadline >= now',
        replace: "deadline === undefined || deadline >= ''",
      },
    ],
    tests: 'services/accounts',
  },
  {
    name: 'two sweepers send one step',
    edits: [
      {
        file: 'services/accounts/commands/inbox.ts',
        find: 'order by next_attempt_at limit $1 for update skip locked)',
        replace: 'order by next_attempt_at limit $1) and pg_sleep(0.01) is not null',
      },
    ],
    tests: 'services/accounts/sagas',
  },
  {
    name: 'no scope is asked for',
    edits: [
      {
        file: 'services/gateway/access/gate.ts',
        find: '!sufficient.some((scope) => request.caller?.scopes.has(scope)));',
        replace: 'sufficient.length === 0);',
      },
    ],
    tests: 'services/gateway/access',
  },
  {
    name: 'failed authentications are not counted',
    edits: [
      {
        file: 'services/gateway/access/gate.ts',
        find: "error.refusal.code.endsWith('_credentials');",
        replace: "error.refusal.code.endsWith('_credential');",
      },
    ],
    tests: 'services/gateway/access',
  },
  {
    name: 'a delivery is made under a claim that is over',
    edits: [
      {
        file: 'services/webhooks/deliveries/store.ts',
        find: 'd.ordinal = e.ordinal and d.claim = e.claim and',
        replace: 'd.ordinal = e.ordinal and',
      },
    ],
    tests: 'services/webhooks',
  },
  {
    name: 'deliveries of a key overtake one that failed',
    edits: [
      {
        file: 'services/webhooks/deliveries/store.ts',
        find: "n.ordering_key = k.ordering_key and n.status = 'Pending' order by",
        replace: "n.ordering_key = k.ordering_key and n.status = 'Pending' and n.next_attempt_at is null order by",
      },
    ],
    tests: 'services/webhooks',
  },
  {
    name: 'an external_id outlives its client',
    edits: [
      {
        file: 'services/accounts/erasure/erasure-store.ts',
        find: "ussd_status = 'inactive', external_id = null,",
        replace: "ussd_status = 'inactive',",
      },
    ],
    tests: 'services/accounts/erasure',
  },
  {
    name: 'kept replies show who was erased',
    edits: [
      {
        file: 'services/accounts/erasure/erasure-store.ts',
        find: "where shown(reply, 'client_id') = $1 and",
        replace: "where shown(reply, 'client_id') = $1 and shown(reply, 'account_id') is not null and",
      },
    ],
    tests: 'services/accounts/erasure',
  },
  {
    name: 'a hold that ended is not written',
    edits: [
      {
        file: engine,
        find: 'books.changedHolds.size > 0 && writeHolds',
        replace: 'books.changedHolds.size > 1 && writeHolds',
      },
    ],
    tests: 'services/ledger/batch',
  },
  {
    name: 'a batch in one step, however large',
    edits: [{ file: 'services/ledger/batch/batches.ts', find: 'size === 0 || size +', replace: 'size >= 0 || size +' }],
    tests: 'services/ledger/batch',
  },
];
