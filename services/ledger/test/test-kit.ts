import type { AccountStatus, AccountType } from '#libs/contracts/accounts.ts';
import type { MessageContext } from '#libs/contracts/envelope.ts';
import { idOf } from '#libs/contracts/ids.ts';
import { type SystemKind, systemAccountNumber } from '../domain/chart.ts';
import type { Books, Command, Decision } from '../domain/decision.ts';
import type { AccountState } from '../domain/records.ts';

/** Accounts, books, and commands for the unit tests of the pure posting code, identified by small numbers. */

export const now = '2026-01-02T03:04:05.678Z';

export function testBits(n: number): string {
  return `${n.toString(16).padStart(30, '0')}00`;
}

export function testAccount(
  n: number,
  type: AccountType,
  currency = 'USD',
  status: AccountStatus = 'Active',
  balance = 0n,
): AccountState {
  return {
    account_id: idOf('account', testBits(n)),
    account_number: `SAV-${String(n).padStart(10, '0')}`,
    client_id: idOf('client', testBits(n)),
    account_type: type,
    currency,
    status,
    status_version: 1,
    balance_minor: balance,
    last_sequence: 0n,
    last_posted_at: null,
    held_minor: 0n,
    active_holds: 0n,
    hold_expires_at: null,
    hold_version: 0n,
  };
}

export function testBooks(accounts: AccountState[]): Books {
  const slots = new Map<string, AccountState>();
  return {
    accounts: new Map(accounts.map((a) => [a.account_id, a])),
    moved: new Set(),
    takenNumbers: new Set(),
    system: (kind: SystemKind, currency: string) => {
      const number = systemAccountNumber(kind, currency, 0);
      const slot = slots.get(number) ?? {
        ...testAccount(900_000 + slots.size, 'Savings', currency),
        account_number: number,
        account_type: kind,
        client_id: null,
      };
      slots.set(number, slot);
      return slot;
    },
    transactions: new Map(),
    reversals: new Map(),
    deadLettered: new Set(),
    outcomes: new Map(),
    holds: new Map(),
    changedHolds: new Set(),
    heldAmountChanged: new Set(),
    expired: [],
    now,
  };
}

export function testContext(n: number, rest: Partial<MessageContext> = {}): MessageContext {
  return {
    message_id: idOf('transaction', testBits(n)),
    type: '',
    source: '',
    time: now,
    subject: '',
    request_id: 'r',
    actor: 'a',
    ...rest,
  };
}

let next = 1_000_000;
export function cash(
  type: 'Deposit' | 'Withdrawal',
  account: AccountState,
  amount: string,
  rest: Partial<MessageContext> = {},
  id = next++,
): Command {
  return {
    name: 'create_transaction',
    data: {
      transaction_id: idOf('transaction', testBits(id)),
      account_id: account.account_id,
      transaction_type: type,
      amount,
      currency: null,
      description: null,
      reference: null,
    },
    context: testContext(id, rest),
  };
}
export function transfer(
  from: AccountState,
  to: AccountState,
  amount: string,
  currency: string | null = null,
  id = next++,
  rest: Partial<MessageContext> = {},
): Command {
  return {
    name: 'create_transfer',
    data: {
      transfer_id: idOf('transfer', testBits(id)),
      from_account_id: from.account_id,
      to_account_id: to.account_id,
      amount,
      currency,
      description: null,
    },
    context: testContext(id, rest),
  };
}
export function reversal(original: string, rest: Partial<MessageContext> = {}, id = next++): Command {
  return {
    name: 'reverse_transaction',
    data: { transaction_id: idOf('transaction', testBits(id)), reverses_transaction_id: original, reason: 'error' },
    context: testContext(id, rest),
  };
}
export function opening(
  n: number,
  type: AccountType,
  amount: string,
  currency = 'USD',
  status: AccountStatus = 'Active',
): Command {
  const account_id = idOf('account', testBits(n));
  const data = {
    account_id,
    client_id: idOf('client', testBits(n)),
    account_number: `SAV-${String(n).padStart(10, '0')}`,
    account_type: type,
    currency,
    status,
    initial_deposit: amount,
  };
  return { name: 'open_ledger_account', data, context: testContext(n, { message_id: account_id }) };
}
export function statusChange(
  account: AccountState,
  status: AccountStatus,
  id = next++,
  rest: Partial<MessageContext> = {},
): Command {
  return {
    name: 'change_ledger_account_status',
    data: { transition_id: idOf('transition', testBits(id)), account_id: account.account_id, status },
    context: testContext(id, rest),
  };
}

export function replyCode(decision: Decision): string {
  return decision.reply.ok ? 'done' : decision.reply.refusal.code;
}

/** Returns the refusal that the caller of a command gets. */
export function replyMessage(decision: Decision): string {
  return decision.reply.ok ? '' : decision.reply.refusal.message;
}

/** Returns the id of a Completed transaction. */
export function idIn(decision: Decision, index = 0): string {
  const record = decision.transactions[index];
  if (record?.status !== 'Completed') throw new Error(`not completed: ${replyCode(decision)}`);
  return record.transaction_id;
}

/** The expires_at of holds in tests that do not depend on it. */
export const later = '2026-01-09T03:04:05.678Z';

export function testHoldId(n: number): string {
  return idOf('hold', testBits(n));
}

interface Placing {
  n?: number;
  currency?: string | null;
  expires_at?: string | null;
  context?: Partial<MessageContext>;
}
export function placing(
  account: AccountState,
  amount: string,
  { n = next++, currency = null, expires_at = later, context = {} }: Placing = {},
): Command {
  const data = {
    hold_id: testHoldId(n),
    account_id: account.account_id,
    amount,
    currency,
    description: null,
    reference: null,
    expires_at,
  };
  return { name: 'place_hold', data, context: testContext(n, { message_id: testHoldId(n), ...context }) };
}
interface Capturing {
  amount?: string | null;
  to?: AccountState;
  final?: boolean;
  description?: string | null;
  id?: number;
  context?: Partial<MessageContext>;
}
export function capture(
  hold: number,
  { amount = null, to, final = true, description = null, id = next++, context = {} }: Capturing = {},
): Command {
  const data = {
    transaction_id: idOf('transaction', testBits(id)),
    hold_id: testHoldId(hold),
    amount,
    to_account_id: to?.account_id ?? null,
    final,
    description,
  };
  return { name: 'capture_hold', data, context: testContext(id, context) };
}
export function release(hold: number, id = next++): Command {
  return {
    name: 'release_hold',
    data: { hold_id: testHoldId(hold) },
    context: testContext(id, { message_id: `cmd_${testBits(id)}` }),
  };
}
