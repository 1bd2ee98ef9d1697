import type { Bank } from '../clients/typescript/index.ts';
import { firms, firstNames, lastNames, streets, type Trade } from './seed-names.ts';

/**
 * The plan of the demo bank, generated from the seed: the same options give the same plan on every machine and day.
 * Descriptions and references name days of a period of ninety days; the postings have the time of the requests. Pure.
 */

export interface SeedOptions {
  clients: number;
  days: number;
  seed: number;
}

type Input<Call extends keyof Bank> = NonNullable<Parameters<Bank[Call]>[0]>;
/** A refusal that the plan intends. */
type Refused = { refused?: 'insufficient_funds' | 'inactive_account' };

/** Accounts have numbers within the plan, because the bank chooses their ids. */
export type Step =
  | ({ kind: 'transaction'; account: number; daysAgo?: number } & Omit<Input<'createTransaction'>, 'account_id'> &
      Refused)
  | ({ kind: 'transfer'; from: number; to: number } & Omit<
      Input<'createTransfer'>,
      'from_account_id' | 'to_account_id'
    >)
  | ({ kind: 'hold'; account: number; captured?: { to: number; amount: number } } & Omit<
      Input<'placeHold'>,
      'account_id'
    >)
  | { kind: 'batch'; from: number; items: { to: number; amount: number; description: string }[] }
  | ({ kind: 'limits'; account: number } & Omit<Input<'setAccountLimits'>, 'account_id'>)
  | ({ kind: 'status'; account: number } & Omit<Input<'changeAccountStatus'>, 'account_id'>);

export interface SeedPlan {
  clients: Input<'createClient'>[];
  accounts: ({ client: number } & Omit<Input<'openAccount'>, 'client_id'>)[];
  /**
   * The steps of one client, or the payments of one company to its suppliers. Steps run one after the other, chains
   * concurrently.
   */
  chains: Step[][];
}

const firstDay = Date.UTC(2026, 0, 1);
const dayMs = 86_400_000;
const currency = 'KES';
const highestSalary = 260_000;
const highestSupply = 40_000;

export function createPlan({ clients, days, seed }: SeedOptions): SeedPlan {
  const plan: SeedPlan = { clients: [], accounts: [], chains: [] };
  const firmCount = Math.min(firms.length, Math.max(4, Math.floor(clients / 8)), clients);
  // This is enough that no salary and no payment to a supplier is refused.
  const funds = Math.ceil(days / 30 + 1) * (clients * highestSalary + 3 * highestSupply);
  const byTrade: Record<Trade, number[]> = { employer: [], landlord: [], grocer: [], utility: [] };
  for (const [index, { name, trade }] of firms.slice(0, firmCount).entries()) {
    plan.clients.push({
      client_type: 'Corporate',
      company_name: `${name} Ltd`,
      registration_number: `CPR-${2000 + seed}-${index + 1}`,
      email: `accounts${index + 1}@example.com`,
      contact_number: phone(seed, index),
      external_id: externalId(seed, 'client', index),
      metadata: { trade },
      address: `${streets[index % streets.length]}, Nairobi`,
    });
    byTrade[trade].push(plan.accounts.length);
    plan.accounts.push({
      client: index,
      account_type: 'Current',
      currency,
      initial_deposit: trade === 'employer' ? funds : 250_000,
      external_id: externalId(seed, 'account', plan.accounts.length),
    });
  }
  for (let index = firmCount; index < clients; index++) addPerson(plan, byTrade, { index, days, seed });
  for (const employer of byTrade.employer) addSuppliers(plan, byTrade, { employer, days, seed });
  return plan;
}

/** Returns the external_id of a client or an account, by its number in the plan. */
function externalId(seed: number, kind: 'client' | 'account', number: number): string {
  return `seed-${seed}-${kind}-${number}`;
}

/** Plans the monthly payments of a company to its suppliers, in one batch. */
function addSuppliers(
  plan: SeedPlan,
  firmsByTrade: Record<Trade, number[]>,
  { employer, days, seed }: { employer: number; days: number; seed: number },
): void {
  const random = createRandom(seed * 100_003 - employer - 1);
  const steps: Step[] = [];
  for (let day = 14; day < days; day += 30) {
    const month = formatDay(day).slice(0, 7);
    const items = (['landlord', 'utility', 'grocer'] as const).map((trade) => ({
      to: random.pick(firmsByTrade[trade]),
      amount: random.whole(5, highestSupply / 1000) * 1000,
      description: `Supplier ${trade} ${month}`,
    }));
    steps.push({ kind: 'batch', from: employer, items });
  }
  plan.chains.push(steps);
}

interface Person {
  index: number;
  days: number;
  seed: number;
}

/** The values with which a chain is planned. */
interface Life {
  random: Random;
  checking: number;
  savings: number | undefined;
  loan: number | undefined;
  salary: number;
  /** The outstanding amount of the loan, and the balance of the checking account. */
  outstanding: number;
  balance: number;
  steps: Step[];
}

function addPerson(plan: SeedPlan, firmsByTrade: Record<Trade, number[]>, { index, days, seed }: Person): void {
  const random = createRandom(seed * 100_003 + index);
  const [first, last] = [random.pick(firstNames), random.pick(lastNames)];
  const number = phone(seed, index);
  plan.clients.push({
    client_type: 'Retail',
    first_name: first,
    last_name: last,
    email: `${first}.${last}${index}@example.org`.toLowerCase(),
    contact_number: number,
    external_id: externalId(seed, 'client', index),
    address: `${random.whole(1, 400)} ${random.pick(streets)}, Nairobi`,
    ...(random.chance(0.7) ? { ussd_phone_number: number, ussd_status: 'active' } : {}),
  });
  const open = (account_type: 'Savings' | 'Checking' | 'Loan', initial_deposit: number) =>
    plan.accounts.push({
      client: index,
      account_type,
      currency,
      initial_deposit,
      external_id: externalId(seed, 'account', plan.accounts.length),
    }) - 1;
  const salary = random.whole(35, highestSalary / 1000) * 1000;
  const balance = random.whole(5, 80) * 500;
  const principal = random.whole(4, 12) * salary;
  const life: Life = {
    random,
    salary,
    balance,
    checking: open('Checking', balance),
    savings: random.chance(0.6) ? open('Savings', random.whole(2, 100) * 1000) : undefined,
    loan: random.chance(0.2) ? open('Loan', principal) : undefined,
    outstanding: principal,
    steps: [],
  };
  const places = {
    employer: random.pick(firmsByTrade.employer),
    landlord: random.pick(firmsByTrade.landlord),
    grocer: random.pick(firmsByTrade.grocer),
    utility: random.pick(firmsByTrade.utility),
  };
  const frozenFrom = random.chance(0.04) ? random.whole(Math.floor(days / 2), days) : undefined;
  let isFrozen = false;
  for (let day = 0; day < days && !isFrozen; day++) {
    isFrozen = day === frozenFrom && freeze(life, day);
    if (!isFrozen) live(life, places, day);
  }
  if (!isFrozen && index % 10 === 0) clearCheque(life, index);
  if (!isFrozen && index % 40 === 5)
    life.steps.push({
      kind: 'limits',
      account: life.checking,
      per_transaction: 100_000,
      per_day_out: 150_000,
      minimum_balance: 500,
    });
  plan.chains.push(life.steps);
}

/** Plans a cheque whose value date is some days before it is posted. */
function clearCheque({ checking, steps }: Life, index: number): void {
  steps.push({
    kind: 'transaction',
    account: checking,
    transaction_type: 'Deposit',
    amount: 12_500,
    description: 'Cheque cleared',
    reference: `CHQ-IN-${index}`,
    daysAgo: 2 + (index % 7),
  });
}

/** Plans one day of a person with an account. */
function live(life: Life, { employer, landlord, grocer, utility }: Record<Trade, number>, day: number): void {
  const { random, checking, savings, loan, salary, steps } = life;
  const date = formatDay(day);
  const month = date.slice(0, 7);
  const pay = (to: number, amount: number, description: string): boolean => {
    if (amount > life.balance) return false;
    life.balance -= amount;
    steps.push({ kind: 'transfer', from: checking, to, amount, description });
    return true;
  };
  if (day % 30 === 24) {
    steps.push({ kind: 'transfer', from: employer, to: checking, amount: salary, description: `Salary ${month}` });
    life.balance += salary;
  }
  if (day % 30 === 26) pay(landlord, Math.round(salary * 0.28), `Rent ${month}`);
  const instalment = Math.min(Math.round(salary * 0.1), life.outstanding);
  if (day % 30 === 27 && loan !== undefined && instalment > 0 && pay(loan, instalment, `Loan instalment ${month}`))
    life.outstanding -= instalment;
  if (day % 30 === 28 && savings !== undefined)
    pay(savings, Math.round(salary * 0.08), `Standing order to savings ${month}`);
  if (day % 30 === 4) pay(utility, random.whole(800, 6000), `Electricity and water ${month}`);
  if (random.chance(0.3)) pay(grocer, random.whole(25_000, 650_000) / 100, `Groceries ${date}`);
  if (random.chance(0.02)) holdFuel(life, grocer, date);
  if (random.chance(0.06)) withdraw(life, random.whole(1, 10) * 1000, date);
  if (random.chance(0.03)) {
    const amount = random.whole(5, 200) * 100;
    steps.push({
      kind: 'transaction',
      account: checking,
      transaction_type: 'Deposit',
      amount,
      description: `Cash at the counter ${date}`,
      reference: `SLIP-${date}-${random.whole(1000, 9999)}`,
    });
    life.balance += amount;
  }
  if (random.chance(0.004))
    steps.push({
      kind: 'transaction',
      account: checking,
      transaction_type: 'Withdrawal',
      amount: Math.ceil(life.balance) + random.whole(1, 90) * 1000,
      description: `Cheque returned ${date}`,
      reference: `CHQ-${random.whole(100_000, 999_999)}`,
      refused: 'insufficient_funds',
    });
}

function withdraw(life: Life, amount: number, date: string): void {
  if (amount > life.balance) return;
  life.balance -= amount;
  life.steps.push({
    kind: 'transaction',
    account: life.checking,
    transaction_type: 'Withdrawal',
    amount,
    description: `Cash machine ${date}`,
    reference: `ATM-${date}-${life.random.whole(1000, 9999)}`,
  });
}

/**
 * Plans a card payment at a filling station: an amount is held, and the cost of the fuel is captured. Sometimes the
 * hold is never captured.
 */
function holdFuel(life: Life, station: number, date: string): void {
  const { random, checking, steps } = life;
  const amount = 8000;
  if (amount > life.balance) return;
  const taken = random.chance(0.8) ? random.whole(100_000, 800_000) / 100 : undefined;
  life.balance -= taken ?? amount;
  steps.push({
    kind: 'hold',
    account: checking,
    amount,
    description: `Fuel ${date}`,
    reference: `AUTH-${date}-${random.whole(1000, 9999)}`,
    ...(taken === undefined ? {} : { captured: { to: station, amount: taken } }),
  });
}

/**
 * Plans a card that is reported stolen, after which payments on the account are refused. Returns true if the account
 * remains frozen.
 */
function freeze({ random, checking, steps }: Life, day: number): boolean {
  const date = formatDay(day);
  steps.push({
    kind: 'status',
    account: checking,
    status: 'Frozen',
    reason: random.pick(['fraud', 'legal', 'customer_request']),
    note: `Card reported stolen ${date}`,
  });
  steps.push({
    kind: 'transaction',
    account: checking,
    transaction_type: 'Withdrawal',
    amount: random.whole(1, 20) * 1000,
    description: `Cash machine ${date}`,
    reference: `ATM-${date}-0000`,
    refused: 'inactive_account',
  });
  if (random.chance(0.5)) return true;
  steps.push({ kind: 'status', account: checking, status: 'Active', note: `Identity checked ${date}` });
  return false;
}

function formatDay(day: number): string {
  return new Date(firstDay + day * dayMs).toISOString().slice(0, 10);
}

/** Returns a number that no other client of any seed has: mobile numbers of Germany have room for all of them. */
function phone(seed: number, index: number): string {
  return `+4915${String(seed).padStart(4, '0')}${String(index).padStart(6, '0')}`;
}

interface Random {
  /** Returns a number from `min` to `max`, both included. */
  whole(min: number, max: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
}

/** Returns pseudorandom numbers that depend only on the seed (mulberry32). */
function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const whole = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return {
    whole,
    chance: (probability) => next() < probability,
    pick: (items) => items[whole(0, items.length - 1)] as (typeof items)[number],
  };
}
