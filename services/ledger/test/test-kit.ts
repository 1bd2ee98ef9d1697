import type { AccountStatus, AccountType } from '#libs/contracts/accounts.ts';
import type { MessageContext } from '#libs/contracts/envelope.ts';
import { formatId } from '#libs/contracts/ids.ts';
import type { LimitName } from '#libs/contracts/limits.ts';
import { type SystemKind, systemAccountNumber } from '../domain/chart.ts';
import type { Books, Command, Decision } from '../domain/decision.ts';
import { type AccountState, noLimits } from '../domain/records.ts';
import { noTills } from '../domain/tills.ts';

/** Accounts, books, and commands for tests, identified by small numbers or by the bits of their ids. */

export const now = '2026-01-02T03:04:05.678Z';

export function testBits(id: number | string): string {
  return typeof id === 'string' ? id : `${id.toString(16).padStart(30, '0')}00`;
}

export function testAccount(
  n: number,
  type: AccountType,
  currency = 'USD',
  status: AccountStatus = 'Active',
  balance = 0n,
): AccountState {
  return {
    account_id: formatId('account', testBits(n)),
    account_number: `SAV-${String(n).padStart(10, '0')}`,
    client_id: formatId('client', testBits(n)),
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
    ...noLimits,
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
    posted: new Map(),
    holds: new Map(),
    changedHolds: new Set(),
    heldAmountChanged: new Set(),
    limitsChanged: new Set(),
    tills: noTills(),
    expired: [],
    closed: null,
    now,
  };
}

export function testContext(id: number | string, rest: Partial<MessageContext> = {}): MessageContext {
  return {
    message_id: formatId('transaction', testBits(id)),
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
type Account = string | { account_id: string };
const idOfAccount = (account: Account) => (typeof account === 'string' ? account : account.account_id);

/** Optional fields of a posting, and those of its context. */
type PostingOptions = Partial<MessageContext> & {
  currency?: string | null;
  description?: string | null;
  reference?: string | null;
  external_id?: string;
  effective_date?: string;
};

export function cash(
  transaction_type: 'Deposit' | 'Withdrawal',
  account: Account,
  amount: string,
  {
    currency = null,
    description = null,
    reference = null,
    external_id,
    effective_date,
    ...context
  }: PostingOptions = {},
  id: number | string = next++,
): Command {
  return {
    name: 'create_transaction',
    data: {
      transaction_id: formatId('transaction', testBits(id)),
      account_id: idOfAccount(account),
      transaction_type,
      amount,
      currency,
      description,
      reference,
      ...(external_id !== undefined && { external_id }),
      effective_date,
    },
    context: testContext(id, context),
  };
}

export function transfer(
  from: Account,
  to: Account,
  amount: string,
  {
    currency = null,
    description = null,
    effective_date,
    ...context
  }: Omit<PostingOptions, 'reference' | 'external_id'> = {},
  id: number | string = next++,
): Command {
  const data = {
    transfer_id: formatId('transfer', testBits(id)),
    from_account_id: idOfAccount(from),
    to_account_id: idOfAccount(to),
    amount,
    currency,
    description,
    effective_date,
  };
  return { name: 'create_transfer', data, context: testContext(id, { message_id: data.transfer_id, ...context }) };
}

export function reversal(
  original: string,
  { effective_date, ...context }: Partial<MessageContext> & { effective_date?: string } = {},
  id: number | string = next++,
): Command {
  return {
    name: 'reverse_transaction',
    data: {
      transaction_id: formatId('transaction', testBits(id)),
      reverses_transaction_id: original,
      reason: 'mistake',
      effective_date,
    },
    context: testContext(id, context),
  };
}

export function opening(
  n: number,
  type: AccountType,
  amount: string,
  currency = 'USD',
  status: AccountStatus = 'Active',
): Command {
  const account_id = formatId('account', testBits(n));
  const data = {
    account_id,
    client_id: formatId('client', testBits(n)),
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
    data: { transition_id: formatId('transition', testBits(id)), account_id: account.account_id, status },
    context: testContext(id, rest),
  };
}

export function limiting(
  account: AccountState,
  limits: Partial<Record<LimitName, string>>,
  rest: Partial<MessageContext> = {},
  id = next++,
): Command {
  return {
    name: 'set_account_limits',
    data: { account_id: account.account_id, ...limits },
    context: testContext(id, { message_id: `cmd_${testBits(id)}`, ...rest }),
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
  return formatId('hold', testBits(n));
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
  effective_date?: string;
  id?: number;
  context?: Partial<MessageContext>;
}
export function capture(
  hold: number,
  { amount = null, to, final = true, description = null, effective_date, id = next++, context = {} }: Capturing = {},
): Command {
  const data = {
    transaction_id: formatId('transaction', testBits(id)),
    hold_id: testHoldId(hold),
    amount,
    to_account_id: to?.account_id ?? null,
    final,
    description,
    effective_date,
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
