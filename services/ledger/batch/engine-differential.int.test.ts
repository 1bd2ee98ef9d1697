import { hash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AccountStatus } from '#libs/contracts/accounts.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { maxActiveHolds } from '#libs/contracts/holds.ts';
import { creditLegId, formatId, idBits } from '#libs/contracts/ids.ts';
import { unpackEvents } from '#libs/postgres/outbox/outbox-messages.ts';
import { batchCommand } from '../domain/batches.ts';
import type { Command } from '../domain/decision.ts';
import { type LedgerHarness, startLedger } from '../test/harness.ts';
import { verifyBooks } from '../verify/verify-books.ts';
import { sweepHolds } from './hold-sweeper.ts';

/**
 * The same random commands, in batches on one database and one by one on another, have the same replies, balances,
 * holds, entries, and events. Holds that are due and an account with as many holds as it can have were there before.
 */
let together: LedgerHarness;
let alone: LedgerHarness;
beforeAll(async () => {
  [together, alone] = await Promise.all([startLedger(), startLedger()]);
});
afterAll(() => Promise.all([together?.stop(), alone?.stop()]));

const [runs, maxCommands] = [4, 120];
const [far, past] = [new Date(Date.now() + 86_400_000).toISOString(), new Date(Date.now() - 1000).toISOString()];

/** The accounts of a run, by the number of their holds before it: those that are due, and the others. */
const population = [
  { type: 'Savings', currency: 'USD', due: 3, others: 0 },
  { type: 'Checking', currency: 'USD', due: 2, others: maxActiveHolds - 2 },
  { type: 'Savings', currency: 'USD', due: 0, others: maxActiveHolds - 1 },
  { type: 'Current', currency: 'JPY', due: 0, others: 0 },
  { type: 'Loan', currency: 'USD', due: 0, others: 0 },
] as const;

const kinds = ['cash', 'transfer', 'reverse', 'place', 'capture', 'release', 'batch', 'status', 'repeat'] as const;
const anyStep = fc.record({
  kind: fc.constantFrom(...kinds, 'place', 'capture'),
  a: fc.nat({ max: population.length - 1 }),
  b: fc.nat({ max: population.length - 1 }),
  amount: fc.integer({ min: 1, max: 120 }),
  /** An earlier command or hold. */
  other: fc.nat(),
  yes: fc.boolean(),
  also: fc.boolean(),
  items: fc.array(fc.tuple(fc.nat(), fc.nat(), fc.integer({ min: 1, max: 60 }), fc.boolean()), {
    minLength: 1,
    maxLength: 5,
  }),
});
type Step = typeof anyStep extends fc.Arbitrary<infer S> ? S : never;

/** Every run begins with these, so that each outcome that `seen` must have is there whatever chance chooses. */
const always: Step[] = (
  [
    { kind: 'place' },
    { kind: 'capture', other: placed(0), a: 1 },
    { kind: 'capture', other: placed(0), a: 1 },
    { kind: 'place' },
    { kind: 'release', other: placed(1) },
    { kind: 'place', a: 2 },
    { kind: 'place', a: 2 },
  ] as const
).map((step) => ({ a: 0, b: 0, amount: 1, other: 0, yes: false, also: false, items: [], ...step }));

/** `other` of the hold that the nth `place` of a run has placed: it stands behind those that were due. */
function placed(n: number): number {
  return population.reduce((sum, { due }) => sum + due, n);
}

const hashBits = (run: number, what: string, i: number) => `${hash('sha256', `${run} ${what} ${i}`).slice(0, 30)}00`;

interface Run {
  accounts: string[];
  planted: { hold_id: string; account_id: string; expires_at: string }[];
  openings: Command[];
  commands: Command[];
}

function planRun(run: number, steps: Step[]): Run {
  const accounts = population.map((_, i) => formatId('account', hashBits(run, 'account', i)));
  const openings = population.map(({ type, currency }, i): Command => {
    const account_id = accounts[i] as string;
    const data = {
      account_id,
      client_id: formatId('client', hashBits(run, 'client', i)),
      account_number: `N-${account_id}`,
      account_type: type,
      currency,
      status: 'Active' as const,
      initial_deposit: '300',
    };
    return { name: 'open_ledger_account', data, context: together.testContext(account_id, { message_id: account_id }) };
  });
  const planted = population.flatMap(({ due, others }, i) =>
    Array.from({ length: due + others }, (_, n) => ({
      hold_id: formatId('hold', hashBits(run, `hold of ${i}`, n)),
      account_id: accounts[i] as string,
      expires_at: n < due ? past : far,
    })),
  );
  const holds = planted.filter(({ expires_at }) => expires_at === past).map(({ hold_id }) => hold_id);
  const made: string[] = [];
  const commands: Command[] = [];
  for (const [i, step] of steps.entries()) commands.push(toCommand(step, hashBits(run, 'command', i)));
  return { accounts, planted, openings, commands };

  function toCommand({ kind, a, b, amount, other, yes, also, items }: Step, bits: string): Command {
    const [one, two] = [accounts[a] as string, accounts[b] as string];
    const sum = String(amount);
    const transaction_id = formatId('transaction', bits);
    const earlier = made[other % made.length] ?? transaction_id;
    const hold_id = holds[other % holds.length] as string;
    const context = together.testContext(bits);
    const texts = { currency: null, description: null };
    switch (kind) {
      case 'cash':
        made.push(transaction_id);
        return together.cash(yes ? 'Deposit' : 'Withdrawal', one, sum, {}, bits);
      case 'transfer':
        made.push(also ? transaction_id : creditLegId(transaction_id));
        return together.transfer(one, two, sum, {}, bits);
      case 'reverse':
        return together.reversal(earlier, {}, bits);
      case 'place': {
        const placed = formatId('hold', bits);
        holds.push(placed);
        const data = { hold_id: placed, account_id: one, amount: sum, ...texts, reference: null, expires_at: far };
        return { name: 'place_hold', data, context: { ...context, message_id: placed } };
      }
      case 'capture': {
        made.push(transaction_id);
        const to_account_id = yes ? two : null;
        const data = { transaction_id, hold_id, amount: also ? sum : null, to_account_id, final: a > b };
        return { name: 'capture_hold', data: { ...data, description: null }, context };
      }
      case 'release':
        return { name: 'release_hold', data: { hold_id }, context: { ...context, message_id: `cmd_${bits}` } };
      case 'status': {
        const transition_id = formatId('transition', bits);
        const status: AccountStatus = amount > 100 ? 'Frozen' : 'Active';
        const data = { transition_id, account_id: one, status };
        return { name: 'change_ledger_account_status', data, context: { ...context, message_id: transition_id } };
      }
      case 'repeat':
        return commands[other % commands.length] ?? together.cash('Deposit', one, sum, {}, bits);
      case 'batch': {
        const batch_id = formatId('batch', bits);
        const of = (n: number) => accounts[n % accounts.length] as string;
        const bodies = items.map(([from, to, minor, isTransfer]) =>
          isTransfer
            ? { transfer: { from_account_id: of(from), to_account_id: of(to), amount: String(minor), ...texts } }
            : {
                transaction: {
                  account_id: of(from),
                  transaction_type: to % 2 ? ('Deposit' as const) : ('Withdrawal' as const),
                  amount: String(minor),
                  ...texts,
                  reference: null,
                },
              },
        );
        const data = { batch_id, mode: yes ? ('atomic' as const) : ('independent' as const), items: bodies };
        return batchCommand(data, { ...context, message_id: batch_id, fingerprint: 'f'.repeat(32) });
      }
    }
  }
}

/** Writes the holds that were there before, as if commands had placed them. */
async function plant({ owner }: LedgerHarness, planted: Run['planted']): Promise<void> {
  await owner.query(
    `insert into holds (hold_id, account_id, amount_minor, captured_minor, currency, status, actor, request_id, expires_at, created_at, updated_at)
     select hold_id, account_id, 1, 0, 'USD', 'Active', 'a', 'r', expires_at, $4, $4
     from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as h (hold_id, account_id, expires_at)`,
    [
      ...(['hold_id', 'account_id'] as const).map((name) => planted.map((hold) => idBits(hold[name]))),
      planted.map(({ expires_at }) => expires_at),
      past,
    ],
  );
  await owner.query(
    `update accounts a set held_minor = h.held, active_holds = h.count, hold_version = h.count, hold_expires_at = h.first_end
     from (select account_id, sum(amount_minor) as held, count(*) as count, min(expires_at) as first_end from holds group by account_id) h
     where h.account_id = a.account_id and a.account_id = any($1::uuid[])`,
    [[...new Set(planted.map(({ account_id }) => idBits(account_id)))]],
  );
}

/** Everything that must be the same, without the times at which it happened. */
function plain(value: unknown): unknown {
  const times = ['updated_at', 'changed_at', 'occurred_at', 'created_at'];
  const text = JSON.stringify(value, (key, x: unknown) =>
    times.includes(key) ? 0 : typeof x === 'bigint' ? String(x) : x,
  );
  return JSON.parse(text);
}

async function readState({ owner }: LedgerHarness, accounts: string[]): Promise<Record<string, unknown>> {
  const own = [accounts.map(idBits)];
  const read = async (text: string) => plain((await owner.query(text, own)).rows);
  const packed = await owner.query<{ records: Buffer }>('select records from outbox order by batch_id');
  const keys = new Set(accounts);
  const events = packed.rows
    .flatMap(({ records }) => unpackEvents(records))
    .filter(({ topic, key }) => topic !== 'balances' && keys.has(key ?? ''))
    .map(({ id, topic, key, type, payload }) => ({
      key: `${topic} ${key}`,
      id,
      type,
      data: plain(JSON.parse(payload ?? '')),
    }));
  return {
    accounts: await read(
      `select account_id, balance_minor, held_minor, active_holds, last_sequence, hold_version, status, status_version, debits_minor
       from accounts where account_id = any($1::uuid[]) order by 1`,
    ),
    holds: await read(
      'select hold_id, status, captured_minor from holds where account_id = any($1::uuid[]) order by 1',
    ),
    entries: await read(
      `select account_id, sequence, transaction_id, amount_minor, direction, balance_after_minor
       from entries where account_id = any($1::uuid[]) order by 1, 2`,
    ),
    events: Object.fromEntries(Map.groupBy(events, ({ key }) => key)),
  };
}

it('the same commands have the same outcome in batches and one by one', async () => {
  const seen = new Set<string>();
  let run = 0;
  const size = { minLength: maxCommands / 2, maxLength: maxCommands, size: 'max' } as const;
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyStep, size),
      fc.infiniteStream(fc.integer({ min: 1, max: 50 })),
      async (steps, sizes) => {
        const { accounts, planted, openings, commands } = planRun(run++, [...always, ...steps]);
        for (const ledger of [together, alone]) {
          await ledger.book(openings);
          await plant(ledger, planted);
        }
        const replies: ReplyBody[] = [];
        while (replies.length < commands.length)
          replies.push(...(await together.book(commands.slice(replies.length, replies.length + sizes.next().value))));
        const expected: ReplyBody[] = [];
        for (const command of commands) expected.push(...(await alone.book([command])));
        expect(plain(replies)).toEqual(plain(expected));
        for (const { writes } of [together, alone]) await sweepHolds(writes);
        expect(await readState(together, accounts)).toEqual(await readState(alone, accounts));
        for (const [i, reply] of replies.entries())
          seen.add(`${commands[i]?.name} ${reply.ok ? 'done' : reply.refusal.code}`);
      },
    ),
    { numRuns: runs, endOnFailure: true },
  );
  expect([...seen]).toEqual(
    expect.arrayContaining([
      'place_hold done',
      'place_hold too_many_holds',
      'capture_hold done',
      'capture_hold hold_not_active',
      'release_hold done',
    ]),
  );
  for (const { owner } of [together, alone]) expect(await verifyBooks(owner)).toEqual([]);
});
