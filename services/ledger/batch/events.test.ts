import { describe, expect, it } from 'vitest';
import { events as contract, type EventType } from '#libs/contracts/events.ts';
import { formatId } from '#libs/contracts/ids.ts';
import type { Decision } from '../domain/decision.ts';
import { decide } from '../domain/posting.ts';
import type { AccountState } from '../domain/records.ts';
import {
  capture,
  cash,
  idIn,
  now,
  opening,
  placing,
  reversal,
  statusChange,
  testAccount,
  testBits,
  testBooks,
  testContext,
  transfer,
} from '../test/test-kit.ts';
import { balanceEvent, buildEvents } from './events.ts';

const committedAt = '2026-01-02T03:04:06.000Z';
const parsePayload = ({ payload }: { payload: string | null }) => JSON.parse(payload ?? '') as Record<string, unknown>;
const [a, b] = [testAccount(1, 'Savings', 'USD', 'Active', 500n), testAccount(2, 'Checking')];
const fresh = () => testBooks([{ ...a }, { ...b }]);
const eventsNow = (decision: Decision, books = fresh(), by = testContext(0, { actor: 'key:key_1' })) =>
  buildEvents(decision, by, books.accounts, committedAt);
const asked = { actor: 'key:key_1', request_channel: 'api_key' };
const ownership = ({ client_id, account_number }: typeof a) => ({ client_id, account_number });

describe('the event of a transaction', () => {
  it('is complete for a deposit', () => {
    const books = fresh();
    const command = cash(
      'Deposit',
      a,
      '10.5',
      { request_id: 'r-7', time: '2026-01-01T00:00:00.000Z', idempotency_key: 'k' },
      5,
    );
    if (command.name === 'create_transaction') Object.assign(command.data, { description: 'rent', reference: 'R-1' });
    const [event, ...others] = eventsNow(decide(command, books));
    const transaction_id = formatId('transaction', testBits(5));
    const operation_id = formatId('operation', testBits(5));
    const [teller, vault] = [books.system('Teller', 'USD'), books.system('Vault', 'USD')];
    const entry = (account: AccountState, sequence: number, direction: string, side: string) => ({
      entry_id: `ent_${account.account_id.slice(4)}-${sequence}`,
      operation_id,
      transaction_id,
      account_id: account.account_id,
      sequence,
      direction,
      side,
      amount: '10.50',
      currency: 'USD',
      created_at: now,
      effective_date: now.slice(0, 10),
      account_type: account.account_type,
      account_class: account === a ? 'liability' : 'asset',
    });
    expect(others).toEqual([]);
    expect({ ...event, payload: parsePayload(event as { payload: string }) }).toEqual({
      id: testBits(5),
      topic: 'transactions',
      key: a.account_id,
      type: 'corebanking.transaction.completed.v1',
      time: committedAt,
      headers: { 'request-id': 'r-7' },
      payload: {
        transaction: {
          transaction_id,
          account_id: a.account_id,
          transaction_type: 'Deposit',
          amount: '10.50',
          currency: 'USD',
          description: 'rent',
          reference: 'R-1',
          status: 'Completed',
          created_at: '2026-01-01T00:00:00.000Z',
          effective_date: '2026-01-02',
          direction: 'credit',
        },
        sequence: 1,
        balance_after: '15.50',
        available_balance: '15.50',
        operation_id,
        entries: [
          entry(a, 1, 'credit', 'CR'),
          entry(teller, 1, 'credit', 'DR'),
          entry(teller, 2, 'debit', 'CR'),
          entry(vault, 1, 'credit', 'DR'),
        ],
        ...ownership(a),
        ...asked,
      },
    });
  });

  it('has what was available after it, not after later ones of the same batch, without what is held', () => {
    const books = fresh();
    const held = books.accounts.get(a.account_id);
    if (held) held.held_minor = 200n;
    const commands = [
      cash('Withdrawal', a, '1', {}, 5),
      cash('Withdrawal', a, '9', {}, 6),
      transfer(a, b, '1.5', {}, 7),
    ];
    const decisions = commands.map((command) => decide(command, books));
    const shown = decisions
      .flatMap((decision) => eventsNow(decision, books))
      .filter(({ topic }) => topic === 'transactions');
    expect(shown.map((event) => [event.type.split('.')[2], parsePayload(event)['available_balance']])).toEqual([
      ['completed', '2.00'],
      ['failed', '2.00'],
      ['completed', '0.50'],
      ['completed', '1.50'],
    ]);
  });

  it.each([
    ['a refused capture, in cash', 'Frozen', {}, ['2.00']],
    ['a refused capture, to an account', 'Frozen', { to: b }, ['2.00']],
    ['a capture refused by its destination', 'Active', { to: a }, ['2.00']],
    ['a final capture of a part, in cash', 'Active', { amount: '1' }, ['4.00']],
    ['a final capture of a part, to an account', 'Active', { amount: '1', to: b }, ['4.00', '1.00']],
    ['a capture that keeps the rest', 'Active', { amount: '1', final: false }, ['2.00']],
  ] as const)('has what is available after %s, as the balance has', (_what, status, rest, available) => {
    const books = fresh();
    decide(placing(a, '3', { n: 7 }), books);
    decide(statusChange(a, status), books);
    const shown = eventsNow(decide(capture(7, rest), books), books).filter(({ topic }) => topic === 'transactions');
    const current = shown.map(({ key }) => balanceEvent(books.accounts.get(key ?? '') as AccountState, now));
    expect(shown.map((event) => parsePayload(event)['available_balance'])).toEqual(available);
    expect(current.map((event) => parsePayload(event)['available_balance'])).toEqual(available);
  });

  it('exists once per account of a transfer, with its own sequence and balance, and once for the transfer', () => {
    const decision = decide(transfer(a, b, '3', {}, 5), fresh());
    const [debit, credit, moved, ...others] = eventsNow(decision);
    const transfer_id = formatId('transfer', testBits(5));
    expect(others).toEqual([]);
    expect([debit, credit, moved].map((event) => [event?.topic, event?.key])).toEqual([
      ['transactions', a.account_id],
      ['transactions', b.account_id],
      ['transfers', transfer_id],
    ]);
    expect([debit, credit].map((event) => event?.id)).toEqual(
      decision.transactions.map((t) => t.transaction_id.slice(4)),
    );
    expect(parsePayload(debit as never)).toMatchObject({
      sequence: 1,
      balance_after: '2.00',
      transaction: { transfer_id, direction: 'debit', counterparty_account_id: b.account_id },
    });
    expect(parsePayload(credit as never)).toMatchObject({
      sequence: 1,
      balance_after: '3.00',
      transaction: { transfer_id, direction: 'credit', counterparty_account_id: a.account_id },
    });
    expect(parsePayload(debit as never)['entries']).toEqual(parsePayload(credit as never)['entries']);
    expect({ ...moved, id: '', payload: parsePayload(moved as never) }).toEqual({
      id: '',
      topic: 'transfers',
      key: transfer_id,
      type: 'corebanking.transfer.completed.v1',
      time: committedAt,
      headers: { 'request-id': 'r' },
      payload: {
        transfer: {
          transfer_id,
          from_account_id: a.account_id,
          to_account_id: b.account_id,
          amount: '3.00',
          currency: 'USD',
          description: null,
          status: 'Completed',
          created_at: now,
          effective_date: now.slice(0, 10),
        },
        operation_id: formatId('operation', testBits(5)),
        ...asked,
      },
    });
    expect([debit, credit].map((event) => parsePayload(event as never))).toMatchObject([ownership(a), ownership(b)]);
  });

  it.each([
    ['source', 0, 'Checking'],
    ['destination', 1, 'Checking'],
    ['destination', 1, 'Loan'],
  ] as const)(
    'for a reversal that names the leg on the %s: the reversed transaction, and a transfer with the key of the original',
    (_which, leg, type) => {
      const to = testAccount(2, type, 'USD', 'Active', 900n);
      const books = testBooks([{ ...a }, to]);
      const done = decide(transfer(a, to, '3', {}, 5), books);
      const undone = eventsNow(decide(reversal(idIn(done, leg)), books), books);
      expect(undone.map(({ topic }) => topic)).toEqual(['transactions', 'transactions', 'transfers']);
      for (const event of undone.slice(0, 2)) {
        const { transaction } = parsePayload(event) as { transaction: Record<string, unknown> };
        expect(transaction).toMatchObject({ reverses_transaction_id: expect.stringMatching(/^txn_/), amount: '3.00' });
        expect(transaction['transfer_id']).toMatch(/^trf_/);
        expect(transaction).not.toHaveProperty('reversed_by_transaction_id');
      }
      const back = undone[2] as (typeof undone)[number];
      const first = formatId('transfer', testBits(5));
      expect(back).toMatchObject({ key: first, type: 'corebanking.transfer.reversed.v1' });
      expect(parsePayload(back)).toMatchObject({
        transfer: {
          from_account_id: to.account_id,
          to_account_id: a.account_id,
          reverses_transfer_id: first,
          status: 'Completed',
        },
        ...asked,
      });
    },
  );

  it('has the reason of a refusal, but no sequence and entries', () => {
    // contract: transactions-10
    const [event, refused, ...others] = eventsNow(decide(transfer(b, a, '3', {}, 5), fresh()));
    expect(others).toEqual([]);
    expect(refused).toMatchObject({
      type: 'corebanking.transfer.failed.v1',
      topic: 'transfers',
      key: formatId('transfer', testBits(5)),
    });
    expect(parsePayload(refused as never)).toMatchObject({
      transfer: { from_account_id: b.account_id, status: 'Failed', failure_code: 'insufficient_funds' },
    });
    expect(event).toMatchObject({
      type: 'corebanking.transaction.failed.v1',
      topic: 'transactions',
      key: b.account_id,
      id: testBits(5),
      headers: { 'request-id': 'r' },
    });
    expect(parsePayload(event as never)).toEqual({
      transaction: {
        transaction_id: formatId('transaction', testBits(5)),
        account_id: b.account_id,
        transaction_type: 'Transfer',
        amount: '3.00',
        currency: 'USD',
        description: null,
        reference: null,
        status: 'Failed',
        created_at: now,
        effective_date: now.slice(0, 10),
        direction: 'debit',
        transfer_id: formatId('transfer', testBits(5)),
        counterparty_account_id: a.account_id,
        failure_code: 'insufficient_funds',
      },
      available_balance: '0.00',
      ...ownership(b),
      ...asked,
    });
  });

  it('names the other account of a refusal only if it is the reason', () => {
    const frozen = testAccount(3, 'Savings', 'USD', 'Frozen');
    const books = () => testBooks([{ ...a }, { ...b }, { ...frozen }]);
    const named = (from: typeof a, to: typeof a) =>
      eventsNow(decide(transfer(from, to, '3', {}, 5), books()), books()).map(
        (event) => parsePayload(event)['failure_account_id'],
      );
    expect(named(a, frozen)).toEqual([frozen.account_id, frozen.account_id]);
    expect([named(frozen, a), named(b, a)]).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ]);
  });

  it('contains an amount with too many digits as requested', () => {
    const [event] = eventsNow(decide(cash('Deposit', a, '1.234', { deadline: '2026-01-02T03:04:00.000Z' }), fresh()));
    expect(parsePayload(event as never)).toMatchObject({
      transaction: { amount: '1.234', currency: null, failure_code: 'deadline_exceeded' },
    });
  });

  it('has a separate type, and no data of the account, if the account is unknown to the caller', () => {
    const books = fresh();
    const asking = [
      cash('Deposit', testAccount(9, 'Savings'), '1'),
      cash('Withdrawal', a, '1', { bound_client_id: b.client_id ?? '' }),
    ];
    for (const command of asking) {
      const [event, ...others] = eventsNow(decide(command, books), books);
      expect(others).toEqual([]);
      expect(event?.type).toBe('corebanking.transaction.account_not_found.v1');
      expect(Object.keys(parsePayload(event as never))).toEqual(['transaction', 'actor', 'request_channel']);
      expect(contract['corebanking.transaction.account_not_found.v1'].data.parse(parsePayload(event as never))).toEqual(
        parsePayload(event as never),
      );
    }
    const nowhere = testAccount(9, 'Savings');
    const [unknown, ...others] = eventsNow(decide(transfer(a, nowhere, '1'), books), books);
    expect([unknown?.type, unknown?.key, others]).toEqual([
      'corebanking.transaction.account_not_found.v1',
      a.account_id,
      [],
    ]);
    const payload = parsePayload(unknown as never);
    expect(payload).toMatchObject({ failure_account_id: nowhere.account_id });
    expect(contract['corebanking.transaction.account_not_found.v1'].data.parse(payload)).toEqual(payload);
  });

  it('names the request channel', () => {
    const channel = (rest: object) =>
      parsePayload(eventsNow(decide(cash('Deposit', a, '1'), fresh()), fresh(), testContext(0, rest))[0] as never);
    expect(channel({ actor: 'jwt:x|bo' })).toMatchObject({ actor: 'jwt:x|bo', request_channel: 'token' });
    expect(channel({ actor: 'jwt:x|bo', staff: 'true' })).toMatchObject({ request_channel: 'staff' });
    expect(channel({ actor: '' })).toMatchObject({ actor: 'system', request_channel: 'system' });
  });

  it('does not exist for an amount with too many digits or for a status change', () => {
    const books = fresh();
    const kept = [cash('Deposit', a, '1.234'), cash('Deposit', a, '10000000000000')].map((command) =>
      decide(command, books),
    );
    for (const { transactions } of kept) expect(transactions).toHaveLength(1);
    for (const decision of [
      ...kept,
      decide(statusChange(a, 'Frozen'), books),
      decide(opening(7, 'Savings', '0'), books),
    ])
      expect(eventsNow(decision)).toEqual([]);
  });

  it('always matches the contract', () => {
    const books = fresh();
    const done = decide(transfer(a, b, '3'), books);
    const decisions = [
      done,
      decide(cash('Withdrawal', a, '1'), books),
      decide(cash('Withdrawal', b, '100'), books),
      decide(opening(7, 'Loan', '5'), books),
      decide(reversal(idIn(done)), books),
      decide(cash('Deposit', a, '1.234'), books),
    ];
    const all = [...decisions.flatMap((decision) => eventsNow(decision, books)), balanceEvent(a, now)];
    expect(all).toHaveLength(10);
    for (const { type, topic, payload, id } of all) {
      const { topic: own, data } = contract[type as EventType];
      expect(topic).toBe(own);
      expect(id).toMatch(/^[0-9a-f]{32}$/);
      expect(data.strict().parse(JSON.parse(payload ?? ''))).toEqual(JSON.parse(payload ?? ''));
      expect(JSON.parse(payload ?? '')).toMatchObject(topic === 'balances' ? { client_id: a.client_id } : asked);
    }
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
  });
});

describe('a repeat', () => {
  it('of the same decision has the same ids and bytes in every event', () => {
    const [first, second] = [0, 1].map(() => eventsNow(decide(transfer(a, b, '3', {}, 5), fresh())));
    expect(second).toEqual(first);
    const other = eventsNow(decide(transfer(a, b, '3', {}, 6), fresh()));
    expect(new Set([...(first ?? []), ...other].map(({ id }) => id)).size).toBe(6);
  });
});

describe('the balance of an account', () => {
  it('is its latest state by account, with an id per sequence, status, and change of its holds', () => {
    const account = { ...testAccount(1, 'Savings', 'JPY', 'Active', 700n), last_sequence: 4n };
    const event = balanceEvent(account, committedAt);
    expect({ ...event, id: '', payload: parsePayload(event) }).toEqual({
      id: '',
      topic: 'balances',
      key: account.account_id,
      type: 'corebanking.balance.v1',
      time: committedAt,
      payload: {
        account_id: account.account_id,
        client_id: account.client_id,
        account_number: account.account_number,
        account_type: 'Savings',
        currency: 'JPY',
        status: 'Active',
        status_version: 1,
        balance: '700',
        available_balance: '700',
        sequence: 4,
        hold_version: 0,
        updated_at: committedAt,
      },
    });
    const others = [
      { ...account, last_sequence: 5n },
      { ...account, status_version: 2 },
      { ...account, account_id: b.account_id },
      { ...account, held_minor: 200n, hold_version: 1n },
    ].map((other) => balanceEvent(other, committedAt).id);
    expect(new Set([event.id, ...others]).size).toBe(5);
    expect(balanceEvent(account, now).id).toBe(event.id);
    expect(parsePayload(balanceEvent({ ...account, held_minor: 200n, hold_version: 1n }, now))).toMatchObject({
      balance: '700',
      available_balance: '500',
      hold_version: 1,
    });
  });
});
