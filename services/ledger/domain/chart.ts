import type { AccountType } from '#libs/contracts/accounts.ts';
import type { AccountClass, Direction, Side } from '#libs/contracts/entries.ts';

/**
 * The chart of accounts (contract: double-entry). `credit` means that the balance of this account rises,
 * `debit` that it falls, also for Teller and Vault. The accounting side follows from the account's class.
 */
export type SystemKind = 'Teller' | 'Vault';
export type LedgerAccountType = AccountType | SystemKind;

export function accountClass(type: LedgerAccountType): AccountClass {
  return type === 'Teller' || type === 'Vault' || type === 'Loan' ? 'asset' : 'liability';
}

export function isSystem(type: LedgerAccountType): type is SystemKind {
  return type === 'Teller' || type === 'Vault';
}

/** Liability: credit = CR, debit = DR. Asset: credit = DR, debit = CR. */
export function balanceSide(type: LedgerAccountType, direction: Direction): Side {
  return (accountClass(type) === 'liability') === (direction === 'credit') ? 'CR' : 'DR';
}

export function opposite(direction: Direction): Direction {
  return direction === 'credit' ? 'debit' : 'credit';
}

/** One step of an operation: an account and its direction. */
export interface Leg<A> {
  account: A;
  direction: Direction;
}

/** Cash in: credit the customer and the Teller, then transfer from the Teller to the Vault. */
export function cashIn<A>(customer: A, teller: A, vault: A): Leg<A>[] {
  return [
    { account: customer, direction: 'credit' },
    { account: teller, direction: 'credit' },
    { account: teller, direction: 'debit' },
    { account: vault, direction: 'credit' },
  ];
}

/**
 * Cash out: transfer from the Vault to the Teller, then debit the Teller. The customer is debited for a
 * withdrawal, and credited when a loan is paid out (the outstanding principal rises).
 */
export function cashOut<A>(customer: A, teller: A, vault: A, customerDirection: Direction): Leg<A>[] {
  return [
    { account: vault, direction: 'debit' },
    { account: teller, direction: 'credit' },
    { account: teller, direction: 'debit' },
    { account: customer, direction: customerDirection },
  ];
}

/**
 * Between customers: debit the source and credit the destination. For a Loan, debit the destination too: the
 * outstanding principal falls.
 */
export function move<A>(source: A, destination: A, toLoan: boolean): Leg<A>[] {
  return [
    { account: source, direction: 'debit' },
    { account: destination, direction: toLoan ? 'debit' : 'credit' },
  ];
}

/** Returns the legs in the opposite direction and reverse order. */
export function reverseLegs<A>(legs: Leg<A>[]): Leg<A>[] {
  return legs.map((leg) => ({ account: leg.account, direction: opposite(leg.direction) })).reverse();
}

export const systemPrefix = { Teller: 'TLR', Vault: 'VLT' } as const;

/**
 * Returns `TLR-USD` or `VLT-USD`; with a slot, `VLT-USD/7`. There is one Teller and one Vault per currency,
 * each consisting of slots.
 */
export function systemAccountNumber(kind: SystemKind, currency: string, slot?: number): string {
  return `${systemPrefix[kind]}-${currency}${slot === undefined ? '' : `/${slot}`}`;
}
