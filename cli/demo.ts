import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { type Bank, BankError, type Timeline } from '../clients/typescript/index.ts';
import { decimal } from './accounts.ts';
import { Failure, openBank, openKafka, print, printJson, say } from './api.ts';
import { type Event, eventLine, followEvents } from './tail.ts';

type Entry = Pick<
  Timeline['entries'][number],
  'account_number' | 'direction' | 'side' | 'amount' | 'currency' | 'balance_after'
>;

/** One operation, its postings, and its events. */
interface Step {
  title: string;
  /** The error code, if the bank refuses. */
  refused?: string;
  entries: Entry[];
  events: Event[];
}

const eventTopics = ['transactions', 'transfers', 'accounts', 'holds'] as const;
const eventsWithinMs = 15_000;

/** `bank demo`: a sequence of operations that shows double entry and events. */
export function addDemo(command: Command): void {
  command
    .option('--json', 'print everything as one JSON array at the end')
    .addHelpText(
      'after',
      '\nEach run creates a new client with accounts. Events are shown for the local bank, or if KAFKA_BROKERS is set.',
    )
    .action(async ({ json }: { json?: true }) => {
      const steps: Step[] = [];
      await runDemo(openBank(), (step) => {
        steps.push(step);
        if (!json) show(step);
      });
      if (json) printJson(steps);
    });
}

function show({ title, refused, entries, events }: Step): void {
  print(`\n${title}${refused === undefined ? '' : `: refused, ${refused}`}`);
  for (const { account_number, direction, side, amount, currency, balance_after } of entries) {
    print(
      `  ${account_number.padEnd(16)} ${direction.padEnd(6)} ${side}  ${decimal(amount, currency).padStart(10)} ${currency}   balance ${decimal(balance_after, currency).padStart(10)}`,
    );
  }
  for (const event of events) print(`  → ${event.topic}: ${eventLine(event).replace(/^\S+\s+/, '')}`);
}

/** Collects the events that concern one of the demo's accounts. */
class Listener {
  readonly accounts = new Set<string>();
  readonly #events: Event[] = [];
  #returned = 0;

  take(event: Event): void {
    this.#events.push(event);
  }

  /** Returns the next `count` events of the demo, without those of other callers. */
  async next(count: number): Promise<Event[]> {
    const ours = () =>
      this.#events.filter(({ data }) => [...this.accounts].some((account) => JSON.stringify(data).includes(account)));
    for (const end = performance.now() + eventsWithinMs; ours().length < this.#returned + count; ) {
      if (performance.now() > end)
        throw new Failure(3, `fewer than ${count} events arrived within ${eventsWithinMs / 1000} s`);
      await sleep(20);
    }
    const events = ours().slice(this.#returned, this.#returned + count);
    this.#returned += count;
    return events;
  }
}

async function runDemo(bank: Bank, report: (step: Step) => void): Promise<void> {
  const listener = new Listener();
  const isFollowed = (await openKafka()) !== undefined;
  if (!isFollowed) say('Events are not shown: KAFKA_BROKERS is not set.');
  const following = isFollowed ? await followEvents(eventTopics, 'end', (event) => listener.take(event)) : undefined;
  const nextEvents = async (count: number) => (isFollowed ? listener.next(count) : []);
  const readEntries = async (transaction_id: string) => (await bank.getTimeline({ transaction_id })).entries;
  try {
    await takeSteps(bank, { report, nextEvents, readEntries, follow: (account) => listener.accounts.add(account) });
  } finally {
    await following?.stop();
  }
}

interface StepContext {
  report(step: Step): void;
  /** Returns this number of events, those of the last step. */
  nextEvents(count: number): Promise<Event[]>;
  readEntries(transactionId: string): Promise<Entry[]>;
  follow(accountId: string): void;
}

async function takeSteps(bank: Bank, { report, nextEvents, readEntries, follow }: StepContext): Promise<void> {
  const { client_id } = await bank.createClient({
    client_type: 'Retail',
    first_name: 'Amina',
    last_name: 'Otieno',
    email: 'amina@example.org',
    contact_number: '+254700000001',
  });
  const open = async (account_type: 'Savings' | 'Checking' | 'Loan', initial_deposit: number, title: string) => {
    const external_id = `demo-${client_id.slice(-8)}-${account_type}`;
    const { account_id } = await bank.openAccount({
      client_id,
      account_type,
      currency: 'KES',
      initial_deposit,
      external_id,
    });
    follow(account_id);
    const [first] = await bank.listTransactions({ account_id }).toArray(1);
    report({
      title,
      entries: first === undefined ? [] : await readEntries(first.transaction_id),
      events: await nextEvents(first === undefined ? 1 : 2),
    });
    return account_id;
  };
  const transact = async (
    account_id: string,
    transaction_type: 'Deposit' | 'Withdrawal',
    amount: number,
    title: string,
  ) => {
    const { transaction_id } = await bank.createTransaction({
      account_id,
      transaction_type,
      amount,
      description: title,
    });
    report({ title, entries: await readEntries(transaction_id), events: await nextEvents(1) });
  };
  const transfer = async (from_account_id: string, to_account_id: string, amount: number, title: string) => {
    const { transfer_id } = await bank.createTransfer({ from_account_id, to_account_id, amount, description: title });
    const [leg] = await bank.listTransactions({ transfer_id }).toArray(1);
    report({
      title,
      entries: leg === undefined ? [] : await readEntries(leg.transaction_id),
      events: await nextEvents(3),
    });
  };
  const refused = async (account_id: string, amount: number, title: string) => {
    const error: unknown = await bank
      .createTransaction({ account_id, transaction_type: 'Withdrawal', amount, description: title })
      .catch((thrown: unknown) => thrown);
    if (!(error instanceof BankError))
      throw error instanceof Error ? error : new Failure(1, `${title}: the bank should have refused it`);
    report({ title, refused: error.code, entries: [], events: await nextEvents(1) });
  };
  const status = async (account_id: string, to: 'Active' | 'Frozen', title: string) => {
    await bank.changeAccountStatus({ account_id, status: to, ...(to === 'Frozen' ? { reason: 'fraud' } : {}) });
    report({ title, entries: [], events: await nextEvents(1) });
  };
  const hold = async (account_id: string, amount: number, title: string) => {
    const { hold_id } = await bank.placeHold({ account_id, amount, description: title });
    report({ title, entries: [], events: await nextEvents(1) });
    return hold_id;
  };
  const capture = async (hold_id: string, amount: number, title: string) => {
    const { transaction } = await bank.captureHold({ hold_id, amount, description: title });
    report({
      title,
      entries: transaction === undefined ? [] : await readEntries(transaction.transaction_id),
      events: await nextEvents(2),
    });
  };
  const batch = async (from_account_id: string, payments: [string, number][], title: string) => {
    const { results } = await bank.createBatch({
      mode: 'atomic',
      items: payments.map(([to_account_id, amount]) => ({
        transfer: { from_account_id, to_account_id, amount, description: title },
      })),
    });
    const entries = [];
    for (const { transfer } of results) {
      const [leg] = await bank.listTransactions({ transfer_id: transfer?.transfer_id }).toArray(1);
      entries.push(...(leg === undefined ? [] : await readEntries(leg.transaction_id)));
    }
    report({ title, entries, events: await nextEvents(3 * payments.length) });
  };
  const savings = await open('Savings', 1500, 'Amina opens a savings account with 1,500');
  const checking = await open('Checking', 0, 'and a checking account');
  await transact(savings, 'Deposit', 250.75, 'She deposits 250.75 at the counter');
  await transact(savings, 'Withdrawal', 100, 'She withdraws 100');
  await transfer(savings, checking, 300, 'She transfers 300 to her checking account');
  await refused(checking, 5000, 'She asks for 5,000, and has 300');
  await status(savings, 'Frozen', 'Her card is stolen: savings are frozen');
  await refused(savings, 50, 'Somebody tries to withdraw 50');
  await status(savings, 'Active', 'Her identity is checked: the account is active again');
  const loan = await open('Loan', 2000, 'She takes out a loan of 2,000, paid out in cash');
  await transfer(savings, loan, 500, 'and pays 500 of it back from her savings');
  const authorisation = await hold(checking, 120, 'She pays by card at a hotel: 120 of her checking account are held');
  await capture(authorisation, 95.5, 'and the hotel takes 95.50; the rest is hers again');
  const payments: [string, number][] = [
    [loan, 200],
    [checking, 50],
  ];
  await batch(
    savings,
    payments,
    'At the end of the month she pays 200 for the loan and 50 to checking, both or neither',
  );
}
